"""What a broker says of partitions that it does not lead."""

from uuid import UUID

from broker.metadata_cache import BrokerEndpoint, MetadataCache, PartitionView
from wire.errors import ErrorCode


def test_a_topic_is_unknown_only_once_the_controller_has_spoken() -> None:
    """Others may call a broker the leader before it has heard of anything itself."""
    cache = MetadataCache("id")
    assert cache.why_not_led("t", 0) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    elsewhere = PartitionView(index=0, leader=1, leader_epoch=3, replicas=(1,), isr=(1,))
    cache.put_partitions("t", UUID(int=1), [elsewhere])
    cache.set_brokers(0, [BrokerEndpoint(broker_id=0, host="h", port=1)])
    assert cache.why_not_led("t", 0) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert cache.why_not_led("t", 1) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert cache.why_not_led("absent", 0) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
