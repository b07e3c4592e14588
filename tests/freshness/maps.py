"""What offset maps cost: memory, the time of a lookup, and the time to read them at a start."""

import random
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import process_time
from typing import Final, TypeVar
from uuid import UUID

from offset_translation.map_records import piece_start, source_topic
from offset_translation.map_state import MapState
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from offset_translation.translation import NotYet, translate
from wire.record_batch import Record, build_batch, iterate_batches, iterate_records

Made = TypeVar("Made")

MIB: Final = 1024 * 1024
ORDINARY_PARTITIONS: Final = 1_000
ORDINARY_RECORDS: Final = 100_000_000
HOLES: Final = 1_000_000
HOLE_EVERY: Final = 10
LOOKUPS: Final = 100_000
ROUNDS: Final = 5
PARTITIONS: Final = 10_000
PIECES_EACH: Final = 10
BATCH_RECORDS: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One figure and what it must stay below."""

    name: str
    value: float
    limit: float
    unit: str

    @property
    def is_reached(self) -> bool:
        """Whether it is low enough."""
        return self.value < self.limit

    def __str__(self) -> str:
        """Return it as a line."""
        verdict = "reached" if self.is_reached else "NOT reached"
        wanted = f"under {self.limit:g} {self.unit}"
        return f"{self.name:<44} {self.value:8.2f} {self.unit} ({wanted}): {verdict}"


def costs() -> Iterator[Cost]:
    """Measure one after the other; takes some seconds."""
    _, ordinary = _made(ordinary_maps)
    name = f"{ORDINARY_RECORDS // 10**6} million records, {ORDINARY_PARTITIONS} partitions"
    yield Cost(name=name, value=ordinary / MIB, limit=1.0, unit="MiB")
    holes, size = _made(map_with_holes)
    yield Cost(name="a million holes in one partition", value=size / MIB, limit=64.0, unit="MiB")
    yield Cost(name="a lookup in it", value=lookup_us(holes), limit=2.0, unit="us")
    records = list(start_records())
    began = process_time()
    state = replayed(records)
    took_s = process_time() - began
    assert len(state.maps) == PARTITIONS, "every partition has its map"
    yield Cost(name=f"maps of {PARTITIONS} partitions read", value=took_s, limit=5.0, unit="s")


def ordinary_maps(
    partitions: int = ORDINARY_PARTITIONS, records: int = ORDINARY_RECORDS
) -> list[OffsetMap]:
    """Return maps of topics without holes."""
    return [OffsetMap.from_starts([(0, 0)], records // partitions) for _ in range(partitions)]


def map_with_holes(holes: int = HOLES) -> OffsetMap:
    """Return a map with a hole of one offset after every few records, as transactions make."""
    offset_map = OffsetMap()
    for hole in range(holes + 1):
        offset_map.announce(hole * (HOLE_EVERY + 1), Place(hole * HOLE_EVERY))
    offset_map.advance((holes + 1) * HOLE_EVERY)
    return offset_map


def lookup_us(offset_map: OffsetMap, lookups: int = LOOKUPS) -> float:
    """Return the microseconds that a position takes to translate, on average over the log.

    The best of some rounds, in processor time: others may be at work on the machine.
    """
    end = offset_map.mirrored_source_end
    assert end is not None, "it was made with records"
    chance = random.Random(1)
    asked = [chance.randrange(end) for _ in range(lookups)]
    rounds_s = []
    for _ in range(ROUNDS):
        began = process_time()
        found = [translate(offset_map, offset) for offset in asked]
        rounds_s.append(process_time() - began)
        assert not any(isinstance(one, NotYet) for one in found), "all of it is mirrored"
    return min(rounds_s) / lookups * 1e6


def start_records(partitions: int = PARTITIONS, pieces: int = PIECES_EACH) -> Iterator[bytes]:
    """Yield the batches of a map topic: for each topic its id, for each partition its pieces."""
    records = []
    for number in range(partitions):
        name = f"a-topic-with-an-ordinary-name-{number}"
        entries = [source_topic(name, UUID(int=number + 1))]
        for piece in range(pieces):
            start = piece_start(name, 0, source_start=piece * 11, place=Place(piece * 10))
            entries.append(start)
        records += [Record(0, 1, key, value) for key, value in entries]
        if len(records) >= BATCH_RECORDS or number == partitions - 1:
            numbered = [one._replace(offset=place) for place, one in enumerate(records)]
            yield build_batch(numbered)
            records = []


def replayed(batches: list[bytes]) -> MapState:
    """Return what the batches say, read as the daemon reads them when it starts."""
    state = MapState()
    for data in batches:
        for _, batch in iterate_batches(data):
            for record in iterate_records(batch):
                state.replay(record.key, record.value)
    assert not state.rejected, state.rejected[0]
    return state


def _made(make: Callable[[], Made]) -> tuple[Made, int]:
    tracemalloc.start()
    made = make()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return made, size
