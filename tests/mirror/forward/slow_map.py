"""A map whose writes wait."""

from collections.abc import Callable, Sequence

import trio

from mirror.map.map_log import MapRecord
from offset_translation.map_records import MirrorProducer


class SlowMap:
    """Writes when it is told to."""

    producer = MirrorProducer(producer_id=7, producer_epoch=0)

    def __init__(self) -> None:
        self.may_write = trio.Event()

    async def write(self, compose: Callable[[], Sequence[MapRecord]]) -> None:
        await self.may_write.wait()
        compose()
