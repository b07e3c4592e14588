"""One partition of `__consumer_offsets` as its coordinator holds it, and those who wait."""

from dataclasses import dataclass, field
from typing import Any, Final

import trio

from broker.context import LedPartition
from broker.groups.shard import Shard

_NOT_YET: Final = object()


@dataclass(slots=True, kw_only=True)
class Seat:
    """A partition this broker leads; `shard` is None until its log has been read."""

    partition: LedPartition
    shard: Shard | None = None
    last_written: int = -1
    """The offset of the last record that the shard has replayed, -1 when there is none."""
    loading: trio.CancelScope = field(default_factory=trio.CancelScope)

    @property
    def loaded(self) -> Shard:
        """The shard of a seat that is known to be loaded."""
        assert self.shard is not None
        return self.shard

    @property
    def is_safe(self) -> bool:
        """Whether everything the shard has replayed would survive a failover."""
        return self.last_written < self.partition.high_watermark

    @property
    def next_deadline_ms(self) -> int | None:
        """When the shard has to be looked at again."""
        return None if self.shard is None else self.shard.next_deadline_ms


class Waiting:
    """One request that waits for its answer; the first answer counts."""

    __slots__ = ("_answer", "_answered")

    def __init__(self) -> None:
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
