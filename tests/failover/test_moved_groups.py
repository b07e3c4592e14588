"""Which positions of a group a promotion moves."""

from pathlib import Path

from failover.steps import StepName
from offset_translation.map_records import map_topic_name, piece_start
from tests.doubles.fake_cluster import run_fake_cluster
from tests.failover.between import effects_between
from tests.failover.test_stopped_controller import begun
from wire.record_batch import Record, build_batch

ORDERS, FORMER = ("orders", 0), ("former", 0)


async def test_positions_in_topics_that_do_not_move_stay_as_they_are(tmp_path: Path) -> None:
    """One was mirrored as well, until the flow's patterns were changed."""
    pieces = [piece_start(*place, source_start=0, target_start=0) for place in (ORDERS, FORMER)]
    async with run_fake_cluster() as source, run_fake_cluster() as target:
        for topic, _ in (ORDERS, FORMER):
            source.create_topic(topic, 0).partitions[0].end = 10
            target.create_topic(topic, 0).partitions[0].end = 10
        map_log = target.create_topic(map_topic_name("dc1"), 0).partitions[0]
        records = (Record(number, 0, *one) for number, one in enumerate(pieces))
        map_log.batches.append(build_batch(records))
        map_log.end = len(pieces)
        source.offsets["g"] = {ORDERS: 7, FORMER: 7}
        async with effects_between(tmp_path, source, target, "o.*") as effects:
            outcome = await effects.run(StepName.GROUPS_MOVE, begun())
        assert target.offsets["g"] == {ORDERS: 7}
        assert (outcome.facts["committed"], outcome.facts["left"]) == (1, {})
