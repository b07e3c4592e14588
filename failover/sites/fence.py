"""Close a site for writes to some topics, and make sure that it is closed.

Bundled brokers have dynamic settings for it that all brokers of a cluster share: the topics that
are closed, patterns of those that may be made behind the fence, and the client ids that may write
to them all the same. A closed partition answers
Produce with NOT_ENOUGH_REPLICAS, which clients take as "not appended, try again".
`failover.sites.probe` tries at every partition whether the fence holds: the fence comes before the
checksum, so a closed partition answers NOT_ENOUGH_REPLICAS and an open one CORRUPT_MESSAGE.

Apache Kafka is closed by rights (`failover.sites.fence_rights`), where it has an authorizer.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import trio

from failover.sites import fence_rights
from failover.sites.probe import probe
from runtime.configuration.config import FlowConfig
from runtime.pair.evidence import TOPIC
from runtime.topic_patterns import encode_patterns, moving_patterns
from wire.errors import ErrorCode
from wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from wire.net import Cluster, RequestRefused
from wire.net.retries import code_of
from wire.topic_partition import TopicPartition

NOBODY: Final = "mirror-nobody"
"""Whom a trial lets through, where no fence lets anybody through yet."""
FENCED_TOPICS: Final = "write.fence.topics"
FENCED_PATTERNS: Final = "write.fence.patterns"
ALLOWED_CLIENTS: Final = "write.fence.allowed.client.ids"
BROKER_RESOURCE: Final = 4
SET: Final = 0
DELETE: Final = 1
ALL_BROKERS: Final = ""
CLOSED: Final = ErrorCode.NOT_ENOUGH_REPLICAS
"""The answer of a bundled broker at a partition that is closed."""

VERIFY_TIMEOUT_S: Final = 10.0
VERIFY_AGAIN_S: Final = 0.05
TRIAL_END_S: Final = 5.0
"""So long a program that is stopped waits until a trial is taken back."""


class FenceDoesNotHold(Exception):
    """Some partition is open although it should be closed; the message names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """The topics that are closed, and the client ids that may write to them all the same."""

    topics: tuple[str, ...] = ()
    allowed_clients: tuple[str, ...] = ()
    patterns: str = ""
    """Of topics that are made behind the fence, as the brokers' setting has them
    (`runtime.topic_patterns`). Brokers of Apache Kafka, and older bundled ones, take none."""


def fence_of(flow: FlowConfig, topics: Iterable[str], allowed_client: str) -> Fence:
    """Return the fence that closes these topics, and those of the flow that are made behind it."""
    return Fence(
        topics=tuple(sorted(topics)),
        allowed_clients=(allowed_client,),
        patterns=encode_patterns(moving_patterns(flow)),
    )


async def read_fence(cluster: Cluster) -> Fence:
    """Return the fence that is set; empty where there is none. Raises NetworkFault."""
    settings = await _read_settings(cluster)
    if settings is not None:
        return Fence(
            topics=_listed(settings[FENCED_TOPICS]),
            allowed_clients=_listed(settings[ALLOWED_CLIENTS]),
            patterns=settings.get(FENCED_PATTERNS, ""),
        )
    closed = await fence_rights.read_closed(cluster)
    clients = {note.client for notes in closed.values() for note in notes}
    return Fence(topics=tuple(sorted(closed)), allowed_clients=tuple(sorted(clients)))


async def set_fence(cluster: Cluster, fence: Fence) -> None:
    """Replace the fence; a fence without topics takes it away. Raises NetworkFault.

    Brokers hear of it one after the other; wait_holds() tells when all have.
    """
    known = await _read_settings(cluster)
    if known is None:
        await fence_rights.close_topics(cluster, fence.topics, fence.allowed_clients)
        return
    values = {FENCED_TOPICS: ",".join(sorted(fence.topics))}
    if FENCED_PATTERNS in known:
        values[FENCED_PATTERNS] = fence.patterns if fence.topics else ""
    values[ALLOWED_CLIENTS] = ",".join(sorted(fence.allowed_clients)) if fence.topics else ""
    configs = tuple(_set(name, value) if value else _delete(name) for name, value in values.items())
    resource = IncrementalAlterConfigsResource(
        resource_type=BROKER_RESOURCE, resource_name=ALL_BROKERS, configs=configs
    )
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    [answer] = (await cluster.request(request)).responses
    if answer.error_code != ErrorCode.NONE:
        reason = f"setting the write fence ({answer.error_message or 'no reason given'})"
        raise RequestRefused(reason, code_of(answer.error_code))


async def why_unfenceable(cluster: Cluster, topics: Iterable[str]) -> str | None:
    """Return why these topics cannot be closed; None when they can. Raises NetworkFault."""
    if await _read_settings(cluster) is not None:
        return None
    return await fence_rights.why_not(cluster, topics)


async def wait_holds(
    cluster: Cluster,
    partitions: Sequence[TopicPartition],
    *,
    timeout_s: float = VERIFY_TIMEOUT_S,
    close: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Return once every partition is closed for all clients that the fence does not let through.

    ZooKeeper tells brokers of thousands of topics one by one, so the wait goes on while partitions
    close. Where the first look finds one open, `close` is called once: somebody has lifted a fence
    that was set before. Raises FenceDoesNotHold, naming a partition, when none has closed for
    `timeout_s`, and NetworkFault.
    """
    look = _refusing_none if await _read_settings(cluster) is not None else fence_rights.still_open
    left = dict.fromkeys(partitions, "does not tell")
    with trio.move_on_after(timeout_s) as patience:
        while left:
            before, left = len(left), await look(cluster, tuple(left))
            if len(left) < before:
                patience.deadline = trio.current_time() + timeout_s
            if left and close is not None:
                await close()
                close = None
            if left:
                await trio.sleep(VERIFY_AGAIN_S)
    if left:
        (topic, partition), why = min(left.items())
        raise FenceDoesNotHold(
            f"{topic}-{partition} {why} ({len(left)} of {len(partitions)} partitions)"
        )


async def find_locked_out(
    cluster: Cluster, partitions: Iterable[TopicPartition]
) -> list[TopicPartition]:
    """Return the closed partitions that the flow back could not write to. Raises NetworkFault."""
    if await _read_settings(cluster) is not None:
        return []
    return await fence_rights.locked_out(cluster, partitions)


async def would_shut_us_out(cluster: Cluster) -> bool:
    """Tell whether a fence by rights would keep us from writing, too. Raises NetworkFault.

    It is tried on our own topic, the evidence of the pair, beside what is closed already, so that
    nothing that is mirrored is touched. What a killed trial has left is taken away by the next.
    """
    if await _read_settings(cluster) is not None:
        return False
    before = await read_fence(cluster)
    ours = TopicPartition(TOPIC, 0)
    topics = tuple(topic for topic in before.topics if topic != TOPIC)
    clients = before.allowed_clients or (NOBODY,)
    try:
        await fence_rights.close_topics(cluster, (*topics, TOPIC), clients)
        await wait_holds(cluster, (ours,))
        return bool(await fence_rights.locked_out(cluster, (ours,)))
    finally:
        with trio.move_on_after(TRIAL_END_S, shield=True):
            await fence_rights.close_topics(cluster, topics, before.allowed_clients)


async def _refusing_none(
    cluster: Cluster, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, str]:
    """Return the partitions that do not refuse our probe as a fenced one does, and what they do."""
    wanted = list(partitions)
    answers = await probe(cluster, wanted)
    return {
        partition: f"answers a foreign write with {answer.name if answer else 'nothing'}"
        f" where a fence gives {CLOSED.name}"
        for partition in wanted
        if (answer := answers.get(partition)) is not CLOSED
    }


async def _read_settings(cluster: Cluster) -> dict[str, str] | None:
    """Return the settings of the fence; None where the brokers know no such settings.

    Apache Kafka takes any setting, known or not, and calls those secret that it does not know.
    """
    resource = DescribeConfigsResource(
        resource_type=BROKER_RESOURCE,
        resource_name=ALL_BROKERS,
        configuration_keys=(FENCED_TOPICS, FENCED_PATTERNS, ALLOWED_CLIENTS),
    )
    [result] = (await cluster.request(DescribeConfigsRequest(resources=(resource,)))).results
    if result.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        return None  # brokers that ask for rights know no such settings
    if result.error_code != ErrorCode.NONE:
        raise RequestRefused("reading the write fence", code_of(result.error_code))
    known = {each.name: each.value or "" for each in result.configs if not each.is_sensitive}
    return known if {FENCED_TOPICS, ALLOWED_CLIENTS} <= known.keys() else None


def _listed(value: str) -> tuple[str, ...]:
    return tuple(part for part in value.split(",") if part)


def _set(name: str, value: str) -> IncrementalAlterConfigsAlterableConfig:
    return IncrementalAlterConfigsAlterableConfig(name=name, config_operation=SET, value=value)


def _delete(name: str) -> IncrementalAlterConfigsAlterableConfig:
    return IncrementalAlterConfigsAlterableConfig(name=name, config_operation=DELETE)
