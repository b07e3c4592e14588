"""No group is moved while nobody knows what came to the source from the target."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from failover.journal.execute import StepFailed
from failover.journal.steps import StepName
from failover.sites.map_follower import MapFollower
from offset_translation.map_records import map_topic_name
from runtime.coordination.map_writers import MapGone, MapWriters
from tests.doubles.fake_cluster import run_fake_cluster
from tests.doubles.map_writers import MemoryWriters
from tests.failover.between import effects_between
from tests.failover.journals import begun, drained, unnoted
from tests.failover.sleeping import NOTED
from tests.failover.target_batches import ORDERS, PIECE
from wire.record_batch import Record, build_batch

PLAIN, ANOTHER = -1, 8


@pytest.mark.parametrize("writer", [ANOTHER, PLAIN])
async def test_a_map_of_the_way_back_that_is_not_believed_moves_no_group(
    tmp_path: Path, writer: int
) -> None:
    """A group among records that came from there would be moved before all of them."""
    async with run_fake_cluster() as dc1, run_fake_cluster() as dc2:
        for cluster in (dc1, dc2):
            cluster.create_topic("orders", 0)
        log = dc1.create_topic(map_topic_name("dc2"), 0).partitions[0]
        log.batches.append(build_batch([Record(0, 0, *PIECE)], producer_id=writer))
        log.end = 1
        async with effects_between(tmp_path, dc1, dc2, "orders") as effects:
            backward = MapFollower(effects.source, "dc2", MemoryWriters(is_strict=True))
            doubting = replace(effects, backward=backward)
            journal = drained(begun(), orders=0)
            if writer == PLAIN:  # no mirror writes like that
                await doubting.run(StepName.GROUPS_MOVE, journal, unnoted)
                return
            with pytest.raises(StepFailed, match="what of orders-0 came to dc1 from dc2 is not kn"):
                await doubting.run(StepName.GROUPS_MOVE, journal, unnoted)


async def test_a_lost_map_of_a_way_back_that_the_file_has_no_more_keeps_nobody_from_promoting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No command finds it again, or has it forgotten: they go by the flows of the file."""
    written = MapWriters(registered={ANOTHER: 0}, end=9)
    monkeypatch.setitem(NOTED, "map-writers", written.encode())
    async with run_fake_cluster() as dc1, run_fake_cluster() as dc2:
        dc1.create_topic("orders", 0)
        async with effects_between(tmp_path, dc1, dc2, "orders") as effects:
            await effects.lease.act(partial(effects.backward.refresh, [ORDERS]))
            with pytest.raises(MapGone):
                await effects.lease.act(partial(effects.follower.refresh, [ORDERS]))
