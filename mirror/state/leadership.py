"""The leaders of a partition on both clusters, and the broker it is fetched from. No I/O."""

from typing import Final, NamedTuple

REPLICA_MS: Final = 300_000
"""For so long a leader's choice of a replica holds: a Java consumer's metadata.max.age.ms."""
NO_LEADER: Final = -1


class _Replica(NamedTuple):
    """A follower that a leader has named to fetch from (KIP-392), and when."""

    node: int
    named_ms: int


class PartitionLeaders:
    """The leaders of one partition, as discovery has seen them last."""

    __slots__ = ("_replica", "source", "source_epoch", "target", "target_epoch")

    def __init__(self) -> None:
        self.source = self.source_epoch = NO_LEADER
        self.target = self.target_epoch = NO_LEADER
        self._replica: _Replica | None = None

    @property
    def fetched_from(self) -> int:
        """The source broker to fetch from, below 0 while there is none."""
        return self.source if self._replica is None else self._replica.node

    def follow_source(self, leader: int, epoch: int) -> bool:
        """Take the source's leader over; return whether it or its epoch is another."""
        is_another = (self.source, self.source_epoch) != (leader, epoch)
        self.source, self.source_epoch = leader, epoch
        return is_another

    def follow_target(self, leader: int, epoch: int = NO_LEADER) -> bool:
        """Take the target's leader over; return whether it or its epoch is another."""
        is_another = (self.target, self.target_epoch) != (leader, epoch)
        self.target, self.target_epoch = leader, epoch
        return is_another

    def read_from(self, replica: int, now_ms: int) -> None:
        """Fetch from this replica until something fails, or its leader is to be asked again."""
        self._replica = _Replica(replica, now_ms)

    def read_from_leader(self) -> None:
        """Fetch from the leader, whatever replica it has named."""
        self._replica = None

    def ask_leader_again(self, now_ms: int) -> bool:
        """Go back to the leader once its word is old; it may know a better replica by now."""
        is_due = self._replica is not None and now_ms - self._replica.named_ms > REPLICA_MS
        if is_due:
            self._replica = None
        return is_due
