"""Which site may be filled anew, and what must not lie there."""

import re
from dataclasses import replace

import pytest

from mirror.clusters.log_ends import Ends, LogEnds
from mirror.commands.flow_without_daemon import read_map
from mirror.commands.positions import CommandFailed
from mirror.commands.refill import _refill, flows_of, still_there
from offset_translation.map_records import map_topic_name, piece_start
from offset_translation.map_state import MapState
from offset_translation.runs import Place
from runtime.configuration.config import FlowConfig, PatternSet
from runtime.coordination.map_writers import MapGone
from tests.doubles.fake_cluster import FakePartition
from tests.doubles.map_writers import MemoryWriters
from tests.failover.target_batches import MIRROR, ORDERS, PIECE, write
from tests.mirror.building import CONFIG
from tests.mirror.two_fakes import two_fakes
from wire.errors import ErrorCode
from wire.record_batch import Record, build_batch
from wire.topic_partition import TopicPartition

AWAY = replace(CONFIG, source="dc1", target="dc2")
BACK = replace(CONFIG, source="dc2", target="dc1")


def test_the_way_back_and_the_way_away_are_found() -> None:
    assert flows_of((AWAY, BACK), "dc1") == (AWAY, BACK)
    assert flows_of((AWAY, BACK), "dc2") == (BACK, AWAY)


@pytest.mark.parametrize(
    "flows",
    [(AWAY,), (BACK,), (replace(AWAY, is_prefixed=True), replace(BACK, is_prefixed=True)), ()],
)
def test_without_both_under_the_same_names_nothing_is_filled(flows: tuple[FlowConfig, ...]) -> None:
    with pytest.raises(CommandFailed, match="a flow to it and one away from it"):
        flows_of(flows, "dc1")


def test_only_what_was_mirrored_and_is_still_there_stands_in_the_way() -> None:
    state = MapState()
    for topic in ("stands", "emptied", "cut", "silent", "never came"):
        state.replay(*piece_start(topic, 0, source_start=0, place=Place(0)))
    state.advance(
        {
            TopicPartition("stands", 0): 7,
            TopicPartition("emptied", 0): 7,
            TopicPartition("cut", 0): 7,
            TopicPartition("silent", 0): 7,
        }
    )
    here: Ends = {
        TopicPartition("stands", 0): LogEnds(start=0, end=7),
        TopicPartition("emptied", 0): LogEnds(start=0, end=0),
        TopicPartition("cut", 0): LogEnds(start=7, end=7),
        TopicPartition("silent", 0): ErrorCode.LEADER_NOT_AVAILABLE,
        TopicPartition("never came", 0): LogEnds(start=0, end=9),
        TopicPartition("new", 0): LogEnds(start=0, end=9),
    }
    assert [topic for topic, _ in still_there(here, state)] == ["cut", "silent", "stands"]


async def test_a_map_that_a_witness_does_not_believe_still_tells_what_the_site_holds() -> None:
    """Its witness may be an old copy, and the map would be deleted."""
    flow = replace(CONFIG, topics=PatternSet(include=(re.compile(".*"),), exclude=()))
    async with two_fakes() as (dc1, dc2, links):
        write(dc1.create_topic("orders", 0).partitions[0], "abc")
        write(dc2.create_topic("orders", 0).partitions[0], "abc", MIRROR)
        log: FakePartition = dc2.create_topic(map_topic_name(CONFIG.source), 0).partitions[0]
        log.batches.append(build_batch([Record(0, 0, *PIECE)], producer_id=9))
        log.end = 1
        with pytest.raises(CommandFailed, match=f"still holds records of {ORDERS}"):
            await _refill(flow, links, MemoryWriters(is_strict=True), write=True)


async def test_a_map_that_a_refill_has_deleted_is_expected_no_more() -> None:
    """Also where the run that deleted it was killed before it had said so."""
    flow = replace(CONFIG, topics=PatternSet(include=(re.compile(".*"),), exclude=()))
    async with two_fakes() as (_, _, links):
        writers = MemoryWriters(is_strict=True)
        await writers.register(9)
        with pytest.raises(MapGone):
            await read_map(flow, links, writers)
        await _refill(flow, links, writers, write=True)
        assert (await read_map(flow, links, writers)).maps == {}
