"""The hand-written ListOffsets against the schema codec, over all versions."""

from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties import examples
from wire.headers import decode_response
from wire.hot.list_offsets import BY_HAND, ListedOffset, question_body, read_listed
from wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from wire.primitives import MalformedMessage, pack_int32
from wire.schema import encode
from wire.topic_partition import TopicPartition

HEADER = pack_int32(7)
VERSIONS = (BY_HAND.start - 1, BY_HAND.start, BY_HAND.stop - 1)
INT32 = st.integers(0, 2**31 - 1)
PLACES = st.sets(st.builds(TopicPartition, st.text(max_size=40), INT32), max_size=8).map(sorted)
LISTED = st.builds(
    ListOffsetsPartitionResponse,
    partition_index=INT32,
    error_code=st.sampled_from([0, 0, 0, 3, 6]),
    timestamp=st.integers(-1, 2**63 - 1),
    offset=st.integers(-1, 2**63 - 1),
    leader_epoch=st.integers(-1, 2**31 - 1),
)
TOPICS = st.builds(
    ListOffsetsTopicResponse,
    name=st.text(max_size=200),
    partitions=st.lists(LISTED, max_size=8).map(tuple),
)
ANSWERS = st.lists(TOPICS, max_size=3).map(lambda some: ListOffsetsResponse(topics=tuple(some)))


def framed(answer: ListOffsetsResponse, version: int) -> bytes:
    tags = b"\x00" if version >= ListOffsetsResponse.FLEXIBLE_SINCE else b""
    return HEADER + tags + encode(answer, version)


def listed(answer: ListOffsetsResponse) -> dict[TopicPartition, ListedOffset]:
    return {
        TopicPartition(topic.name, one.partition_index): ListedOffset(one.error_code, one.offset)
        for topic in answer.topics
        for one in topic.partitions
    }


@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=examples(20))
@given(places=PLACES, timestamp=st.integers(-5, 2**63 - 1), level=st.integers(0, 1))
def test_a_question_says_what_the_schema_codec_says(
    version: int, places: list[TopicPartition], timestamp: int, level: int
) -> None:
    asked = [
        ListOffsetsTopic(
            name=topic,
            partitions=tuple(
                ListOffsetsPartition(partition_index=index, timestamp=timestamp)
                for _, index in some
            ),
        )
        for topic, some in groupby(places, key=lambda place: place.topic)
    ]
    wanted = ListOffsetsRequest(replica_id=-1, isolation_level=level, topics=tuple(asked))
    assert question_body(places, timestamp, level, version) == encode(wanted, version)


@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=examples(20))
@given(answer=ANSWERS)
def test_an_answer_is_read_as_the_schema_codec_reads_it(
    version: int, answer: ListOffsetsResponse
) -> None:
    packed = framed(answer, version)
    assert read_listed(packed, version) == listed(answer)


@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=examples(40))
@given(answer=ANSWERS, place=st.integers(0, 200), byte=st.integers(0, 255), cut=st.integers(0, 40))
def test_what_is_damaged_is_refused_or_read_as_the_schema_codec_does_it(
    version: int, answer: ListOffsetsResponse, place: int, byte: int, cut: int
) -> None:
    damaged = bytearray(framed(answer, version))
    if place < len(damaged):
        damaged[place] = byte
    damaged = damaged[: max(5, len(damaged) - cut)]
    try:
        wanted = decode_response(ListOffsetsResponse, damaged, version)
    except MalformedMessage:
        with pytest.raises(MalformedMessage):
            read_listed(damaged, version)
    else:
        assert read_listed(damaged, version) == listed(wanted)
