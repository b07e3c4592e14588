"""The orders of people for a flow, and how far this worker has carried them out."""

from collections.abc import Collection, Iterable, Mapping

from mirror.state.orders import DECISIONS, How, Orders, Restart
from mirror.state.partition import MirroredPartition
from wire.topic_partition import TopicPartition


class OrdersInForce:
    """The orders of the witness as last seen, and what remains to be done of them."""

    __slots__ = (
        "_known",
        "_marked",
        "_restarted",
        "begun_anew",
        "current",
        "to_begin_anew",
        "to_mark",
        "unknown",
    )

    def __init__(self) -> None:
        self.current = Orders()
        """Partitions that it pauses are not positioned."""
        self._restarted: dict[Restart, set[MirroredPartition]] = {}
        """Ordered restarts that were begun here, and to what each has been done."""
        self.to_begin_anew: frozenset[str] = frozenset()
        """Topics whose copy on the target discovery is to delete: they are mirrored anew."""
        self.to_mark: frozenset[str] = frozenset()
        """Those that can be deleted now, once the order that wants it is marked as begun."""
        self._marked: frozenset[str] = frozenset()
        self.begun_anew: frozenset[str] = frozenset()
        """Those of which it has just been deleted."""
        self.unknown: frozenset[Restart] = frozenset()
        """Orders about what the flow does not know: discovery is to look whether the target has it.
        """
        self._known: set[Restart] = set()

    def follow(self, orders: Orders) -> None:
        """Take over what is ordered now."""
        self.current = orders

    def begin(self, restart: Restart) -> bool:
        """Take note that a restart is begun; return whether that is news."""
        is_new = restart not in self._restarted
        self._restarted.setdefault(restart, set())
        return is_new

    def remaining(
        self, restart: Restart, partitions: Mapping[TopicPartition, MirroredPartition]
    ) -> list[MirroredPartition]:
        """Return those of the partitions to which a restart is to be done, and has not been."""
        restarted = self._restarted.get(restart, ())
        return [
            partition
            for topic_partition, partition in partitions.items()
            if partition not in restarted and restart.scope.covers(*topic_partition)
        ]

    def note_restarted(self, restart: Restart, partitions: Iterable[MirroredPartition]) -> None:
        """Take note that a restart has been done to these."""
        self._restarted.setdefault(restart, set()).update(partitions)

    def carried_out(
        self, partitions: Mapping[TopicPartition, MirroredPartition]
    ) -> frozenset[Restart]:
        """Return the restarts in force that have been done to all of these that they concern."""
        return frozenset(
            restart
            for restart in self.current.restarts
            if restart in self._restarted and not self.remaining(restart, partitions)
        )

    def want_anew(self, topics: Iterable[str]) -> None:
        """Have these topics begun anew."""
        self.to_begin_anew = self.to_begin_anew.union(topics)

    def want_anew_only(self, topics: Collection[str]) -> None:
        """Have no topic begun anew but those among these."""
        self.to_begin_anew &= frozenset(topics)

    def want_anew_no_more(self, topic: str) -> None:
        """Leave the topic's copy on the target as it is."""
        self._leave(topic)

    def may_delete(self, topic: str) -> bool:
        """Whether the topic's copy may be deleted now; if not, its order is to be marked first.

        A policy orders it anew only while the copy is as it was.
        """
        if topic in self._marked or not self.anew_orders(topic):
            return True
        self.to_mark |= {topic}
        return False

    def anew_orders(self, topic: str) -> list[Restart]:
        """Return the orders in force to begin a topic anew."""
        return [
            one for one in self.current.restarts if one.how is How.ANEW and one.scope.topic == topic
        ]

    def note_marked(self, topic: str) -> None:
        """Take note that no other daemon deletes the topic's copy by the same order."""
        self.to_mark -= {topic}
        self._marked |= {topic}

    def _leave(self, topic: str) -> None:
        self.to_begin_anew -= {topic}
        self.to_mark -= {topic}
        self._marked -= {topic}

    def begin_anew(self, topic: str) -> None:
        """Take note that the topic's copy has been deleted."""
        self._leave(topic)
        self.begun_anew |= {topic}

    def forget_begun(self, topics: Collection[str]) -> None:
        """Take note that the witness has been looked at since these were begun anew."""
        self.begun_anew -= frozenset(topics)

    def is_known(self, restart: Restart, seen: Collection[TopicPartition]) -> bool:
        """Whether an order can be begun: the flow knows what it names, or nobody has it.

        If not, discovery is asked to see to that. `seen` are the flow's partitions.
        """
        scope = restart.scope
        is_decision = restart.how in DECISIONS and not restart.is_wanted_by_policy
        if (
            not is_decision
            or scope.topic is None
            or restart in self._known
            or any(scope.covers(*topic_partition) for topic_partition in seen)
        ):
            return True
        self.unknown |= {restart}
        return False

    def note_known(self, restarts: Iterable[Restart]) -> None:
        """Take note that the source lacks nothing any more of what these name."""
        self._known.update(restarts)
        self.unknown -= self._known

    def is_kept(self, topic: str) -> bool:
        """Whether a pause keeps a topic's copy: from policies, not from what somebody orders."""
        return self.current.keeper_of(topic) is not None and not any(
            restart.how is How.ANEW
            and restart.scope.topic in {None, topic}
            and not restart.is_wanted_by_policy
            for restart in self.current.restarts
        )
