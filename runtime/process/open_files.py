"""How many files, sockets among them, this process may have open."""

import resource


def allow_many_files() -> None:
    """Raise this process's limit of open files to what the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def most_open(asked: int, *, files_each: int = 1) -> int:
    """Return how many connections may be open: a quarter of all files is left for all else.

    Without that, connections that do nothing would take the files which the rest needs: a broker's
    log folder that cannot open a file is taken for broken. `files_each`: so many one connection
    takes.
    """
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return asked if files == resource.RLIM_INFINITY else min(asked, files * 3 // 4 // files_each)
