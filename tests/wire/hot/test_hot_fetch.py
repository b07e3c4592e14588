"""The hand-written Fetch against the schema codec, over all versions."""

from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties import examples
from tests.wire.message_strategies import messages
from wire.headers import decode_response
from wire.hot.fetch import (
    BY_HAND,
    TOPIC_IDS_SINCE,
    Fetched,
    FetchedPartition,
    FetchLimits,
    Session,
    TopicKey,
    Wanted,
    read_answer,
    request_body,
)
from wire.messages.fetch import FetchRequest, FetchResponse
from wire.primitives import MalformedMessage, pack_int32
from wire.schema import decode, encode

FORWARDING = range(7, 18)
"""Since v7 there are sessions, and since v11 racks."""
RACKS_SINCE = 11
HEADER = pack_int32(7)

INT32 = st.integers(0, 2**31 - 1)
INT64 = st.integers(0, 2**63 - 1)
LIMITS = st.builds(FetchLimits, INT32, INT32, INT32, st.integers(0, 1))
SESSIONS = st.builds(Session, INT32, st.integers(-1, 2**31 - 1))
KEYS = st.tuples(st.text(max_size=200), st.uuids())
WANTED = st.dictionaries(
    KEYS, st.lists(st.builds(Wanted, INT32, INT64, INT32, INT32), max_size=4), max_size=3
)
LEADER_EPOCHS_SINCE = 9
FORGOTTEN = st.dictionaries(KEYS, st.lists(INT32, max_size=4), max_size=3)


def body(version: int, answer: FetchResponse) -> bytes:
    header = HEADER + b"\x00" if version >= FetchResponse.FLEXIBLE_SINCE else HEADER
    return header + encode(answer, version)


def travelling(key: TopicKey, version: int) -> str | UUID:
    return key[1] if version >= TOPIC_IDS_SINCE else key[0]


@pytest.mark.parametrize("version", FORWARDING)
@settings(max_examples=examples(10))
@given(limits=LIMITS, session=SESSIONS, wanted=WANTED, forgotten=FORGOTTEN, rack=st.text())
def test_a_request_reads_as_what_was_meant(
    version: int,
    limits: FetchLimits,
    session: Session,
    wanted: dict[TopicKey, list[Wanted]],
    forgotten: dict[TopicKey, list[int]],
    rack: str,
) -> None:
    packed = request_body(version, limits, session, wanted, forgotten, rack)
    request = decode(FetchRequest, packed, version)
    assert encode(request, version) == packed
    assert (
        request.max_wait_ms,
        request.min_bytes,
        request.max_bytes,
        request.isolation_level,
    ) == limits
    assert (request.session_id, request.session_epoch) == session
    assert request.replica_id == -1
    assert request.rack_id == (rack if version >= RACKS_SINCE else "")
    assert [
        (
            topic.topic_id if version >= TOPIC_IDS_SINCE else topic.topic,
            [
                Wanted(
                    one.partition,
                    one.fetch_offset,
                    one.partition_max_bytes,
                    one.current_leader_epoch,
                )
                for one in topic.partitions
            ],
        )
        for topic in request.topics
    ] == [
        (
            travelling(key, version),
            partitions
            if version >= LEADER_EPOCHS_SINCE
            else [one._replace(leader_epoch=-1) for one in partitions],
        )
        for key, partitions in wanted.items()
    ]
    assert [
        (
            topic.topic_id if version >= TOPIC_IDS_SINCE else topic.topic,
            list(topic.partitions),
        )
        for topic in request.forgotten_topics_data
    ] == [(travelling(key, version), indexes) for key, indexes in forgotten.items()]
    for topic in request.topics:
        for one in topic.partitions:
            assert (one.last_fetched_epoch, one.log_start_offset) == (-1, -1)


@pytest.mark.parametrize("version", range(4, 18))
@settings(max_examples=examples(10))
@given(data=st.data())
def test_any_answer_says_what_the_schema_codec_reads(version: int, data: st.DataObject) -> None:
    frame = body(version, data.draw(messages(FetchResponse, version)))
    expected = decode_response(FetchResponse, frame, version)
    found = read_answer(frame, version)
    assert found[:3] == (expected.throttle_time_ms, expected.error_code, expected.session_id)
    assert [(key, list(map(_plain, each))) for key, each in found.topics] == [
        (
            topic.topic_id if version >= TOPIC_IDS_SINCE else topic.topic,
            [
                (
                    one.partition_index,
                    one.error_code,
                    one.high_watermark,
                    one.last_stable_offset,
                    one.log_start_offset,
                    [(a.producer_id, a.first_offset) for a in one.aborted_transactions or ()],
                    one.preferred_read_replica,
                    one.records,
                )
                for one in topic.partitions
            ],
        )
        for topic in expected.responses
    ]


def _plain(found: FetchedPartition) -> tuple[object, ...]:
    return (*found[:5], list(found.aborted), *found[6:])


@given(version=st.sampled_from(BY_HAND), data=st.data())
def test_an_answer_that_is_cut_off_is_malformed(version: int, data: st.DataObject) -> None:
    frame = body(version, data.draw(messages(FetchResponse, version)))
    cut = data.draw(st.integers(0, len(frame) - 1))
    with pytest.raises(MalformedMessage):
        read_answer(frame[:cut], version)


def test_an_answer_without_partitions_is_read() -> None:
    frame = body(17, FetchResponse(session_id=9, responses=()))
    assert read_answer(frame, 17) == Fetched(0, 0, 9, [])
