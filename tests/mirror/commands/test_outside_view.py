"""A group that goes on while it is looked at is not taken for one that is too far on the target."""

import re
from dataclasses import replace
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from mirror.clusters.log_ends import Ends, LogEnds
from mirror.commands import outside_view as looking
from mirror.commands.group_rows import Exactness
from mirror.commands.outside_view import observe, observe_group
from offset_translation.map_records import piece_start
from offset_translation.map_state import MapState
from offset_translation.runs import Place
from runtime.configuration.flow_section import PatternSet
from tests.doubles.map_writers import MemoryWriters, writers_of
from tests.mirror.building import CONFIG
from wire.topic_partition import TopicPartition

PLACE = TopicPartition("orders", 0)
FLOW = replace(CONFIG, topics=PatternSet(include=(re.compile(".*"),), exclude=()))


@pytest.fixture
def moving(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have two clusters whose logs and group are five records further at every question."""
    grown = partial(next, count(100, 5))

    def ends() -> Ends:
        return {PLACE: LogEnds(start=0, end=grown())}

    async def source_ends(*_: object) -> Ends:
        return ends()

    async def read_target_ends(*_: object) -> Ends:
        return ends()

    async def read_map(*_: object) -> MapState:
        state = MapState()
        state.replay(*piece_start(*PLACE, source_start=0, place=Place(0)))
        return state

    async def read_map_back(*_: object) -> MapState:
        return MapState()

    async def positions(*_: object) -> dict[tuple[str, int], Any]:
        return {PLACE: SimpleNamespace(offset=grown())}

    async def checkpoints(*_: object) -> dict[str, Any]:
        return {}

    fakes = {
        "source_ends": source_ends,
        "read_target_ends": read_target_ends,
        "read_map": read_map,
        "read_map_back": read_map_back,
        "fetch_group_offsets": positions,
        "target_positions": positions,
        "_checkpoints": checkpoints,
    }
    for name, fake in fakes.items():
        monkeypatch.setattr(looking, name, fake)


@pytest.mark.usefixtures("moving")
async def test_a_position_that_was_applied_meanwhile_passes_nothing_over() -> None:
    links: Any = SimpleNamespace(source_admin=None, target_admin=None)
    found = await observe(FLOW, links, writers_of(MemoryWriters()), "billing")
    [row] = await observe_group(FLOW, links, found, "billing")
    assert row.target_offset is not None
    assert row.translated is not None
    assert row.target_offset <= row.translated
    assert row.skipped == 0
    assert row.exactness is Exactness.AHEAD
