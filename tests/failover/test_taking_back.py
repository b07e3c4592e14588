"""What a rollback leaves in the offset map, and what it does when the target is no more."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import trio

from failover.journal.facts import Facts
from failover.journal.journal import Journal, PartitionEnds, begin_step, end_step
from failover.journal.steps import PromotionState, StepName, StepState
from failover.moving.effects import PromotionEffects
from failover.sites.map_follower import MapFollower
from failover.view.report import summary
from offset_translation.map_records import map_topic_name, piece_start
from offset_translation.runs import Place
from tests.doubles.fake_cluster import FakeCluster, run_fake_cluster
from tests.doubles.map_writers import MemoryWriters
from tests.failover.between import effects_between
from tests.failover.journals import begun
from wire.record_batch import Record, build_batch
from wire.topic_partition import TopicPartition

PLACE = TopicPartition("orders", 0)
MAP_TOPIC = map_topic_name("dc1")


@dataclass(frozen=True, slots=True)
class Stage:
    """A promotion of dc2 about to seal the map of what dc2 has got from dc1."""

    target: FakeCluster
    effects: PromotionEffects

    def hold(self, count: int) -> None:
        """Let the log of dc2 hold so many records."""
        self.target.topics["orders"].partitions[0].end = count

    async def sealed_at(self) -> int | None:
        """Where the map says that dc2's own records begin."""
        follower = MapFollower(self.effects.target, "dc1", MemoryWriters())
        await follower.refresh([PLACE])
        return follower.maps[PLACE].sealed_at


@asynccontextmanager
async def stage(folder: Path) -> AsyncIterator[Stage]:
    """Ten records have come from dc1."""
    async with run_fake_cluster() as source, run_fake_cluster() as target:
        target.create_topic("orders", 0).partitions[0].end = 10
        key, value = piece_start("orders", 0, source_start=0, place=Place(0))
        map_log = target.create_topic(MAP_TOPIC, 0).partitions[0]
        map_log.batches.append(build_batch([Record(0, 0, key, value, ())]))
        map_log.end = 1
        async with effects_between(folder, source, target, "orders") as effects:
            await effects.lease.act(trio.lowlevel.checkpoint)
            yield Stage(target, effects)


def sealing() -> Journal:
    return begin_step(begun(), StepName.SEAL, 0)


async def test_a_seal_that_nothing_lies_behind_is_taken_back(tmp_path: Path) -> None:
    async with stage(tmp_path) as there:
        await there.effects.follower.seal({PLACE: (10, 10)})
        assert await there.sealed_at() == 10
        await there.effects.undo(StepName.SEAL, sealing())
        assert await there.sealed_at() is None


@pytest.mark.parametrize("is_written_again", [False, True])
async def test_a_seal_with_records_of_the_targets_own_behind_it_stays(
    tmp_path: Path, *, is_written_again: bool
) -> None:
    """dc2 was active once and has five records of its own; dc1 has sent nothing since."""
    async with stage(tmp_path) as there:
        await there.effects.follower.seal({PLACE: (10, 10)})
        there.hold(15)
        if is_written_again:
            await there.effects.follower.seal({PLACE: (12, 10)})
        await there.effects.undo(StepName.SEAL, sealing())
        assert await there.sealed_at() == 10


async def test_a_target_that_died_does_not_keep_the_source_closed(tmp_path: Path) -> None:
    """The mirror takes such a seal back itself, and `failover serve` closes an idle site."""
    async with stage(tmp_path) as there:
        journal = replace_facts(sealing(), {"topics": {"orders": 1}, "fence": ["orders"]})
        broker = there.target.brokers[0]
        broker.stop()
        await broker.cut_connections()
        for step in (StepName.OPEN_TARGET, StepName.SEAL):
            assert "Connection refused" in str((await there.effects.undo(step, journal))["left"])


@pytest.mark.usefixtures("taken_evidence")
async def test_a_target_without_a_fence_before_is_not_asked_for_one(tmp_path: Path) -> None:
    async with stage(tmp_path) as there:
        there.target.brokers[0].asked.clear()
        assert await there.effects.undo(StepName.OPEN_TARGET, sealing()) == {"fenced": 0}
        assert not there.target.brokers[0].asked


@pytest.mark.parametrize("end", [10, 13])
async def test_what_the_target_took_while_it_was_open_is_named(tmp_path: Path, end: int) -> None:
    """Its clients were told that it has these records, and the source will not get them."""
    ends = PartitionEnds(
        topic="orders", partition=0, mirrored_source_end=10, target_end=10, source_end=10
    )
    journal = begin_step(replace(sealing(), partitions=(ends,)), StepName.OPEN_TARGET, 0)
    async with stage(tmp_path) as there:
        there.hold(end)
        facts = await there.effects.undo(StepName.OPEN_TARGET, journal)
    journal = replace(
        end_step(journal, StepName.OPEN_TARGET, state=StepState.UNDONE, facts=facts, now_ms=0),
        state=PromotionState.ROLLED_BACK,
        reason="taken back by the operator",
    )
    named = [line for line in summary(journal, None) if "holds records at offsets" in line]
    assert [line.partition("that are")[0] for line in named] == (
        ["  warning  dc2 orders-0 holds records at offsets 10 to 12 "] if end > 10 else []
    )


async def test_a_target_that_does_not_tell_what_it_took_is_named(tmp_path: Path) -> None:
    ends = PartitionEnds(
        topic="orders", partition=0, mirrored_source_end=10, target_end=10, source_end=10
    )
    async with stage(tmp_path) as there:
        broker = there.target.brokers[0]
        broker.stop()
        await broker.cut_connections()
        facts = await there.effects.undo(
            StepName.OPEN_TARGET, replace(sealing(), partitions=(ends,))
        )
        assert "Connection refused" in str(facts["not_looked"])


def replace_facts(journal: Journal, facts: Facts) -> Journal:
    """The journal with other facts of its preflight."""
    return end_step(journal, StepName.PREFLIGHT, state=StepState.DONE, facts=facts, now_ms=0)


async def test_runs_that_a_seal_has_brought_are_taken_back_with_it(tmp_path: Path) -> None:
    """The mirror has to stop once more at what others wrote before its last batch."""
    async with stage(tmp_path) as there:
        follower = there.effects.follower
        await follower.seal({PLACE: (7, 10)}, [(PLACE, Place(4), 7)])
        await follower.refresh([PLACE])
        assert [*follower.maps[PLACE].runs] == [(4, 7)]
        part: Facts = {"topic": "orders", "partition": 0, "start": 4, "stop": 7}
        journal = end_step(
            sealing(), StepName.SEAL, state=StepState.STALE, facts={"foreign": [part]}, now_ms=0
        )
        await there.effects.undo(StepName.SEAL, journal)
        await follower.refresh([PLACE])
        assert [*follower.maps[PLACE].runs] == []
        assert follower.maps[PLACE].sealed_at is None
