"""A registry of map writers without a witness."""

from collections.abc import Collection
from dataclasses import replace
from uuid import UUID

from mirror.map.known_writers import WritersOf
from runtime.coordination.map_writers import (
    MapGone,
    MapReading,
    MapWriters,
    Registration,
    begun_writers,
)


def writers_of(writers: "MemoryWriters") -> WritersOf:
    """One registry for all topics of all flows."""
    return lambda *_, **__: writers


class MemoryWriters:
    """Believes everybody, as before there were registrations, unless it is strict."""

    def __init__(self, *, is_strict: bool = False) -> None:
        self.is_strict = is_strict
        self.known = MapWriters()

    async def begin(self, *, end: int, topic_id: UUID) -> int:
        self.known = begun_writers(self.known, end, topic_id.hex, 0)
        return 0

    async def register(
        self, producer_id: int, in_log: Collection[int] | None = None
    ) -> Registration:
        self.known = replace(self.known.with_producer(producer_id, 0, in_log), registry="ab" * 16)
        return self.known.newest

    async def note_end(self, end: int) -> None:
        self.known = replace(self.known, end=max(end, self.known.end))

    async def require_unwritten(self, *, is_there: bool) -> None:
        if self.is_strict and self.known.is_gone(is_there=is_there):
            raise MapGone("written, and gone")

    async def forget_log(self) -> None:
        self.known = self.known.unwritten()

    async def is_elsewhere(self, one: Registration) -> bool:
        assert not self.is_strict or not self.known.is_before(one)
        return self.known.is_of_another(one)

    async def believes(self, producer_id: int, offset: int, _: MapReading) -> bool:
        return not self.is_strict or self.known.believes(producer_id, offset)
