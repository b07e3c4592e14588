"""Where both logs part, of a source that is not the log that was mirrored."""

from uuid import UUID

import pytest

from failover.sites.map_follower import MapFollower
from failover.sites.parting import Parting, find_partings
from failover.sites.site import Site
from offset_translation.map_records import piece_start, source_topic, target_topic
from offset_translation.runs import Place
from tests.doubles.fake_cluster import run_fake_cluster
from tests.doubles.map_writers import MemoryWriters
from tests.failover.target_batches import MIRROR, ORDERS, PIECE, tell, write
from wire.net import open_cluster

FORMER = UUID(int=77)
HOLE = piece_start(*ORDERS, source_start=6, place=Place(4))
"""Source offsets 4 and 5 were never mirrored."""


async def partings_of(
    source_holds: str, target_holds: str, *said: tuple[bytes, bytes], source_start: int = 0
) -> Parting | None:
    """Return where orders-0 parts, written by batches of three records on both sites."""
    async with run_fake_cluster() as dc1, run_fake_cluster() as dc2:
        source = dc1.create_topic("orders", 0).partitions[0]
        target = dc2.create_topic("orders", 0).partitions[0]
        for log, holds, producer in ((source, source_holds, 8), (target, target_holds, MIRROR)):
            for first in range(0, len(holds), 3):
                write(log, holds[first : first + 3], producer)
        source.start = source_start
        tell(dc2, PIECE, *said)
        async with (
            open_cluster(dc1.bootstrap, client_id="failover") as here,
            open_cluster(dc2.bootstrap, client_id="failover") as there,
        ):
            follower = MapFollower(Site(name="dc2", cluster=there), "dc1", MemoryWriters())
            await follower.refresh([ORDERS])
            found = await find_partings(Site(name="dc1", cluster=here), follower, [ORDERS])
    return found.get(ORDERS)


@pytest.mark.parametrize(
    ("source_holds", "parting"),
    [
        ("abcdefgh", None),
        ("abcdefghij", None),
        ("abcdefgxij", Parting(7, 7)),
        ("abcxyzuvwxyz", Parting(3, 3)),
        ("xyzuvwxyz", Parting(0, 0)),
        ("abcde", Parting(5, 5)),
        ("abcxy", Parting(3, 3)),
        ("", Parting(0, 0)),
    ],
)
async def test_logs_part_where_the_source_was_cut(
    source_holds: str, parting: Parting | None
) -> None:
    assert await partings_of(source_holds, "abcdefgh") == parting


@pytest.mark.parametrize(
    ("source_holds", "parting"),
    [
        ("abcd--efgh", None),
        ("abcd--xyz1", Parting(4, 4)),
        ("abcd--e123", Parting(7, 5)),
        ("abcd", Parting(4, 4)),
        ("abcd12", Parting(4, 4)),  # where a hole was announced it has records of its own now
    ],
)
async def test_a_hole_before_the_parting_shifts_the_target(
    source_holds: str, parting: Parting | None
) -> None:
    assert await partings_of(source_holds, "abcdefgh", HOLE) == parting


async def test_what_the_source_has_deleted_from_its_start_is_not_taken_for_another_log() -> None:
    assert await partings_of("abcdefxy", "abcdefgh", source_start=6) == Parting(6, 6)


@pytest.mark.parametrize("said", [source_topic("orders", FORMER), target_topic(*ORDERS, FORMER)])
async def test_a_topic_that_was_made_again_agrees_nowhere(said: tuple[bytes, bytes]) -> None:
    """Offsets and even the records say nothing: it may be a copy of the former one's first ones."""
    assert await partings_of("abcdefgh", "abcdefgh", said) == Parting(0, 0)
