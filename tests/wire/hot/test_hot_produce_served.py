"""Produce as a broker speaks it, against the schema codec, over all versions."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties import examples
from tests.wire.message_strategies import messages
from wire.headers import encode_response
from wire.hot.produce import BY_HAND
from wire.hot.produce_served import MOST_BATCHES, answer_frame, read_request
from wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceLeaderIdAndEpoch,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from wire.schema import Message, decode_prefix, encode

BEFORE = b"what stands before the body"
BEHIND = b"and behind it"
PLAIN = ProduceResponse(
    responses=(
        TopicProduceResponse(
            name="orders",
            partition_responses=(
                PartitionProduceResponse(index=3, error_code=0, base_offset=7, log_start_offset=2),
                PartitionProduceResponse(index=4, error_code=6, base_offset=-1),
            ),
        ),
        TopicProduceResponse(name="none", partition_responses=()),
    ),
    throttle_time_ms=12,
)
ANSWERED = PLAIN.responses[0].partition_responses[0]


def request(batches: int = 1, **changes: object) -> ProduceRequest:
    made = ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=(
            TopicProduceData(
                name="orders",
                partition_data=tuple(
                    PartitionProduceData(index=index, records=memoryview(b"records"))
                    for index in range(batches)
                ),
            ),
        ),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def in_frame(body: bytes) -> memoryview:
    return memoryview(BEFORE + body + BEHIND)


@pytest.mark.parametrize("version", BY_HAND)
def test_the_usual_request_is_read_by_hand_with_its_records_as_views(version: int) -> None:
    meant = request(batches=MOST_BATCHES)
    frame = in_frame(encode(meant, version))
    read = read_request(frame, version, len(BEFORE))
    assert read == meant
    first = read.topic_data[0].partition_data[0].records
    assert isinstance(first, memoryview)
    assert first.obj is frame.obj


@pytest.mark.parametrize("version", ProduceRequest.VERSIONS)
@settings(max_examples=examples(10))
@given(data=st.data())
def test_what_is_read_by_hand_is_what_the_schema_codec_reads(
    version: int, data: st.DataObject
) -> None:
    frame = in_frame(encode(data.draw(messages(ProduceRequest, version)), version))
    read = read_request(frame, version, len(BEFORE))
    if read is not None:
        assert read == decode_prefix(ProduceRequest, frame, version, len(BEFORE))[0]


@pytest.mark.parametrize("version", BY_HAND)
@settings(max_examples=examples(10))
@given(cut=st.integers(0, 60), byte=st.integers(0, 255), at=st.integers(0, 59))
def test_a_damaged_request_is_read_as_the_schema_codec_reads_it_or_left_to_that(
    version: int, cut: int, byte: int, at: int
) -> None:
    damaged = bytearray(encode(request(batches=2), version))
    damaged[min(at, len(damaged) - 1)] = byte
    frame = memoryview(damaged)[: len(damaged) - cut]
    read = read_request(frame, version, 0)
    if read is not None:
        assert read == decode_prefix(ProduceRequest, frame, version)[0]


@pytest.mark.parametrize(
    "unusual",
    [
        request(transactional_id="payments"),
        request(batches=MOST_BATCHES + 1),
        request(
            topic_data=(
                TopicProduceData(
                    name="orders", partition_data=(PartitionProduceData(index=0, records=None),)
                ),
            )
        ),
    ],
    ids=["of a transaction", "of very many batches", "without records"],
)
@pytest.mark.parametrize("version", BY_HAND)
def test_an_unusual_request_is_left_to_the_schema_codec(
    version: int, unusual: ProduceRequest
) -> None:
    assert read_request(in_frame(encode(unusual, version)), version, len(BEFORE)) is None


def by_schema(answer: Message, version: int) -> bytes:
    return b"".join(encode_response(5, answer, version))  # type: ignore[arg-type]


@pytest.mark.parametrize("version", BY_HAND)
def test_a_plain_answer_is_written_by_hand(version: int) -> None:
    assert answer_frame(5, PLAIN, version) == by_schema(PLAIN, version)


@pytest.mark.parametrize("version", ProduceResponse.VERSIONS)
@settings(max_examples=examples(10))
@given(data=st.data())
def test_what_is_written_by_hand_is_what_the_schema_codec_writes(
    version: int, data: st.DataObject
) -> None:
    answer = data.draw(messages(ProduceResponse, version))
    frame = answer_frame(5, answer, version)
    if frame is not None:
        assert frame == by_schema(answer, version)


@pytest.mark.parametrize(
    "unusual",
    [
        replace(ANSWERED, error_message="why"),
        replace(ANSWERED, record_errors=(BatchIndexAndErrorMessage(batch_index=1),)),
        replace(ANSWERED, current_leader=ProduceLeaderIdAndEpoch(leader_id=2, leader_epoch=1)),
        replace(ANSWERED, base_offset=2**63),
    ],
    ids=["a reason", "records to blame", "another leader", "no offset"],
)
@pytest.mark.parametrize("version", BY_HAND)
def test_an_answer_that_says_more_is_left_to_the_schema_codec(
    version: int, unusual: PartitionProduceResponse
) -> None:
    topic = TopicProduceResponse(name="orders", partition_responses=(unusual,))
    assert answer_frame(5, ProduceResponse(responses=(topic,)), version) is None


def test_the_newest_version_is_one_of_those_by_hand() -> None:
    assert ProduceRequest.VERSIONS[-1] in BY_HAND
