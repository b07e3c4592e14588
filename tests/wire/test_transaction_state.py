"""The records of `__transaction_state`, as Kafka's coordinator has them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.primitives import MalformedMessage
from wire.topic_partition import TopicPartition
from wire.transaction_state import (
    TransactionMetadata,
    TransactionStatus,
    UnknownKey,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = st.builds(
    TransactionMetadata,
    producer_id=INT64,
    producer_epoch=st.integers(-(2**15), 2**15 - 1),
    timeout_ms=INT32,
    status=st.sampled_from(TransactionStatus),
    partitions=st.frozensets(st.builds(TopicPartition, TEXT, INT32), max_size=5),
    updated_ms=INT64,
    started_ms=INT64,
)
ONGOING = TransactionMetadata(
    producer_id=7,
    producer_epoch=3,
    timeout_ms=60_000,
    status=TransactionStatus.ONGOING,
    partitions=frozenset({TopicPartition("t", 1), TopicPartition("t", 0)}),
    updated_ms=5,
    started_ms=4,
)
ONGOING_BYTES = bytes.fromhex(
    "0000"  # version
    "0000000000000007"
    "0003"
    "0000ea60"
    "01"
    "00000001"
    "0001"
    "74"
    "00000002"
    "00000000"
    "00000001"
    "0000000000000005"
    "0000000000000004"
)
FLEXIBLE_BYTES = bytes.fromhex(
    "0001"
    "0000000000000007"
    "0003"
    "0000ea60"
    "01"
    "02"
    "02"
    "74"
    "03"
    "00000000"
    "00000001"
    "00"
    "0000000000000005"
    "0000000000000004"
    "02"
    "00"
    "08"
    "0000000000000009"
    "02"
    "02"
    "0002"
)


@given(VALUES)
def test_a_value_comes_back_as_it_was_written(value: TransactionMetadata) -> None:
    if value.status is TransactionStatus.EMPTY:
        value = replace(value, partitions=frozenset())
    assert decode_value(encode_value(value)) == value


@given(TEXT)
def test_a_key_comes_back_as_it_was_written(transactional_id: str) -> None:
    assert decode_key(encode_key(transactional_id)) == transactional_id


def test_the_bytes_are_those_of_kafkas_layout() -> None:
    """Written by hand from TransactionLogKey.json and TransactionLogValue.json."""
    assert encode_key("ab") == bytes.fromhex("000000026162")
    assert encode_value(ONGOING) == ONGOING_BYTES
    empty = replace(ONGOING, status=TransactionStatus.EMPTY, partitions=frozenset())
    assert encode_value(empty)[17:21] == b"\xff\xff\xff\xff", "null, not an empty array"


def test_the_flexible_version_of_newer_brokers_is_read() -> None:
    known = replace(ONGOING, previous_producer_id=9, client_version=2)
    assert decode_value(FLEXIBLE_BYTES) == known


@pytest.mark.parametrize(
    "damaged",
    [b"", b"\0", b"\0\2", ONGOING_BYTES[:-1], ONGOING_BYTES + b"\0", b"\0\0" + bytes(14) + b"\x09"],
)
def test_what_is_damaged_or_unknown_is_refused(damaged: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_value(damaged)


def test_a_status_unknown_here_is_refused_by_its_number() -> None:
    unknown = ONGOING_BYTES[:16] + b"\x09" + ONGOING_BYTES[17:]
    with pytest.raises(MalformedMessage, match="unknown status 9"):
        decode_value(unknown)


def test_a_key_of_a_version_unknown_here_is_told_from_an_id() -> None:
    assert decode_key(b"\0\5whatever") == UnknownKey(version=5)
    with pytest.raises(MalformedMessage):
        decode_key(encode_key("a") + b"\0")


@given(st.binary(max_size=60))
def test_noise_is_decoded_or_refused(noise: bytes) -> None:
    for decode in (decode_key, decode_value):
        try:
            decode(noise)
        except MalformedMessage:
            continue


def test_a_status_has_kafkas_name() -> None:
    assert [status.label for status in TransactionStatus] == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
    ]
