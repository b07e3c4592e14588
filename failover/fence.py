"""Close a site for writes to some topics, and make sure that it is closed.

The fence is two dynamic settings that all brokers of a cluster share: the topics that are closed,
and the client ids that may write to them all the same. A closed partition answers Produce with
NOT_ENOUGH_REPLICAS, which clients take as "not appended, try again".

Whether it holds is not believed but tried, at every partition, without writing anything: a batch
with a wrong checksum, from a client id that the fence does not let through. The fence comes before
the checksum, so a closed partition answers NOT_ENOUGH_REPLICAS and an open one CORRUPT_MESSAGE. It
is sent with acks=1, because with acks=all a partition that is short of replicas would answer like
a closed one while it still took writes with acks=1.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import trio

from wire.errors import ErrorCode
from wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from wire.net import Cluster, NetworkFault, RequestRefused
from wire.record_batch import Record, build_batch

Place: TypeAlias = tuple[str, int]

FENCED_TOPICS: Final = "write.fence.topics"
ALLOWED_CLIENTS: Final = "write.fence.allowed.client.ids"
BROKER_RESOURCE: Final = 4
ALL_BROKERS: Final = ""
SET: Final = 0
DELETE: Final = 1

VERIFY_TIMEOUT_S: Final = 10.0
VERIFY_AGAIN_S: Final = 0.05
PROBE_TIMEOUT_MS: Final = 3_000
CRC_AT: Final = 17


class FenceDoesNotHold(Exception):
    """Some partition is open although it should be closed; the message names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """What is closed, and for whom it is open all the same."""

    topics: tuple[str, ...] = ()
    allowed_clients: tuple[str, ...] = ()


async def read_fence(cluster: Cluster) -> Fence:
    """Return the fence that is set; empty where there is none. Raises NetworkFault."""
    request = DescribeConfigsRequest(
        resources=(
            DescribeConfigsResource(
                resource_type=BROKER_RESOURCE,
                resource_name=ALL_BROKERS,
                configuration_keys=(FENCED_TOPICS, ALLOWED_CLIENTS),
            ),
        )
    )
    [result] = (await cluster.request(request)).results
    if result.error_code != ErrorCode.NONE:
        raise RequestRefused("reading the write fence", ErrorCode(result.error_code))
    values = {config.name: config.value or "" for config in result.configs}
    return Fence(
        topics=_listed(values.get(FENCED_TOPICS, "")),
        allowed_clients=_listed(values.get(ALLOWED_CLIENTS, "")),
    )


async def set_fence(cluster: Cluster, fence: Fence) -> None:
    """Replace the fence, with no topics: take it away. Raises NetworkFault.

    Brokers hear of it one after the other; wait_holds() tells when all have.
    """
    if fence.topics:
        configs = (
            _set(FENCED_TOPICS, ",".join(sorted(fence.topics))),
            _set(ALLOWED_CLIENTS, ",".join(sorted(fence.allowed_clients))),
        )
    else:
        configs = (_delete(FENCED_TOPICS), _delete(ALLOWED_CLIENTS))
    resource = IncrementalAlterConfigsResource(
        resource_type=BROKER_RESOURCE, resource_name=ALL_BROKERS, configs=configs
    )
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    [answer] = (await cluster.request(request)).responses
    if answer.error_code != ErrorCode.NONE:
        reason = f"setting the write fence ({answer.error_message or 'no reason given'})"
        raise RequestRefused(reason, ErrorCode(answer.error_code))


async def wait_holds(
    cluster: Cluster, places: Sequence[Place], *, timeout_s: float = VERIFY_TIMEOUT_S
) -> None:
    """Return once every partition refuses our probe as a fenced one does.

    Raises FenceDoesNotHold naming a partition after `timeout_s`, and NetworkFault.
    """
    answers: dict[Place, ErrorCode] = {}
    open_places = tuple(places)
    with trio.move_on_after(timeout_s):
        while open_places:
            answers = await probe(cluster, open_places)
            open_places = tuple(
                place
                for place in open_places
                if answers.get(place) is not ErrorCode.NOT_ENOUGH_REPLICAS
            )
            if open_places:
                await trio.sleep(VERIFY_AGAIN_S)
    if open_places:
        topic, partition = open_places[0]
        answer = answers.get(open_places[0])
        raise FenceDoesNotHold(
            f"{topic}-{partition} answers a foreign write with"
            f" {answer.name if answer else 'nothing'} where a fence gives NOT_ENOUGH_REPLICAS"
            f" ({len(open_places)} of {len(places)} partitions)"
        )


async def probe(cluster: Cluster, places: Iterable[Place]) -> dict[Place, ErrorCode]:
    """Return how each partition answers a write that cannot be appended. Raises NetworkFault."""
    wanted = sorted(set(places))
    topics = sorted({topic for topic, _ in wanted})
    view = await cluster.metadata(topics)
    by_leader: dict[int, list[Place]] = {}
    answers: dict[Place, ErrorCode] = {}
    for topic, partition in wanted:
        found = view.topics[topic].partitions.get(partition) if topic in view.topics else None
        if found is None or found.leader < 0:
            answers[topic, partition] = ErrorCode.LEADER_NOT_AVAILABLE
        else:
            by_leader.setdefault(found.leader, []).append((topic, partition))
    for leader, places_there in by_leader.items():
        answers |= await _probe_broker(cluster, leader, places_there)
    for (topic, _), answer in answers.items():
        if answer in {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE}:
            cluster.forget(topic)
    return answers


async def _probe_broker(
    cluster: Cluster, leader: int, places: Sequence[Place]
) -> dict[Place, ErrorCode]:
    batch = unappendable_batch()
    topics = sorted({topic for topic, _ in places})
    request = ProduceRequest(
        acks=1,
        timeout_ms=PROBE_TIMEOUT_MS,
        topic_data=tuple(
            TopicProduceData(
                name=topic,
                partition_data=tuple(
                    PartitionProduceData(index=partition, records=batch)
                    for name, partition in places
                    if name == topic
                ),
            )
            for topic in topics
        ),
    )
    try:
        response = await cluster.request(request, node=leader)
    except NetworkFault:
        for topic in topics:
            cluster.forget(topic)
        raise
    return {
        (topic.name, partition.index): ErrorCode(partition.error_code)
        for topic in response.responses
        for partition in topic.partition_responses
    }


def unappendable_batch() -> bytes:
    """Return a batch whose checksum is wrong, so that no broker ever appends it."""
    batch = bytearray(
        build_batch([Record(offset=0, timestamp_ms=0, key=None, value=b"probe", headers=())])
    )
    batch[CRC_AT] ^= 0xFF
    return bytes(batch)


def _listed(value: str) -> tuple[str, ...]:
    return tuple(part for part in value.split(",") if part)


def _set(name: str, value: str) -> IncrementalAlterConfigsAlterableConfig:
    return IncrementalAlterConfigsAlterableConfig(name=name, config_operation=SET, value=value)


def _delete(name: str) -> IncrementalAlterConfigsAlterableConfig:
    return IncrementalAlterConfigsAlterableConfig(name=name, config_operation=DELETE)
