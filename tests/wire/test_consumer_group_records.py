"""Records of the new group protocol in `__consumer_offsets`: Kafka's bytes, and damaged ones."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Final, get_args
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.consumer_group_records import (
    ClassicMember,
    ClassicProtocol,
    CurrentKey,
    CurrentValue,
    GroupKey,
    GroupValue,
    Key,
    MemberKey,
    MemberValue,
    PatternKey,
    PatternValue,
    TargetEpochKey,
    TargetEpochValue,
    TargetKey,
    TargetValue,
    TopicPartitions,
    TopicShape,
    TopicsKey,
    TopicsValue,
    Value,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from wire.primitives import MalformedMessage

TOPIC_ID = UUID(int=7)
PARTITIONS = (TopicPartitions(topic_id=TOPIC_ID, partitions=(0, 2)),)
MEMBER = MemberValue(
    instance_id=None,
    rack_id="r",
    client_id="c",
    client_host="/h",
    subscribed_topic_names=("t",),
    subscribed_topic_regex=None,
    rebalance_timeout_ms=5,
    server_assignor="range",
    classic=ClassicMember(
        session_timeout_ms=9,
        supported_protocols=(ClassicProtocol(name="range", metadata=b"xy"),),
    ),
)
EXAMPLES: list[tuple[Key, Value]] = [
    (GroupKey("g"), GroupValue(epoch=3)),
    (GroupKey("g"), GroupValue(epoch=3, metadata_hash=-5)),
    (
        TopicsKey("g"),
        TopicsValue(topics=(TopicShape(topic_id=TOPIC_ID, topic_name="t", num_partitions=4),)),
    ),
    (MemberKey("g", "m"), MEMBER),
    (TargetEpochKey("g"), TargetEpochValue(epoch=3)),
    (TargetKey("g", "m"), TargetValue(topic_partitions=PARTITIONS)),
    (
        CurrentKey("g", "m"),
        CurrentValue(
            member_epoch=3,
            previous_member_epoch=2,
            state=1,
            assigned_partitions=PARTITIONS,
            partitions_pending_revocation=(),
        ),
    ),
    (PatternKey("g", "t.*"), PatternValue(topics=("t",), version=8, timestamp_ms=9)),
]


def test_there_is_an_example_of_every_record() -> None:
    assert {type(key) for key, _ in EXAMPLES} == set(get_args(Key))


@pytest.mark.parametrize(("key", "value"), EXAMPLES, ids=str)
def test_a_record_is_read_as_it_was_written(key: Key, value: Value) -> None:
    assert decode_key(encode_key(key)) == key
    assert decode_value(key, encode_value(value)) == value


def test_a_member_has_the_bytes_that_kafka_defines() -> None:
    raw = encode_value(MEMBER)
    assert raw == (
        b"\x00\x00"  # version 0, flexible
        b"\x00\x02r\x02c\x03/h\x02\x02t\x00\x00\x00\x00\x05\x06range"
        b"\x01\x00\x11"  # one tagged field: 0, of 17 bytes
        b"\x01\x00\x00\x00\x09\x02\x06range\x03xy\x00\x00"
    )
    assert encode_key(MemberKey("g", "m")) == b"\x00\x05\x00\x01g\x00\x01m"


def test_keys_of_other_records_are_none_of_these() -> None:
    for version in (0, 1, 2, 9, 15, 17, 99):
        assert decode_key(version.to_bytes(2) + b"\x00\x01g") is None


@given(raw=st.binary(max_size=60))
def test_damaged_keys_and_values_are_malformed_and_nothing_else(raw: bytes) -> None:
    with suppress(MalformedMessage):
        decode_key(raw)
    for key, _ in EXAMPLES:
        with suppress(MalformedMessage):
            decode_value(key, raw)


@pytest.mark.parametrize(("key", "value"), EXAMPLES, ids=str)
def test_a_record_that_is_cut_off_or_too_long_is_named(key: Key, value: Value) -> None:
    for raw in (encode_key(key)[:-1], encode_key(key) + b"x", b"\x00"):
        with pytest.raises(MalformedMessage, match="__consumer_offsets key"):
            decode_key(raw)
    written = encode_value(value)
    for raw in (written[:-1], written + b"x", b"\x00\x09" + written[2:]):
        with pytest.raises(MalformedMessage, match="__consumer_offsets value of"):
            decode_value(key, raw)


GOLDEN: Final = Path(__file__).parents[1] / "golden" / "consumer_group_records.json"


def test_what_kafka_writes_is_read() -> None:
    told: dict[type[Key], Value] = {}
    for record in json.loads(GOLDEN.read_text())["records"]:
        key = decode_key(bytes.fromhex(record["key"]))
        assert key is not None
        assert key.group == "written-group"
        told[type(key)] = decode_value(key, bytes.fromhex(record["value"]))
    member, current = told[MemberKey], told[CurrentKey]
    assert isinstance(member, MemberValue)
    assert (member.client_id, member.client_host) == ("consumer-written-group-1", "/127.0.0.1")
    assert (member.subscribed_topic_names, member.subscribed_topic_regex) == (("written",), "")
    assert member.classic is None, "sent as a null"
    assert isinstance(current, CurrentValue)
    assert (current.member_epoch, current.previous_member_epoch, current.state) == (2, 0, 0)
    [owned] = current.assigned_partitions
    assert owned.partitions == (0, 1)
    assert told[TargetKey] == TargetValue(topic_partitions=current.assigned_partitions)
    assert told[TargetEpochKey] == TargetEpochValue(epoch=2)
    group = told[GroupKey]
    assert isinstance(group, GroupValue)
    assert group.epoch == 2
    assert group.metadata_hash
