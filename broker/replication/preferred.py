"""Which replica a consumer should read from (KIP-392)."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from broker.metadata_cache import BrokerEndpoint
from broker.replication.partition import Partition

RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
"""The one replica.selector.class that is served."""


class Readable(NamedTuple):
    """A replica that has what a consumer asks for."""

    broker_id: int
    rack: str | None
    log_end_offset: int
    last_caught_up_ms: int


def preferred_replica(
    partition: Partition, brokers: Mapping[int, BrokerEndpoint], rack_id: str, fetch_offset: int
) -> int | None:
    """Return the replica in the consumer's rack to read from, None where it stays with the leader.

    `brokers` are the live ones by id. The answer of a follower is always None: only the leader
    knows how far the replicas are.
    """
    if not partition.is_led_here:
        return None
    racks = {broker_id: broker.rack for broker_id, broker in brokers.items()}
    if racks.get(partition.leadership.leader) == rack_id:
        return None
    return select_by_rack(_readable(partition, racks, fetch_offset), rack_id)


def _readable(
    partition: Partition, racks: Mapping[int, str | None], fetch_offset: int
) -> Iterable[Readable]:
    """Yield the live in-sync followers that hold the offset."""
    for broker_id in partition.in_sync_replicas:
        follower = partition.follower(broker_id)
        if (
            follower is not None
            and broker_id in racks
            and follower.log_start_offset <= fetch_offset <= follower.log_end_offset
        ):
            yield Readable(
                broker_id, racks[broker_id], follower.log_end_offset, follower.last_caught_up_ms
            )


def select_by_rack(replicas: Iterable[Readable], rack_id: str) -> int | None:
    """Return the replica of that rack which is farthest ahead; Kafka's RackAwareReplicaSelector."""
    near = [replica for replica in replicas if replica.rack == rack_id]
    if not near:
        return None
    return max(near, key=lambda found: (found.log_end_offset, found.last_caught_up_ms)).broker_id
