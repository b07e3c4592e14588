"""This worker's share of a flow, and what its peers say of theirs."""

from collections.abc import Iterable, Mapping

from wire.topic_partition import TopicPartition


class WorkShare:
    """One worker's share of one flow; alone it has all."""

    __slots__ = ("leads", "own", "peers_gone", "seen", "vouched")

    def __init__(self) -> None:
        self.own: frozenset[TopicPartition] = frozenset()
        """What the assignment gives this worker; it takes no other partition."""
        self.seen: frozenset[TopicPartition] = frozenset()
        """Every partition of the flow that has been seen, whoever mirrors it."""
        self.leads = False
        """Whether this worker shapes the target's topics and translates group positions."""
        self.peers_gone: Mapping[TopicPartition, int] = {}
        """Known to the worker that leads: where the last records of others' deleted topics lie."""
        self.vouched: frozenset[TopicPartition] = frozenset()
        """Known to the worker that leads: whose maps their workers vouch for."""

    def lead(self) -> None:
        """Do from now on the work that one worker does for all."""
        self.leads = True

    def give_up_all_but(self, topic_partitions: frozenset[TopicPartition]) -> None:
        """Take nothing any more but what is among these."""
        self.own &= topic_partitions

    def take(self, topic_partitions: frozenset[TopicPartition]) -> None:
        """Have exactly these from now on."""
        self.own = topic_partitions

    def see(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Take note of partitions of the flow."""
        self.seen = self.seen.union(topic_partitions)

    def forget(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Take note that these are partitions of the flow no more."""
        self.seen = self.seen.difference(topic_partitions)

    def hear_of_peers(
        self, gone: Mapping[TopicPartition, int], vouched: frozenset[TopicPartition]
    ) -> None:
        """Take over what the other workers say of theirs."""
        self.peers_gone = gone
        self.vouched = vouched
