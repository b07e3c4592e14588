"""The version of the installed package."""

from runtime.process.extras import PACKAGE


def version() -> str:
    """Return the version of the installed package; "unknown" where nothing is installed."""
    from importlib.metadata import PackageNotFoundError  # takes 40 ms
    from importlib.metadata import version as installed

    try:
        return installed(PACKAGE)
    except PackageNotFoundError:
        return f"unknown: the package {PACKAGE} is not installed, the program runs out of a folder"
