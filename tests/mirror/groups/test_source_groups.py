"""The source's positions, record by record and as asked for; bad records are passed over."""

import logging
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from mirror.groups.source_groups import OFFSETS_TOPIC, SourceGroups, SourcePosition
from mirror.state.live_config import LiveConfig
from mirror.state.measurements import FlowMeasurements
from runtime.configuration.config import FlowConfig
from runtime.configuration.flow_section import PatternSet
from tests.mirror.building import CONFIG
from wire.consumer_offsets import (
    GroupMetadataKey,
    OffsetKey,
    OffsetValue,
    encode_key,
    encode_offset_value,
)
from wire.net.operations import GroupOffset
from wire.record_batch import Record
from wire.topic_partition import TopicPartition


def flow_of(groups: str = ".*") -> FlowConfig:
    return replace(CONFIG, groups=PatternSet(include=(re.compile(groups, re.DOTALL),), exclude=()))


def commit(group: str, offset: int | None, *, metadata: str = "", partition: int = 0) -> Record:
    value = None
    if offset is not None:
        stored = OffsetValue(offset=offset, metadata=metadata, commit_timestamp_ms=1)
        value = encode_offset_value(stored)
    key = encode_key(OffsetKey(group=group, topic="orders", partition=partition))
    return Record(7, 1, key, value)


@pytest.fixture
def groups() -> SourceGroups:
    return SourceGroups(LiveConfig(flow_of()), FlowMeasurements("f"))


def replay(groups: SourceGroups, records: Sequence[Record]) -> None:
    for record in records:
        groups.replay(record)


def test_the_last_commit_counts_and_is_news_once(groups: SourceGroups) -> None:
    replay(groups, [commit("g", 5), commit("g", 9, metadata="m")])
    assert groups.positions == {"g": {("orders", 0): SourcePosition(9, "m")}}
    assert groups.take_changed() == {"g": {("orders", 0)}}
    assert groups.take_changed() == {}


def test_what_clients_commit_for_want_of_a_position_is_none(groups: SourceGroups) -> None:
    """As brokers have it, who tell of nothing then; to go on at 0 would be to read all again."""
    replay(groups, [commit("g", -1), commit("h", 5), commit("h", -1)])
    assert groups.positions == {}
    assert groups.take_changed() == {}
    assert ("h", "orders", 0) in groups.forgotten


def test_the_same_commit_again_is_no_news(groups: SourceGroups) -> None:
    replay(groups, [commit("g", 5), commit("g", 5, partition=1)])
    groups.take_changed()
    replay(groups, [commit("g", 5), commit("g", 6, partition=1)])
    assert groups.take_changed() == {"g": {("orders", 1)}}


def test_deleted_positions_and_groups_are_forgotten(groups: SourceGroups) -> None:
    replay(groups, [commit("g", 5), commit("g", 6, partition=1), commit("g", None)])
    assert groups.positions == {"g": {("orders", 1): SourcePosition(6, "")}}
    replay(groups, [commit("g", None, partition=1), commit("never seen", None)])
    assert groups.positions == {}
    assert groups.take_changed() == {}
    assert groups.forgotten == {("g", "orders", 0), ("g", "orders", 1)}
    replay(groups, [commit("g", 1)])
    assert groups.positions == {"g": {("orders", 0): SourcePosition(1, "")}}


def test_positions_asked_for_replace_what_was_known(groups: SourceGroups) -> None:
    groups.take(
        "g",
        {
            TopicPartition("a", 0): GroupOffset(offset=1),
            TopicPartition("b", 0): GroupOffset(offset=2),
        },
    )
    groups.take_changed()
    groups.take(
        "g",
        {
            TopicPartition("a", 0): GroupOffset(offset=1),
            TopicPartition("c", 0): GroupOffset(offset=3),
        },
    )
    assert groups.take_changed() == {"g": {("c", 0)}}
    assert groups.forgotten == {("g", "b", 0)}
    groups.take("g", {})
    assert groups.positions == {}


def test_groups_that_are_not_chosen_are_left_out_and_a_new_choice_counts(
    groups: SourceGroups,
) -> None:
    replay(groups, [commit("g", 5)])
    groups._config.replace(flow_of(groups="h"))
    replay(groups, [commit("g", 6), commit("h", 6)])
    assert groups.positions == {
        "g": {("orders", 0): SourcePosition(5, "")},
        "h": {("orders", 0): SourcePosition(6, "")},
    }


NAMES = [
    "",
    " ",
    "a/b",
    "größe",
    "消费者",
    "🚀" * 30,
    "e\u0301",
    "\u202egnisrever",
    "\x00\n",
    "g" * 9_000,
]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_group_may_have_any_name(groups: SourceGroups, name: str) -> None:
    replay(groups, [commit(name, 5, metadata=name)])
    assert groups.positions == {name: {("orders", 0): SourcePosition(5, name)}}


KEY = encode_key(OffsetKey(group="g", topic="orders", partition=0))
VALUE = encode_offset_value(OffsetValue(offset=5, commit_timestamp_ms=1))
ODD = {
    "no key": Record(7, 1, None, VALUE),
    "empty key": Record(7, 1, b"", VALUE),
    "foreign key": Record(7, 1, b'{"json": 1}', VALUE),
    "key cut off": Record(7, 1, KEY[:-1], VALUE),
    "key too long": Record(7, 1, KEY + b"x", VALUE),
    "name is no UTF-8": Record(7, 1, KEY.replace(b"orders", b"ord\xffrs"), VALUE),
    "empty value": Record(7, 1, KEY, b""),
    "foreign value": Record(7, 1, KEY, b"hello"),
    "value cut off": Record(7, 1, KEY, VALUE[:-1]),
    "value of a version to come": Record(7, 1, KEY, b"\x00\x63" + VALUE[2:]),
    "metadata is no UTF-8": Record(7, 1, KEY, VALUE[:14] + b"\x00\x01\xff" + VALUE[16:]),
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD.keys())
def test_an_odd_record_is_counted_said_once_and_passed_over(
    groups: SourceGroups, caplog: pytest.LogCaptureFixture, odd: Record
) -> None:
    replay(groups, [commit("g", 4), odd, odd, commit("h", 5)])
    assert groups.positions == {
        "g": {("orders", 0): SourcePosition(4, "")},
        "h": {("orders", 0): SourcePosition(5, "")},
    }
    assert groups.odd._measurements.malformed[OFFSETS_TOPIC] == 2
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) == 1


def test_records_of_groups_themselves_hold_no_position(groups: SourceGroups) -> None:
    classic = encode_key(GroupMetadataKey(group="g"))
    newer = [number.to_bytes(2) + b"\x00\x01g" for number in range(3, 20)]
    replay(groups, [Record(7, 1, key, b"\x00\x00whatever") for key in (classic, *newer)])
    replay(groups, [Record(7, 1, key, None) for key in (classic, *newer)])
    assert groups.positions == {}
    assert not groups.odd._measurements.malformed
