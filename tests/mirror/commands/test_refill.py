"""Which site may be filled anew, and what must not lie there."""

from dataclasses import replace

import pytest

from mirror.clusters.log_ends import Ends, LogEnds
from mirror.commands.positions import CommandFailed
from mirror.commands.refill import flows_of, still_there
from offset_translation.map_records import MapState, piece_start
from offset_translation.runs import Place
from runtime.configuration.config import FlowConfig
from tests.mirror.building import CONFIG
from wire.errors import ErrorCode
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
