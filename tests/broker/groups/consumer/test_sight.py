"""Patterns and rights: each member reads what it may see, whoever of its group beats first."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import UUID

import pytest

from broker.apis import consumer_group_heartbeat
from broker.authorizer.authorizer import Authorizer, AuthorizerSettings
from broker.metadata_cache import PartitionView
from tests.broker.authorizer.entries import TOPIC as TOPICS
from tests.broker.authorizer.entries import allow
from tests.broker.groups.rig import Rig, open_rig
from wire.acls import Operation, ResourcePattern
from wire.errors import ErrorCode
from wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions

VIEW = PartitionView(index=0, leader=0, leader_epoch=0, replicas=(0,), isr=(0,))
PATTERN = "data-.*"


@dataclass(slots=True)
class Reader:
    """A member that owns what it was told, and gives up what it is told to."""

    name: str
    epoch: int = 0
    reads: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Story:
    """A coordinator with an authorizer, and topics of one partition."""

    rig: Rig
    authorizer: Authorizer = field(default_factory=lambda: Authorizer(AuthorizerSettings()))
    names: dict[UUID, str] = field(default_factory=dict)

    def create(self, name: str) -> None:
        topic_id = UUID(int=100 + len(self.names))
        self.names[topic_id] = name
        self.rig.node.metadata.put_partitions(name, topic_id, [VIEW])

    def let(self, topic: str, *users: str) -> None:
        """Let these users, and no others, describe a topic."""
        entries = frozenset(allow(Operation.DESCRIBE, f"User:{user}") for user in users)
        self.authorizer.put(ResourcePattern(TOPICS, topic), entries)

    async def beat(self, reader: Reader) -> None:
        """Beat as the user of the reader's name, until nothing new is told."""
        before: tuple[int, set[str]] | None = None
        while before != (reader.epoch, reader.reads):
            before = reader.epoch, set(reader.reads)
            await self.beat_once(reader)

    async def beat_once(self, reader: Reader) -> None:
        owned = tuple(
            TopicPartitions(topic_id=topic_id, partitions=(0,))
            for topic_id, name in self.names.items()
            if name in reader.reads
        )
        is_joining = reader.epoch == 0
        request = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=reader.name,
            member_epoch=reader.epoch,
            rebalance_timeout_ms=60_000 if is_joining else -1,
            subscribed_topic_regex=PATTERN if is_joining else None,
            topic_partitions=owned,
        )
        rights = self.authorizer.rights_of(f"User:{reader.name}", "127.0.0.1")
        call = replace(self.rig.call(1), rights=rights)
        answer = await consumer_group_heartbeat.handle(request, call)
        assert answer.error_code == ErrorCode.NONE, answer.error_message
        reader.epoch = answer.member_epoch
        if answer.assignment is not None:
            told = answer.assignment.topic_partitions
            reader.reads = {self.names[one.topic_id] for one in told}

    async def settle(self, *readers: Reader) -> None:
        for _ in range(4):
            for reader in readers:
                await self.beat(reader)

    async def begin_anew(self) -> None:
        """Let another coordinator take over: it knows what the log says."""
        self.rig.groups.on_resigned(self.rig.partition.topic, 0)
        self.rig.groups.on_leader(self.rig.partition)
        await self.rig.wait_loaded()


@pytest.fixture
async def story(tmp_path: Path) -> AsyncIterator[Story]:
    async with open_rig(tmp_path) as rig:
        yield Story(rig)


async def test_a_member_that_sees_less_narrows_nobody_elses_pattern(story: Story) -> None:
    story.create("data-a")
    story.create("data-b")
    story.let("data-a", "all", "few")
    story.let("data-b", "all")
    everything, few = Reader("all"), Reader("few")
    await story.settle(few, everything)
    assert everything.reads | few.reads == {"data-a", "data-b"}
    assert "data-b" in everything.reads
    story.create("data-c")
    story.let("data-c", "all")
    await story.settle(few, everything)
    assert {"data-b", "data-c"} <= everything.reads, "the one that beat first may not see it"
    assert few.reads == {"data-a"}


async def test_a_changed_right_reaches_a_pattern_with_the_next_beat(story: Story) -> None:
    story.create("data-a")
    story.create("data-b")
    story.let("data-a", "one")
    one = Reader("one")
    await story.settle(one)
    assert one.reads == {"data-a"}
    story.let("data-b", "one")
    await story.settle(one)
    assert one.reads == {"data-a", "data-b"}
    story.let("data-a")
    await story.settle(one)
    assert one.reads == {"data-b"}


async def test_nobody_is_told_of_a_topic_that_it_may_not_see(story: Story) -> None:
    """Also not by a coordinator that has just taken over, where others beat first."""
    story.create("data-a")
    story.let("data-a", "all", "few")
    everything, few = Reader("all"), Reader("few")
    await story.settle(everything, few)
    await story.begin_anew()
    for name in ("data-b", "data-c", "data-d"):
        story.create(name)
        story.let(name, "all")
    for _ in range(6):
        for reader in (everything, few):
            await story.beat_once(reader)
            assert few.reads <= {"data-a"}
    assert {"data-b", "data-c", "data-d"} <= everything.reads


async def test_a_beat_changes_nothing_while_topics_and_rights_stay(story: Story) -> None:
    story.create("data-a")
    story.create("data-b")
    story.let("data-a", "one", "other")
    one, other = Reader("one"), Reader("other")
    await story.settle(one, other)
    epochs, end = (one.epoch, other.epoch), story.rig.partition.log_end_offset
    await story.settle(one, other)
    await story.begin_anew()
    await story.settle(other, one)
    assert (one.epoch, other.epoch) == epochs
    assert story.rig.partition.log_end_offset == end, "nothing was written"
