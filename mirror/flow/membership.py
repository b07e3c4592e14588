"""One worker among those of a flow: its node in the witness, its share, and the leader's work.

A worker's node lives as long as its engine runs on one session. Every worker follows the
assignment. The worker that holds the flow's worker node leads, and writes the assignment by the
rules of mirror.workers.handover.
"""

import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Final

import trio

from mirror.flow.engine import Engine
from mirror.state.orders import Restart
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import STANDING, remedy
from mirror.state.reverse_flow import ReverseFlow, may_hold_own
from mirror.state.throttle import portion_of
from mirror.topics.gone_topics import gone_ends
from mirror.workers.assignment import Loads
from mirror.workers.balance import Balance
from mirror.workers.handover import (
    Assignment,
    WorkerNode,
    is_carried_out,
    next_assignment,
    to_fence,
    vouched,
)
from offset_translation.map_records import MirrorProducer
from runtime.configuration.config import FlowConfig
from runtime.coordination.standstill import MOST_TOLD, Standstill
from runtime.coordination.witness import WitnessGarbled, WitnessPaths, WorkerInfo
from runtime.coordination.zookeeper import (
    BadVersion,
    NodeExists,
    NoNode,
    ZNode,
    ZooKeeper,
    ZooKeeperUnreachable,
)
from runtime.process.tasks import background_tasks
from wire.net.errors import NetworkFault
from wire.topic_partition import TopicPartition
from wire.values import frozen

_LOG = logging.getLogger(__name__)

LOOK_S: Final = 1.0
GATHER_S: Final = 0.02
"""Between writes of our node: partitions come into place one by one."""
HANDING_OVER_S: Final = 0.05
"""The leader looks at this interval while a worker is to let go of partitions."""
RETRY_S: Final = 0.2

_incarnations = count(1)


@frozen
class Nodes:
    """The paths of one flow that its workers share."""

    workers: str
    assignment: str
    making_producer: str

    @classmethod
    def of(cls, paths: WitnessPaths, flow: FlowConfig) -> "Nodes":
        """Return those of a flow."""
        return cls(
            workers=paths.workers(flow.source, flow.target),
            assignment=paths.assignment(flow.source, flow.target),
            making_producer=paths.making_producer(flow.source, flow.target),
        )


class NoMember(Exception):
    """The worker's own node is gone: its partitions are somebody else's."""


@dataclass(slots=True)
class _Rates:
    """Bytes per second of our own partitions, over the time since they were last looked at."""

    at_s: float = 0.0
    bytes: dict[TopicPartition, int] = field(default_factory=dict)
    known: dict[TopicPartition, float] = field(default_factory=dict)

    def measure(self, engine: Engine, now_s: float) -> None:
        elapsed = now_s - self.at_s
        counted = {
            topic_partition: partition.in_flight.mirrored_bytes
            for topic_partition, partition in engine.flow.partitions.own.items()
        }
        if self.at_s:
            self.known = {
                topic_partition: _two_digits(max(0, size - self.bytes[topic_partition]) / elapsed)
                for topic_partition, size in counted.items()
                if topic_partition in self.bytes and elapsed > 0
            }
        self.at_s, self.bytes = now_s, counted


def _two_digits(rate: float) -> float:
    """Round, so that a node is not written again for a difference that changes nothing."""
    return float(f"{rate:.1e}")


def standing_of(
    config: FlowConfig, reverse: ReverseFlow, partitions: Iterable[MirroredPartition]
) -> tuple[Standstill, ...]:
    """Return those of these partitions that stand still until somebody decides, some of many."""
    return tuple(
        Standstill(
            partition=partition.topic_partition,
            cause=f"{partition.state.value}: {partition.status.reason}",
            remedy=remedy(
                partition.state,
                config,
                partition.topic_partition,
                is_savable=partition.skips.is_savable,
                holds_own=may_hold_own(reverse, partition),
            ),
        )
        for partition in islice(
            (partition for partition in partitions if partition.state in STANDING), MOST_TOLD
        )
    )


def session_prefix(zookeeper: ZooKeeper) -> str:
    """Return what the names of all workers begin with that this session has made."""
    return f"{zookeeper.session_id:x}-"


class Membership:
    """The part of one engine in its flow."""

    def __init__(
        self, zookeeper: ZooKeeper, nodes: Nodes, info: WorkerInfo, engine: Engine
    ) -> None:
        """Know everything that is needed to join."""
        self.name: Final = f"{session_prefix(zookeeper)}{next(_incarnations)}"
        self.assignment = Assignment()
        """The version last seen."""
        self.members: Mapping[str, WorkerNode] = {}
        """All workers as the leader has last read them; empty elsewhere."""
        self._zookeeper = zookeeper
        self._nodes = nodes
        self._info = info
        self._engine = engine
        self._path: Final = f"{nodes.workers}/{self.name}"
        self._rates = _Rates()
        self._fenced: set[str] = set()
        self._looked_s = 0.0
        self._seen_zxid = -1
        self._decided: tuple[object, ...] = ()
        """The facts by which the present version was found good."""
        self._balance = Balance()
        self._has_left = False
        self._has_garbled_assignment = False
        self._garbled: frozenset[str] = frozenset()
        """Nodes of workers that cannot be understood: nobody knows whether they have let go."""

    @property
    def has_share(self) -> bool:
        """Whether the newest version is confirmed."""
        return self._engine.share.confirmed == self.assignment.version > 0

    @property
    def is_placed(self) -> bool:
        """Whether all that has been seen of the flow has a worker, and ours is taken over.

        The worker that leads knows as well whether those workers are there: an assignment from
        before may be complete and yet name only workers that are gone.
        """
        now, leads = self.assignment, self._engine.flow.share.leads
        return (
            self._engine.discovery.has_looked
            and self.has_share
            and self._engine.flow.share.seen <= now.owners.keys()
            and (not leads or now.holders <= self.members.keys())
        )

    def is_carried_out(self, restart: Restart) -> bool:
        """Whether every worker has restarted all that it has; only the leading worker knows."""
        return self.name in self.members and is_carried_out(self.assignment, self.members, restart)

    async def run(self) -> None:
        """Take part until cancelled; raises NoMember."""
        await self._engine.wait_loaded()
        await self._join()
        async with background_tasks() as tasks:
            tasks.start_soon(self._follow_assignment)
            tasks.start_soon(self._tell)
            tasks.start_soon(self._lead)
            async with self._zookeeper.watch_data(self._path) as nodes:
                async for node in nodes:
                    if node is None:
                        raise NoMember(f"worker {self.name} has been given up")

    async def leave(self) -> None:
        """Take our node away: nothing of ours is under way any more.

        Raises ZooKeeperUnreachable: the session may outlive a lost answer, and the node with it.
        Others would go on to count on a worker that is not there, so leave again.
        """
        if self._has_left:
            return
        with suppress(NoNode):
            await self._zookeeper.delete(self._path)
        self._has_left = True

    def _member(self) -> WorkerNode:
        flow = self._engine.flow
        return WorkerNode(
            info=self._info,
            writer=self._engine.map_log.writer,
            confirmed=self._engine.share.confirmed,
            bytes_per_s=self._rates.known,
            gone=gone_ends(flow.config, flow.partitions),
            doubted=frozenset(
                topic_partition
                for topic_partition, partition in flow.partitions.own.items()
                if not partition.has_true_map
            ),
            restarted=flow.orders.carried_out(flow.partitions.own),
            standing=standing_of(flow.config, flow.reverse, flow.partitions.own.values()),
        )

    async def _join(self) -> None:
        while True:
            try:
                await self._zookeeper.create(
                    self._path, self._member().encode(), ephemeral=True, make_parents=True
                )
            except ZooKeeperUnreachable:
                await self._zookeeper.wait_connected()
            except NodeExists:
                return  # created by us, and the answer was lost
            else:
                return

    async def _follow_assignment(self) -> None:
        async with self._zookeeper.watch_data(self._nodes.assignment) as nodes:
            async for node in nodes:
                self._see(node)

    def _see(self, node: ZNode | None) -> None:
        """Take the assignment over. One that cannot be understood changes nothing."""
        if node is None or node.modified_zxid <= self._seen_zxid:
            return
        self._seen_zxid = node.modified_zxid
        try:
            assignment = Assignment.decode(node.data)
        except WitnessGarbled as fault:
            self._has_garbled_assignment = True
            _LOG.error(
                "%s: %s: workers keep what they have, and nobody gets more; stop all of the flow's"
                " `mirror run`, delete the node and start them again: %s",
                self._engine.flow.config.name,
                self._nodes.assignment,
                fault,
            )
            return
        self._has_garbled_assignment = False
        if assignment.version > self.assignment.version:
            self.assignment = assignment
            self._engine.flow.take_portion(portion_of(self.name, assignment.mirrored_by))
            self._engine.share.show(assignment.version, assignment.of(self.name))

    async def _tell(self) -> None:
        """Write into our node what has been confirmed, at once, and the rates now and then."""
        written = self._member()
        while True:
            changed = self._engine.share.changed
            now_s = trio.current_time()
            if now_s - self._rates.at_s >= self._look_after_s:
                self._rates.measure(self._engine, now_s)
            if self._member() == written:
                with trio.move_on_after(LOOK_S):
                    await changed.wait()
                continue
            writing = self._member()
            try:
                await self._zookeeper.set(self._path, writing.encode())
            except ZooKeeperUnreachable:
                await self._zookeeper.wait_connected()
            except NoNode:
                raise NoMember(f"worker {self.name} has been given up") from None
            else:
                written = writing
                await trio.sleep(GATHER_S)

    async def _lead(self) -> None:
        """When we lead, look whether the assignment is to change."""
        await self._engine.wait_leading()
        flow = self._engine.flow
        async with self._zookeeper.watch_children(self._nodes.workers) as changes:
            while True:
                try:
                    await self._step()
                except (
                    NetworkFault,
                    BadVersion,
                    NodeExists,
                    NoNode,
                    ZooKeeperUnreachable,
                ) as fault:
                    _LOG.debug("%s: assignment: %s", flow.config.name, fault)
                    await trio.sleep(RETRY_S)
                is_busy = bool(self.assignment.leaving) or not self.is_placed
                with trio.move_on_after(HANDING_OVER_S if is_busy else LOOK_S):
                    await changes.receive()

    async def _step(self) -> None:
        """Write the next version if there is to be one; raises what the witness or target say."""
        engine = self._engine
        members = await self._read_members()
        if self.name not in members or not engine.discovery.has_looked:
            return
        node = await self._zookeeper.get(self._nodes.assignment)
        self._see(node)
        if self._has_garbled_assignment:
            return
        now = self.assignment
        if not self._decided:
            # What was mirrored before we led is not forgotten because its topic is gone.
            owned = now.owners.items()
            engine.flow.share.see(
                topic_partition for topic_partition, owner in owned if owner in members
            )
        await self._ensure_producer()
        for name, writer in to_fence(now, members.keys() | self._garbled).items():
            await self._fence(name, writer)
        self._look_at_rates(members)
        flow = engine.flow
        pinned = frozenset(flow.orders.to_begin_anew)
        known = (
            *(now.version, len(flow.share.seen), self._looked_s),
            *(tuple(sorted(self._fenced)), tuple(sorted(pinned))),
            *((name, member.confirmed) for name, member in sorted(members.items())),
        )
        if known == self._decided:
            return
        step = next_assignment(
            now,
            members,
            flow.share.seen,
            fenced=self._fenced,
            loads=Loads(
                bytes_per_s=self._balance.bytes_per_s,
                at_rest=self._balance.at_rest(flow.share.seen, members, pinned),
            ),
            pinned=dict.fromkeys(pinned, self.name),
        )
        if step is None:
            self._decided = known
            self._balance.decided(members, (), pinned)
            return
        if node is None:
            await self._zookeeper.create(self._nodes.assignment, step.encode(), make_parents=True)
        else:
            await self._zookeeper.set(self._nodes.assignment, step.encode(), version=node.version)
        moved = step.leaving.keys() - now.leaving.keys()
        self._balance.decided(members, moved, pinned)
        _LOG.info(
            "%s: assignment %d: %d partitions of %d workers, %d being handed over",
            engine.flow.config.name,
            step.version,
            len(step.owners),
            len(members),
            len(step.leaving),
        )

    async def _ensure_producer(self) -> None:
        """Have a producer of the mirrored records, which all sets of topics of a direction share.

        Each set's flow has a leader. One of them makes the producer: of two, each would take the
        later one over in the middle of its partitions. Raises NodeExists while another is at it.
        """
        map_log, path = self._engine.map_log, self._nodes.making_producer
        if map_log.state.producer is not None:
            return
        try:
            await self._zookeeper.create(path, b"", ephemeral=True, make_parents=True)
        except NodeExists:
            node = await self._zookeeper.get(path)
            if node is None or node.ephemeral_owner != self._zookeeper.session_id:
                raise  # else it is ours, and an answer was lost
        await map_log.ensure_producer()
        with suppress(NoNode):
            await self._zookeeper.delete(path)

    async def _fence(self, name: str, writer: MirrorProducer) -> None:
        if name not in self._fenced:
            await self._engine.map_log.fence(writer)
            self._fenced.add(name)
            _LOG.info("%s: worker %s is gone and fenced", self._engine.flow.config.name, name)

    async def _read_members(self) -> dict[str, WorkerNode]:
        members: dict[str, WorkerNode] = {}
        garbled: set[str] = set()
        for name in await self._zookeeper.children(self._nodes.workers) or ():
            node = await self._zookeeper.get(f"{self._nodes.workers}/{name}")
            if node is None:
                continue
            try:
                members[name] = WorkerNode.decode(node.data)
            except WitnessGarbled as fault:
                garbled.add(name)
                if name not in self._garbled:
                    _LOG.error(
                        "%s: %s/%s is counted as no worker; it keeps what it has: %s",
                        self._engine.flow.config.name,
                        self._nodes.workers,
                        name,
                        fault,
                    )
        self._garbled = frozenset(garbled)
        self.members = members
        share = self._engine.flow.share
        gone = {
            topic_partition: end
            for name, member in members.items()
            if name != self.name
            for topic_partition, end in member.gone.items()
        }
        share.hear_of_peers(gone, vouched(share.vouched, self.assignment, members))
        return members

    def _look_at_rates(self, members: Mapping[str, WorkerNode]) -> None:
        """Take the rates over now and then only: each look at them may move something."""
        now_s = trio.current_time()
        if now_s - self._looked_s < self._look_after_s:
            return
        self._looked_s = now_s
        rates = {
            topic_partition: rate
            for member in members.values()
            for topic_partition, rate in member.bytes_per_s.items()
        }
        self._balance.take_rates(rates, self.assignment.owners, members)

    @property
    def _look_after_s(self) -> float:
        """The interval at which rates are told and the balance is looked at."""
        return self._engine.flow.config.balance_interval_ms / 1_000
