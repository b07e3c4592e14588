"""A source that was cut and has grown again ends where it should, and holds other records."""

import pytest

from failover.sites.map_follower import MapFollower
from failover.sites.other_log import find_regrown_logs
from failover.sites.site import Site
from tests.doubles.fake_cluster import run_fake_cluster
from tests.doubles.map_writers import MemoryWriters
from tests.failover.target_batches import MIRROR, ORDERS, PIECE, tell, write
from wire.net import open_cluster


@pytest.mark.parametrize(
    ("source_holds", "is_marker", "is_told"),
    [
        ("abcdefgh", False, False),
        ("abcdefghij", False, False),
        ("abcdefgx", False, True),
        ("abcdefgxij", False, True),
        ("abcdefg", True, True),
        ("abcd", False, False),  # find_shorter_logs() tells of it
    ],
)
async def test_the_last_mirrored_record_must_be_the_sources(
    source_holds: str, *, is_marker: bool, is_told: bool
) -> None:
    async with run_fake_cluster() as dc1, run_fake_cluster() as dc2:
        source = dc1.create_topic("orders", 0).partitions[0]
        target = dc2.create_topic("orders", 0).partitions[0]
        tell(dc2, PIECE)
        write(source, source_holds)
        if is_marker:
            write(source, "x", is_control=True)
        write(target, "abcdefgh", MIRROR)
        async with (
            open_cluster(dc1.bootstrap, client_id="failover") as here,
            open_cluster(dc2.bootstrap, client_id="failover") as there,
        ):
            follower = MapFollower(Site(name="dc2", cluster=there), "dc1", MemoryWriters())
            await follower.refresh([ORDERS])
            told = await find_regrown_logs(Site(name="dc1", cluster=here), follower, [ORDERS])
    assert bool(told) is is_told
    if is_told:
        assert told[ORDERS].startswith(
            "dc1 orders-0 holds another record at offset 7 than dc2 at 7, although"
        )
