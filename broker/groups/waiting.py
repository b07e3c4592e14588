"""Requests that wait for their answer, perhaps over many operations."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, Final

import trio

from broker.groups.write_operation import DeferredAnswer, Ticket

_NOT_YET: Final = object()


class Waiting:
    """One request; the first answer counts."""

    __slots__ = ("_answer", "_answered", "ticket")

    def __init__(self, ticket: Ticket) -> None:
        self.ticket = ticket
        self._answer: Any = _NOT_YET
        self._answered = trio.Event()

    def answer(self, response: object) -> None:
        """Give the answer."""
        if self._answer is _NOT_YET:
            self._answer = response
            self._answered.set()

    async def wait_answered(self) -> Any:  # noqa: ANN401 - whatever was answered
        """Wait for the answer and return it."""
        await self._answered.wait()
        return self._answer


class WaitingRoom:
    """Everybody who waits, by ticket."""

    def __init__(self) -> None:
        self._by_ticket: dict[Ticket, Waiting] = {}
        self._tickets = count()

    @contextmanager
    def enter(self) -> Iterator[Waiting]:
        """Wait for an answer within the block; whoever leaves early gets none."""
        waiting = Waiting(next(self._tickets))
        self._by_ticket[waiting.ticket] = waiting
        try:
            yield waiting
        finally:
            del self._by_ticket[waiting.ticket]

    def give(self, answers: Iterable[DeferredAnswer]) -> None:
        """Give answers to those who are still there."""
        for answer in answers:
            waiting = self._by_ticket.get(answer.ticket)
            if waiting is not None:
                waiting.answer(answer.response)
