"""What the APIs of the new group protocol make of requests, and the other APIs of its groups."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from broker.apis import (
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    delete_groups,
    describe_groups,
    list_groups,
    offset_commit,
    offset_fetch,
)
from tests.broker.groups.rig import TOPIC, Rig, commit_request, open_rig
from wire.errors import ErrorCode
from wire.messages.api_versions import ApiVersionsRequest
from wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    DescribedGroup,
)
from wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from wire.messages.delete_groups import DeleteGroupsRequest
from wire.messages.describe_groups import DescribeGroupsRequest
from wire.messages.list_groups import ListGroupsRequest
from wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

GROUP = "readers"
TOPIC_ID = UUID(int=8)
JOIN = ConsumerGroupHeartbeatRequest(
    group_id=GROUP,
    member_id="a",
    member_epoch=0,
    rebalance_timeout_ms=60_000,
    subscribed_topic_names=(TOPIC,),
    topic_partitions=(),
)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with open_rig(tmp_path) as opened:
        yield opened


async def beat(
    rig: Rig, request: ConsumerGroupHeartbeatRequest = JOIN, version: int = 1, **changes: Any
) -> ConsumerGroupHeartbeatResponse:
    return await consumer_group_heartbeat.handle(replace(request, **changes), rig.call(version))


async def described(rig: Rig, group_id: str = GROUP) -> DescribedGroup:
    request = ConsumerGroupDescribeRequest(
        group_ids=(group_id,), include_authorized_operations=True
    )
    answer = await consumer_group_describe.handle(request, rig.call(1))
    return answer.groups[0]


async def test_a_member_joins_and_is_described(rig: Rig) -> None:
    answer = await beat(rig, instance_id="i", rack_id="r", server_assignor="range")
    assert answer.error_code == ErrorCode.NONE
    assert answer.assignment is not None
    assert answer.assignment.topic_partitions == (
        TopicPartitions(topic_id=TOPIC_ID, partitions=(0, 1)),
    )

    group = await described(rig)
    [member] = group.members
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 1, 1)
    assert group.assignor_name == "range"
    assert group.authorized_operations > 0
    assert (member.member_id, member.instance_id, member.rack_id) == ("a", "i", "r")
    assert (member.client_id, member.client_host) == ("client", "/127.0.0.1")
    assert (member.member_epoch, member.member_type) == (1, 1)
    [owned] = member.assignment.topic_partitions
    assert (owned.topic_name, owned.partitions) == (TOPIC, (0, 1))
    assert member.target_assignment == member.assignment


async def test_before_version_1_the_coordinator_makes_the_members_id(rig: Rig) -> None:
    answer = await beat(rig, version=0, member_id="")
    assert answer.member_id
    assert (await beat(rig, version=0, member_id=answer.member_id)).member_epoch == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"group_id": ""},
        {"member_id": ""},
        {"instance_id": ""},
        {"rack_id": ""},
        {"member_epoch": -3},
        {"member_epoch": -2},
        {"member_epoch": 1, "member_id": ""},
        {"rebalance_timeout_ms": -1},
        {"topic_partitions": None},
        {"topic_partitions": (TopicPartitions(topic_id=TOPIC_ID, partitions=(0,)),)},
        {"subscribed_topic_names": None},
        {"subscribed_topic_names": ()},
        {"subscribed_topic_names": (), "subscribed_topic_regex": ""},
        {"member_id": "x" * 40_000},
        {"instance_id": "x" * 40_000},
    ],
    ids=str,
)
async def test_a_request_that_makes_no_sense_is_refused(rig: Rig, changes: dict[str, Any]) -> None:
    answer = await beat(rig, **changes)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.error_message
    assert await listed(rig) == []


async def test_a_group_whose_name_cannot_be_written_is_refused(rig: Rig) -> None:
    assert (await beat(rig, group_id="x" * 40_000)).error_code == ErrorCode.INVALID_REQUEST


async def test_an_assignor_and_a_pattern_have_to_be_usable(rig: Rig) -> None:
    unknown = await beat(rig, server_assignor="sticky")
    assert unknown.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert "uniform, range" in (unknown.error_message or "")
    bad = await beat(rig, subscribed_topic_regex="(" * 1_500)
    assert bad.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert len(bad.error_message or "") <= 1_000


async def test_a_member_subscribes_by_a_pattern(rig: Rig) -> None:
    answer = await beat(rig, subscribed_topic_names=None, subscribed_topic_regex=f"{TOPIC[:2]}.*")
    assert answer.assignment is not None
    assert [one.topic_id for one in answer.assignment.topic_partitions] == [TOPIC_ID]
    assert (await described(rig)).members[0].subscribed_topic_regex == f"{TOPIC[:2]}.*"


async def test_the_group_is_there_after_a_restart(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        await beat(rig)
        before = await described(rig)
    async with open_rig(tmp_path) as rig:
        assert await described(rig) == before
        kept = replace(JOIN, member_epoch=1, topic_partitions=None)
        assert (await beat(rig, kept)).error_code == ErrorCode.NONE


async def listed(rig: Rig, *types: str) -> list[tuple[str, str, str]]:
    answer = await list_groups.handle(ListGroupsRequest(types_filter=types), rig.call(5))
    return [(one.protocol_type, one.group_type, one.group_state) for one in answer.groups]


async def test_groups_are_listed_by_their_type(rig: Rig) -> None:
    await beat(rig)
    await offset_commit.handle(commit_request("simple", 1), rig.call(9))
    consumer, classic = ("consumer", "consumer", "Stable"), ("", "classic", "Empty")
    assert sorted(await listed(rig)) == [classic, consumer]
    assert await listed(rig, "Consumer") == [consumer]
    assert await listed(rig, "classic") == [classic]


async def test_a_group_is_described_by_the_api_of_its_type_alone(rig: Rig) -> None:
    await beat(rig)
    await offset_commit.handle(commit_request("simple", 1), rig.call(9))
    request = DescribeGroupsRequest(groups=(GROUP,))
    [old] = (await describe_groups.handle(request, rig.call(5))).groups
    assert (old.error_code, old.group_state, old.members) == (ErrorCode.NONE, "Dead", ())
    for group_id, words in (("simple", "is not a consumer group"), ("absent", "not found")):
        group = await described(rig, group_id)
        assert group.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert words in (group.error_message or "")


async def test_a_group_with_members_is_not_deleted(rig: Rig) -> None:
    await beat(rig)
    request = DeleteGroupsRequest(groups_names=(GROUP,))
    for epoch, error in ((1, ErrorCode.NON_EMPTY_GROUP), (-1, ErrorCode.NONE)):
        await beat(rig, replace(JOIN, member_epoch=epoch, topic_partitions=None))
        [result] = (await delete_groups.handle(request, rig.call(2))).results
        assert result.error_code == error
    assert await listed(rig) == []


async def commit(rig: Rig, version: int, epoch: int, member_id: str = "a") -> int:
    request = replace(
        commit_request(GROUP, 5), member_id=member_id, generation_id_or_member_epoch=epoch
    )
    answer = await offset_commit.handle(request, rig.call(version))
    return answer.topics[0].partitions[0].error_code


async def test_members_commit_in_their_epoch_and_by_versions_that_know_of_it(rig: Rig) -> None:
    await beat(rig)
    assert await commit(rig, 9, 1) == ErrorCode.NONE
    assert await commit(rig, 9, 0) == ErrorCode.STALE_MEMBER_EPOCH
    assert await commit(rig, 9, 1, "b") == ErrorCode.UNKNOWN_MEMBER_ID
    assert await commit(rig, 8, 1) == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    ("member_id", "epoch", "error"),
    [
        (None, -1, ErrorCode.NONE),
        ("a", 1, ErrorCode.NONE),
        ("a", 0, ErrorCode.STALE_MEMBER_EPOCH),
        ("b", 1, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
async def test_members_see_offsets_in_their_epoch(
    rig: Rig, member_id: str | None, epoch: int, error: ErrorCode
) -> None:
    await beat(rig)
    await commit(rig, 9, 1)
    group = OffsetFetchRequestGroup(
        group_id=GROUP, member_id=member_id, member_epoch=epoch, topics=None
    )
    answer = await offset_fetch.handle(OffsetFetchRequest(groups=(group,)), rig.call(9))
    assert answer.groups[0].error_code == error
    assert len(answer.groups[0].topics) == (error is ErrorCode.NONE)


async def test_the_protocol_can_be_switched_off(tmp_path: Path) -> None:
    off = {"group_coordinator_rebalance_protocols": ("classic",)}
    async with open_rig(tmp_path, off) as rig:
        assert (await beat(rig)).error_code == ErrorCode.UNSUPPORTED_VERSION
        assert (await described(rig)).error_code == ErrorCode.UNSUPPORTED_VERSION
        handle = api_versions.handler(tuple)
        [only] = (await handle(ApiVersionsRequest(), rig.call(4))).finalized_features
        assert only.name == "transaction.version"


async def test_the_features_are_announced_as_kafka_4_does(rig: Rig) -> None:
    answer = await api_versions.handler(tuple)(ApiVersionsRequest(), rig.call(4))
    levels = {one.name: one.max_version_level for one in answer.finalized_features}
    assert levels == {"group.version": 1, "transaction.version": 2}
    supported = {one.name: (one.min_version, one.max_version) for one in answer.supported_features}
    assert supported == {"group.version": (0, 1), "transaction.version": (0, 2)}
    older = await api_versions.handler(tuple)(ApiVersionsRequest(), rig.call(3))
    assert older.supported_features == (), "they give up at a feature that begins at 0"
