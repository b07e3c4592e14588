"""What a trimmer has found goes into the map only while it is true of the logs that are there."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from mirror.clusters.log_ends import Ends, LogEnds
from mirror.map import trimming
from mirror.map.map_log import MapRecord
from mirror.map.trimming import MapTrimmer
from mirror.state.batches import Cursor
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from offset_translation.map_records import piece_start
from offset_translation.map_state import MapState
from offset_translation.runs import Place
from tests.mirror.building import CONFIG
from wire.topic_partition import TopicPartition

PLACE = TopicPartition("t", 0)
STARTS = [(0, 0), (30, 20), (60, 40)]


class Map:
    """A map log at which the turn of each write comes when ``before`` has happened."""

    def __init__(self) -> None:
        self.state = MapState()
        self.before: list[Callable[[], None]] = []

    async def write(self, compose: Callable[[], Sequence[MapRecord]]) -> None:
        if self.before:
            self.before.pop(0)()
        for record in compose():
            self.state.replay(*record)


def trimmer_of(known: Map) -> tuple[MapTrimmer, MirroredPartition]:
    """Return that of a flow whose partition has three pieces and sixty records."""
    for source_start, place in STARTS:
        known.state.replay(*piece_start(*PLACE, source_start=source_start, place=Place(place)))
    known.state.advance({PLACE: 60})
    partition = MirroredPartition(
        *PLACE, topic_id=UUID(int=1), offset_map=known.state.maps[PLACE], now_ms=0
    )
    partition.move(PartitionState.POSITIONING, 0)
    partition.go_on(Cursor(80, Place(60), 20), 0)
    return MapTrimmer(CONFIG, {PLACE: partition}, cast("Any", None), cast("Any", known)), partition


@pytest.mark.parametrize("interrupted_before", [0, 1, 2, None])
async def test_a_topic_that_is_begun_anew_keeps_the_pieces_of_its_new_map(
    monkeypatch: pytest.MonkeyPatch, interrupted_before: int | None
) -> None:
    monkeypatch.setattr(trimming, "RECORDS_A_WRITE", 1)
    known = Map()
    trimmer, partition = trimmer_of(known)

    def begin_anew() -> None:
        partition.interrupt("it is mirrored anew", 1)
        known.state.replay(*piece_start(*PLACE, source_start=7, place=Place(0)))

    if interrupted_before is not None:
        known.before = [lambda: None] * interrupted_before + [begin_anew]
    await trimmer.trim({PLACE: 60}, {PLACE: 40})
    first = known.state.maps[PLACE].mirrored_source_start
    assert first == (60 if interrupted_before is None else 7)


async def test_log_starts_of_before_an_interruption_say_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = Map()
    trimmer, partition = trimmer_of(known)

    async def read_ends(*_: object) -> Ends:
        return {PLACE: LogEnds(start=60, end=80)}

    async def read_target_ends(*_: object) -> Ends:
        partition.interrupt("it is mirrored anew", 1)
        return {PLACE: LogEnds(start=40, end=60)}

    monkeypatch.setattr(trimming, "read_ends", read_ends)
    monkeypatch.setattr(trimming, "read_target_ends", read_target_ends)
    trimmer._links = cast("Any", SimpleNamespace(source_admin=None, target_admin=None))
    await trimmer.trim_all()
    assert len(known.state.maps[PLACE]) == len(STARTS)
