"""Waiting for an answer of a connection: a task waits, or a callable is called at once."""

from collections.abc import Callable, Collection
from itertools import islice
from math import ceil
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

import trio

from wire.headers import LEAST_ANSWER_BYTES, decode_response
from wire.net.errors import ConnectionClosed
from wire.primitives import Buffer, MalformedMessage

R = TypeVar("R")
T = TypeVar("T")


class Closable(Protocol):
    """The connection, as far as an answer is concerned."""

    name: str

    def close(self, reason: str) -> None:
        """End it."""
        ...


class Awaiting(Protocol):
    """A receiver of an answer or a fault; the task that reads calls it as soon as one comes."""

    correlation_id: int
    deadline: float
    least_bytes: int
    """No answer takes less, with its size. A reader may wait until that much has come."""
    sent_through: int
    """Where the request ends, counted in bytes of the connection."""

    def settle(self, frame: Buffer) -> None:
        """Take a whole answer, header included.

        MalformedMessage closes the connection, with `fail` for this one too.
        """
        ...

    def fail(self, fault: ConnectionClosed) -> None:
        """Take note that no answer will come."""
        ...


class AnswerListener(Protocol):
    """Who takes over at once what many answers have said, by the task that reads them."""

    def answers_read(self) -> None:
        """Take note that all answers that had come are given out; nobody has run in between."""
        ...


class AnswerGathering(NamedTuple):
    """Many unanswered requests, whose answers are waited for a share at a time.

    A wake-up for each answer costs more than all other work on it.
    """

    from_pending: int
    """With fewer unanswered, each answer is taken as it comes."""
    share: float
    """The broker has the others to go on with."""

    def least_bytes(self, pending: Collection[Awaiting]) -> int:
        """Return the least that the answers to be waited for take together, 0 for any."""
        if len(pending) < self.from_pending:
            return 0
        first = islice(pending, ceil(len(pending) * self.share))
        return sum(awaiting.least_bytes for awaiting in first)


HALF_OF_MANY: Final = AnswerGathering(4, 0.5)
"""A broker works on one Produce of a connection at a time, so each answer comes alone. Half of four
is 3 % dearer at lz4 and 1-3 % at 100 KiB than each at once; waiting for all gained no more."""


class PendingAnswer(Generic[R]):
    """An answer that will come, or a fault that will."""

    __slots__ = (
        "_connection",
        "_fault",
        "_frame",
        "_response",
        "_settled",
        "_version",
        "correlation_id",
        "deadline",
        "least_bytes",
        "sent_through",
    )

    def __init__(
        self, connection: Closable, response: type[R], version: int, deadline: float
    ) -> None:
        self._connection = connection
        self._response = response
        self._version = version
        self._frame: Buffer | None = None
        self._fault: ConnectionClosed | None = None
        self._settled: trio.Event | None = None
        self.correlation_id = 0
        self.least_bytes = LEAST_ANSWER_BYTES
        self.deadline = deadline
        self.sent_through = 0

    def settle(self, frame: Buffer) -> None:
        """Give the answer; it is decoded by the task that waits for it."""
        self._frame = frame
        if self._settled is not None:
            self._settled.set()

    def fail(self, fault: ConnectionClosed) -> None:
        """Say that no answer will come."""
        self._fault = fault
        if self._settled is not None:
            self._settled.set()

    async def wait(self) -> R:
        """Return the answer; ConnectionClosed (or RequestTimedOut) if none came or it is garbled.

        A caller that is cancelled here leaves the connection as it was.
        """
        return self.decode(await self.wait_frame())

    async def wait_read(self, read: Callable[[Buffer, int], T]) -> T:
        """Return what `read` finds in the answer's bytes; fails as `wait` does."""
        frame = await self.wait_frame()
        try:
            return read(frame, self._version)
        except MalformedMessage as fault:
            raise self._garbled(fault) from fault

    async def wait_frame(self) -> Buffer:
        """Return the answer's bytes, header included; fails as `wait` does."""
        if self._frame is None and self._fault is None:
            self._settled = trio.Event()
            await self._settled.wait()
        if self._fault is not None:
            raise self._fault
        assert self._frame is not None
        return self._frame

    def decode(self, frame: Buffer) -> R:
        """Return what the bytes say; where they say nothing, close the connection."""
        try:
            answer: Any = decode_response(self._response, frame, self._version)  # type: ignore[type-var]
        except MalformedMessage as fault:
            raise self._garbled(fault) from fault
        decoded: R = answer
        return decoded

    def _garbled(self, fault: MalformedMessage) -> ConnectionClosed:
        reason = f"garbled answer: {fault}"
        self._connection.close(reason)
        return ConnectionClosed(f"{self._connection.name}: {reason}")
