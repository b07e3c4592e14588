"""What is measured: a process that is started, says things, and is killed."""

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
