"""Close a site for writes to some topics, and make sure that it is closed.

Bundled brokers have dynamic settings for it that all brokers of a cluster share: the topics that
are closed, patterns of those that may be made behind the fence, and the client ids that may write
to them all the same. A closed partition answers
Produce with NOT_ENOUGH_REPLICAS, which clients take as "not appended, try again". Where that is
wanted, the fence also sends clients of its topics back to their bootstrap servers (KIP-1102).
`failover.sites.probe` tries at every partition whether the fence holds: the fence comes before the
checksum, so a closed partition answers NOT_ENOUGH_REPLICAS and an open one CORRUPT_MESSAGE.

Apache Kafka is closed by rights (`failover.sites.fence_rights`), where it has an authorizer. Topics
of the flow cannot be made there then (`runtime.rights.creation`).

A promotion closes its source (step `fence`, `failover.moving.closing`), opens it again where it is
taken back, and opens its target (step `open-target`, `failover.moving.effects`). `failover serve`
closes an idle site that is open, and opens an active one that is closed (`failover.serve.guard`).
All of them do so by `failover.sites.shared_fence`; nothing else sets or lifts a fence.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import field, replace
from typing import Final

import trio

from failover.sites import fence_rights
from failover.sites.fence_rights import Closed
from failover.sites.probe import probe
from runtime.configuration.config import FlowConfig
from runtime.pair.evidence import TOPIC
from runtime.rights.closable import (
    ALL_BROKERS,
    ALLOWED_CLIENTS,
    BROKER_RESOURCE,
    FENCED_PATTERNS,
    FENCED_TOPICS,
    REBOOTSTRAP,
    givable,
    read_fence_settings,
)
from runtime.rights.closing import closing
from runtime.rights.creation import bars
from runtime.topic_patterns import encode_patterns, moving_patterns
from wire.errors import ErrorCode
from wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from wire.net import Cluster, RequestRefused
from wire.net.retries import code_of
from wire.net.rights import CREATE, Right
from wire.topic_partition import TopicPartition
from wire.values import frozen

NOBODY: Final = "mirror-nobody"
"""Whom a trial lets through, where no fence lets anybody through yet."""
YES: Final = "true"
SET: Final = 0
DELETE: Final = 1
CLOSED: Final = ErrorCode.NOT_ENOUGH_REPLICAS
"""The answer of a bundled broker at a partition that is closed."""

VERIFY_TIMEOUT_S: Final = 10.0
VERIFY_AGAIN_S: Final = 0.05
LIFTED_TIMEOUT_S: Final = 5.0
TRIAL_END_S: Final = 5.0
"""So long a program that is stopped waits until a trial is taken back."""


class FenceDoesNotHold(Exception):
    """Some partition is open although it should be closed; the message names it."""


@frozen
class Fence:
    """The topics that are closed, and the client ids that may write to them all the same."""

    topics: tuple[str, ...] = ()
    allowed_clients: tuple[str, ...] = ()
    patterns: str = ""
    """Of topics that are made behind the fence, as the brokers' setting has them
    (`runtime.topic_patterns`). Brokers of Apache Kafka, and older bundled ones, take none."""
    sends_away: bool = False
    """Whether brokers send clients of these topics to their bootstrap servers. Brokers of Apache
    Kafka, and older bundled ones, send nobody away."""
    bars: frozenset[Right] = frozenset()
    """The entries that keep topics from being made, of sites that are closed by rights."""
    is_by_rights: bool = field(default=False, compare=False)
    """Whether it was read from a site that can be closed by rights."""


def fence_of(
    flow: FlowConfig,
    site: str,
    topics: Iterable[str],
    allowed_client: str,
    *,
    is_moving: bool = False,
    sends_away: bool = False,
) -> Fence:
    """Return the fence that closes these topics of a site, and those that are made behind it.

    While a promotion `is_moving` away, rights to the whole cluster make no topics either.
    """
    patterns = moving_patterns(flow, site)
    return Fence(
        topics=tuple(sorted(topics)),
        allowed_clients=(allowed_client,),
        patterns=encode_patterns(patterns),
        sends_away=sends_away,
        bars=bars(patterns, is_moving=is_moving),
    )


async def read_fence(cluster: Cluster) -> Fence:
    """Return the fence that is set; empty where there is none. Raises NetworkFault."""
    settings = await read_fence_settings(cluster)
    if settings is not None:
        return Fence(
            topics=_listed(settings[FENCED_TOPICS]),
            allowed_clients=_listed(settings[ALLOWED_CLIENTS]),
            patterns=settings.get(FENCED_PATTERNS, ""),
            sends_away=settings.get(REBOOTSTRAP) == YES,
        )
    closed = await fence_rights.read_closed(cluster)
    if closed is None:
        return Fence()
    clients = {note.client for notes in closed.values() for note in notes}
    denied_creation = frozenset(right for right in closed if right.operation == CREATE)
    return Fence(
        topics=tuple(sorted(right.name for right in closed.keys() - denied_creation)),
        allowed_clients=tuple(sorted(clients)),
        bars=denied_creation,
        is_by_rights=True,
    )


async def as_allowed(cluster: Cluster, fence: Fence) -> Fence:
    """Return the fence that can be set there: with the bars that harm nobody else.

    Raises NetworkFault.
    """
    is_by_rights = await read_fence_settings(cluster) is None
    barred = await givable(cluster, fence.bars) if is_by_rights else frozenset()
    return replace(fence, bars=barred, is_by_rights=is_by_rights)


async def set_fence(cluster: Cluster, fence: Fence) -> None:
    """Replace the fence; one without topics and bars takes it away. Raises NetworkFault.

    Brokers hear of it one after the other; wait_holds() tells when all have.
    """
    known = await read_fence_settings(cluster)
    if known is None:
        wanted = _denials(fence.topics, fence.bars)
        await fence_rights.close(cluster, wanted, fence.allowed_clients)
        return
    values = {FENCED_TOPICS: ",".join(sorted(fence.topics))}
    if FENCED_PATTERNS in known:
        values[FENCED_PATTERNS] = fence.patterns if fence.topics else ""
    if REBOOTSTRAP in known:
        values[REBOOTSTRAP] = YES if fence.topics and fence.sends_away else ""
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


def _denials(topics: Iterable[str], barred: Iterable[Right]) -> set[Right]:
    """Return what a fence by rights denies to everybody."""
    return {*map(closing, topics), *barred}


async def find_due_bars(
    cluster: Cluster, fence: Fence, lasting: frozenset[Right]
) -> frozenset[Right]:
    """Return what is to keep topics from being made while a site stays closed.

    `fence` is what was read there, and `lasting` what its flows would have. The result is empty
    where the site is not closed by rights, and is without what its rights do not allow. Raises
    NetworkFault.
    """
    wanted = lasting if fence.is_by_rights else frozenset()
    lacking = await givable(cluster, wanted - fence.bars)
    return (wanted & fence.bars) | lacking


def lasting_bars(flows: Iterable[FlowConfig], site: str) -> frozenset[Right]:
    """Return the bars of all these flows that stay while a site is closed."""
    none: frozenset[Right] = frozenset()
    return none.union(*(bars(moving_patterns(flow, site)) for flow in flows))


async def wait_holds(
    cluster: Cluster,
    partitions: Sequence[TopicPartition],
    *,
    barred: Iterable[Right] = (),
    timeout_s: float = VERIFY_TIMEOUT_S,
    close: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Return once every partition is closed for all clients that the fence does not let through.

    And once every broker keeps topics from being made by what is `barred`.

    ZooKeeper tells brokers of thousands of topics one by one, so the wait goes on while partitions
    close. Where the first look finds one open, `close` is called once: somebody has lifted a fence
    that was set before. Raises FenceDoesNotHold, naming a partition, when none has closed for
    `timeout_s`, and NetworkFault.
    """
    is_set = await read_fence_settings(cluster) is not None
    look = _refusing_none if is_set else fence_rights.still_open
    left: dict[Closed, str] = dict.fromkeys((*partitions, *barred), "does not tell")
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
        what, why = min((fence_rights.name_of(one), why) for one, why in left.items())
        raise FenceDoesNotHold(f"{what} {why} ({len(left)} of {len(partitions)} partitions)")


async def wait_lifted(cluster: Cluster, fence: Fence) -> int:
    """Return once every broker that answers has heard that the fence's topics are open.

    Return how many topics some broker denies still after LIFTED_TIMEOUT_S: a denial ends many
    producers. Only brokers that are closed by rights are waited for, as from the bundled ones
    clients hear that they should try again. Raises NetworkFault.
    """
    denied = frozenset(map(closing, fence.topics))
    left: frozenset[Right] = denied if fence.is_by_rights else frozenset()
    with trio.move_on_after(LIFTED_TIMEOUT_S):
        while left:
            left = await fence_rights.closed_anywhere(cluster) & denied
            if left:
                await trio.sleep(VERIFY_AGAIN_S)
    return len(left)


async def find_locked_out(
    cluster: Cluster, partitions: Iterable[TopicPartition]
) -> list[TopicPartition]:
    """Return the closed partitions that the flow back could not write to. Raises NetworkFault."""
    if await read_fence_settings(cluster) is not None:
        return []
    return await fence_rights.locked_out(cluster, partitions)


async def would_shut_us_out(cluster: Cluster) -> bool:
    """Tell whether a fence by rights would keep us from writing, too. Raises NetworkFault.

    It is tried on our own topic, the evidence of the pair, beside what is closed already, so that
    nothing that is mirrored is touched. What a killed trial has left is taken away by the next.
    """
    if await read_fence_settings(cluster) is not None:
        return False
    before = await read_fence(cluster)
    ours = TopicPartition(TOPIC, 0)
    standing = _denials((topic for topic in before.topics if topic != TOPIC), before.bars)
    clients = before.allowed_clients or (NOBODY,)
    try:
        await fence_rights.close(cluster, standing | {closing(TOPIC)}, clients)
        await wait_holds(cluster, (ours,))
        return bool(await fence_rights.locked_out(cluster, (ours,)))
    finally:
        with trio.move_on_after(TRIAL_END_S, shield=True):
            await fence_rights.close(cluster, standing, before.allowed_clients)


async def _refusing_none(cluster: Cluster, wanted: Iterable[Closed]) -> dict[Closed, str]:
    """Return the partitions that do not refuse our probe as a fenced one does, and what they do."""
    partitions = [one for one in wanted if isinstance(one, TopicPartition)]
    answers = await probe(cluster, partitions)
    return {
        partition: f"answers a foreign write with {answer.name if answer else 'nothing'}"
        f" where a fence gives {CLOSED.name}"
        for partition in partitions
        if (answer := answers.get(partition)) is not CLOSED
    }


def _listed(value: str) -> tuple[str, ...]:
    return tuple(part for part in value.split(",") if part)


def _set(name: str, value: str) -> IncrementalAlterConfigsAlterableConfig:
    return IncrementalAlterConfigsAlterableConfig(name=name, config_operation=SET, value=value)


def _delete(name: str) -> IncrementalAlterConfigsAlterableConfig:
    return IncrementalAlterConfigsAlterableConfig(name=name, config_operation=DELETE)
