"""A topic's copy is deleted while the assignment changes."""

from typing import Any, cast
from uuid import UUID

import pytest

from mirror import topics
from mirror.topics import Discovery
from tests.mirror.test_policies import flow_with
from wire.net.metadata import ClusterView, PartitionView, TopicView

LED = PartitionView(leader=1, leader_epoch=0, replicas=(1,), isr=(1,))
TOPIC = TopicView(name="t", topic_id=UUID(int=1), partitions={0: LED})
TARGET = ClusterView(cluster_id="c", controller_id=1, brokers={}, topics={"t": TOPIC})


class Map:
    """A map log in which nothing is known."""

    class state:  # noqa: N801 - an attribute
        topic_ids: dict[str, UUID] = {}  # noqa: RUF012


async def test_a_partition_gets_no_leader_of_the_copy_that_is_being_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flow, partition = flow_with()
    flow.share, flow.places = frozenset(flow.partitions), set(flow.partitions)
    flow.to_begin_anew.add("t")
    discovery = Discovery(flow, cast("Any", Links), cast("Any", Map))
    discovery._seen = {"t": TOPIC}, TARGET
    discovery.take_share()
    assert partition.target_leader == 1

    async def delete(*_: object) -> None:
        discovery.take_share()  # a new version of the assignment is confirmed meanwhile
        assert partition.target_leader == -1

    monkeypatch.setattr(topics, "delete_topic", delete)
    await discovery._begin_anew()
    assert flow.begun_anew == {"t"}


class Links:
    """Not asked."""

    target_admin = source_admin = None
