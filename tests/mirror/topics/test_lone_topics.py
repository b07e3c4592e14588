"""What an order may have made on the source: only what the target alone has, and it names."""

import pytest

from mirror.state.orders import How, Restart, Scope
from mirror.state.orders_in_force import OrdersInForce
from mirror.topics.lone_topics import alone_on_target, is_sealed_only
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from tests.mirror.topic_views import FLOW, topic
from wire.net.metadata import ClusterView, TopicView
from wire.topic_partition import TopicPartition


def cluster(*topics: TopicView) -> ClusterView:
    return ClusterView(
        brokers={}, controller_id=0, topics={one.name: one for one in topics}, cluster_id="c"
    )


@pytest.mark.parametrize(
    ("scope", "source", "target", "is_alone"),
    [
        ("orders", cluster(), cluster(topic("orders")), True),
        ("orders:0", cluster(), cluster(topic("orders")), True),
        ("orders:1", cluster(), cluster(topic("orders")), False),
        ("orders", cluster(), cluster(), False),
        ("others", cluster(), cluster(topic("others")), False),
        ("orders", cluster(topic("orders", error=29)), cluster(topic("orders")), False),
        ("orders", cluster(topic("orders")), cluster(topic("orders", partitions=3)), False),
        ("orders:0", cluster(topic("orders")), cluster(topic("orders", partitions=3)), False),
        ("orders:2", cluster(topic("orders")), cluster(topic("orders", partitions=3)), True),
        (None, cluster(), cluster(topic("orders")), False),
    ],
)
def test_only_what_the_source_lacks_and_an_order_names_is_made(
    scope: str | None, source: ClusterView, target: ClusterView, *, is_alone: bool
) -> None:
    found = alone_on_target(FLOW, Scope.parse(scope), source, target, known=())
    assert (found is not None) is is_alone


def test_what_was_mirrored_once_and_is_gone_from_the_source_is_not_made_again() -> None:
    known = {TopicPartition("orders", 0)}
    scope, target = Scope.parse("orders"), cluster(topic("orders"))
    assert alone_on_target(FLOW, scope, cluster(), target, known=known) is None


def test_a_seal_that_was_written_before_a_topic_could_be_made_says_nothing_was_mirrored() -> None:
    offset_map = OffsetMap()
    assert is_sealed_only(offset_map)
    offset_map.seal(source_end=0, target_end=0)
    assert is_sealed_only(offset_map)
    offset_map.announce(0, Place(0))
    assert not is_sealed_only(offset_map)


def test_an_order_about_what_the_flow_does_not_know_waits_until_the_target_was_looked_at() -> None:
    orders = OrdersInForce()
    seen = {TopicPartition("orders", 0)}
    lone, flow, policy = (
        Restart(scope=Scope.parse(scope), how=How.QUARANTINE, by=by, at_ms=1)
        for scope, by in (("lone", "me"), (None, "me"), ("lone", "the policy of dc1->dc2"))
    )
    assert orders.is_known(flow, seen), "a whole flow has nothing made"
    assert orders.is_known(policy, seen), "nor has a policy"
    assert not orders.is_known(lone, seen)
    assert orders.unknown == {lone}
    orders.note_known(orders.unknown)
    assert orders.is_known(lone, seen)
    assert not orders.unknown
