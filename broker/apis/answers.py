"""The answers that a handler may give besides a plain response."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

from broker.log.results import FileSlice
from wire.schema import ApiMessage
from wire.values import frozen


@frozen
class FileAnswer:
    """A response whose `records` are stand-ins for parts of files, in the order of `slices`."""

    message: ApiMessage
    slices: Sequence[FileSlice]


class LaterAnswer(ABC):
    """An answer to a request that is done, given only once other brokers have the result too.

    Requests of the same kind that come behind it are begun meanwhile; answers keep their order.
    """

    @property
    @abstractmethod
    def is_ready(self) -> bool:
        """Whether `wait` would return the answer without waiting."""

    @abstractmethod
    async def wait(self) -> ApiMessage:
        """Return the answer once it may be told."""


def file_bytes(answer: object) -> int:
    """Return how many bytes of files an answer holds."""
    return sum(piece.length for piece in answer.slices) if isinstance(answer, FileAnswer) else 0


def with_throttle(answer: Any, throttle_ms: int) -> Any:  # noqa: ANN401 - any response
    """Return the answer with how long its client has to rest (KIP-219); versions differ in that."""
    if isinstance(answer, FileAnswer):
        return replace(answer, message=with_throttle(answer.message, throttle_ms))
    return replace(answer, throttle_time_ms=throttle_ms)


LONGEST_MESSAGE: Final = 1_000


def with_short_messages(answer: Any) -> Any:  # noqa: ANN401 - any response, any part of one
    """Return the answer with every `error_message` cut to a length that always fits.

    A message that quotes a name of 32,767 bytes does not fit where the name itself did.
    """
    if isinstance(answer, tuple):
        return tuple(with_short_messages(part) for part in answer)
    if not is_dataclass(answer) or isinstance(answer, type):
        return answer
    changed = {}
    for field in fields(answer):
        value = getattr(answer, field.name)
        if field.name == "error_message" and value is not None:
            changed[field.name] = value[:LONGEST_MESSAGE]
        else:
            changed[field.name] = with_short_messages(value)
    return replace(answer, **changed)
