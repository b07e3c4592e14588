"""A source topic that was made again is another one: its copy stays until somebody decides."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
import trio

from mirror.flow.flow_state import FlowState
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from mirror.topics.recreated import RecreatedTopics
from mirror.topics.renamed_copies import RenamedCopies
from offset_translation.map_state import MapState
from runtime.configuration.flow_section import Policy
from runtime.configuration.topic_names import Renames
from tests.mirror.building import CONFIG, flow_with
from wire.net.metadata import ClusterView, PartitionView, TopicView
from wire.topic_partition import TopicPartition

NO_ID, EARLIER, LATER = UUID(int=0), UUID(int=1), UUID(int=2)
LED = PartitionView(leader=1, leader_epoch=0, replicas=(1,), isr=(1,))
TOPIC = TopicView(name="t", topic_id=EARLIER, partitions={0: LED})
COPY = ClusterView(cluster_id="c", controller_id=1, brokers={}, topics={"t": TOPIC})
NO_COPY = replace(COPY, topics={})


class Map:
    """A map log that remembers what is written into it."""

    def __init__(self) -> None:
        self.state = MapState()

    async def write_many(self, records: list[tuple[bytes, bytes | None]]) -> None:
        await trio.lowlevel.checkpoint()
        for key, value in records:
            self.state.replay(key, value)


def mirrored(**policies: Policy) -> tuple[RecreatedTopics, FlowState, MirroredPartition, Map]:
    """Return the rule for a flow with a flowing partition of `t`, whose earlier topic is known."""
    flow, partition = flow_with(**policies)
    known: Any = Map()
    known.state.topic_ids["t"] = EARLIER
    return RecreatedTopics(known, flow.config.names, flow.interruptions), flow, partition, known


@pytest.mark.parametrize("topic_id", [NO_ID, EARLIER, LATER])
@pytest.mark.parametrize("has_copy", [True, False])
def test_only_a_copy_of_another_topic_stops_its_partitions_and_is_left_alone(
    topic_id: UUID, has_copy: bool
) -> None:
    recreated, _, partition, _ = mirrored()
    topic = replace(TOPIC, topic_id=topic_id)
    recreated.follow(partition, topic, has_copy=has_copy, now_ms=5)
    is_stopped = topic_id == LATER and has_copy
    assert (partition.state is PartitionState.TOPIC_RECREATED) == is_stopped
    assert partition.is_flowing != is_stopped
    assert recreated.leaves_copy_alone(topic, COPY if has_copy else NO_COPY) == is_stopped


def test_the_policy_decides_by_itself_where_it_is_to_mirror_anew() -> None:
    recreated, flow, partition, _ = mirrored(topic_recreated=Policy.RESTART)
    recreated.follow(partition, replace(TOPIC, topic_id=LATER), has_copy=True, now_ms=5)
    assert flow.orders.to_begin_anew == {"t"}


async def test_a_partition_goes_on_once_the_map_has_the_new_topic_and_no_sooner() -> None:
    recreated, _, partition, known = mirrored()
    topic = replace(TOPIC, topic_id=LATER)
    recreated.follow(partition, topic, has_copy=True, now_ms=5)
    await recreated.remember([topic], created=())
    assert known.state.topic_ids["t"] == EARLIER, "the copy is still of the earlier topic"
    recreated.follow(partition, topic, has_copy=True, now_ms=6)
    states = [partition.state]
    await recreated.remember([topic], created={"t"})
    recreated.follow(partition, topic, has_copy=True, now_ms=7)
    assert [*states, partition.state] == [PartitionState.TOPIC_RECREATED, PartitionState.WAITING]


def test_a_topic_that_is_back_with_its_own_id_goes_on_by_itself() -> None:
    recreated, flow, partition, _ = mirrored()
    flow.interruptions.stop(partition, PartitionState.SOURCE_GONE, "gone", 5)
    recreated.follow(partition, TOPIC, has_copy=True, now_ms=6)
    assert partition.state is PartitionState.WAITING


COPY_ID, OTHER = UUID(int=7), UUID(int=8)
KNOWN = {TopicPartition("t", 0): COPY_ID}


def view(**topics: UUID) -> ClusterView:
    seen = {name: TopicView(name=name, topic_id=one, partitions={}) for name, one in topics.items()}
    return ClusterView(cluster_id="c", controller_id=1, brokers={}, topics=seen)


@pytest.mark.parametrize(
    ("given", "target", "is_elsewhere"),
    [
        ({"t": "new"}, view(t=COPY_ID), True),
        ({"t": "new"}, view(t=COPY_ID, new=OTHER), True),
        ({}, view(old=COPY_ID), True),
        ({"t": "new"}, view(new=COPY_ID), False),
        ({"t": "new"}, view(t=OTHER), False),  # the copy was deleted
        ({"t": "new"}, view(t=UUID(int=0)), False),  # brokers that tell no ids
        ({}, view(t=COPY_ID), False),
    ],
)
def test_a_copy_of_another_name_stops_its_partitions_until_it_is_gone(
    given: dict[str, str], target: ClusterView, is_elsewhere: bool
) -> None:
    flow, partition = flow_with()
    names = replace(CONFIG, renames=Renames(given)).names
    copies = RenamedCopies(names, flow.interruptions)
    copies.look(target, KNOWN)
    assert ("t" in copies, copies.follow(partition, 5)) == (is_elsewhere, is_elsewhere)
    assert (partition.state is PartitionState.COPY_RENAMED) == is_elsewhere
    assert partition.is_flowing != is_elsewhere
    if is_elsewhere:
        assert not partition.has_true_map
        copies.look(view(), KNOWN)
        assert not copies.follow(partition, 6)
        assert partition.state is PartitionState.WAITING
