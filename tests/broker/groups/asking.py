"""Requests of one member, asked of a coordinator in a rig."""

from broker.apis import heartbeat, join_group, offset_commit, offset_fetch, sync_group
from tests.broker.groups.rig import Rig, commit_request
from wire.errors import ErrorCode
from wire.messages.heartbeat import HeartbeatRequest
from wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from wire.messages.offset_fetch import OffsetFetchRequest
from wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

JOIN_VERSION = 9
GROUP = "readers"


def join_request(member_id: str = "", group_id: str = GROUP) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=30_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
    )


async def join(rig: Rig, member_id: str = "") -> JoinGroupResponse:
    return await join_group.handle(join_request(member_id), rig.call(JOIN_VERSION))


async def stable_member(rig: Rig) -> JoinGroupResponse:
    given = await join(rig)
    assert given.error_code == ErrorCode.MEMBER_ID_REQUIRED
    joined = await join(rig, given.member_id)
    assert joined.error_code == ErrorCode.NONE
    await sync(rig, joined)
    return joined


async def sync(rig: Rig, joined: JoinGroupResponse) -> bytes:
    assignment = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"all")
    answer = await sync_group.handle(
        SyncGroupRequest(
            group_id=GROUP,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            protocol_type=joined.protocol_type,
            protocol_name=joined.protocol_name,
            assignments=(assignment,),
        ),
        rig.call(5),
    )
    assert answer.error_code == ErrorCode.NONE
    return answer.assignment


async def beat(rig: Rig, joined: JoinGroupResponse) -> ErrorCode:
    request = HeartbeatRequest(
        group_id=GROUP, generation_id=joined.generation_id, member_id=joined.member_id
    )
    return ErrorCode((await heartbeat.handle(request, rig.call(4))).error_code)


async def commit(rig: Rig, offset: int, group_id: str = GROUP) -> ErrorCode:
    answer = await offset_commit.handle(commit_request(group_id, offset), rig.call(9))
    return ErrorCode(answer.topics[0].partitions[0].error_code)


async def committed(rig: Rig, group_id: str = GROUP) -> int | ErrorCode:
    request = OffsetFetchRequest(group_id=group_id, topics=None)
    answer = await offset_fetch.handle(request, rig.call(7))
    if answer.error_code != ErrorCode.NONE:
        return ErrorCode(answer.error_code)
    return answer.topics[0].partitions[0].committed_offset if answer.topics else -1
