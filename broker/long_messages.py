"""Long requests and long answers: read and written beside the loop, one at a time.

An element takes some microseconds to read and to write, so that one of 100,000 would stop everybody
for a second.
"""

from dataclasses import fields, is_dataclass
from functools import cache, partial
from typing import Any, Final

from broker.apis.answers import FileAnswer
from broker.apis.api import Api
from broker.fairness import Aside
from wire.primitives import Buffer
from wire.schema import Message, TooManyElements, decode_prefix

SHORT_ELEMENTS: Final = 1_000
"""Up to so many a message is read and written at once, in a few milliseconds."""


class LongMessages(Aside):
    """The place where long ones have their turn; shared by all connections of a broker."""

    async def decode(
        self, api: Api, frame: Buffer, version: int, position: int
    ) -> tuple[Any, bool]:
        """Return the request, and whether it is a long one. Raises as `decode_prefix` does."""
        if api.by_hand is not None:
            request = api.by_hand.read(memoryview(frame), version, position)
            if request is not None:
                return request, False
        read = partial(decode_prefix, api.request, frame, version, position)
        try:
            return read(most_elements=min(SHORT_ELEMENTS, api.most_elements))[0], False
        except TooManyElements:
            if api.most_elements <= SHORT_ELEMENTS:
                raise
        request, _ = await self.beside(partial(read, most_elements=api.most_elements))
        return request, True


def is_long(answer: Message | FileAnswer) -> bool:
    """Say whether an answer holds more elements than are written at once."""
    count = 0
    level: list[Message] = [answer.message if isinstance(answer, FileAnswer) else answer]
    while level:
        below: list[Message] = []
        for one in level:
            for name in _arrays(type(one)):
                elements = getattr(one, name)
                if not elements or not is_dataclass(elements[0]):
                    continue
                count += len(elements)
                if count > SHORT_ELEMENTS:
                    return True
                below += elements
        level = below
    return False


@cache
def _arrays(cls: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(cls) if "tuple[" in str(field.type))
