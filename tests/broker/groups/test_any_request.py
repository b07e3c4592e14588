"""No request of a client, however odd, breaks the coordinator or gets an answer it cannot read."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import hypothesis.strategies as st
import trio
from hypothesis import HealthCheck, given, settings
from trio.testing import MockClock

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
from broker.context import Call
from tests.broker.groups.rig import Rig, open_rig
from tests.properties import examples
from wire.messages.delete_groups import DeleteGroupsRequest
from wire.messages.describe_groups import DescribeGroupsRequest
from wire.messages.find_coordinator import FindCoordinatorRequest
from wire.messages.heartbeat import HeartbeatRequest
from wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from wire.messages.list_groups import ListGroupsRequest
from wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
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
from wire.schema import Unencodable, decode, encode

Handle: TypeAlias = Callable[[Any, Call], Awaitable[Any]]

LONGEST = "x" * 32_767
TOO_LONG = "é" * 16_384
GIVEN = "<the id that was given last>"
"""Stands for a member id that the coordinator has handed out."""

groups = st.sampled_from([*["g"] * 12, "h", "", LONGEST, TOO_LONG])
members = st.sampled_from([*[GIVEN] * 6, "", "stranger", TOO_LONG])
instances = st.sampled_from([*[None] * 6, "a", "b", "", LONGEST, TOO_LONG])
protocol_types = st.sampled_from([*["consumer"] * 6, "connect", "", LONGEST])
protocol_names = st.sampled_from(["range", "range", "sticky", "", LONGEST])
generations = st.sampled_from([-1, 0, 1, 1, 1, 2, 3])
topics = st.sampled_from(["orders", "nowhere", ""])
partitions = st.sampled_from([0, 1, 2, -1])
kinds = st.sampled_from([0, 1, 2, 9, -1])
blobs = st.binary(max_size=12)


def lists(elements: st.SearchStrategy[Any], size: int = 2) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(elements, max_size=size).map(tuple)


REQUESTS: list[tuple[Handle, st.SearchStrategy[Any]]] = [
    (
        join_group.handle,
        st.builds(
            JoinGroupRequest,
            group_id=groups,
            session_timeout_ms=st.sampled_from([6_000, 10_000, 1_800_000, 10_000, -1]),
            rebalance_timeout_ms=st.sampled_from([-1, 0, 5_000, 60_000]),
            member_id=st.just("") | members,
            group_instance_id=instances,
            protocol_type=protocol_types,
            protocols=lists(
                st.builds(JoinGroupRequestProtocol, name=protocol_names, metadata=blobs), 4
            ),
        ),
    ),
    (
        sync_group.handle,
        st.builds(
            SyncGroupRequest,
            group_id=groups,
            generation_id=generations,
            member_id=members,
            group_instance_id=instances,
            protocol_type=st.none() | protocol_types,
            protocol_name=st.none() | protocol_names,
            assignments=lists(
                st.builds(SyncGroupRequestAssignment, member_id=members, assignment=blobs)
            ),
        ),
    ),
    (
        heartbeat.handle,
        st.builds(
            HeartbeatRequest,
            group_id=groups,
            generation_id=generations,
            member_id=members,
            group_instance_id=instances,
        ),
    ),
    (
        leave_group.handle,
        st.builds(
            LeaveGroupRequest,
            group_id=groups,
            members=lists(
                st.builds(MemberIdentity, member_id=members, group_instance_id=instances)
            ),
        )
        | st.builds(LeaveGroupRequest, group_id=groups, member_id=members),
    ),
    (
        offset_commit.handle,
        st.builds(
            OffsetCommitRequest,
            group_id=groups,
            generation_id_or_member_epoch=generations,
            member_id=members,
            group_instance_id=instances,
            retention_time_ms=st.sampled_from([-1, -5, 0, 10, 2**40]),
            topics=lists(
                st.builds(
                    OffsetCommitRequestTopic,
                    name=topics,
                    partitions=lists(
                        st.builds(
                            OffsetCommitRequestPartition,
                            partition_index=partitions,
                            committed_offset=st.sampled_from([0, 5, -1, -(2**63), 2**63 - 1]),
                            committed_leader_epoch=st.sampled_from([-1, 0, 2**31 - 1]),
                            committed_metadata=st.sampled_from([None, "", "note", TOO_LONG]),
                        )
                    ),
                )
            ),
        ),
    ),
    (
        offset_fetch.handle,
        st.builds(
            OffsetFetchRequest,
            group_id=groups,
            topics=st.none()
            | lists(
                st.builds(OffsetFetchRequestTopic, name=topics, partition_indexes=lists(partitions))
            ),
            groups=lists(
                st.builds(
                    OffsetFetchRequestGroup,
                    group_id=groups,
                    topics=st.none()
                    | lists(
                        st.builds(
                            OffsetFetchRequestTopics,
                            name=topics,
                            partition_indexes=lists(partitions),
                        )
                    ),
                )
            ),
        ),
    ),
    (
        offset_delete.handle,
        st.builds(
            OffsetDeleteRequest,
            group_id=groups,
            topics=lists(
                st.builds(
                    OffsetDeleteRequestTopic,
                    name=topics,
                    partitions=lists(
                        st.builds(OffsetDeleteRequestPartition, partition_index=partitions)
                    ),
                )
            ),
        ),
    ),
    (describe_groups.handle, st.builds(DescribeGroupsRequest, groups=lists(groups))),
    (
        list_groups.handle,
        st.builds(
            ListGroupsRequest,
            states_filter=lists(st.sampled_from(["Stable", "empty", "?"])),
            types_filter=lists(st.sampled_from(["classic", "?"])),
        ),
    ),
    (delete_groups.handle, st.builds(DeleteGroupsRequest, groups_names=lists(groups))),
    (
        find_coordinator.handle,
        st.builds(FindCoordinatorRequest, key=groups)
        | st.builds(FindCoordinatorRequest, key=groups, key_type=kinds)
        | st.builds(FindCoordinatorRequest, coordinator_keys=lists(groups), key_type=kinds),
    ),
]


@dataclass(frozen=True, slots=True)
class Sent:
    """One request in one version, after a pause."""

    handle: Handle
    request: Any
    version: int
    pause_s: float


def _sent(row: tuple[Handle, st.SearchStrategy[Any]]) -> st.SearchStrategy[Sent]:
    handle, requests = row
    return requests.flatmap(
        lambda request: st.builds(
            Sent,
            st.just(handle),
            st.just(request),
            st.sampled_from(list(type(request).VERSIONS)),
            st.sampled_from([0, 0, 0.2, 0.2, 5, 400]),
        )
    )


# Members are what makes a coordinator busy, so most requests are theirs.
anything = st.sampled_from([*REQUESTS[:1] * 6, *REQUESTS[:5] * 3, *REQUESTS]).flatmap(_sent)


@given(st.lists(anything, min_size=40, max_size=80))
@settings(deadline=None, max_examples=examples(10), suppress_health_check=[HealthCheck.too_slow])
def test_every_request_gets_an_answer_that_its_version_can_carry(requests: list[Sent]) -> None:
    async def send_all() -> None:
        with TemporaryDirectory() as folder:
            async with open_rig(Path(folder), {"group_initial_rebalance_delay_ms": 100}) as rig:
                async with trio.open_nursery() as nursery:
                    for sent in requests:
                        await trio.sleep(sent.pause_s)
                        nursery.start_soon(_send, rig, sent)
                await trio.sleep(2_000)
            async with open_rig(Path(folder)) as rig:  # and what was written can be read again
                assert (await rig.group_states()).keys() <= {"Empty", "Stable"}

    trio.run(send_all, clock=MockClock(autojump_threshold=0))


async def _send(rig: Rig, sent: Sent) -> None:
    request = _with_given_id(sent.request, _last_given(rig))
    try:
        arrived = decode(type(request), encode(request, sent.version), sent.version)
    except Unencodable:
        return  # this version has no room for it, so no client can send it
    answer = await sent.handle(arrived, rig.call(sent.version))
    encode(answer, sent.version)


def _last_given(rig: Rig) -> str:
    """Return the newest id that is waited for or in use, so that some requests hit a member."""
    shard = rig.groups._partitions[0].loaded
    for group in shard.groups.values():
        for name in [*group.pending_joins, *group.members]:
            return name
    return "nobody"


def _with_given_id(request: Any, name: str) -> Any:
    """Put the id in wherever the request says so."""
    if isinstance(request, tuple):
        return tuple(_with_given_id(element, name) for element in request)
    if not is_dataclass(request):
        return name if request == GIVEN else request
    values = {
        entry.name: _with_given_id(getattr(request, entry.name), name) for entry in fields(request)
    }
    return replace(request, **values)  # type: ignore[type-var]
