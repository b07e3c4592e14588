"""What is measured: a process that is started, says things, and is killed; on which processors."""

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.interop.peers.child import Child


class Racer(Protocol):
    """A system that has not been started, or runs, or was killed."""

    @property
    def pid(self) -> int: ...

    @property
    def log(self) -> str: ...

    def start(self) -> None: ...

    def kill(self) -> None: ...


@dataclass(slots=True, kw_only=True)
class ChildRacer:
    """The part of one that is a child process of ours; `start` sets `_child`."""

    folder: Path
    _child: Child | None = None

    @property
    def pid(self) -> int:
        return self._running.pid

    @property
    def log(self) -> str:
        """Return what it has said since it was started; nothing when it does not run."""
        return self._child.said() if self._child is not None else ""

    @property
    def _running(self) -> Child:
        assert self._child is not None, "it was not started"
        return self._child

    def kill(self) -> None:
        """End it by SIGKILL."""
        if self._child is not None:
            self._child.kill()
            self._child = None


class Mirror(Racer, Protocol):
    """A mirror, which can also be asked to end."""

    def stop(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """A mirror that runs on these processors only; so does the thread that starts it, meanwhile."""

    mirror: Mirror
    cores: Collection[int]

    @property
    def pid(self) -> int:
        return self.mirror.pid

    @property
    def log(self) -> str:
        return self.mirror.log

    def start(self) -> None:
        with children_on(self.cores):
            self.mirror.start()

    def stop(self) -> None:
        self.mirror.stop()

    def kill(self) -> None:
        self.mirror.kill()


@contextmanager
def children_on(cores: Collection[int]) -> Iterator[None]:
    """Let what this thread starts in the block run on these processors only, for good.

    A child inherits the affinity of the thread that forks it.
    """
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, own)


def first_core() -> frozenset[int]:
    """Return the first of the processors that this process may use."""
    return frozenset({min(os.sched_getaffinity(0))})


def last_core() -> frozenset[int]:
    """Return the last of the processors that this process may use: the first is busier."""
    return frozenset({max(os.sched_getaffinity(0))})
