"""The members of a group of either protocol, with the partitions that each of them has."""

from broker.commands.showing import Row
from broker.groups.subscription import decode_assignment
from wire.errors import ErrorCode
from wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    DescribedGroup,
)
from wire.net import Cluster
from wire.net.group_operations import CONSUMER_PROTOCOL_TYPE
from wire.net.operations import GroupDescription
from wire.primitives import MalformedMessage


async def members_of(cluster: Cluster, group: str, known: GroupDescription) -> list[Row]:
    """Return the members by id; `partitions` is None where a client speaks of them its own way."""
    of_new_protocol = await _described_by_new_protocol(cluster, group)
    if of_new_protocol is not None:
        return [
            {
                "member": one.member_id,
                "instance": one.instance_id or "",
                "client": one.client_id,
                "host": one.client_host,
                "partitions": sorted(
                    f"{topic.topic_name}-{index}"
                    for topic in one.assignment.topic_partitions
                    for index in topic.partitions
                ),
            }
            for one in sorted(of_new_protocol.members, key=lambda member: member.member_id)
        ]
    is_consumers = known.protocol_type == CONSUMER_PROTOCOL_TYPE
    return [
        {
            "member": one.member_id,
            "instance": one.group_instance_id or "",
            "client": one.client_id,
            "host": one.client_host,
            "partitions": _assigned(one.member_assignment) if is_consumers else None,
        }
        for one in sorted(known.members, key=lambda member: member.member_id)
    ]


def _assigned(assignment: bytes) -> list[str] | None:
    """Return the partitions that a member was told; its client may have a format of its own."""
    try:
        places = sorted(decode_assignment(assignment))
    except MalformedMessage:
        return None
    return [f"{place.topic}-{place.partition}" for place in places]


async def _described_by_new_protocol(cluster: Cluster, group: str) -> DescribedGroup | None:
    """Return what brokers say of a group of KIP-848, None of any other."""
    coordinator = await cluster.coordinator(group)
    if not coordinator.serves(ConsumerGroupDescribeRequest):
        return None
    answer = await coordinator.request(
        ConsumerGroupDescribeRequest(group_ids=(group,), include_authorized_operations=False)
    )
    [found] = answer.groups
    return found if found.error_code == ErrorCode.NONE else None
