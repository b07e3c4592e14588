"""The connections that a process has, as /proc tells them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final, TypeAlias

from tests.drill.links import children_of

ESTABLISHED: Final = "01"
Connection: TypeAlias = tuple[int, int]
"""A connection by its two ports, ours first."""


def connections_of(pid: int, ports: Iterable[int]) -> set[Connection]:
    """Return the open connections of a process and its children to servers at these ports."""
    inodes = {inode for one in (pid, *children_of(pid)) for inode in _sockets_of(one)}
    wanted, found = set(ports), set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        ours, theirs = (int(end.rpartition(":")[2], 16) for end in fields[1:3])
        if fields[3] == ESTABLISHED and theirs in wanted and fields[9] in inodes:
            found.add((ours, theirs))
    return found


def _sockets_of(pid: int) -> set[str]:
    found = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(entry.readlink())
        except OSError:
            continue  # it was closed meanwhile
        if target.startswith("socket:["):
            found.add(target[len("socket:[") : -1])
    return found
