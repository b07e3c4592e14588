"""Holds the memory that is free, so that the machine under this one does not take it back.

A rented machine gives its free memory back (free page reporting of virtio-balloon), and what it
writes to next has to be brought first, on the account of whoever writes: 8 GiB into a file in
memory took 32.5 CPU-s on fresh pages and 3.0 on the same ones again. It falls on brokers, the page
cache and Java's heap, in whoever's turn it comes.

`python -m tests.bench.hoard MOST_MB` takes what is free, up to so much, and lets go of a piece
whenever others use what was left. A page that it lets go is used before one that was given back,
since the kernel keeps those at the end of its lists. It takes more when it gets SIGUSR1, and never
by itself: that costs a second for each GiB, and would fall into somebody's turn again.
"""

import mmap
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.ledger import say
from tests.interop.peers import PeerFailed
from tests.interop.peers.child import Child, start_child

PIECE_MB: Final = 64
LEAST_FREE_MB: Final = 1500
"""More than any peer asks for before it starts (1,224 MB), and than all take between two looks."""
SLACK_MB: Final = 256
"""So much more may be free: what a few processes free and take again is not worth a piece."""
LOOK_S: Final = 0.02
TAKES_S: Final = 300
HOLDS: Final = "holds"
TAKE: Final = signal.SIGUSR1
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


@dataclass(slots=True)
class Hoard:
    """The running holder."""

    child: Child
    _takings: int = 1
    """The first it does by itself."""
    _is_holding: bool = True

    @property
    def told(self) -> str:
        """Return what the page says of it: it may have ended since brokers started."""
        return "free memory held" if self._is_holding else "free memory held at first"

    def wait_held(self) -> None:
        """Return when it has taken what it was to take last. Raises PeerFailed."""
        self.child.wait_until(
            lambda: self.child.said().count(HOLDS) >= self._takings, timeout_s=TAKES_S
        )

    def take(self) -> None:
        """Return when all that is free now is held; a holder that has failed is told of, once."""
        if not self._is_holding:
            return
        self._takings += 1
        self.child.process.send_signal(TAKE)
        try:
            self.wait_held()
        except PeerFailed as fault:
            say(f"from now on free memory is not held: {fault}")
            self._is_holding = False
            self.child.kill()


@contextmanager
def running_hoard(folder: Path, most_mb: int) -> Iterator[Hoard]:
    """Let a child process hold what is free, until the block ends. Raises PeerFailed."""
    command = [sys.executable, "-m", __name__, str(most_mb)]
    child = start_child("hoard", command, log=folder / "hoard.log")
    try:
        hoard = Hoard(child)
        hoard.wait_held()
        yield hoard
    finally:
        child.kill()


def _free_mb() -> int:
    found = _FREE.search(MEMORY_INFO.read_bytes())
    assert found is not None, "Linux says what is free"
    return int(found[1]) // 1024


def _hold(most_mb: int) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, [TAKE])
    Path("/proc/self/oom_score_adj").write_text(str(FIRST_TO_GO))
    left_mb = left_free_mb(_free_mb(), most_mb)
    pieces: list[mmap.mmap] = []
    is_asked = True
    while True:
        wanted = pieces_wanted(len(pieces), _free_mb(), left_mb)
        if is_asked or wanted < len(pieces):
            change(pieces, wanted)
        if is_asked:
            print(HOLDS, len(pieces), flush=True)
        is_asked = signal.sigtimedwait([TAKE], LOOK_S) is not None


if __name__ == "__main__":
    _hold(int(sys.argv[1]))
