"""A lost source's seal lies behind the mirror's last batch, whatever others have written."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failover.journal.steps import PromotionKind, StepName
from failover.sites.map_follower import MapFollower
from failover.sites.mirrored_ends import (
    find_mirrored_ends,
    foreign_stops,
    seal_facts,
    without_mirrored_away,
)
from failover.sites.site import Site
from failover.view.report import has_slipped, summary
from failover.view.snapshot import read_mirrored_of_lost
from offset_translation.map_records import piece_start, reached, run_start, target_topic
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from offset_translation.tail import Tail
from offset_translation.target_scan import MirroredEnd, TargetScan
from tests.doubles.fake_cluster import FakePartition, run_fake_cluster
from tests.doubles.map_writers import MemoryWriters
from tests.failover.journals import ended_promotion
from tests.failover.target_batches import MIRROR, ORDERS, OTHER, PIECE, tell, write
from tests.mirror.building import CONFIG
from wire.net import open_cluster
from wire.record_batch import Record, build_batch, parse_header
from wire.topic_partition import TopicPartition

OLD_MIRROR = 6
Look = Callable[[], Awaitable[MirroredEnd]]


@asynccontextmanager
async def lost_source(*said: tuple[bytes, bytes]) -> AsyncIterator[tuple[FakePartition, Look]]:
    """A target's log, and the look at its mirrored end."""
    async with run_fake_cluster() as cluster:
        log = cluster.create_topic("orders", 0).partitions[0]
        tell(cluster, *said)
        async with open_cluster(cluster.bootstrap, client_id="failover") as opened:
            follower = MapFollower(Site(name="dc2", cluster=opened), "dc1", MemoryWriters())

            async def look() -> MirroredEnd:
                await follower.refresh([ORDERS])
                return (await find_mirrored_ends(follower, [ORDERS]))[ORDERS]

            yield log, look


async def test_what_others_wrote_behind_the_mirrors_last_batch_is_not_counted_as_mirrored() -> None:
    async with lost_source(PIECE) as (log, look):
        write(log, "a" * 20, MIRROR)
        write(log, "xyz")
        assert await look() == MirroredEnd(source_end=20, target_end=20, foreign=((20, 23),))


async def test_what_others_wrote_between_the_mirrors_batches_gets_a_run_and_is_named() -> None:
    async with lost_source(PIECE) as (log, look):
        write(log, "abcd", MIRROR)
        write(log, "xy")
        write(log, "z", OTHER + 1)
        write(log, "ef", MIRROR, sequence=4)
        write(log, "x")
        assert await look() == MirroredEnd(
            source_end=6, target_end=9, runs=((Place(4), 7),), foreign=((4, 7), (9, 10))
        )


async def test_a_log_of_the_mirrors_alone_is_mirrored_to_its_end() -> None:
    async with lost_source(PIECE) as (log, look):
        write(log, "abcd", MIRROR)
        write(log, "ef", MIRROR, sequence=4)
        assert await look() == MirroredEnd(source_end=6, target_end=6)


async def test_a_log_that_no_mirror_has_announced_is_the_targets_own() -> None:
    async with lost_source() as (log, look):
        write(log, "xyz")
        assert await look() == MirroredEnd(source_end=0, target_end=0, foreign=((0, 3),))


async def test_a_topic_that_was_made_again_holds_nothing_that_was_mirrored() -> None:
    async with lost_source(PIECE, target_topic(*ORDERS, UUID(int=99))) as (log, look):
        write(log, "xyz")
        assert await look() == MirroredEnd(source_end=0, target_end=0, foreign=((0, 3),))


async def test_what_mirrormaker_wrote_before_the_mirror_is_mirrored() -> None:
    async with lost_source(PIECE) as (log, look):
        write(log, "abcd", -1)
        write(log, "ef", MIRROR, sequence=4)
        write(log, "x" * 30)
        assert await look() == MirroredEnd(source_end=6, target_end=6, foreign=((6, 36),))


async def test_a_log_without_any_batch_of_the_mirror_is_said_to_be_uncompared() -> None:
    async with lost_source(PIECE) as (log, look):
        write(log, "abcd", -1)
        end = await look()
        assert (end.source_end, end.target_end) == (4, 4)
        assert "holds no batch of the mirror" in end.untold


async def test_the_targets_own_records_of_before_the_last_run_are_not_foreign() -> None:
    piece = piece_start(*ORDERS, source_start=8, place=Place(0))
    run = run_start(*ORDERS, place=Place(0), target_start=3)
    async with lost_source(piece, run) as (log, look):
        write(log, "xyz")
        write(log, "ab", MIRROR)
        write(log, "z")
        assert await look() == MirroredEnd(source_end=10, target_end=5, foreign=((5, 6),))


@pytest.mark.parametrize(
    ("writer", "told"), [(MIRROR, {ORDERS: 20}), (OTHER, {})], ids=["told", "not told"]
)
async def test_a_plan_that_gives_a_site_up_does_not_believe_the_end_of_a_log_either(
    writer: int, told: dict[TopicPartition, int]
) -> None:
    """What no batch tells counts as not known, and so does what would be lost with it."""
    async with run_fake_cluster() as cluster:
        log = cluster.create_topic("orders", 0).partitions[0]
        tell(cluster, PIECE)
        write(log, "a" * 20, writer)
        write(log, "xyz")
        async with open_cluster(cluster.bootstrap, client_id="failover") as opened:
            site = Site(name="dc2", cluster=opened)
            found = await read_mirrored_of_lost(site, CONFIG, MemoryWriters(), [ORDERS])
    assert found.ends == told


async def test_where_both_sites_write_the_place_that_was_noted_counts() -> None:
    from offset_translation.map_records import Reached  # noqa: PLC0415

    at = Reached(place=Place(2), target_end=2)
    async with lost_source(PIECE, reached(*ORDERS, at)) as (log, look):
        write(log, "ab", MIRROR)
        write(log, "xy")
        assert await look() == MirroredEnd(source_end=2, target_end=2)


@given(st.lists(st.tuples(st.sampled_from([MIRROR, OTHER, -1]), st.integers(1, 4)), max_size=12))
def test_whatever_others_write_the_seal_bounds_what_the_mirror_wrote(
    batches: list[tuple[int, int]],
) -> None:
    offset_map = OffsetMap.from_starts([(100, 0)], target_end=0)
    scan, tail = TargetScan(offset_map, MIRROR, {MIRROR}), Tail(offset_map, Place(0))
    at, place, last = 0, 0, 0
    foreign: set[int] = set()
    for producer_id, count in batches:
        batch = build_batch(
            [Record(number, 0, None, b"v") for number in range(count)],
            base_offset=at,
            producer_id=producer_id,
            base_sequence=place,
        )
        scan.take(tail, parse_header(batch))
        if producer_id == MIRROR:
            place, last = place + count, at + count
        else:
            foreign.update(range(at, at + count))
        at += count
    if not place:
        assert not scan.has_seen_mirror
        return
    end = scan.mirrored_end(tail)
    assert (end.source_end, end.target_end) == (100 + place, last)
    assert {offset for start, stop in end.foreign for offset in range(start, stop)} == foreign
    # The journal names them, so that a rollback takes the runs back that they have begun.
    stops = foreign_stops(seal_facts({ORDERS: end})).get(ORDERS, set())
    assert {target for _, target in end.runs} <= stops


def test_foreign_records_are_in_the_report_and_make_the_exit_status_one() -> None:
    ends = {
        ORDERS: MirroredEnd(source_end=20, target_end=20, foreign=((20, 23),), untold="not read")
    }
    facts = {
        StepName.FENCE: {"fenced": True},
        StepName.SEAL: seal_facts(ends),
    }
    journal = ended_promotion(PromotionKind.SOURCE_LOST, facts)
    said = "\n".join(summary(journal, None))
    assert has_slipped(journal)
    assert "dc2 orders-0 holds records at offsets 20 to 22 that no mirror has written" in said
    assert "dc2 orders-0: its mirrored end is not known (not read)" in said
    clean = {StepName.FENCE: {"fenced": True}, StepName.SEAL: seal_facts({})}
    assert not has_slipped(ended_promotion(PromotionKind.SOURCE_LOST, clean))


@pytest.mark.parametrize("count", [1, 700])
def test_many_foreign_parts_are_counted_beyond_those_that_are_named(count: int) -> None:
    parts = tuple((2 * number, 2 * number + 1) for number in range(count))
    facts = seal_facts({ORDERS: MirroredEnd(source_end=0, target_end=0, foreign=parts)})
    listed = facts["foreign"]
    assert isinstance(listed, list)
    assert len(listed) + int(str(facts["more_foreign"])) == count


def test_what_a_site_wrote_while_it_was_active_is_no_foreign_part_of_it() -> None:
    """Nothing has come back to a quiet partition since, and the lost site has its records."""
    quiet = MirroredEnd(source_end=0, target_end=0, foreign=((0, 32),))
    mixed = MirroredEnd(source_end=20, target_end=20, foreign=((5, 8), (20, 23)))
    away = {ORDERS: 32}
    assert without_mirrored_away({ORDERS: quiet}, away)[ORDERS].foreign == ()
    assert without_mirrored_away({ORDERS: quiet}, {ORDERS: 20})[ORDERS].foreign == ((20, 32),)
    assert without_mirrored_away({ORDERS: quiet}, {})[ORDERS] == quiet
    assert without_mirrored_away({ORDERS: mixed}, away)[ORDERS] == mixed


@pytest.mark.parametrize("copies", [0, 5])
async def test_a_partition_that_is_quiet_since_its_last_run_was_announced_is_told(
    copies: int,
) -> None:
    """The site was active and wrote; since then the mirror has found nothing to bring there."""
    run = run_start(*ORDERS, place=Place(copies), target_start=20)
    async with lost_source(PIECE, run) as (log, look):
        if copies:
            write(log, "a" * copies, MIRROR)
        write(log, "x" * (20 - copies))
        assert await look() == MirroredEnd(source_end=copies, target_end=20)
        write(log, "y")
        behind = await look()
        assert behind.untold or behind.foreign[-1] == (20, 21)
