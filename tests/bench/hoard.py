"""Holds the memory that is free, so that the machine under this one does not take it back.

A rented machine gives its free memory back (free page reporting of virtio-balloon), and what it
writes to next has to be brought first, on the account of whoever writes: 8 GiB into a file in
memory took 32.5 CPU-s on fresh pages and 3.0 on the same ones again. It falls on brokers, the page
cache and Java's heap, in whoever's turn it comes.

`python -m tests.bench.hoard MOST_MB` takes what is free, up to so much, and lets go of a piece
whenever others use what was left. A page that it lets go is used before one that was given back,
since the kernel keeps those at the end of its lists.
"""

import mmap
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.bench.ledger import reason_of, say
from tests.interop.peers import PeerFailed
from tests.interop.peers.child import pause, start_child

PIECE_MB: Final = 64
LEAST_FREE_MB: Final = 1500
"""More than any peer asks for before it starts (1,224 MB), and than all take between two looks."""
SLACK_MB: Final = 256
"""So much more may be free before some is taken, or a piece would come and go all the time."""
LOOK_S: Final = 0.02
FIRST_FILL_S: Final = 300
HOLDS: Final = "holds"
FIRST_TO_GO: Final = 1000
"""To the kernel (oom_score_adj), when there is too little memory after all."""
MEMORY_INFO: Final = Path("/proc/meminfo")
_FREE: Final = re.compile(rb"^MemFree:\s+(\d+) kB", re.MULTILINE)


def left_free_mb(free_mb: int, most_mb: int) -> int:
    """Return how much is to be left free, all the time, where so much was free at first."""
    return max(LEAST_FREE_MB, free_mb - most_mb)


def pieces_wanted(held: int, free_mb: int, left_mb: int) -> int:
    """Return how many pieces to hold when there are `held` and so much is free beside them."""
    surplus_mb = free_mb - left_mb
    if 0 <= surplus_mb <= SLACK_MB:
        return held
    return max(0, held + surplus_mb // PIECE_MB)


def change(pieces: list[mmap.mmap], wanted: int) -> None:
    """Take pieces, or let go of some. Raises OSError where the kernel has no huge pages."""
    while len(pieces) < wanted:
        piece = mmap.mmap(-1, PIECE_MB * 1024 * 1024, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        piece.madvise(mmap.MADV_HUGEPAGE)  # split into small ones memory is given out slower
        piece[:: mmap.PAGESIZE] = bytes(len(piece) // mmap.PAGESIZE)
        pieces.append(piece)
    while len(pieces) > wanted:
        pieces.pop().close()


@contextmanager
def free_memory_held(folder: Path, most_mb: int) -> Iterator[str]:
    """Let a child process hold what is free until the block ends; whether it does, in words."""
    command = [sys.executable, "-m", __name__, str(most_mb)]
    child = start_child("hoard", command, log=folder / "hoard.log")
    try:
        try:
            child.wait_until(lambda: HOLDS in child.said(), timeout_s=FIRST_FILL_S)
        except PeerFailed as fault:
            child.kill()
            yield f"free memory not held: {reason_of(fault)}"
            return
        yield "free memory held"
        if not child.is_running:
            say(str(child.failure("ended by itself: from then on free memory was not held")))
    finally:
        child.kill()


def _free_mb() -> int:
    found = _FREE.search(MEMORY_INFO.read_bytes())
    assert found is not None, "Linux says what is free"
    return int(found[1]) // 1024


def _hold(most_mb: int) -> None:
    Path("/proc/self/oom_score_adj").write_text(str(FIRST_TO_GO))
    left_mb = left_free_mb(_free_mb(), most_mb)
    pieces: list[mmap.mmap] = []
    is_told = False
    while True:
        wanted = pieces_wanted(len(pieces), _free_mb(), left_mb)
        if wanted == len(pieces) and not is_told:
            print(HOLDS, len(pieces), flush=True)
            is_told = True
        change(pieces, wanted)
        pause(LOOK_S)


if __name__ == "__main__":
    _hold(int(sys.argv[1]))
