"""Answers on their way out of one connection: encoded, kept until they are worth a system call."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from broker.apis.answers import FileAnswer, with_short_messages
from broker.apis.api import Api
from broker.long_messages import LongMessages
from broker.metrics import RequestMetrics
from broker.sending import Part, with_files
from wire.headers import RequestHeader, encode_response
from wire.schema import Unencodable

FLUSH_BYTES: Final = 256 * 1024


class Outgoing:
    """The answers that are ready; `send` sends parts within a time, and returns how many bytes."""

    def __init__(
        self,
        apis: Mapping[int, Api],
        send: Callable[[Sequence[Part], float], Awaitable[int]],
        timeout_s: float,
        metrics: RequestMetrics,
        long_messages: LongMessages,
    ) -> None:
        self._apis = apis
        self._send = send
        self._timeout_s = timeout_s
        self._metrics = metrics
        self._long_messages = long_messages
        self._parts: list[Part] = []
        self._bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether it is time to send what is ready."""
        return self._bytes >= FLUSH_BYTES

    async def answer(
        self,
        header: RequestHeader,
        answer: Any,  # noqa: ANN401 - one per API
        *,
        is_long: bool,
    ) -> None:
        """Add the answer to a request; None is none, of a producer that asked for none."""
        if answer is None:
            return
        by_hand = self._apis[header.api_key].by_hand
        frame = None
        if by_hand is not None:
            frame = by_hand.write(header.correlation_id, answer, header.api_version)
        if frame is not None:
            self.add_frames((frame,))
            return
        encode = partial(_encode, header, answer)
        self.add(await self._long_messages.beside(encode) if is_long else encode())

    def add(self, parts: Sequence[Part]) -> None:
        """Add parts of answers as they are."""
        self._parts += parts
        self._bytes += sum(
            part.length if not isinstance(part, bytes | memoryview) else len(part) for part in parts
        )

    def add_frames(self, frames: Sequence[bytes]) -> None:
        """Add whole answers."""
        self._parts += frames
        self._bytes += sum(map(len, frames))

    async def flush(self) -> None:
        """Send what is ready. Raises OSError and PeerGone."""
        if not self._parts:
            return
        parts, self._parts, self._bytes = self._parts, [], 0
        self._metrics.sent_bytes += await self._send(parts, self._timeout_s)


def _encode(header: RequestHeader, answer: Any) -> list[Part]:  # noqa: ANN401 - one per API
    encode = partial(encode_response, header.correlation_id)
    if isinstance(answer, FileAnswer):
        return with_files(encode(answer.message, header.api_version), answer.slices)
    try:
        return [*encode(answer, header.api_version)]
    except Unencodable:  # a message may quote a string that filled its own field
        return [*encode(with_short_messages(answer), header.api_version)]
