"""Very many groups on three brokers: how soon they are stable after a death, how long beats take.

Members of the new protocol (KIP-848) beat every five seconds, as clients do, and act on what they
are told at once. They share connections, so a few thousand fit into one process; what that process
and the others on the machine take counts as the brokers' time. So two more figures stand beside it:
how long answers took within the brokers, and how late the members themselves were.
"""

import os
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time
from typing import Final, TypeAlias
from urllib.request import urlopen

import trio
from prometheus_client.parser import text_string_to_metric_families

from tests.bench.measure.processes import cpu_and_memory
from tests.clusters import RunningCluster, run_cluster
from tests.drill.cluster import DrillFailed
from tests.drill.many_partitions import BROKER_IDS, Figure
from wire.errors import ErrorCode
from wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from wire.messages.find_coordinator import FindCoordinatorRequest
from wire.net import Cluster, open_cluster
from wire.net.errors import NetworkFault

TOPIC: Final = "shared"
PARTITIONS: Final = 10
MEMBERS: Final = 5
"""Of each group."""
EVERY_S: Final = 5.0
AGAIN_S: Final = 0.25
LANES: Final = 20
"""Connections to each broker."""
STABLE_WITHIN_S: Final = 60.0
BEAT_WITHIN_S: Final = 0.05
JOINED_WITHIN_S: Final = 300.0
STEADY_S: Final = 30.0
LOOK_S: Final = 0.01
AT_ONCE: Final = 50
SETTINGS: Final = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "50",
    "zookeeper.session.timeout.ms": "6000",
}


@dataclass(slots=True, kw_only=True)
class Member:
    """One member, as its client holds it."""

    name: str
    epoch: int = 0
    owned: tuple[TopicPartitions, ...] = ()
    heard_s: float = -1.0
    """When it was last answered without an error."""
    has_news: bool = True
    is_well: bool = False
    """Whether the last beat was answered without an error."""

    def request(self, group: str) -> ConsumerGroupHeartbeatRequest:
        """Return the next beat: all that it is when it joins, what has changed otherwise."""
        is_joining = self.epoch == 0
        return ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=self.name,
            member_epoch=self.epoch,
            rebalance_timeout_ms=60_000 if is_joining else -1,
            subscribed_topic_names=(TOPIC,) if is_joining else None,
            topic_partitions=self.owned if self.has_news else None,
        )

    def take(self, answer: ConsumerGroupHeartbeatResponse, now_s: float) -> None:
        """Act on an answer without an error."""
        self.heard_s, self.is_well = now_s, True
        self.has_news = answer.assignment is not None or answer.member_epoch != self.epoch
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = answer.assignment.topic_partitions


@dataclass(slots=True, kw_only=True)
class Group:
    """The members of one group, and the broker that coordinates it."""

    name: str
    members: list[Member]
    coordinator: int = -1

    def is_stable(self, since_s: float) -> bool:
        """Say whether all have been heard since then, and share the partitions in one epoch."""
        owned = [index for one in self.members for topic in one.owned for index in topic.partitions]
        return (
            all(one.heard_s > since_s for one in self.members)
            and len({one.epoch for one in self.members}) == 1
            and sorted(owned) == list(range(PARTITIONS))
        )


Buckets: TypeAlias = Mapping[float, float]
"""How many beats a broker has answered within so many seconds, as its metrics tell."""


def buckets_of(metrics: str) -> Buckets:
    """Return what a broker's metrics tell of beats."""
    return {
        float(sample.labels["le"]): sample.value
        for family in text_string_to_metric_families(metrics)
        for sample in family.samples
        if sample.name == "broker_request_duration_seconds_bucket"
        and sample.labels["api"] == "ConsumerGroupHeartbeat"
    }


def bound_of(before: Iterable[Buckets], after: Iterable[Buckets], part: float) -> float:
    """Return the least bound of a bucket within which so large a part was answered meanwhile."""
    counts: Counter[float] = Counter()
    for one in after:
        counts.update(one)
    for one in before:
        counts.subtract(one)
    wanted = part * counts[float("inf")]
    return next((bound for bound in sorted(counts) if 0 < wanted <= counts[bound]), float("inf"))


def percentile(sorted_s: Sequence[float], part: float) -> float:
    """Return the value that so large a part of them does not exceed; infinity for none."""
    return sorted_s[min(int(len(sorted_s) * part), len(sorted_s) - 1)] if sorted_s else float("inf")


@dataclass(slots=True)
class Many:
    """The groups that are measured, and what came out so far."""

    running: RunningCluster
    cluster: Cluster
    groups: list[Group]
    took_s: list[float] = field(default_factory=list)
    failures: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    figures: list[Figure] = field(default_factory=list)
    lost: int = -1
    """The broker that was killed."""

    def tell(self, what: str, seconds: float, bar_s: float | None = None) -> None:
        self.figures.append(Figure(what=what, seconds=seconds, bar_s=bar_s))

    async def live(self, group: Group, member: Member, joining: trio.CapacityLimiter) -> None:
        """Join, and beat for ever."""
        async with joining:
            await self.beat(group, member)
        while True:
            await trio.sleep(self.pause_s(member))
            await self.beat(group, member)

    def pause_s(self, member: Member) -> float:
        """Return after how long a member beats again."""
        if not member.is_well:
            return AGAIN_S
        return 0 if member.has_news else EVERY_S * random.uniform(0.9, 1.1)

    async def beat(self, group: Group, member: Member) -> None:
        """Beat once, if it is known where."""
        member.is_well = False
        if group.coordinator < 0:
            return
        asked = group.coordinator
        began_s = trio.current_time()
        try:
            lane = hash(member.name) % LANES
            connection = await self.cluster.connection(asked, lane)
            answer = await connection.request(member.request(group.name))
        except NetworkFault as fault:
            self.failures[type(fault).__name__] += 1
            error = ErrorCode.NOT_COORDINATOR
        else:
            error = ErrorCode(answer.error_code)
        if error is not ErrorCode.NONE:
            self.failures[error.name] += 1
            if group.coordinator == asked and error is ErrorCode.NOT_COORDINATOR:
                group.coordinator = -1
            if error in {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH}:
                member.epoch, member.owned, member.has_news = 0, (), True
            return
        now_s = trio.current_time()
        self.took_s.append(now_s - began_s)
        member.take(answer, now_s)

    async def find_coordinators(self) -> None:
        """Look again and again who coordinates the groups of which that is not known."""
        while True:
            lost = {one.name: one for one in self.groups if one.coordinator < 0}
            if lost:
                request = FindCoordinatorRequest(coordinator_keys=tuple(lost))
                try:
                    answer = await self.cluster.request(request)
                except NetworkFault:
                    answer = None
                for one in () if answer is None else answer.coordinators:
                    if one.error_code == ErrorCode.NONE:
                        lost[one.key].coordinator = one.node_id
            await trio.sleep(AGAIN_S)

    async def wait_stable(self, within_s: float, *, since_s: float) -> float:
        """Return how long it took until all groups were stable. Raises DrillFailed."""
        began_s = trio.current_time()
        left = list(self.groups)
        with trio.move_on_after(within_s):
            while True:
                left = [one for one in left if not one.is_stable(since_s)]
                if not left:
                    return trio.current_time() - began_s
                await trio.sleep(AGAIN_S)
        raise DrillFailed(
            f"{len(left)} groups are not stable within {within_s:g} s: {self.failures}"
        )

    async def measure_beats(self, when: str) -> None:
        """Have all beat for a while, and tell how long answers took."""
        self.took_s.clear()
        before = await self.buckets()
        brokers_s, own_s = self.brokers_cpu_s(), process_time()
        late_s = sorted(await self.own_lateness())
        took_s = sorted(self.took_s)
        brokers_s, own_s = self.brokers_cpu_s() - brokers_s, process_time() - own_s
        after = await self.buckets()
        self.tell(
            f"{when}: {len(took_s) / STEADY_S:.0f} beats a second, median", percentile(took_s, 0.5)
        )
        self.tell("  99 of 100 beats are answered within", percentile(took_s, 0.99), BEAT_WITHIN_S)
        self.tell("  of that within a broker, at most", bound_of(before, after, 0.99))
        self.tell("  99 of 100 times the members' own process is late by", percentile(late_s, 0.99))
        self.tell("  processor time of the brokers for each beat", brokers_s / max(len(took_s), 1))
        self.tell("  processor time of the members for each beat", own_s / max(len(took_s), 1))

    async def own_lateness(self) -> list[float]:
        """Wait; return by how much this process was late each time that it had to do something."""
        late_s: list[float] = []
        ends_s = trio.current_time() + STEADY_S
        while (now_s := trio.current_time()) < ends_s:
            await trio.sleep(LOOK_S)
            late_s.append(trio.current_time() - now_s - LOOK_S)
        return late_s

    async def buckets(self) -> list[Buckets]:
        """Return what the metrics of each broker that lives tell of beats."""
        alive = [one for one in self.running.pids if one != self.lost]
        return [await trio.to_thread.run_sync(self._buckets, one) for one in alive]

    def _buckets(self, broker: int) -> Buckets:
        url = self.running.metrics_url(broker)
        with urlopen(url, timeout=JOINED_WITHIN_S) as page:  # noqa: S310 - our own
            return buckets_of(page.read().decode())

    def brokers_cpu_s(self) -> float:
        """Return the processor time that the brokers have taken."""
        alive = [one for one in self.running.pids if one != self.lost]
        return sum(cpu_and_memory(self.running.pids[one])[0] for one in alive)

    async def measure(self) -> None:
        """Let all join, beat, lose a broker, and beat again. Raises DrillFailed."""
        joining = trio.CapacityLimiter(AT_ONCE)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.find_coordinators)
            for group in self.groups:
                for member in group.members:
                    nursery.start_soon(self.live, group, member, joining)
            self.tell("all joined and stable", await self.wait_stable(JOINED_WITHIN_S, since_s=-1))
            await self.measure_beats("three brokers")
            self.lost = self.groups[0].coordinator
            epochs = {one.name: one.members[0].epoch for one in self.groups}
            died_s = trio.current_time()
            await trio.to_thread.run_sync(self.running.kill_broker, self.lost)
            stable_s = await self.wait_stable(2 * STABLE_WITHIN_S, since_s=died_s)
            self.tell("all stable after a broker's death", stable_s, STABLE_WITHIN_S)
            changed = sum(one.members[0].epoch != epochs[one.name] for one in self.groups)
            self.tell(f"  ({changed} groups were assigned anew; {dict(self.failures)})", stable_s)
            await self.measure_beats("two brokers")
            nursery.cancel_scope.cancel()


async def create_topic(cluster: Cluster) -> None:
    """Create what the groups read. Raises DrillFailed."""
    topic = CreatableTopic(
        name=TOPIC, num_partitions=PARTITIONS, replication_factor=3, assignments=(), configs=()
    )
    request = CreateTopicsRequest(topics=(topic,), timeout_ms=60_000)
    [created] = (await cluster.request_controller(request)).topics
    if created.error_code != ErrorCode.NONE:
        raise DrillFailed(f"{TOPIC}: {ErrorCode(created.error_code).name}")


async def drill_groups(folder: Path, count: int) -> list[Figure]:
    """Measure a cluster of its own in `folder`. Raises DrillFailed."""
    folder.mkdir(parents=True)
    groups = [
        Group(
            name=f"group-{number}",
            members=[Member(name=f"member-{number}-{index}") for index in range(MEMBERS)],
        )
        for number in range(count)
    ]
    with run_cluster(folder, brokers=len(BROKER_IDS), overrides=SETTINGS) as running:
        async with open_cluster(running.addresses, client_id="drill") as cluster:
            await create_topic(cluster)
            many = Many(running, cluster, groups)
            await many.measure()
    return many.figures


def report(figures: Sequence[Figure], groups: int) -> list[str]:
    """Return the lines that a person reads, the verdict last."""
    missed = sum(figure.is_missed for figure in figures)
    verdict = f"FAILED: {missed} of the bars missed" if missed else "PASSED"
    heading = f"{groups} groups of {MEMBERS} members on {len(BROKER_IDS)} brokers"
    machine = f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
    return [heading, *map(str, figures), f"  {machine}; others' work counts as ours", verdict]
