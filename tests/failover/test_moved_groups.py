"""Which positions of groups a promotion moves, and how."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from failover.journal.journal import begin_step
from failover.journal.steps import StepName
from failover.moving.effects import PromotionEffects
from offset_translation.map_records import map_topic_name, piece_start
from offset_translation.runs import Place
from tests.doubles.fake_cluster import FakeCluster, run_fake_cluster
from tests.doubles.fake_groups import offset_fetch
from tests.failover.between import effects_between
from tests.failover.journals import begun, done, drained, unnoted
from wire.errors import ErrorCode
from wire.headers import RequestHeader
from wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from wire.record_batch import Record, build_batch

ORDERS, FORMER = ("orders", 0), ("former", 0)
MANY = 250


@asynccontextmanager
async def stage(folder: Path) -> AsyncIterator[tuple[FakeCluster, FakeCluster, PromotionEffects]]:
    """All is mirrored; by its patterns, the flow takes one of the two topics no more."""
    pieces = [
        piece_start(*partition, source_start=0, place=Place(0)) for partition in (ORDERS, FORMER)
    ]
    async with run_fake_cluster() as source, run_fake_cluster() as target:
        for topic, _ in (ORDERS, FORMER):
            source.create_topic(topic, 0).partitions[0].end = 10
            target.create_topic(topic, 0).partitions[0].end = 10
        map_log = target.create_topic(map_topic_name("dc1"), 0).partitions[0]
        records = (Record(number, 0, *one) for number, one in enumerate(pieces))
        map_log.batches.append(build_batch(records))
        map_log.end = len(pieces)
        async with effects_between(folder, source, target, "o.*") as effects:
            yield source, target, effects


async def test_positions_in_topics_that_do_not_move_stay_as_they_are(tmp_path: Path) -> None:
    async with stage(tmp_path) as (source, target, effects):
        source.offsets["g"] = {ORDERS: 7, FORMER: 7}
        outcome = await effects.run(StepName.GROUPS_MOVE, drained(begun(), orders=10**6), unnoted)
        assert target.offsets["g"] == {ORDERS: 7}
        assert (outcome.facts["committed"], outcome.facts["left"]) == (1, {})


async def test_a_group_that_is_rewound_on_the_source_behind_its_move_is_moved_back(
    tmp_path: Path,
) -> None:
    """It has not moved on by itself on the target: it stands where the first move has put it."""
    async with stage(tmp_path) as (source, target, effects):
        source.offsets["g"] = {ORDERS: 9}
        first = await effects.run(StepName.GROUPS_MOVE, drained(begun(), orders=10**6), unnoted)
        source.offsets["g"] = {ORDERS: 4}
        journal = begin_step(drained(begun(), orders=10**6), StepName.GROUPS_MOVE, 0)
        for _ in range(2):
            journal = done(journal, StepName.GROUPS_MOVE, first.facts)
            again = await effects.run(StepName.GROUPS_MOVE, journal, unnoted)
            assert target.offsets["g"] == {ORDERS: 4}
            assert again.facts["positions"] == {"g": {"orders": {"0": 4}}}


async def test_a_group_that_has_moved_on_by_itself_since_is_left_and_both_places_are_named(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as (source, target, effects):
        source.offsets["g"] = {ORDERS: 5}
        first = await effects.run(StepName.GROUPS_MOVE, drained(begun(), orders=10**6), unnoted)
        source.offsets["g"], target.offsets["g"] = {ORDERS: 4}, {ORDERS: 8}
        journal = begin_step(drained(begun(), orders=10**6), StepName.GROUPS_MOVE, 0)
        journal = done(journal, StepName.GROUPS_MOVE, first.facts)
        again: Any = (await effects.run(StepName.GROUPS_MOVE, journal, unnoted)).facts
        assert target.offsets["g"] == {ORDERS: 8}
        assert "it is at 8 on the target, and 4 on the source is 4 there" in again["left"]["g"]
        assert again["ahead"] == {"g": 1}


@pytest.mark.parametrize("beyond", [11, 1_000_000])
async def test_a_position_behind_the_end_of_the_targets_log_counts_as_none(
    tmp_path: Path, beyond: int
) -> None:
    async with stage(tmp_path) as (source, target, effects):
        source.offsets["g"], target.offsets["g"] = {ORDERS: 7}, {ORDERS: beyond}
        await effects.run(StepName.GROUPS_MOVE, drained(begun(), orders=10**6), unnoted)
        assert target.offsets["g"] == {ORDERS: 7}


async def test_many_groups_are_asked_for_together_and_who_was_not_told_of_again(
    tmp_path: Path,
) -> None:
    """The source is closed meanwhile, and may be far away."""
    asked: Counter[str] = Counter()

    async with stage(tmp_path) as (source, target, effects):

        async def tell(header: RequestHeader, request: OffsetFetchRequest) -> OffsetFetchResponse:
            found = offset_fetch(source.brokers[0], header.api_version, request)
            asked.update([",".join(group.group_id for group in request.groups)])
            if asked["g7"]:
                return found
            moved = ErrorCode.NOT_COORDINATOR
            return replace(
                found,
                groups=tuple(
                    replace(one, error_code=moved, topics=()) if one.group_id == "g7" else one
                    for one in found.groups
                ),
            )

        source.brokers[0].scripts[OffsetFetchRequest.API_KEY] = tell
        for number in range(MANY):
            source.offsets[f"g{number}"] = {ORDERS: number % 10}
        outcome = await effects.run(StepName.GROUPS_MOVE, drained(begun(), orders=10**6), unnoted)
        assert target.offsets == source.offsets
        assert (outcome.facts["committed"], outcome.facts["left"]) == (MANY, {})
        assert asked.total() < MANY / 10
        assert asked["g7"] == 1


@pytest.mark.parametrize(
    "code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.STALE_MEMBER_EPOCH], ids=lambda code: code.name
)
async def test_a_group_of_which_only_the_commit_tells_that_it_has_members_is_named(
    tmp_path: Path, code: ErrorCode
) -> None:
    """Asked to describe one of KIP-848, brokers say that it is dead."""
    async with stage(tmp_path) as (source, target, effects):

        async def refuse(_: RequestHeader, request: OffsetCommitRequest) -> OffsetCommitResponse:
            answers = (
                OffsetCommitResponseTopic(
                    name=one.name,
                    partitions=tuple(
                        OffsetCommitResponsePartition(
                            partition_index=partition.partition_index, error_code=code
                        )
                        for partition in one.partitions
                    ),
                )
                for one in request.topics
            )
            return OffsetCommitResponse(topics=tuple(answers))

        target.brokers[0].scripts[OffsetCommitRequest.API_KEY] = refuse
        source.offsets["g"] = {ORDERS: 7}
        outcome = await effects.run(StepName.GROUPS_MOVE, drained(begun(), orders=10**6), unnoted)
        assert outcome.facts["left"] == {
            "g": "orders-0: the group has members on the target: stop them there, then have its"
            " positions committed by `mirror offsets export` and `import` (1 partitions)"
        }


def keep_open(source: FakeCluster, open_answers: int) -> list[bool]:
    """Answer that a transaction with positions of the group is open, so often where it is asked.

    Return whether it was, each time.
    """
    asked: list[bool] = []

    async def tell(header: RequestHeader, request: OffsetFetchRequest) -> OffsetFetchResponse:
        asked.append(request.require_stable)
        found = offset_fetch(source.brokers[0], header.api_version, request)
        if not request.require_stable or len(asked) > open_answers:
            return found
        source.offsets["g"] = {ORDERS: 9} if len(asked) == open_answers else {ORDERS: 7}
        unstable = ErrorCode.UNSTABLE_OFFSET_COMMIT
        if not found.groups:
            return replace(found, topics=_with_code(found.topics, unstable))
        groups = (replace(one, topics=_with_code(one.topics, unstable)) for one in found.groups)
        return replace(found, groups=tuple(groups))

    source.brokers[0].scripts[OffsetFetchRequest.API_KEY] = tell
    return asked


def _with_code(topics: tuple[Any, ...], code: ErrorCode) -> tuple[Any, ...]:
    return tuple(
        replace(one, partitions=tuple(replace(p, error_code=code) for p in one.partitions))
        for one in topics
    )


@pytest.mark.parametrize("version", [7, 8, 9])
async def test_positions_that_a_transaction_is_about_to_commit_are_waited_for(
    tmp_path: Path, version: int
) -> None:
    async with stage(tmp_path) as (source, target, effects):
        source.versions[OffsetFetchRequest.API_KEY] = range(version + 1)
        source.offsets["g"] = {ORDERS: 7}
        keep_open(source, 3)
        outcome = await effects.run(StepName.GROUPS_MOVE, drained(begun(), orders=10**6), unnoted)
        assert target.offsets["g"] == {ORDERS: 9}
        assert (outcome.facts["unstable"], outcome.facts["left"]) == ([], {})


async def test_a_group_whose_transaction_stays_open_moves_to_before_it_and_is_named(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as (source, target, effects):
        limits = replace(effects.limits, group_drain_timeout_ms=200)
        source.offsets["g"] = {ORDERS: 7}
        keep_open(source, 1_000_000)
        outcome = await replace(effects, limits=limits).run(
            StepName.GROUPS_MOVE, drained(begun(), orders=10**6), unnoted
        )
        assert target.offsets["g"] == {ORDERS: 7}
        assert (outcome.facts["unstable"], outcome.facts["committed"]) == (["g"], 1)


async def test_a_broker_that_knows_nothing_of_open_transactions_is_not_asked_for_them(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as (source, target, effects):
        source.versions[OffsetFetchRequest.API_KEY] = range(7)
        source.offsets["g"] = {ORDERS: 7}
        asked = keep_open(source, 0)
        await effects.run(StepName.GROUPS_MOVE, drained(begun(), orders=10**6), unnoted)
        assert target.offsets["g"] == {ORDERS: 7}
        assert not any(asked)
