"""Guards of what is done with groups and with their positions."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final

from broker.context import Call, Handler
from broker.groups.answers import joined_in, refused_join
from broker.guards.guard import Stand, may_group, may_topic, may_transact, sorted_out
from wire.acls import Operation, ResourceType
from wire.errors import ErrorCode
from wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest
from wire.messages.describe_groups import DescribedGroup, DescribeGroupsRequest
from wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from wire.messages.join_group import JoinGroupRequest
from wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

REFUSED: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
OF_TRANSACTION: Final = 1
"""FindCoordinator's type of key."""
SEVERAL_KEYS_SINCE: Final = 4
SEVERAL_GROUPS_SINCE: Final = 8
TOP_LEVEL_ERROR_SINCE: Final = 2
NOTHING: Final = -1


def needing(operation: Operation, refuse: Callable[[Any], Any]) -> Stand:
    """Return a guard that lets a request about one group pass whole, or refuses it whole."""

    async def stand(request: Any, call: Call, handle: Handler) -> Any:  # noqa: ANN401 - one per API
        if may_group(call, operation, request.group_id):
            return await handle(request, call)
        return refuse(request)

    return stand


async def join(request: JoinGroupRequest, call: Call, handle: Handler) -> Any:  # noqa: ANN401 - the handler's
    """Let those who may read the group become members."""
    if may_group(call, Operation.READ, request.group_id):
        return await handle(request, call)
    return joined_in(refused_join(REFUSED, request.member_id), call.api_version)


async def find_coordinator(request: FindCoordinatorRequest, call: Call, handle: Handler) -> Any:  # noqa: ANN401 - the handler's
    """Tell who may describe the group, or the transactional id."""
    is_of_transaction = request.key_type == OF_TRANSACTION
    may = may_transact if is_of_transaction else may_group
    error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED if is_of_transaction else REFUSED
    if call.api_version < SEVERAL_KEYS_SINCE:
        if may(call, Operation.DESCRIBE, request.key):
            return await handle(request, call)
        return FindCoordinatorResponse(error_code=error, node_id=NOTHING, host="", port=NOTHING)
    kept, refused = await sorted_out(
        request.coordinator_keys, lambda key: may(call, Operation.DESCRIBE, key)
    )
    answer = await handle(replace(request, coordinator_keys=kept), call)
    own = tuple(
        Coordinator(key=key, node_id=NOTHING, host="", port=NOTHING, error_code=error)
        for key in refused
    )
    return replace(answer, coordinators=answer.coordinators + own)


async def describe_groups(request: DescribeGroupsRequest, call: Call, handle: Handler) -> Any:  # noqa: ANN401 - the handler's
    """Describe those that may be described."""
    kept, refused = await sorted_out(
        request.groups, lambda group_id: may_group(call, Operation.DESCRIBE, group_id)
    )
    answer = await handle(replace(request, groups=kept), call)
    told = answer.groups
    if request.include_authorized_operations:
        told = tuple(_with_operations(group, call) for group in told)
    own = tuple(
        DescribedGroup(
            error_code=REFUSED,
            group_id=group_id,
            group_state="",
            protocol_type="",
            protocol_data="",
            members=(),
        )
        for group_id in refused
    )
    return replace(answer, groups=told + own)


def _with_operations(group: DescribedGroup, call: Call) -> DescribedGroup:
    if group.error_code:
        return group
    return replace(
        group, authorized_operations=call.rights.told(ResourceType.GROUP, group.group_id)
    )


async def list_groups(
    request: ListGroupsRequest, call: Call, handle: Handler
) -> ListGroupsResponse:
    """List all to who may describe the cluster, and else those that may be described."""
    answer: ListGroupsResponse = await handle(request, call)
    if call.rights.may_cluster(Operation.DESCRIBE):
        return answer
    kept, _ = await sorted_out(
        answer.groups, lambda group: may_group(call, Operation.DESCRIBE, group.group_id)
    )
    return replace(answer, groups=kept)


async def delete_groups(request: DeleteGroupsRequest, call: Call, handle: Handler) -> Any:  # noqa: ANN401 - the handler's
    """Delete those that may be deleted."""
    kept, refused = await sorted_out(
        request.groups_names, lambda group_id: may_group(call, Operation.DELETE, group_id)
    )
    answer = await handle(replace(request, groups_names=kept), call)
    own = tuple(DeletableGroupResult(group_id=one, error_code=REFUSED) for one in refused)
    return replace(answer, results=answer.results + own)


async def offset_commit(
    request: OffsetCommitRequest, call: Call, handle: Handler
) -> OffsetCommitResponse:
    """Take positions of a group that may be read, in topics that may be read."""
    if not may_group(call, Operation.READ, request.group_id):
        return OffsetCommitResponse(topics=_uncommitted(request.topics, REFUSED))
    kept, refused = await sorted_out(
        request.topics, lambda topic: may_topic(call, Operation.READ, topic.name)
    )
    answer: OffsetCommitResponse = await handle(replace(request, topics=kept), call)
    own = _uncommitted(refused, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return replace(answer, topics=answer.topics + own)


def _uncommitted(
    topics: Iterable[OffsetCommitRequestTopic], error: ErrorCode
) -> tuple[OffsetCommitResponseTopic, ...]:
    return tuple(
        OffsetCommitResponseTopic(
            name=topic.name,
            partitions=tuple(
                OffsetCommitResponsePartition(partition_index=one.partition_index, error_code=error)
                for one in topic.partitions
            ),
        )
        for topic in topics
    )


async def offset_delete(
    request: OffsetDeleteRequest, call: Call, handle: Handler
) -> OffsetDeleteResponse:
    """Forget positions of a group that may be deleted, in topics that may be read."""
    if not may_group(call, Operation.DELETE, request.group_id):
        return OffsetDeleteResponse(error_code=REFUSED, topics=())
    kept, refused = await sorted_out(
        request.topics, lambda topic: may_topic(call, Operation.READ, topic.name)
    )
    answer: OffsetDeleteResponse = await handle(replace(request, topics=kept), call)
    if answer.error_code:
        return answer
    own = tuple(
        OffsetDeleteResponseTopic(
            name=topic.name,
            partitions=tuple(
                OffsetDeleteResponsePartition(
                    partition_index=one.partition_index,
                    error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                )
                for one in topic.partitions
            ),
        )
        for topic in refused
    )
    return replace(answer, topics=answer.topics + own)


async def offset_fetch(
    request: OffsetFetchRequest, call: Call, handle: Handler
) -> OffsetFetchResponse:
    """Tell positions of groups and in topics that may be described.

    Who asks for all positions of a group is not told of the other topics.
    """
    if call.api_version < SEVERAL_GROUPS_SINCE:
        return await _fetch_of_one(request, call, handle)
    kept, refused = await sorted_out(
        request.groups, lambda group: may_group(call, Operation.DESCRIBE, group.group_id)
    )
    parted = [await _parted(group, call) for group in kept]
    asked = replace(request, groups=tuple(group for group, _ in parted))
    answer: OffsetFetchResponse = await handle(asked, call)
    told = [
        await _told(group, own, call) for group, (_, own) in zip(answer.groups, parted, strict=True)
    ]
    told += (
        OffsetFetchResponseGroup(group_id=group.group_id, topics=(), error_code=REFUSED)
        for group in refused
    )
    return replace(answer, groups=tuple(told))


async def _parted(
    group: OffsetFetchRequestGroup, call: Call
) -> tuple[OffsetFetchRequestGroup, tuple[OffsetFetchResponseTopics, ...]]:
    """Return what may be asked of a group, and the answer to the rest."""
    if group.topics is None:
        return group, ()
    kept, refused = await sorted_out(
        group.topics, lambda topic: may_topic(call, Operation.DESCRIBE, topic.name)
    )
    own = tuple(
        OffsetFetchResponseTopics(
            name=topic.name,
            partitions=tuple(
                OffsetFetchResponsePartitions(
                    partition_index=index,
                    committed_offset=NOTHING,
                    metadata="",
                    error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                )
                for index in topic.partition_indexes
            ),
        )
        for topic in refused
    )
    return replace(group, topics=kept), own


async def _told(
    group: OffsetFetchResponseGroup, own: tuple[OffsetFetchResponseTopics, ...], call: Call
) -> OffsetFetchResponseGroup:
    if group.error_code:
        return group
    kept, _ = await sorted_out(
        group.topics, lambda topic: may_topic(call, Operation.DESCRIBE, topic.name)
    )
    return replace(group, topics=kept + own)


async def _fetch_of_one(
    request: OffsetFetchRequest, call: Call, handle: Handler
) -> OffsetFetchResponse:
    """Do the same in the form of the older versions."""
    if not may_group(call, Operation.DESCRIBE, request.group_id):
        return _refused_fetch(request, call.api_version)
    if request.topics is None:
        answer: OffsetFetchResponse = await handle(request, call)
        told, _ = await sorted_out(
            answer.topics, lambda topic: may_topic(call, Operation.DESCRIBE, topic.name)
        )
        return replace(answer, topics=told)
    kept, refused = await sorted_out(
        request.topics, lambda topic: may_topic(call, Operation.DESCRIBE, topic.name)
    )
    answer = await handle(replace(request, topics=kept), call)
    if answer.error_code:
        return answer
    own = _unfetched(replace(request, topics=refused), ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return replace(answer, topics=answer.topics + own)


def _refused_fetch(request: OffsetFetchRequest, api_version: int) -> OffsetFetchResponse:
    if api_version >= TOP_LEVEL_ERROR_SINCE:
        return OffsetFetchResponse(error_code=REFUSED)
    return OffsetFetchResponse(topics=_unfetched(request, REFUSED))


def _unfetched(
    request: OffsetFetchRequest, error: ErrorCode
) -> tuple[OffsetFetchResponseTopic, ...]:
    return tuple(
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=tuple(
                OffsetFetchResponsePartition(
                    partition_index=index, committed_offset=NOTHING, metadata="", error_code=error
                )
                for index in topic.partition_indexes
            ),
        )
        for topic in request.topics or ()
    )
