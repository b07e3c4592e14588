"""Which topics are mirrored, and the reason for each that is not."""

import re
from dataclasses import replace
from uuid import UUID

from mirror.topics.choice import choices, wanted_topics
from runtime.config import PatternSet
from tests.mirror.state.test_policies import CONFIG
from wire.net.metadata import ClusterView, PartitionView, TopicView

FLOW = replace(
    CONFIG,
    topics=PatternSet(
        include=(re.compile("orders.*"), re.compile("__.*")), exclude=(re.compile(".*-tmp"),)
    ),
)
PARTITION = PartitionView(leader=0, leader_epoch=0, replicas=(0,), isr=(0,), error_code=0)


def topic(
    name: str, *, error: int = 0, is_internal: bool = False, partitions: int = 1
) -> TopicView:
    return TopicView(
        name=name,
        topic_id=UUID(int=1),
        error_code=error,
        is_internal=is_internal,
        partitions=dict.fromkeys(range(partitions), PARTITION),
    )


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
