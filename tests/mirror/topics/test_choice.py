"""Which topics are mirrored, and the reason for each that is not."""

from mirror.topics.choice import choices, wanted_topics
from tests.mirror.topic_views import FLOW, topic
from wire.net.metadata import ClusterView


def test_each_topic_is_mirrored_or_has_its_reason() -> None:
    topics = (
        topic("orders", partitions=3),
        topic("orders-tmp"),
        topic("others"),
        topic("__consumer_offsets", is_internal=True),
        topic("orders.odd", error=29),
        topic("orders.new", partitions=0),
    )
    view = ClusterView(
        brokers={}, controller_id=0, topics={one.name: one for one in topics}, cluster_id="c"
    )
    assert {one.topic: one.left_out for one in choices(FLOW, view)} == {
        "__consumer_offsets": "it is internal to the cluster",
        "orders": None,
        "orders-tmp": "excluded by .*-tmp",
        "orders.new": "it has no partitions",
        "orders.odd": "the source says TOPIC_AUTHORIZATION_FAILED",
        "others": "no include pattern matches",
    }
    assert set(wanted_topics(FLOW, view)) == {"orders"}
