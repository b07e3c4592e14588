"""The hand-written OffsetFetch and OffsetCommit against the schema codec, over all versions."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties import examples
from tests.wire.message_strategies import messages
from wire.headers import decode_response
from wire.hot.group_offsets import (
    BY_HAND,
    GROUPS_SINCE,
    commit_body,
    commit_request,
    fetch_body,
    found_of,
    read_committed,
    read_fetched,
)
from wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from wire.primitives import MalformedMessage, pack_int32
from wire.schema import decode, encode
from wire.topic_partition import TopicPartition

HEADER = pack_int32(7)
INT32 = st.integers(0, 2**31 - 1)
INT64 = st.integers(0, 2**63 - 1)
NAMES = st.text(max_size=200)
METADATA = st.one_of(st.just(""), st.text(max_size=200))
PLACES = st.tuples(NAMES, INT32)
COMMITS = st.dictionaries(PLACES, st.tuples(INT64, METADATA), max_size=8)

FOUND = st.builds(
    OffsetFetchResponsePartitions,
    partition_index=INT32,
    committed_offset=st.integers(-1, 2**63 - 1),
    committed_leader_epoch=st.integers(-1, 2**31 - 1),
    metadata=st.one_of(st.none(), METADATA),
    error_code=st.sampled_from([0, 0, 0, 15, 88]),
)
FOUND_TOPICS = st.builds(
    OffsetFetchResponseTopics,
    name=NAMES,
    partitions=st.lists(FOUND, max_size=8).map(tuple),
)
FOUND_GROUPS = st.builds(
    OffsetFetchResponseGroup,
    group_id=NAMES,
    topics=st.lists(FOUND_TOPICS, max_size=3).map(tuple),
    error_code=st.sampled_from([0, 0, 16]),
)
STORED = st.builds(
    OffsetCommitResponsePartition, partition_index=INT32, error_code=st.sampled_from([0, 25])
)
STORED_TOPICS = st.builds(
    OffsetCommitResponseTopic, name=NAMES, partitions=st.lists(STORED, max_size=8).map(tuple)
)


def frame(
    answer: OffsetFetchResponse | OffsetCommitResponse, version: int, flexible_since: int
) -> bytes:
    header = HEADER + b"\x00" if version >= flexible_since else HEADER
    return header + encode(answer, version)


@pytest.mark.parametrize("version", range(GROUPS_SINCE, 10))
@settings(max_examples=examples(10))
@given(groups=st.lists(NAMES, max_size=5), require_stable=st.booleans())
def test_a_question_names_every_group_and_asks_for_all_it_has(
    version: int, groups: list[str], *, require_stable: bool
) -> None:
    packed = fetch_body(groups, version, require_stable=require_stable)
    request = decode(OffsetFetchRequest, packed, version)
    assert encode(request, version) == packed
    assert [(one.group_id, one.topics) for one in request.groups] == [(g, None) for g in groups]
    assert request.require_stable == require_stable


@pytest.mark.parametrize("version", range(GROUPS_SINCE, 10))
@settings(max_examples=examples(10))
@given(groups=st.lists(FOUND_GROUPS, max_size=3))
def test_what_groups_have_stored_is_read_as_the_schema_codec_reads_it(
    version: int, groups: list[OffsetFetchResponseGroup]
) -> None:
    answer = OffsetFetchResponse(groups=tuple(groups))
    packed = frame(answer, version, OffsetFetchResponse.FLEXIBLE_SINCE)
    found = read_fetched(packed, version)
    assert found == [found_of(one.group_id, one) for one in groups]


@pytest.mark.parametrize("version", range(10))
@settings(max_examples=examples(10))
@given(group=NAMES, commits=COMMITS)
def test_a_commit_says_what_the_schema_codec_says(
    version: int, group: str, commits: dict[TopicPartition, tuple[int, str]]
) -> None:
    assert commit_body(group, commits, version) == encode(commit_request(group, commits), version)
    request = decode(OffsetCommitRequest, commit_body(group, commits, version), version)
    assert {
        (topic.name, one.partition_index): (one.committed_offset, one.committed_metadata)
        for topic in request.topics
        for one in topic.partitions
    } == commits


@pytest.mark.parametrize("version", range(10))
@settings(max_examples=examples(10))
@given(topics=st.lists(STORED_TOPICS, max_size=3))
def test_what_became_of_a_commit_is_read_as_the_schema_codec_reads_it(
    version: int, topics: list[OffsetCommitResponseTopic]
) -> None:
    answer = OffsetCommitResponse(topics=tuple(topics))
    packed = frame(answer, version, OffsetCommitResponse.FLEXIBLE_SINCE)
    assert read_committed(packed, version) == {
        (topic.name, one.partition_index): one.error_code
        for topic in topics
        for one in topic.partitions
    }


@pytest.mark.parametrize("version", BY_HAND)
@settings(max_examples=examples(10))
@given(data=st.data(), cut=st.integers(1, 40))
def test_an_answer_that_is_cut_off_is_refused_as_the_schema_codec_refuses_it(
    version: int, data: st.DataObject, cut: int
) -> None:
    fetched = data.draw(st.lists(FOUND_GROUPS, min_size=1, max_size=2))
    whole = frame(OffsetFetchResponse(groups=tuple(fetched)), version, 6)
    damaged = whole[: max(5, len(whole) - cut)]
    try:
        wanted = decode_response(OffsetFetchResponse, damaged, version)
    except MalformedMessage:
        with pytest.raises(MalformedMessage):
            read_fetched(damaged, version)
    else:
        assert read_fetched(damaged, version) == [found_of(g.group_id, g) for g in wanted.groups]
    stored = data.draw(st.lists(STORED_TOPICS, min_size=1, max_size=2))
    whole = frame(OffsetCommitResponse(topics=tuple(stored)), version, 8)
    with pytest.raises(MalformedMessage):
        read_committed(whole[: max(5, len(whole) - cut)], version)


@pytest.mark.parametrize("version", BY_HAND)
@settings(max_examples=examples(10))
@given(answer=messages(OffsetFetchResponse, BY_HAND[-1]))
def test_answers_of_any_content_read_alike(version: int, answer: OffsetFetchResponse) -> None:
    packed = frame(answer, version, OffsetFetchResponse.FLEXIBLE_SINCE)
    wanted = [found_of(one.group_id, one) for one in answer.groups]
    assert read_fetched(packed, version) == wanted
