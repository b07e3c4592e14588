"""The hand-written Produce against the schema codec, over all versions."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties import examples
from tests.wire.message_strategies import messages
from wire.headers import LEAST_ANSWER_BYTES, SIZE_BYTES, decode_response
from wire.hot.produce import (
    BY_HAND,
    Appended,
    Batch,
    least_answer_bytes,
    read_answer,
    request_parts,
)
from wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from wire.primitives import MalformedMessage, pack_int32
from wire.schema import decode, encode

FORWARDING = range(3, 13)
HEADER = pack_int32(7)

BATCHES = st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=3).map(tuple)


@st.composite
def topics(draw: st.DrawFn) -> dict[str, list[Batch]]:
    found: dict[str, list[Batch]] = {}
    for name in draw(st.lists(st.text(max_size=200), max_size=3, unique=True)):
        found[name] = []
        for index in draw(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=4)):
            batch = draw(BATCHES)
            found[name].append((index, sum(map(len, batch)), batch))
    return found


def body(version: int, answer: ProduceResponse) -> bytes:
    header = HEADER + b"\x00" if version >= ProduceResponse.FLEXIBLE_SINCE else HEADER
    return header + encode(answer, version)


@pytest.mark.parametrize("version", FORWARDING)
@settings(max_examples=examples(10))
@given(wanted=topics(), acks=st.sampled_from([-1, 1]), timeout_ms=st.integers(0, 2**31 - 1))
def test_a_request_reads_as_what_was_meant(
    version: int, wanted: dict[str, list[Batch]], acks: int, timeout_ms: int
) -> None:
    parts, size = request_parts(wanted, version, acks=acks, timeout_ms=timeout_ms)
    packed = b"".join(parts)
    assert size == len(packed)
    request = decode(ProduceRequest, packed, version)
    assert encode(request, version) == packed
    assert (request.acks, request.timeout_ms) == (acks, timeout_ms)
    assert request.transactional_id is None
    found = {
        topic.name: [(one.index, bytes(one.records)) for one in topic.partition_data]  # type: ignore[arg-type]
        for topic in request.topic_data
    }
    assert found == {
        name: [(index, b"".join(batch)) for index, _, batch in batches]
        for name, batches in wanted.items()
    }


@pytest.mark.parametrize("version", ProduceResponse.VERSIONS)
@settings(max_examples=examples(10))
@given(data=st.data())
def test_any_answer_says_what_the_schema_codec_reads(version: int, data: st.DataObject) -> None:
    frame = body(version, data.draw(messages(ProduceResponse, version)))
    expected = decode_response(ProduceResponse, frame, version)
    assert read_answer(frame, version) == [
        (
            topic.name,
            [
                Appended(
                    one.index,
                    one.error_code,
                    one.base_offset,
                    one.error_message,
                    one.record_errors,
                )
                for one in topic.partition_responses
            ],
        )
        for topic in expected.responses
    ]


@pytest.mark.parametrize("version", FORWARDING)
@settings(max_examples=examples(10))
@given(wanted=topics(), says_more=st.booleans())
def test_no_answer_is_shorter_than_the_least(
    version: int, wanted: dict[str, list[Batch]], says_more: bool
) -> None:
    answer = ProduceResponse(
        responses=tuple(
            TopicProduceResponse(
                name=name,
                partition_responses=tuple(
                    PartitionProduceResponse(
                        index=index,
                        base_offset=-1,
                        error_code=1,
                        error_message="damaged" if says_more and version >= 8 else None,
                    )
                    for index, _, _ in batches
                ),
            )
            for name, batches in wanted.items()
        )
    )
    size = SIZE_BYTES + len(body(version, answer))
    assert LEAST_ANSWER_BYTES <= least_answer_bytes(wanted, version) <= size


@given(
    version=st.sampled_from(BY_HAND),
    names=st.lists(st.text(max_size=200), max_size=3),
    counts=st.integers(0, 200),
)
def test_the_usual_answer_is_read_whatever_its_size(
    version: int, names: list[str], counts: int
) -> None:
    partitions = tuple(
        PartitionProduceResponse(index=index, error_code=0, base_offset=index * 7)
        for index in range(counts)
    )
    answer = ProduceResponse(
        responses=tuple(
            TopicProduceResponse(name=name, partition_responses=partitions) for name in names
        )
    )
    expected = [Appended(index, 0, index * 7) for index in range(counts)]
    assert read_answer(body(version, answer), version) == [(name, expected) for name in names]


@given(version=st.sampled_from(BY_HAND), data=st.data())
def test_an_answer_that_is_cut_off_is_malformed(version: int, data: st.DataObject) -> None:
    frame = body(version, data.draw(messages(ProduceResponse, version)))
    cut = data.draw(st.integers(0, len(frame) - 1))
    with pytest.raises(MalformedMessage):
        read_answer(frame[:cut], version)
