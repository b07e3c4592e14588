"""The evidence gets replicas on brokers that were away when its topic was made."""

from collections.abc import Mapping
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.pair.evidence import TOPIC
from runtime.pair.evidence_replicas import ReplicasRefused, add_replicas, added_replicas
from tests.doubles.fake_cluster import FakeCluster, run_fake_cluster
from wire.errors import ErrorCode
from wire.headers import RequestHeader
from wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from wire.net import ClusterView, open_cluster
from wire.net.metadata import BrokerView, PartitionView, TopicView


def view(racks: Mapping[int, str | None], *replicas: int) -> ClusterView:
    partition = PartitionView(leader=replicas[0], leader_epoch=0, replicas=replicas, isr=replicas)
    return ClusterView(
        cluster_id="c",
        controller_id=0,
        brokers={
            node: BrokerView(node_id=node, host="h", port=1, rack=rack)
            for node, rack in racks.items()
        },
        topics={TOPIC: TopicView(name=TOPIC, topic_id=UUID(int=1), partitions={0: partition})},
    )


def test_brokers_of_other_racks_come_first() -> None:
    racks = {0: "a", 1: "a", 2: "b", 3: "c"}
    assert added_replicas(view(racks, 0)) == (2, 3)
    assert added_replicas(view(racks, 0, 2)) == (3,)
    assert added_replicas(view(dict.fromkeys(range(4)), 3)) == (0, 1)


def test_a_replica_whose_broker_is_away_is_one_all_the_same() -> None:
    assert added_replicas(view({0: None, 1: None, 3: None}, 0, 1, 2)) == ()
    assert added_replicas(view({0: None, 3: None}, 0, 2)) == (3,)


@given(st.integers(1, 6), st.sets(st.integers(0, 5), min_size=1, max_size=4))
def test_there_are_three_replicas_or_as_many_as_brokers(brokers: int, held: set[int]) -> None:
    added = added_replicas(view(dict.fromkeys(range(brokers)), *sorted(held)))
    assert not set(added) & held
    assert set(added) <= set(range(brokers))
    spare = len(set(range(brokers)) - held)
    assert len(added) == min(spare, max(0, 3 - len(held)))


def let_reassign(fake: FakeCluster, code: ErrorCode) -> list[tuple[int, ...] | None]:
    """Have the cluster answer so; return what it is asked for."""
    asked: list[tuple[int, ...] | None] = []

    async def answer(
        _: RequestHeader, request: AlterPartitionReassignmentsRequest
    ) -> AlterPartitionReassignmentsResponse:
        [topic] = request.topics
        asked.extend(partition.replicas for partition in topic.partitions)
        partition = ReassignablePartitionResponse(partition_index=0, error_code=code)
        return AlterPartitionReassignmentsResponse(
            error_code=ErrorCode.NONE,
            responses=(ReassignableTopicResponse(name=topic.name, partitions=(partition,)),),
        )

    api = AlterPartitionReassignmentsRequest
    fake.versions[api.API_KEY] = api.VERSIONS
    for broker in fake.brokers.values():
        broker.scripts[api.API_KEY] = answer
    return asked


async def test_the_replicas_that_are_there_stay_and_others_are_added() -> None:
    async with run_fake_cluster(4) as fake, open_cluster(fake.bootstrap, client_id="t") as cluster:
        asked = let_reassign(fake, ErrorCode.NONE)
        assert await add_replicas(cluster) == (), "there is no topic yet"
        fake.create_topic(TOPIC, 1)
        assert await add_replicas(cluster) == (0, 2)
    assert asked == [(1, 0, 2)]


async def test_a_cluster_that_refuses_is_told_with_its_reason() -> None:
    async with run_fake_cluster(2) as fake, open_cluster(fake.bootstrap, client_id="t") as cluster:
        let_reassign(fake, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        fake.create_topic(TOPIC, 0)
        with pytest.raises(ReplicasRefused, match=r"brokers \[1\]: CLUSTER_AUTHORIZATION_FAILED"):
            await add_replicas(cluster)
