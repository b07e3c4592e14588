"""One cluster as a promotion sees it: the topics that move, where their logs end, its groups.

A promotion knows topics by the names of its flow's source, and its target has `names`: what it is
asked for goes by the source's names, and so do its answers. Where a site has no `names`, topics
are called as the site itself calls them.
"""

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Final, Protocol
from uuid import UUID

import trio

from runtime.configuration.config import FlowConfig
from runtime.configuration.topic_names import TopicNames
from wire.errors import ErrorCode
from wire.messages.list_groups import ListedGroup
from wire.net import Cluster, ClusterView, NetworkFault
from wire.net.held_batches import Held, held_batches
from wire.net.operations import (
    READ_COMMITTED,
    describe_groups,
    list_groups,
    list_offsets,
    log_ends,
    read_partition,
)
from wire.net.partition_operations import PartitionReader
from wire.net.retries import LEADER_MOVED
from wire.record_batch import CorruptBatch
from wire.topic_partition import TopicPartition
from wire.values import frozen

CLIENT_ID: Final = "failover"
"""The client id of all our connections. No fence lets it through, which is what a probe needs."""

REQUEST_TIMEOUT_MS: Final = 5_000
BROKERS_ASKED: Final = 3
OPEN_WITHIN_S: Final = 1.0
LATEST: Final = -1
EARLIEST: Final = -2
SHARE: Final = "share"
WITHOUT_MEMBERS: Final = frozenset({"", "empty", "dead"})
"""States of groups without members (KIP-518); what brokers before 2.6 say, too."""


class GroupChoice(Protocol):
    """Chooses groups by their names."""

    def matches(self, name: str) -> bool:
        """Tell whether a group is chosen."""


class SiteUnclear(NetworkFault):
    """The cluster answers, but not with what was asked; the message names the partition."""


class LogUnavailable(SiteUnclear):
    """A log that is there, or may be, cannot tell now where it ends."""


class LeaderMoved(LogUnavailable):
    """Because its leader moves, which takes a moment, or some seconds where a broker has died."""


@frozen
class Site:
    """A cluster with its name. Methods raise NetworkFault."""

    name: str
    cluster: Cluster
    names: TopicNames | None = None
    """Of the flow into it, where callers name topics as that flow's source does."""

    def topic_here(self, topic: str) -> str:
        """Return what the site calls a topic."""
        return topic if self.names is None else self.names.on_target(topic)

    def here(self, partition: TopicPartition) -> TopicPartition:
        """Return what the site calls a partition."""
        if self.names is None:
            return partition
        return TopicPartition(self.topic_here(partition.topic), partition.partition)

    def moved(self, flow: FlowConfig, topic: str) -> str | None:
        """Return what callers call a topic of the site that a flow moves; None of another one."""
        if not flow.moves_at(self.name, topic):
            return None
        return topic if self.names is None else self.names.on_source(topic)

    async def partitions(
        self, flow: FlowConfig, expected: Collection[TopicPartition] = ()
    ) -> tuple[TopicPartition, ...]:
        """Return every partition of the topics that a flow moves, in order.

        Where the answer lacks what is `expected`, other brokers are asked as well: one that has
        just started does not know every topic.
        """
        view = await self.cluster.metadata(refresh=True)
        found = self._moved_by(flow, view)
        if not found.issuperset(expected):
            await self._open_brokers(view)
            for _ in range(min(len(view.brokers), BROKERS_ASKED)):  # they take turns
                found |= self._moved_by(flow, await self.cluster.metadata(refresh=True))
        return tuple(sorted(found))

    def _moved_by(self, flow: FlowConfig, view: ClusterView) -> frozenset[TopicPartition]:
        return frozenset(
            TopicPartition(name, partition)
            for topic in view.topics.values()
            if not topic.is_internal and (name := self.moved(flow, topic.name)) is not None
            for partition in topic.partitions
        )

    async def _open_brokers(self, view: ClusterView) -> None:
        """Connect to all brokers that answer soon."""

        async def open_broker(node: int) -> None:
            with suppress(NetworkFault):  # others are asked, as far as there are any
                await self.cluster.connection(node)

        with trio.move_on_after(OPEN_WITHIN_S):
            async with trio.open_nursery() as nursery:
                for node in view.brokers:
                    nursery.start_soon(open_broker, node)

    async def topic_ids(self, topics: Collection[str]) -> dict[str, UUID]:
        """Return the ids of these topics; zero where there is no such topic, or it has no id."""
        here = {name: self.topic_here(name) for name in topics}
        view = await self.cluster.metadata(sorted(here.values()), refresh=True)
        return {
            name: view.topics[there].topic_id
            for name, there in here.items()
            if there in view.topics
        }

    async def ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return where these logs end; raises SiteUnclear naming the first that cannot tell."""
        return await self._offsets(partitions, LATEST)

    async def stable_ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return where the first open transaction of these logs begins, or where they end."""
        return await self._offsets(partitions, LATEST, READ_COMMITTED)

    async def starts(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return where these logs begin."""
        return await self._offsets(partitions, EARLIEST)

    async def whole_ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the log ends of the leaders, uncommitted records included, of those that tell."""
        found: dict[TopicPartition, int] = {}
        callers = self._callers(partitions)
        for partition, answer in (await log_ends(self.cluster, set(callers))).items():
            if isinstance(answer, ErrorCode):
                self.cluster.forget(partition.topic)
            else:
                found[callers[partition]] = answer
        return found

    async def known_ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the ends of those of these logs that exist here.

        Raises LogUnavailable for the first one that cannot tell: no end is not an end of 0.
        """
        callers = self._callers(partitions)
        answers = await list_offsets(self.cluster, set(callers), timestamp=LATEST)
        found: dict[TopicPartition, int] = {}
        for partition, answer in sorted(answers.items()):
            if not isinstance(answer, ErrorCode):
                found[callers[partition]] = answer
                continue
            # Also of what is not there: it may be made any time.
            self.cluster.forget(partition.topic)
            if answer in LEADER_MOVED:
                raise LeaderMoved(f"{self.name} {partition}: {answer.name}")
            if answer is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise LogUnavailable(f"{self.name} {partition}: {answer.name}")
        return found

    async def holds_markers_only(self, partition: TopicPartition, start: int, stop: int) -> bool:
        """Tell whether a part of a log holds nothing but transaction markers, without a hole.

        Raises SiteUnclear for a part that cannot be read, too.
        """
        position = start
        try:
            async for header, _ in self.read(partition, start, stop):
                if not header.is_control or header.base_offset != position:
                    return False
                position = header.next_offset
        except CorruptBatch as corrupt:
            raise SiteUnclear(f"{self.name} {self.here(partition)}: {corrupt}") from corrupt
        return position == stop

    def read(self, partition: TopicPartition, start: int, stop: int) -> PartitionReader:
        """Return a reader of a part of a log, from the batch that holds `start` on."""
        return read_partition(self.cluster, *self.here(partition), start, stop)

    async def batches(self, offsets: Mapping[TopicPartition, int]) -> Held:
        """Return the batch of each offset, of the logs that answer; see `held_batches`."""
        callers = self._callers(offsets)
        asked = {partition: offsets[callers[partition]] for partition in callers}
        found = await held_batches(self.cluster, asked)
        return {callers[partition]: held for partition, held in found.items()}

    async def members(self, groups: GroupChoice) -> dict[str, int]:
        """Return for each chosen group how many members it has at least.

        The state of a group of a newer protocol (KIP-848, KIP-1071) tells whether it has any, also
        where brokers cannot describe it. Share groups are left out: they have no positions.
        """
        listed = {
            name: one
            for name, one in sorted((await list_groups(self.cluster)).items())
            if groups.matches(name) and one.group_type.casefold() != SHARE
        }
        if not listed:
            return {}
        described = await describe_groups(self.cluster, listed)
        return {
            name: max(len(described[name].members), int(_has_members(one)))
            for name, one in listed.items()
        }

    async def _offsets(
        self, partitions: Iterable[TopicPartition], timestamp: int, isolation_level: int = 0
    ) -> dict[TopicPartition, int]:
        callers = self._callers(partitions)
        if not callers:
            return {}
        answers = await list_offsets(
            self.cluster, set(callers), timestamp=timestamp, isolation_level=isolation_level
        )
        found: dict[TopicPartition, int] = {}
        for partition in sorted(callers):
            answer = answers.get(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if isinstance(answer, ErrorCode):
                self.cluster.forget(partition.topic)
                unclear = LeaderMoved if answer in LEADER_MOVED else SiteUnclear
                raise unclear(f"{self.name} {partition}: {answer.name}")
            found[callers[partition]] = answer
        return found

    def _callers(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, TopicPartition]:
        """Return these partitions by what the site calls them."""
        return {self.here(partition): partition for partition in partitions}


def _has_members(listed: ListedGroup) -> bool:
    """Tell whether the coordinator says of a group that somebody is in it."""
    return listed.group_state.casefold() not in WITHOUT_MEMBERS


def brief(fault: Exception) -> str:
    """Return a fault as one readable line; a fault of many brokers names the first."""
    first, *others = str(fault).split("; ")
    return f"{first} (and {len(others)} more)" if others else first


def client_let_through(*, source: str, target: str) -> str:
    """Return the one client id that a fence on the source lets through: the mirror's way back."""
    return f"mirror-{target}-{source}"
