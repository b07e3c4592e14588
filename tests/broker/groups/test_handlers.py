"""What the group APIs make of requests and decisions, version by version."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.apis import (
    delete_groups,
    describe_groups,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)
from broker.led_partition import CONSUMER_OFFSETS
from tests.broker.groups.rig import BROKER, TOPIC, Rig, commit_request, open_rig
from wire.errors import ErrorCode
from wire.messages.delete_groups import DeleteGroupsRequest
from wire.messages.describe_groups import DescribeGroupsRequest
from wire.messages.find_coordinator import FindCoordinatorRequest
from wire.messages.heartbeat import HeartbeatRequest
from wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from wire.messages.list_groups import ListGroupsRequest
from wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from wire.schema import encode

GROUP = "readers"


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with open_rig(tmp_path, {"group_initial_rebalance_delay_ms": 0}) as opened:
        yield opened


def _join_request(**changes: object) -> JoinGroupRequest:
    fields = {
        "group_id": GROUP,
        "session_timeout_ms": 10_000,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": (JoinGroupRequestProtocol(name="range", metadata=b"topics"),),
        **changes,
    }
    return JoinGroupRequest(**fields)  # type: ignore[arg-type]


async def _stable_member(rig: Rig) -> JoinGroupResponse:
    joined = await join_group.handle(_join_request(), rig.call(0))
    assignment = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"all")
    request = SyncGroupRequest(
        group_id=GROUP,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=(assignment,),
    )
    synced = await sync_group.handle(request, rig.call(0))
    assert (synced.error_code, synced.assignment) == (ErrorCode.NONE, b"all")
    return joined


async def test_the_first_question_for_a_group_creates_the_topic_and_waits_for_it(
    rig: Rig,
) -> None:
    metadata = rig.node.metadata
    view = metadata.topic(CONSUMER_OFFSETS)
    assert view is not None
    metadata.remove_topic(CONSUMER_OFFSETS)

    async def announce_later() -> None:
        await wait_all_tasks_blocked()
        metadata.put_partitions(CONSUMER_OFFSETS, view.topic_id, view.partitions.values())
        metadata.set_brokers(BROKER, metadata.brokers.values())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(announce_later)
        answer = await find_coordinator.handle(FindCoordinatorRequest(key=GROUP), rig.call(3))
    assert (answer.error_code, answer.node_id) == (ErrorCode.NONE, BROKER)
    assert rig.node.created == [CONSUMER_OFFSETS]


async def test_a_topic_that_takes_long_is_asked_for_again(
    rig: Rig,
    autojump_clock: MockClock,  # noqa: ARG001 - asking for it is what makes it jump
) -> None:
    rig.node.metadata.remove_topic(CONSUMER_OFFSETS)
    answer = await find_coordinator.handle(FindCoordinatorRequest(key=GROUP), rig.call(3))
    assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (answer.node_id, answer.port) == (-1, -1)


async def test_a_topic_that_cannot_be_created_is_named(rig: Rig) -> None:
    rig.node.metadata.remove_topic(CONSUMER_OFFSETS)
    rig.node.creation_error = ErrorCode.INVALID_REPLICATION_FACTOR
    answer = await find_coordinator.handle(FindCoordinatorRequest(key=GROUP), rig.call(3))
    assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert answer.error_message == (
        "__consumer_offsets cannot be created: INVALID_REPLICATION_FACTOR"
    )


async def test_every_group_has_its_coordinator(rig: Rig) -> None:
    one = await find_coordinator.handle(FindCoordinatorRequest(key=GROUP), rig.call(0))
    assert (one.error_code, one.node_id, one.host, one.port) == (0, BROKER, "kafka", 9092)
    request = FindCoordinatorRequest(coordinator_keys=(GROUP, "", "other"))
    several = await find_coordinator.handle(request, rig.call(4))
    assert [found.key for found in several.coordinators] == [GROUP, "", "other"]
    assert {found.node_id for found in several.coordinators} == {BROKER}


async def test_a_partition_without_a_leader_has_no_coordinator_yet(rig: Rig) -> None:
    rig.node.metadata.set_brokers(BROKER, [])
    answer = await find_coordinator.handle(FindCoordinatorRequest(key=GROUP), rig.call(3))
    assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert answer.error_message == (
        "no broker leads the partition of __consumer_offsets that holds readers"
    )


async def test_a_coordinator_is_found_for_what_has_one(rig: Rig) -> None:
    request = FindCoordinatorRequest(key="id", key_type=1)
    answer = await find_coordinator.handle(request, rig.call(3))
    assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE, "its topic is being made"
    assert rig.node.created == ["__transaction_state"]
    nameless = await find_coordinator.handle(replace(request, key=""), rig.call(3))
    assert nameless.error_code == ErrorCode.INVALID_REQUEST
    shares = FindCoordinatorRequest(coordinator_keys=("g:t:0",), key_type=2)
    several = await find_coordinator.handle(shares, rig.call(6))
    assert several.coordinators[0].error_code == ErrorCode.INVALID_REQUEST


async def test_join_refuses_what_cannot_be(rig: Rig) -> None:
    async def error(**changes: object) -> ErrorCode:
        answer = await join_group.handle(_join_request(**changes), rig.call(9))
        return ErrorCode(answer.error_code)

    assert await error(group_id="") is ErrorCode.INVALID_GROUP_ID
    assert await error(session_timeout_ms=5_999) is ErrorCode.INVALID_SESSION_TIMEOUT
    assert await error(session_timeout_ms=1_800_001) is ErrorCode.INVALID_SESSION_TIMEOUT
    assert await error(group_instance_id="i" * 32_768) is ErrorCode.INVALID_REQUEST
    assert await error(member_id="stranger") is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", JoinGroupResponse.VERSIONS)
async def test_a_refused_join_can_be_told_in_every_version(rig: Rig, version: int) -> None:
    answer = await join_group.handle(_join_request(member_id="stranger"), rig.call(version))
    assert encode(answer, version)
    assert answer.protocol_name == (None if version >= 7 else "")


@pytest.mark.parametrize("version", JoinGroupResponse.VERSIONS)
async def test_a_join_can_be_told_in_every_version(rig: Rig, version: int) -> None:
    given = await join_group.handle(_join_request(), rig.call(version))
    if given.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        again = _join_request(member_id=given.member_id)
        given = await join_group.handle(again, rig.call(version))
    assert (given.error_code, given.leader) == (ErrorCode.NONE, given.member_id)
    assert encode(given, version)


async def test_version_0_uses_one_timeout_for_both(
    rig: Rig,
    autojump_clock: MockClock,  # noqa: ARG001 - asking for it is what makes it jump
) -> None:
    await _stable_member(rig)
    await join_group.handle(_join_request(), rig.call(0))  # ends with the other's session: 10 s
    answer = await describe_groups.handle(DescribeGroupsRequest(groups=(GROUP,)), rig.call(5))
    assert len(answer.groups[0].members) == 1


async def test_sync_names_its_protocol_from_version_5_on(rig: Rig) -> None:
    joined = await _stable_member(rig)
    request = SyncGroupRequest(
        group_id=GROUP,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=(),
    )
    assert (await sync_group.handle(request, rig.call(4))).assignment == b"all"
    refused = await sync_group.handle(request, rig.call(5))
    assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


async def test_requests_of_members_need_a_group_id(rig: Rig) -> None:
    beat = HeartbeatRequest(group_id="", generation_id=1, member_id="m")
    assert (await heartbeat.handle(beat, rig.call(4))).error_code == ErrorCode.INVALID_GROUP_ID
    sync = SyncGroupRequest(group_id="", generation_id=1, member_id="m", assignments=())
    assert (await sync_group.handle(sync, rig.call(4))).error_code == ErrorCode.INVALID_GROUP_ID
    leave = LeaveGroupRequest(group_id="", member_id="m")
    assert (await leave_group.handle(leave, rig.call(2))).error_code == ErrorCode.INVALID_GROUP_ID
    forget = OffsetDeleteRequest(group_id="", topics=())
    answer = await offset_delete.handle(forget, rig.call(0))
    assert answer.error_code == ErrorCode.INVALID_GROUP_ID


async def test_leave_answers_one_at_the_top_and_several_one_by_one(rig: Rig) -> None:
    joined = await _stable_member(rig)
    stranger = LeaveGroupRequest(group_id=GROUP, member_id="stranger")
    answer = await leave_group.handle(stranger, rig.call(1))
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    members = (
        MemberIdentity(member_id="stranger"),
        MemberIdentity(member_id=joined.member_id, reason="done"),
    )
    answer = await leave_group.handle(
        LeaveGroupRequest(group_id=GROUP, members=members), rig.call(5)
    )
    assert answer.error_code == ErrorCode.NONE
    assert [member.error_code for member in answer.members] == [ErrorCode.UNKNOWN_MEMBER_ID, 0]


async def test_a_stable_group_is_described_with_its_members(rig: Rig) -> None:
    joined = await _stable_member(rig)
    request = DescribeGroupsRequest(groups=(GROUP, "none"), include_authorized_operations=True)
    known, unknown = (await describe_groups.handle(request, rig.call(5))).groups
    assert (known.error_code, known.group_state, known.protocol_type) == (0, "Stable", "consumer")
    assert known.protocol_data == "range"
    assert known.authorized_operations == (1 << 3) | (1 << 6) | (1 << 8)
    (member,) = known.members
    assert (member.member_id, member.client_id, member.client_host) == (
        joined.member_id,
        "client",
        "/127.0.0.1",
    )
    assert (member.member_metadata, member.member_assignment) == (b"topics", b"all")
    assert (unknown.error_code, unknown.group_state, unknown.members) == (0, "Dead", ())


async def test_describing_elsewhere_says_who_is_not_the_coordinator(rig: Rig) -> None:
    rig.groups.on_resigned(CONSUMER_OFFSETS, 0)
    answer = await describe_groups.handle(DescribeGroupsRequest(groups=(GROUP,)), rig.call(5))
    assert answer.groups[0].error_code == ErrorCode.NOT_COORDINATOR
    listed = await list_groups.handle(ListGroupsRequest(), rig.call(5))
    assert (listed.error_code, listed.groups) == (ErrorCode.NONE, ())


@pytest.mark.parametrize(
    ("states", "types", "expected"),
    [
        ((), (), {GROUP, "tool"}),
        (("stable",), (), {GROUP}),
        (("Empty", "Dead"), ("Classic",), {"tool"}),
        ((), ("consumer",), set()),
        (("PreparingRebalance",), (), set()),
    ],
)
async def test_groups_are_listed_by_state_and_type(
    rig: Rig, states: tuple[str, ...], types: tuple[str, ...], expected: set[str]
) -> None:
    await _stable_member(rig)
    await offset_commit.handle(commit_request("tool", 1), rig.call(9))
    request = ListGroupsRequest(states_filter=states, types_filter=types)
    answer = await list_groups.handle(request, rig.call(5))
    assert {group.group_id for group in answer.groups} == expected
    assert {group.group_type for group in answer.groups} <= {"classic"}


async def test_groups_are_deleted_one_by_one(rig: Rig) -> None:
    await _stable_member(rig)
    await offset_commit.handle(commit_request("tool", 1), rig.call(9))
    request = DeleteGroupsRequest(groups_names=(GROUP, "tool", "none"))
    answer = await delete_groups.handle(request, rig.call(2))
    assert [(result.group_id, result.error_code) for result in answer.results] == [
        (GROUP, ErrorCode.NON_EMPTY_GROUP),
        ("tool", ErrorCode.NONE),
        ("none", ErrorCode.GROUP_ID_NOT_FOUND),
    ]


async def test_commits_for_partitions_that_do_not_exist_are_refused_alone(rig: Rig) -> None:
    async def error(topic: str, index: int) -> int:
        request = commit_request("tool", 1, topic=topic, index=index)
        return (await offset_commit.handle(request, rig.call(9))).topics[0].partitions[0].error_code

    assert await error(TOPIC, 0) == ErrorCode.NONE
    assert await error(TOPIC, 2) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await error("nowhere", 0) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_offsets_are_fetched_by_partition_or_all_together(rig: Rig) -> None:
    for index, offset in enumerate((5, 7)):
        await offset_commit.handle(commit_request("tool", offset, index=index), rig.call(9))
    wanted = (OffsetFetchRequestTopic(name=TOPIC, partition_indexes=(1, 9)),)
    some = await offset_fetch.handle(
        OffsetFetchRequest(group_id="tool", topics=wanted), rig.call(7)
    )
    (topic,) = some.topics
    found = [(p.partition_index, p.committed_offset, p.metadata) for p in topic.partitions]
    assert found == [(1, 7, "note"), (9, -1, "")]
    everything = OffsetFetchRequest(group_id="tool", topics=None)
    (topic,) = (await offset_fetch.handle(everything, rig.call(2))).topics
    assert [(p.partition_index, p.committed_offset) for p in topic.partitions] == [(0, 5), (1, 7)]


async def test_offsets_of_several_groups_are_fetched_at_once(rig: Rig) -> None:
    await offset_commit.handle(commit_request("tool", 5), rig.call(9))
    wanted = (OffsetFetchRequestTopics(name=TOPIC, partition_indexes=(0,)),)
    request = OffsetFetchRequest(
        groups=(
            OffsetFetchRequestGroup(group_id="tool", topics=None),
            OffsetFetchRequestGroup(group_id="none", topics=wanted),
            OffsetFetchRequestGroup(group_id="none", topics=None),
        ),
        require_stable=True,
    )
    answer = await offset_fetch.handle(request, rig.call(8))
    offsets = [
        [p.committed_offset for topic in group.topics for p in topic.partitions]
        for group in answer.groups
    ]
    assert offsets == [[5], [-1], []]
    rig.groups.on_resigned(CONSUMER_OFFSETS, 0)
    answer = await offset_fetch.handle(request, rig.call(8))
    assert [group.error_code for group in answer.groups] == [ErrorCode.NOT_COORDINATOR] * 3


async def test_before_version_2_a_fetch_carries_its_error_in_each_partition(rig: Rig) -> None:
    rig.groups.on_resigned(CONSUMER_OFFSETS, 0)
    wanted = (OffsetFetchRequestTopic(name=TOPIC, partition_indexes=(0, 1)),)
    answer = await offset_fetch.handle(OffsetFetchRequest(group_id="g", topics=wanted), rig.call(1))
    assert [p.error_code for p in answer.topics[0].partitions] == [ErrorCode.NOT_COORDINATOR] * 2


async def test_offsets_are_deleted_by_partition(rig: Rig) -> None:
    await offset_commit.handle(commit_request("tool", 5), rig.call(9))
    partitions = tuple(OffsetDeleteRequestPartition(partition_index=index) for index in (0, 9))
    topics = (OffsetDeleteRequestTopic(name=TOPIC, partitions=partitions),)
    answer = await offset_delete.handle(
        OffsetDeleteRequest(group_id="tool", topics=topics), rig.call(0)
    )
    assert answer.error_code == ErrorCode.NONE
    assert [p.error_code for p in answer.topics[0].partitions] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    missing = await offset_delete.handle(
        OffsetDeleteRequest(group_id="none", topics=topics), rig.call(0)
    )
    assert missing.error_code == ErrorCode.GROUP_ID_NOT_FOUND
