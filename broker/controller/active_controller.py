"""The active controller: it decides on events one after the other, and carries them out.

    event ─► decide (pure) ─► ZooKeeper, fenced ─► requests to the brokers

Any trouble with ZooKeeper, and any sign of a newer controller, ends it. The next active controller
starts by reading everything again, so that nothing here needs to repair itself.
"""

import logging
import random
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

import trio

from broker.controller.announcements import announce
from broker.controller.channels import AnnouncementDelivery, BrokerChannels
from broker.controller.cluster import (
    ApiError,
    BrokersChanged,
    Cluster,
    Decision,
    DeletionRequested,
    DiskFailed,
    Election,
    ElectionRequested,
    Event,
    PartitionAndReplica,
    ReplicasDeleted,
    ReplicasFailed,
    TopicFound,
    UncleanAllowed,
)
from broker.controller.decisions import decide
from broker.controller.requests import imbalanced
from broker.controller.settings import ControllerSettings
from broker.controller.topics import Chances, TopicSpec, plan_creation, plan_growth
from broker.zookeeper.controller_store import ControllerEpoch, ControllerStore
from broker.zookeeper.store import ClusterStore
from broker.zookeeper.tree import TopicAssignment
from runtime.coordination.zookeeper import NodeExists
from wire.errors import ErrorCode
from wire.topic_partition import TopicPartition

_LOG = logging.getLogger(__name__)

TOLD_WITHIN_S: Final = 5.0
"""A broker that takes longer is dying; who asked for a topic is not kept waiting for that."""
FIRST_BALANCE_S: Final = 5.0
"""How long after its election a controller looks at the balance for the first time, as Kafka's."""

LOOK_AGAIN_S: Final = 10.0
"""So often the nodes of topics are read again that are left as they are."""


class TopicsMended(Exception):
    """Topics that were left as they are can be read now; the message names them."""


EventMaker = Callable[[Cluster], Event]
"""Makes the event out of the cluster as it is when the event is decided."""


class ActiveController:
    """This broker's state and tasks while it is the controller."""

    def __init__(
        self,
        broker_id: int,
        store: ClusterStore,
        epoch: ControllerEpoch,
        settings: ControllerSettings,
        nursery: trio.Nursery,
    ) -> None:
        self.nursery = nursery
        self._broker_id = broker_id
        self._store = store
        self._settings = settings
        self._writes = ControllerStore(store.zookeeper, epoch)
        self._cluster = Cluster(controller_epoch=epoch.number)
        self._left: frozenset[str] = frozenset()
        """Topics whose nodes are not understood, or that have states and were not at the start."""
        self._one_event = trio.Lock()
        self._changed = trio.Event()
        self._channels = BrokerChannels(
            nursery,
            replace(settings.connections, client_id=f"controller-{broker_id}"),
            on_deleted=self._replicas_deleted,
            on_failed=self._replicas_failed,
        )

    @property
    def cluster(self) -> Cluster:
        return self._cluster

    async def load(self) -> None:
        """Read the whole tree and bring every broker up to it."""
        names = await self._store.topic_names()
        understood = await self._writes.read_topics(names)
        states, malformed = await self._writes.read_states(
            TopicPartition(name, index)
            for name, topic in understood.items()
            for index in topic.replicas
        )
        topics = {name: one for name, one in understood.items() if name not in malformed}
        deleting = frozenset(await self._writes.read_deletions())
        self._cluster = Cluster(
            controller_epoch=self._cluster.controller_epoch,
            topics=topics,
            states=states,
            unclean=self._unclean(topics),
            deleting=deleting & topics.keys(),
        )
        self._left = frozenset(names) - topics.keys()
        for name in deleting.difference(names):
            await self._writes.remove_topic(name)  # its last step was interrupted
        live = await self._store.brokers(await self._store.broker_ids())
        await self._apply(BrokersChanged(live=live))

    async def watch_brokers(self) -> None:
        """Follow who is alive, and where each is reached."""
        watched: set[str] = set()
        async with trio.open_nursery() as nursery, self._store.watch_brokers() as listings:
            async for ids in listings:
                await self._apply(UncleanAllowed(topics=self._unclean(self._cluster.topics)))
                await self._look_at_brokers()
                for name in frozenset(ids or ()) - watched:
                    nursery.start_soon(self._watch_broker, name)
                    watched.add(name)

    async def _watch_broker(self, name: str) -> None:
        """Follow what a broker's registration says, over all its lives."""
        async with self._store.watch_broker(name) as registrations:
            async for _ in registrations:
                await self._look_at_brokers()

    async def _look_at_brokers(self) -> None:
        """Read all registrations; the reads of two watchers never overtake each other."""
        async with self._one_event:
            live = await self._store.brokers(await self._store.broker_ids())
            if live != self._cluster.live:
                await self._carry_out(BrokersChanged(live=live))

    async def watch_topics(self) -> None:
        """Take in topics that somebody else wrote to ZooKeeper."""
        async with self._store.watch_topics() as listings:
            async for names in listings:
                async with self._one_event:
                    unknown = [name for name in names or () if name not in self._cluster.topics]
                    for name, topic in (await self._new_topics(unknown)).items():
                        await self._carry_out(TopicFound(name=name, assignment=topic))
                    self._left = frozenset(names or ()) - self._cluster.topics.keys()

    async def watch_left(self) -> None:
        """Look at the topics that are left as they are; raises TopicsMended."""
        while True:
            await trio.sleep(LOOK_AGAIN_S)
            async with self._one_event:
                understood = await self._understood(self._left - self._cluster.topics.keys())
            if understood:
                raise TopicsMended(", ".join(sorted(understood)))

    async def _understood(self, names: Iterable[str]) -> frozenset[str]:
        """Return the topics of which all nodes are understood."""
        found = await self._writes.read_topics(names)
        _, malformed = await self._writes.read_states(
            TopicPartition(name, index) for name, topic in found.items() for index in topic.replicas
        )
        return frozenset(found) - malformed

    async def _new_topics(self, names: Iterable[str]) -> dict[str, TopicAssignment]:
        """Return the topics that nobody has led yet: one with states was left as it is by us."""
        found = await self._writes.read_topics(names)
        states, malformed = await self._writes.read_states(
            TopicPartition(name, index) for name, topic in found.items() for index in topic.replicas
        )
        known = malformed | {place.topic for place in states}
        return {name: topic for name, topic in found.items() if name not in known}

    async def watch_deletions(self) -> None:
        """Take in deletions that somebody else asked for."""
        async with self._store.watch_deletions() as listings:
            async for names in listings:
                for name in names or ():
                    await self._apply(DeletionRequested(name=name))

    async def watch_disks(self) -> None:
        """Move leaders away from log folders that have failed."""
        async with self._store.watch_log_dir_events() as listings:
            async for names in listings:
                if names:
                    brokers = await self._writes.take_log_dir_events(names)
                    _LOG.warning("log folders have failed on brokers %s", sorted(brokers))
                    await self._apply(DiskFailed(brokers=brokers))

    async def watch_settings(self) -> None:
        """Elect where a changed setting allows an unclean election now."""
        while True:
            changed = self._settings.changed
            await self._apply(UncleanAllowed(topics=self._unclean(self._cluster.topics)))
            await changed.wait()

    async def balance_leaders(self) -> None:
        """Give brokers back what they should lead, on a timer."""
        settings = self._settings
        await trio.sleep(FIRST_BALANCE_S)
        while settings.auto_leader_rebalance_enable:
            found = imbalanced(self._cluster, settings.leader_imbalance_per_broker_percentage)
            if found:
                _LOG.info("%s partitions go back to their preferred leaders", len(found))
                await self._apply(ElectionRequested(election=Election.PREFERRED, partitions=found))
            await trio.sleep(settings.leader_imbalance_check_interval_seconds)

    async def ask(self, ask: EventMaker, *, is_told: bool) -> Decision:
        """Decide and do what somebody asks; `is_told`: return when the brokers have heard of it."""
        async with self._one_event:
            decision, told = await self._carry_out(ask(self._cluster))
        if is_told:
            await _wait_told(told)
        return decision

    async def create_topic(
        self, spec: TopicSpec, defaults: TopicSpec, *, validate_only: bool
    ) -> TopicAssignment | ApiError:
        """Create a topic; every live broker has been told when this returns, if it answers."""
        chances = Chances(
            topic_id=uuid.uuid4(),
            start=random.randrange(2**16),  # noqa: S311 - spreads load, keeps no secret
            shift=random.randrange(2**16),  # noqa: S311
        )
        async with self._one_event:
            planned = plan_creation(self._cluster, spec, defaults, chances)
            if isinstance(planned, ApiError) or validate_only:
                return planned
            configs = {name: value or "" for name, value in spec.configs.items()}
            try:
                await self._writes.create_topic(spec.name, planned, configs)
            except NodeExists:
                return ApiError(
                    error=ErrorCode.TOPIC_ALREADY_EXISTS,
                    message=f"Topic '{spec.name}' already exists.",
                )
            _LOG.info("created topic %s with %s partitions", spec.name, len(planned.replicas))
            _, told = await self._carry_out(TopicFound(name=spec.name, assignment=planned))
        await _wait_told(told)
        return planned

    async def grow_topic(
        self, name: str, total: int, given: Sequence[Sequence[int]] | None, *, validate_only: bool
    ) -> TopicAssignment | ApiError:
        """Add partitions to a topic."""
        async with self._one_event:
            planned = plan_growth(self._cluster, name, total, given)
            if isinstance(planned, ApiError) or validate_only:
                return planned
            await self._writes.grow_topic(name, planned)
            _LOG.info("topic %s grows to %s partitions", name, total)
            _, told = await self._carry_out(TopicFound(name=name, assignment=planned))
        await _wait_told(told)
        return planned

    async def delete_topic(self, name: str) -> ErrorCode:
        """Begin to delete a topic."""
        async with self._one_event:
            if name not in self._cluster.topics:
                return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            await self._writes.request_deletion(name)
            _, told = await self._carry_out(DeletionRequested(name=name))
        await _wait_told(told)
        return ErrorCode.NONE

    async def wait_deleted(self, name: str) -> None:
        """Wait until the last copy and the last node of a topic are gone."""
        while name in self._cluster.topics:
            await self._changed.wait()

    def _unclean(self, topics: Iterable[str]) -> frozenset[str]:
        return frozenset(filter(self._settings.is_unclean_election_allowed, topics))

    def _replicas_deleted(self, replicas: frozenset[PartitionAndReplica]) -> None:
        if not self._cluster.deleting.isdisjoint(replica.topic for replica in replicas):
            self.nursery.start_soon(self._apply, ReplicasDeleted(replicas=replicas))

    def _replicas_failed(
        self, told: frozenset[PartitionAndReplica], failed: frozenset[PartitionAndReplica]
    ) -> None:
        if failed or not self._cluster.failed.isdisjoint(told):
            self.nursery.start_soon(self._apply, ReplicasFailed(told=told, failed=failed))

    async def _apply(self, event: Event) -> None:
        async with self._one_event:
            await self._carry_out(event)

    async def _carry_out(self, event: Event) -> tuple[Decision, AnnouncementDelivery]:
        """Decide and do; the caller holds `_one_event`, so decisions never overlap."""
        decision = decide(self._cluster, event)
        await self._writes.write(decision.begun, decision.writes.items(), decision.finished)
        for name in decision.removed:
            await self._writes.remove_topic(name)
            _LOG.info("deleted topic %s", name)
        self._cluster = decision.cluster
        self._channels.follow(decision.cluster.live)
        told = self._channels.send(announce(decision, self._broker_id))
        self._report(decision)
        changed, self._changed = self._changed, trio.Event()
        changed.set()
        return decision, told

    def _report(self, decision: Decision) -> None:
        if decision.brokers_changed:
            _LOG.info("live brokers: %s", sorted(decision.cluster.live))
        for name in decision.begun:
            _LOG.info("partitions of topic %s begin to move", name)
        for name in decision.finished:
            _LOG.info("partitions of topic %s have moved", name)
        offline = sum(state.leader < 0 for state in decision.writes.values())
        if offline:
            _LOG.warning("%s partitions are without a leader", offline)


async def _wait_told(told: AnnouncementDelivery) -> None:
    """Give every broker the time to hear of it, so that a client may use it at once, anywhere."""
    with trio.move_on_after(TOLD_WITHIN_S):
        await told.wait()
