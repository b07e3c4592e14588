"""What a broker says of partitions that it does not lead."""

from dataclasses import replace
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


def test_a_change_of_topics_is_one_that_members_of_groups_have_to_hear_of() -> None:
    cache = MetadataCache("id")
    view = PartitionView(index=0, leader=1, leader_epoch=3, replicas=(1,), isr=(1,))

    def has_changed(name: str, topic_id: int, *views: PartitionView) -> bool:
        before = cache.changes
        cache.put_partitions(name, UUID(int=topic_id), views)
        return cache.changes != before

    assert has_changed("t", 1, view)
    assert not has_changed("t", 1, replace(view, leader=2))
    assert has_changed("t", 1, replace(view, index=1))
    assert has_changed("t", 2, view), "made again: another topic"
    before = cache.changes
    cache.remove_topic("absent")
    assert cache.changes == before
    cache.remove_topic("t")
    assert cache.changes == before + 1
