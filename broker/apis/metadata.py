"""Metadata: the brokers, and the leaders of the topics asked for; creates topics if allowed to."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from broker.apis.describe_cluster import ALL_CLUSTER_OPERATIONS, UNKNOWN_OPERATIONS
from broker.context import Call
from broker.controller.topics import INTERNAL_TOPICS, TopicSpec, illegal_name
from broker.fairness import Turns
from broker.led_partition import CONSUMER_OFFSETS
from broker.metadata_cache import NO_LEADER, PartitionView, TopicView
from wire.acls import SUPPORTED, ResourceType, bits_of
from wire.errors import ErrorCode
from wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from wire.primitives import ZERO_UUID

LISTENER_NOT_FOUND_SINCE: Final = 6
REBOOTSTRAP_SINCE: Final = 13
ALL_TOPIC_OPERATIONS: Final = bits_of(SUPPORTED[ResourceType.TOPIC])


async def handle(request: MetadataRequest, call: Call) -> MetadataResponse:
    """Answer from what the controller last announced."""
    await call.node.wait_metadata()
    metadata = call.node.metadata
    if is_sent_away(request, call):
        return MetadataResponse(
            brokers=(),
            cluster_id=metadata.cluster_id,
            topics=(),
            error_code=ErrorCode.REBOOTSTRAP_REQUIRED,
        )
    operations = UNKNOWN_OPERATIONS
    if request.include_cluster_authorized_operations:
        operations = ALL_CLUSTER_OPERATIONS
    return MetadataResponse(
        brokers=tuple(
            MetadataResponseBroker(
                node_id=broker.broker_id, host=at[0], port=at[1], rack=broker.rack
            )
            for broker in metadata.brokers.values()
            if (at := broker.at(call.listener)) is not None
        ),
        cluster_id=metadata.cluster_id,
        controller_id=metadata.controller_id,
        topics=tuple(await _topics(request, call)),
        cluster_authorized_operations=operations,
    )


def is_sent_away(request: MetadataRequest, call: Call) -> bool:
    """Say whether a client has to look for its cluster anew, by its bootstrap servers (KIP-1102).

    A fence may ask for it: the topics that the client wants have moved to another site. Whoever
    names none of them, as a tool that lists all, is answered; so are older clients, which know no
    such answer.
    """
    fence = call.node.dynamic.fence
    if not fence.sends_away or call.api_version < REBOOTSTRAP_SINCE or call.is_broker:
        return False
    metadata = call.node.metadata
    for asked in request.topics or ():
        view = None if asked.topic_id == ZERO_UUID else metadata.topic_by_id(asked.topic_id)
        name = asked.name if view is None else view.name
        if name and fence.refuses(call.client_id, name):
            return True
    return False


async def _topics(request: MetadataRequest, call: Call) -> Sequence[MetadataResponseTopic]:
    turns = Turns()
    wants_all = request.topics is None or (call.api_version == 0 and not request.topics)
    if wants_all:
        views = [*call.node.metadata.topics().values()]
        return [await _known(view, request, call, turns) for view in views]
    return [await _topic(asked, request, call, turns) for asked in request.topics or ()]


async def _topic(
    asked: MetadataRequestTopic, request: MetadataRequest, call: Call, turns: Turns
) -> MetadataResponseTopic:
    await turns.pass_on()
    if asked.topic_id != ZERO_UUID:
        by_id = call.node.metadata.topic_by_id(asked.topic_id)
        if by_id is not None:
            return await _known(by_id, request, call, turns)
        return MetadataResponseTopic(
            error_code=ErrorCode.UNKNOWN_TOPIC_ID,
            name=None if call.api_version >= 12 else "",
            topic_id=asked.topic_id,
            partitions=(),
        )
    name = asked.name or ""
    view = call.node.metadata.topic(name)
    if view is not None:
        return await _known(view, request, call, turns)
    return MetadataResponseTopic(
        error_code=await _create(name, request, call),
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        partitions=(),
    )


async def _create(name: str, request: MetadataRequest, call: Call) -> ErrorCode:
    """Return why the topic is not there (yet); it may be on its way."""
    if illegal_name(name) is not None:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if not (request.allow_auto_topic_creation and call.node.config.auto_create_topics_enable):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if name == CONSUMER_OFFSETS:
        error = await call.node.ensure_internal_topic(name)
    else:
        error = await call.node.create_topic(TopicSpec(name=name))
    return ErrorCode.LEADER_NOT_AVAILABLE if error is ErrorCode.NONE else error


async def _known(
    view: TopicView, request: MetadataRequest, call: Call, turns: Turns
) -> MetadataResponseTopic:
    operations = UNKNOWN_OPERATIONS
    if request.include_topic_authorized_operations:
        operations = ALL_TOPIC_OPERATIONS
    return MetadataResponseTopic(
        error_code=ErrorCode.NONE,
        name=view.name,
        topic_id=view.topic_id,
        is_internal=view.name in INTERNAL_TOPICS,
        partitions=await turns.each(
            [view.partitions[index] for index in sorted(view.partitions)],
            partial(_partition_by_version, call),
        ),
        topic_authorized_operations=operations,
    )


def _partition_by_version(call: Call, view: PartitionView) -> MetadataResponsePartition:
    told = described_partition(call, view)
    if told.error_code != ErrorCode.LISTENER_NOT_FOUND:
        return told
    is_known = call.api_version >= LISTENER_NOT_FOUND_SINCE
    return told if is_known else replace(told, error_code=ErrorCode.LEADER_NOT_AVAILABLE)


def described_partition(call: Call, view: PartitionView) -> MetadataResponsePartition:
    """Return a partition as a client of the call's listener is told of it."""
    live = call.node.metadata.brokers
    leader = live.get(view.leader)
    has_leader = leader is not None and leader.at(call.listener) is not None
    error = ErrorCode.NONE if has_leader else ErrorCode.LEADER_NOT_AVAILABLE
    if leader is not None and not has_leader:
        error = ErrorCode.LISTENER_NOT_FOUND
    return MetadataResponsePartition(
        error_code=error,
        partition_index=view.index,
        leader_id=view.leader if has_leader else NO_LEADER,
        leader_epoch=view.leader_epoch,
        replica_nodes=view.replicas,
        isr_nodes=view.isr,
        offline_replicas=tuple(
            broker for broker in view.replicas if broker not in live or broker in view.offline
        ),
    )
