"""Which positions of groups a promotion moves, and how."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from failover.effects import PromotionEffects
from failover.steps import StepName
from offset_translation.map_records import map_topic_name, piece_start
from tests.doubles.fake_cluster import FakeCluster, run_fake_cluster
from tests.doubles.fake_groups import offset_fetch
from tests.failover.between import effects_between
from tests.failover.test_stopped_controller import begun
from wire.errors import ErrorCode
from wire.headers import RequestHeader
from wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from wire.record_batch import Record, build_batch

ORDERS, FORMER = ("orders", 0), ("former", 0)
MANY = 250


@asynccontextmanager
async def stage(folder: Path) -> AsyncIterator[tuple[FakeCluster, FakeCluster, PromotionEffects]]:
    """All is mirrored; by its patterns, the flow takes one of the two topics no more."""
    pieces = [piece_start(*place, source_start=0, target_start=0) for place in (ORDERS, FORMER)]
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
        outcome = await effects.run(StepName.GROUPS_MOVE, begun())
        assert target.offsets["g"] == {ORDERS: 7}
        assert (outcome.facts["committed"], outcome.facts["left"]) == (1, {})


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
        outcome = await effects.run(StepName.GROUPS_MOVE, begun())
        assert target.offsets == source.offsets
        assert (outcome.facts["committed"], outcome.facts["left"]) == (MANY, {})
        assert asked.total() < MANY / 10
        assert asked["g7"] == 1
