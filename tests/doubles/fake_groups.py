"""What a broker of the fake cluster answers about groups, one small function for each API."""

from typing import TYPE_CHECKING, Any

from wire.errors import ErrorCode
from wire.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

if TYPE_CHECKING:
    from tests.doubles.fake_cluster import FakeBroker


def find_coordinator(
    broker: "FakeBroker", version: int, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    def place(group: str) -> dict[str, Any]:
        node = broker.cluster.coordinator(group)
        if node < 0:
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
            return {"error_code": code, "node_id": -1, "host": "", "port": -1}
        host, port = broker.cluster.brokers[node].address
        return {"error_code": 0, "node_id": node, "host": host, "port": port}

    if version < 4:
        return FindCoordinatorResponse(**place(request.key))
    return FindCoordinatorResponse(
        coordinators=tuple(
            Coordinator(key=group, **place(group)) for group in request.coordinator_keys
        )
    )


def _coordination(broker: "FakeBroker", group: str) -> ErrorCode:
    ours = broker.cluster.coordinator(group) == broker.node_id
    return ErrorCode.NONE if ours else ErrorCode.NOT_COORDINATOR


def offset_commit(
    broker: "FakeBroker", _: int, request: OffsetCommitRequest
) -> OffsetCommitResponse:
    cluster, code = broker.cluster, _coordination(broker, request.group_id)

    def store(topic: str, partition: OffsetCommitRequestPartition) -> ErrorCode:
        metadata = partition.committed_metadata or ""
        if code is ErrorCode.NONE:
            if len(metadata.encode()) > cluster.most_metadata:
                return ErrorCode.OFFSET_METADATA_TOO_LARGE
            place = (topic, partition.partition_index)
            cluster.offsets[request.group_id][place] = partition.committed_offset
            cluster.metadata[request.group_id][place] = metadata
        return code

    return OffsetCommitResponse(
        topics=tuple(
            OffsetCommitResponseTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetCommitResponsePartition(
                        partition_index=partition.partition_index,
                        error_code=store(topic.name, partition),
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def offset_fetch(
    broker: "FakeBroker", version: int, request: OffsetFetchRequest
) -> OffsetFetchResponse:
    """Answer for all partitions of each group, whatever was asked for."""
    if version >= 8:
        return OffsetFetchResponse(
            groups=tuple(_stored_of(broker, one.group_id) for one in request.groups)
        )
    code = _coordination(broker, request.group_id)
    stored = broker.cluster.offsets[request.group_id] if code is ErrorCode.NONE else {}
    metadata = broker.cluster.metadata[request.group_id]
    return OffsetFetchResponse(
        error_code=code,
        topics=tuple(
            OffsetFetchResponseTopic(
                name=name,
                partitions=(
                    OffsetFetchResponsePartition(
                        partition_index=index,
                        committed_offset=offset,
                        metadata=metadata.get((name, index), ""),
                        error_code=0,
                    ),
                ),
            )
            for (name, index), offset in stored.items()
        ),
    )


def _stored_of(broker: "FakeBroker", group: str) -> OffsetFetchResponseGroup:
    code = _coordination(broker, group)
    stored = broker.cluster.offsets[group] if code is ErrorCode.NONE else {}
    metadata = broker.cluster.metadata[group]
    return OffsetFetchResponseGroup(
        group_id=group,
        error_code=code,
        topics=tuple(
            OffsetFetchResponseTopics(
                name=name,
                partitions=(
                    OffsetFetchResponsePartitions(
                        partition_index=index,
                        committed_offset=offset,
                        metadata=metadata.get((name, index), ""),
                        error_code=0,
                    ),
                ),
            )
            for (name, index), offset in stored.items()
        ),
    )


def describe_groups(
    broker: "FakeBroker", _: int, request: DescribeGroupsRequest
) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(
        groups=tuple(
            DescribedGroup(
                error_code=_coordination(broker, group),
                group_id=group,
                group_state="Empty" if group in broker.cluster.offsets else "Dead",
                protocol_type="consumer",
                protocol_data="",
                members=(),
            )
            for group in request.groups
        )
    )


def list_groups(broker: "FakeBroker", _: int, __: ListGroupsRequest) -> ListGroupsResponse:
    return ListGroupsResponse(
        error_code=0,
        groups=tuple(
            ListedGroup(group_id=group, protocol_type="consumer", group_state="Empty")
            for group in broker.cluster.offsets
            if broker.cluster.coordinator(group) == broker.node_id
        ),
    )
