"""Where a map is not all believed, a listing of what one site alone has says so first."""

from typing import Any, cast

import pytest

from failover.sites.map_follower import MapFollower
from failover.sites.site import Site
from failover.view.divergence import Comparison
from failover.view.divergent_parts import Tally
from offset_translation.map_records import map_topic_name, piece_start
from offset_translation.runs import Place
from tests.doubles.fake_cluster import run_fake_cluster
from tests.doubles.map_writers import MemoryWriters
from tests.failover.target_batches import MIRROR, ORDERS, PIECE, tell, write
from wire.net import open_cluster


@pytest.mark.parametrize(
    ("said", "not_looked"),
    [(PIECE, 1), (piece_start("other", 0, source_start=0, place=Place(0)), 0)],
    ids=["of what is compared", "of another pair's"],
)
async def test_copies_that_an_old_witness_takes_for_own_records_are_not_called_compared(
    said: tuple[bytes, bytes], not_looked: int
) -> None:
    told: list[Any] = []
    async with run_fake_cluster() as fake, open_cluster(fake.bootstrap, client_id="t") as cluster:
        write(fake.create_topic("orders", 0).partitions[0], "abc", MIRROR)
        tell(fake, said)
        site = Site(name="dc2", cluster=cluster)
        followers = [
            MapFollower(site, source, MemoryWriters(is_strict=True)) for source in ("dc1", "dc3")
        ]
        for follower in followers:
            await follower.refresh([ORDERS])
        comparison = Comparison(
            active=cast("Site", None),
            idle=site,
            flows=(),
            from_active=followers[0],
            from_idle=followers[1],
            journals=(),
            tell=told.append,
            tally=Tally(),
        )
        await comparison._tell_unbelieved([ORDERS])
    assert comparison.tally.not_looked == not_looked
    [line] = told
    assert f"dc2 {map_topic_name('dc1')} holds 2 records that are not believed" in line
