"""Answers of one connection that wait for their turn."""

from typing import Any, NamedTuple

from broker.apis.answers import LaterAnswer
from wire.headers import RequestHeader


class AwaitedAnswer(NamedTuple):
    """A request whose answer has its turn when those before it are given."""

    header: RequestHeader
    answer: Any
    name: str
    started: float
    was_asked_at_length: bool
    throttle_ms: int

    @property
    def is_ready(self) -> bool:
        """Whether it could be given at once."""
        return not isinstance(self.answer, LaterAnswer) or self.answer.is_ready
