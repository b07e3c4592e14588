# ruff: noqa: ARG001 - asking for the clock is what makes it jump
"""What groups have committed for a topic goes with it, whatever the coordinator is at just then."""

from pathlib import Path
from typing import cast
from uuid import UUID

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.apis import offset_commit, offset_fetch
from broker.led_partition import CONSUMER_OFFSETS, LedPartition
from broker.metadata_cache import MetadataCache, TopicView
from tests.broker.groups.asking import GROUP
from tests.broker.groups.rig import BROKER, TOPIC, FailingOnce, Rig, commit_request, open_rig
from wire.messages.offset_fetch import OffsetFetchRequest


def add_topic(rig: Rig, name: str) -> tuple[MetadataCache, TopicView]:
    """Tell of a topic beside the rig's own; return what tells, and the view of the rig's own."""
    metadata = rig.node.metadata
    view = metadata.topic(TOPIC)
    assert view is not None
    metadata.put_partitions(name, UUID(int=9), view.partitions.values())
    return metadata, view


async def commit(rig: Rig, *topics: str) -> None:
    for topic in topics:
        await offset_commit.handle(commit_request(GROUP, 5, topic=topic), rig.call(9))


async def test_offsets_of_a_deleted_topic_are_forgotten_and_no_others(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_rig(tmp_path) as rig:
        metadata, view = add_topic(rig, "kept")
        await wait_all_tasks_blocked()
        await commit(rig, TOPIC, "kept")
        metadata.put_partitions(TOPIC, view.topic_id, view.partitions.values())
        await wait_all_tasks_blocked()
        assert len(await _topics(rig)) == 2
        metadata.remove_topic(TOPIC)
        metadata.set_brokers(BROKER, metadata.brokers.values())
        await wait_all_tasks_blocked()
        assert await _topics(rig) == {"kept"}
        metadata.put_partitions("kept", UUID(int=10), view.partitions.values())
        metadata.set_brokers(BROKER, metadata.brokers.values())
        await wait_all_tasks_blocked()
        assert await _topics(rig) == set()


@pytest.mark.parametrize("is_led_again", [False, True])
async def test_offsets_of_a_topic_that_is_deleted_while_they_are_loaded_are_forgotten(
    tmp_path: Path, autojump_clock: MockClock, *, is_led_again: bool
) -> None:
    async with open_rig(tmp_path) as rig:
        metadata, view = add_topic(rig, "kept")
        await commit(rig, TOPIC, "kept")
        rig.groups.on_resigned(CONSUMER_OFFSETS, 0)
        rig.groups.on_leader(cast("LedPartition", FailingOnce(rig.partition)))
        await wait_all_tasks_blocked()
        metadata.put_partitions(TOPIC, UUID(int=10), view.partitions.values())
        metadata.set_brokers(BROKER, metadata.brokers.values())
        await wait_all_tasks_blocked()
        if is_led_again:
            rig.groups.on_leader(rig.partition)
        await trio.sleep(1.1)
        await rig.wait_loaded()
        assert await _topics(rig) == {"kept"}
        end = rig.partition.log_end_offset
    async with open_rig(tmp_path) as rig:
        assert rig.partition.log_end_offset == end
        assert await _topics(rig) == {"kept"}


async def test_a_topic_that_is_deleted_while_another_is_forgotten_is_forgotten_too(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_rig(tmp_path) as rig:
        metadata, _ = add_topic(rig, "other")
        metadata.set_brokers(BROKER, metadata.brokers.values())
        await wait_all_tasks_blocked()
        await commit(rig, TOPIC, "other")
        end = rig.partition.log_end_offset
        metadata.remove_topic(TOPIC)
        metadata.set_brokers(BROKER, metadata.brokers.values())
        while rig.partition.log_end_offset == end:
            await trio.lowlevel.checkpoint()
        metadata.remove_topic("other")
        metadata.set_brokers(BROKER, metadata.brokers.values())
        await wait_all_tasks_blocked()
        assert await _topics(rig) == set()


async def _topics(rig: Rig) -> set[str]:
    request = OffsetFetchRequest(group_id=GROUP, topics=None)
    answer = await offset_fetch.handle(request, rig.call(7))
    return {topic.name for topic in answer.topics}
