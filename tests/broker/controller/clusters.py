"""Small clusters as the controller sees them, for its tests."""

from collections.abc import Mapping
from uuid import UUID

from broker.controller.cluster import Cluster
from broker.zookeeper.tree import BrokerRegistration, LeaderAndIsr, TopicAssignment
from wire.topic_partition import TopicPartition

T0 = TopicPartition("t", 0)
EPOCH = 3
"""Of the controller."""


def registered(*brokers: int) -> dict[int, BrokerRegistration]:
    """Return live brokers; the epoch of each is its id plus 100."""
    return {
        id_: BrokerRegistration(broker_id=id_, host="h", port=9_000 + id_, epoch=100 + id_)
        for id_ in brokers
    }


def state(leader: int, isr: tuple[int, ...], *, recovery: int = 0) -> LeaderAndIsr:
    """Return a state in leader epoch 5, written for the eighth time."""
    return LeaderAndIsr(
        leader=leader, leader_epoch=5, isr=isr, controller_epoch=1, version=8, recovery=recovery
    )


def cluster(
    states: Mapping[int, LeaderAndIsr],
    replicas: tuple[int, ...] = (0, 1, 2),
    *,
    live: tuple[int, ...] = (0, 1, 2, 3),
) -> Cluster:
    """Return a cluster with the topic `t`, each of its partitions on the same replicas."""
    topic = TopicAssignment(topic_id=UUID(int=1), replicas=dict.fromkeys(states, replicas))
    return Cluster(
        controller_epoch=EPOCH,
        live=registered(*live),
        topics={"t": topic},
        states={TopicPartition("t", index): known for index, known in states.items()},
    )
