"""The partitions of a flow: this worker's, and its peers' as far as they are known."""

from collections import ChainMap
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from mirror.state.partition import MirroredPartition
from wire.topic_partition import TopicPartition


class FlowPartitions:
    """The partitions of one flow, by name; others read them here and change nothing."""

    __slots__ = ("_own", "_peers", "own", "peers")

    def __init__(self) -> None:
        self._own: Final[dict[TopicPartition, MirroredPartition]] = {}
        self._peers: Final[dict[TopicPartition, MirroredPartition]] = {}
        self.own: Final[Mapping[TopicPartition, MirroredPartition]] = MappingProxyType(self._own)
        """Those that this worker mirrors."""
        self.peers: Final[Mapping[TopicPartition, MirroredPartition]] = MappingProxyType(
            self._peers
        )
        """Known to the worker that leads: how far others have mirrored theirs."""

    @property
    def known(self) -> Mapping[TopicPartition, MirroredPartition]:
        """Return all partitions whose map is known here, our own before others'."""
        return ChainMap(self._own, self._peers) if self._peers else self.own

    def take(self, partition: MirroredPartition) -> None:
        """Mirror this partition here from now on."""
        self._own[partition.topic_partition] = partition

    def let_go(self, topic_partition: TopicPartition) -> MirroredPartition | None:
        """Mirror a partition here no more; return it, None if it was not mirrored here."""
        return self._own.pop(topic_partition, None)

    def meet_peer(self, partition: MirroredPartition) -> None:
        """Follow a partition that another worker mirrors."""
        self._peers[partition.topic_partition] = partition

    def forget_peer(self, topic_partition: TopicPartition) -> MirroredPartition | None:
        """Follow it no more; return it, None if it was not followed."""
        return self._peers.pop(topic_partition, None)

    def of_topic(self, topic: str) -> list[MirroredPartition]:
        """Return this worker's partitions of a topic."""
        return [partition for (name, _), partition in self._own.items() if name == topic]

    def fetched_from(self, node: int) -> Iterator[MirroredPartition]:
        """Yield the flowing partitions whose source leader, or the replica it named, this is."""
        for partition in self._own.values():
            if partition.leaders.fetched_from == node and partition.is_flowing:
                yield partition

    @property
    def is_settled(self) -> bool:
        """Whether nothing is under way."""
        return all(partition.in_flight.is_settled for partition in self._own.values())
