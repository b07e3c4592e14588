"""How replication is doing, for a scrape: Kafka's ReplicaManager metrics by their own nouns."""

from collections.abc import Iterable
from dataclasses import dataclass

from broker.replication.isr_changes import IsrCounts
from broker.replication.partition import Partition


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationHealth:
    """The health of replication, as the partitions led here tell it.

    follower_lag    (topic, partition, follower, records that it has not fetched yet)
    """

    under_replicated_partitions: int = 0
    under_min_isr_partitions: int = 0
    isr_shrinks: int = 0
    isr_expands: int = 0
    follower_lag: tuple[tuple[str, int, int, int], ...] = ()


def health_of(partitions: Iterable[Partition], counts: IsrCounts) -> ReplicationHealth:
    """Return the numbers of this moment. A follower that was never heard of lags by everything."""
    led = [partition for partition in partitions if partition.is_led_here]
    return ReplicationHealth(
        under_replicated_partitions=sum(partition.is_under_replicated for partition in led),
        under_min_isr_partitions=sum(partition.is_under_min_isr for partition in led),
        isr_shrinks=counts.shrinks,
        isr_expands=counts.expands,
        follower_lag=tuple(
            (partition.topic, partition.index, broker_id, lag)
            for partition in led
            for broker_id, lag in partition.follower_lags()
        ),
    )
