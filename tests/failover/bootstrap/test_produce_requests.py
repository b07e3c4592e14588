"""Batches on their way to the brokers of an epoch, in every version of Produce that is carried."""

from collections.abc import Sequence
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from failover.bootstrap.owned_ids import IdNotKnown, owned
from failover.bootstrap.owned_ids import given as given_id
from failover.bootstrap.produce_requests import make_epochs_own
from failover.bootstrap.spoken import CARRIED, NotCarried
from wire.headers import RequestHeader, encode_request
from wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from wire.primitives import MalformedMessage
from wire.record_batch import Record, build_batch, parse_header
from wire.record_batch.checksum import crc32c
from wire.request_headers import decode_request_header
from wire.schema import decode_prefix

VERSIONS = [version for version in CARRIED[0] if version >= 3]
EPOCH = 4
OURS = given_id(7, EPOCH)
OLD = given_id(7, EPOCH - 1)


def batch(producer_id: int, value: bytes = b"v") -> bytes:
    record = Record(offset=0, timestamp_ms=5, key=None, value=value)
    return build_batch([record], producer_id=producer_id, producer_epoch=0, base_sequence=3)


def request(
    batches: Sequence[bytes], version: int = 9, acks: int = -1, transaction: str | None = None
) -> bytearray:
    """Return a frame without its size, with two topics of these batches."""
    data = tuple(
        PartitionProduceData(index=index, records=one) for index, one in enumerate(batches)
    )
    message = ProduceRequest(
        transactional_id=transaction,
        acks=acks,
        timeout_ms=1,
        topic_data=tuple(TopicProduceData(name=name, partition_data=data) for name in "ab"),
    )
    header = RequestHeader(api_key=0, api_version=version, correlation_id=7, client_id="me")
    return bytearray(b"".join(encode_request(header, message))[4:])


def batches_in(frame: bytearray, version: int) -> list[bytes]:
    _, position = decode_request_header(frame)
    message, _ = decode_prefix(ProduceRequest, memoryview(frame), version, position)
    return [
        bytes(one.records)  # type: ignore[arg-type]
        for topic in message.topic_data
        for one in topic.partition_data
    ]


@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=15)
@given(st.lists(st.sampled_from([OURS, OLD, -1]), max_size=3), st.sampled_from([1, 20_000]))
def test_batches_are_as_if_built_with_the_id_of_this_epoch(
    version: int, ids: list[int], size: int
) -> None:
    frame = request([batch(each, b"v" * size) for each in ids], version)
    make_epochs_own(frame, EPOCH)
    expected = [batch(each if each < 0 else owned(each, EPOCH), b"v" * size) for each in ids]
    assert batches_in(frame, version) == expected * 2


@pytest.mark.parametrize("version", VERSIONS)
def test_batches_of_this_epoch_pass_as_they_are(version: int) -> None:
    frame = request([batch(OURS), batch(-1)], version)
    before = bytes(frame)
    make_epochs_own(frame, EPOCH)
    assert frame == before


def test_a_damaged_batch_stays_damaged() -> None:
    frame = request([batch(OLD, b"v" * 20_000)])
    frame[-100] ^= 1
    make_epochs_own(frame, EPOCH)
    changed = batches_in(frame, 9)[-1]
    assert parse_header(changed).crc != crc32c(changed[21:])


@pytest.mark.parametrize(("acks", "is_answered"), [(-1, True), (1, True), (0, False)])
def test_a_request_without_acknowledgement_is_not_answered(acks: int, is_answered: bool) -> None:
    assert make_epochs_own(request([batch(OURS)], acks=acks), EPOCH) is is_answered


def test_transactions_and_ids_of_brokers_themselves_are_refused() -> None:
    with pytest.raises(NotCarried, match="a transaction of 'pay'"):
        make_epochs_own(request([batch(OURS)], transaction="pay"), EPOCH)
    with pytest.raises(IdNotKnown, match="producer id 7 "):
        make_epochs_own(request([batch(7)]), EPOCH)


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 48, 2**31 - 1])
def test_a_batch_of_an_impossible_length_is_refused(length: int) -> None:
    whole = batch(OURS)
    frame = request([whole[:8] + length.to_bytes(4, "big", signed=True) + whole[12:]])
    with pytest.raises(MalformedMessage, match=f"a batch of {length} bytes"):
        make_epochs_own(frame, EPOCH)


@given(st.binary(max_size=200))
def test_whatever_comes_is_read_or_refused(noise: bytes) -> None:
    frame = request([batch(OURS)])
    frame[20 : 20 + len(noise)] = noise
    with suppress(MalformedMessage, NotCarried, IdNotKnown):
        make_epochs_own(frame, EPOCH)
