"""What others wrote to a target is still named when the controller died behind its seal."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import trio

from failover.journal.execute import StepFailed, StepOutcome
from failover.journal.facts import Facts, SealFacts
from failover.journal.journal import Journal, PartitionEnds, begin_step, end_step, note_facts
from failover.journal.steps import PromotionKind, StepName, StepState
from failover.moving.effects import PromotionEffects
from failover.sites.map_follower import MapFollower
from failover.sites.mirrored_ends import LISTED_PARTS, seal_facts, with_earlier
from failover.sites.unbelieved import not_all_believed
from offset_translation.map_records import source_topic
from offset_translation.target_scan import MirroredEnd
from tests.doubles.fake_cluster import run_fake_cluster
from tests.doubles.map_writers import MemoryWriters
from tests.failover.between import effects_between
from tests.failover.journals import ended_promotion, unnoted
from tests.failover.target_batches import MIRROR, ORDERS, PIECE, tell, write


@asynccontextmanager
async def effects_of_a_lost_source(folder: Path) -> AsyncIterator[PromotionEffects]:
    """dc1 is lost, and others have written among and behind the mirror's batches on dc2."""
    async with run_fake_cluster() as source, run_fake_cluster() as target:
        log = target.create_topic("orders", 0).partitions[0]
        write(log, "abcd", MIRROR)
        write(log, "xyz")
        write(log, "ef", MIRROR, sequence=4)
        write(log, "x")
        tell(target, PIECE, source_topic("orders", UUID(int=9)))
        async with effects_between(folder, source, target, "orders") as effects:
            await effects.lease.act(trio.lowlevel.checkpoint)
            yield replace(effects, journals=no_journals)


async def no_journals() -> list[Journal]:
    await trio.lowlevel.checkpoint()
    return []


def sealing() -> Journal:
    kind = PromotionKind.SOURCE_LOST
    journal = Journal(epoch=1, site="dc2", source="dc1", kind=kind, started_ms=0)
    journal = begin_step(journal, StepName.PREFLIGHT, 0)
    facts: Facts = {"topics": {"orders": 1}, "fence": []}
    journal = end_step(journal, StepName.PREFLIGHT, state=StepState.DONE, facts=facts, now_ms=0)
    return begin_step(journal, StepName.SEAL, 0)


FOREIGN = [
    {"topic": "orders", "partition": 0, "start": 4, "stop": 7},
    {"topic": "orders", "partition": 0, "start": 9, "stop": 10},
]


async def test_a_controller_that_died_behind_the_seal_has_noted_what_its_successor_cannot_find(
    tmp_path: Path,
) -> None:
    journal = sealing()

    async def note(facts: Facts) -> None:
        nonlocal journal
        assert effects.follower.maps[ORDERS].sealed_at is None, "the seal hides them"
        journal = note_facts(journal, StepName.SEAL, facts)
        await trio.lowlevel.checkpoint()

    async def seal(step: StepName) -> StepOutcome:
        return await effects.run(step, journal, note)

    async with effects_of_a_lost_source(tmp_path) as effects:
        first = await seal(StepName.SEAL)  # and is killed before its outcome is written

        async def note_again(facts: Facts) -> None:
            await trio.lowlevel.checkpoint()
            assert facts["foreign"] == FOREIGN

        again = await effects.run(StepName.SEAL, journal, note_again)
        without = await effects.run(StepName.SEAL, sealing(), note_again)
    assert first.facts["foreign"] == again.facts["foreign"] == FOREIGN
    assert first.partitions == again.partitions
    assert without.facts["foreign"] == [], "the map tells of nobody any more"


@pytest.mark.parametrize("is_made_again", [False, True])
async def test_what_the_lost_site_has_of_a_topic_says_nothing_of_one_that_was_made_again(
    tmp_path: Path, *, is_made_again: bool
) -> None:
    """dc2 was active, dc1 took over with all of it, and the topic was made again on dc2."""
    async with run_fake_cluster() as source, run_fake_cluster() as target:
        topic = target.create_topic("orders", 0)
        write(topic.partitions[0], "abc")
        known = topic.topic_id
        if is_made_again:
            topic.topic_id = UUID(int=77)
        ends = PartitionEnds(
            topic="orders", partition=0, mirrored_source_end=3, target_end=3, source_end=3
        )
        facts = {StepName.SEAL: SealFacts(source_ids=(known,)).encode()}
        back = replace(
            ended_promotion(PromotionKind.PLANNED, facts),
            source="dc2",
            site="dc1",
            partitions=(ends,),
        )

        async def journals() -> list[Journal]:
            await trio.lowlevel.checkpoint()
            return [back]

        tell(target)
        async with effects_between(tmp_path, source, target, "orders") as effects:
            await effects.lease.act(trio.lowlevel.checkpoint)
            knowing = replace(effects, journals=journals)
            sealed = await knowing.run(StepName.SEAL, sealing(), unnoted)
    theirs = {"topic": "orders", "partition": 0, "start": 0, "stop": 3}
    assert sealed.facts["foreign"] == ([theirs] if is_made_again else [])


async def test_a_seal_notes_which_topics_it_is_of(tmp_path: Path) -> None:
    async with effects_of_a_lost_source(tmp_path) as effects:
        sealed = await effects.run(StepName.SEAL, sealing(), unnoted)
    assert sealed.facts["source_ids"] == [str(UUID(int=9))]


async def test_what_is_not_believed_is_sealed_away_only_by_somebodys_word(tmp_path: Path) -> None:
    """The witness may be an old copy, and the plan of an unfinished promotion is not made again."""
    async with effects_of_a_lost_source(tmp_path) as effects:
        follower = MapFollower(effects.target, "dc1", MemoryWriters(is_strict=True))
        doubting = replace(effects, follower=follower)
        with pytest.raises(
            StepFailed, match=r"^orders-0 would be sealed at 0 \(dc2 at 0\) by what"
        ):
            await doubting.run(StepName.SEAL, sealing(), unnoted)
        await follower.refresh([ORDERS])
        assert not follower.knows(ORDERS), "a seal was written"
        insisting = replace(doubting, accepts_loss=True)
        sealed = await insisting.run(StepName.SEAL, sealing(), unnoted)
    assert sealed.partitions is not None
    assert [one.mirrored_source_end for one in sealed.partitions] == [0]
    assert sealed.facts["untold"] == {"orders-0": not_all_believed(None)}


def test_what_an_earlier_attempt_named_is_named_once() -> None:
    found = seal_facts({ORDERS: MirroredEnd(source_end=0, target_end=0, foreign=((1, 2), (4, 5)))})
    assert with_earlier(found, {}) == found
    assert with_earlier(found, found) == found
    nothing = seal_facts({})
    assert with_earlier(nothing, found) == found
    some = seal_facts({ORDERS: MirroredEnd(source_end=0, target_end=0, foreign=((1, 2),))})
    assert with_earlier(found, some) == found


@pytest.mark.parametrize("count", [1, LISTED_PARTS, LISTED_PARTS + 3])
def test_parts_beyond_those_that_are_named_are_counted_over_attempts(count: int) -> None:
    parts = tuple((2 * number, 2 * number + 1) for number in range(count))
    found = seal_facts({ORDERS: MirroredEnd(source_end=0, target_end=0, foreign=parts)})
    merged: Any = with_earlier(seal_facts({}), found)
    assert len(merged["foreign"]) + merged["more_foreign"] == count
