"""What a map holds of writers that the witness does not know never moves an end in silence."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import pytest

from failover.journal.execute import StepFailed
from failover.moving.drain import SourceLogs, wait_drained
from failover.sites import unbelieved
from failover.sites.map_follower import MapFollower
from failover.sites.other_log import find_recreated_copies
from failover.sites.site import Site
from failover.sites.unbelieved import find_unsure_ends, find_unsure_seals
from failover.view.snapshot import read_mirrored_of_lost
from offset_translation.map_records import (
    MirrorProducer,
    map_topic_name,
    mirror_producer,
    piece_start,
    run_start,
    target_topic,
)
from offset_translation.runs import Place
from runtime.coordination.map_writers import MapWriters
from tests.doubles.fake_cluster import FakeCluster, FakePartition, run_fake_cluster
from tests.doubles.map_writers import MemoryWriters
from tests.failover.standing import watch_of
from tests.failover.target_batches import MIRROR, ORDERS, PIECE, write
from tests.mirror.building import CONFIG
from wire.net import open_cluster
from wire.record_batch import Record, build_batch

KNOWN, LATER = 3, 4
ANNOUNCED = mirror_producer(MirrorProducer(producer_id=MIRROR, producer_epoch=0))
HOLE = piece_start(*ORDERS, source_start=9, place=Place(4))
"""Of source offsets 4 to 8 nothing is on the target."""


def strict() -> MemoryWriters:
    """The registry of an old copy of the witness: it knows one writer."""
    writers = MemoryWriters(is_strict=True)
    writers.known = MapWriters(registered={KNOWN: 0})
    return writers


def say(cluster: FakeCluster, writer: int, *said: tuple[bytes, bytes]) -> None:
    name = map_topic_name("dc1")
    topic = cluster.topics.get(name) or cluster.create_topic(name, 0)
    log = topic.partitions[0]
    records = [Record(number, 0, *one) for number, one in enumerate(said)]
    log.batches.append(
        build_batch(records, base_offset=log.end, producer_id=writer, producer_epoch=0)
    )
    log.end += len(records)


@asynccontextmanager
async def target() -> AsyncIterator[tuple[FakeCluster, FakePartition, Site]]:
    async with run_fake_cluster() as cluster:
        log = cluster.create_topic("orders", 0).partitions[0]
        write(log, "abcdef", MIRROR)
        async with open_cluster(cluster.bootstrap, client_id="failover") as opened:
            yield cluster, log, Site(name="dc2", cluster=opened)


async def test_a_lost_source_is_not_sealed_too_low_by_a_witness_that_is_an_old_copy() -> None:
    async with target() as (cluster, _, site):
        say(cluster, LATER, ANNOUNCED, PIECE)
        follower = MapFollower(site, "dc1", strict())
        await follower.refresh([ORDERS])
        [why] = (await find_unsure_seals(follower, [ORDERS])).values()
        assert why.startswith(
            "orders-0 would be sealed at 0 (dc2 at 0) by what is believed of the map, and at 6"
            " (at 6) by all of it: dc2 dc1.offset-map.internal holds 2 records that are not"
            " believed, as the witness does not know their writers (2 of producer id 4, from offset"
            " 0 on)"
        )
        assert "`failover recover --believe-maps" in why


async def test_what_is_lost_with_a_source_is_unknown_where_the_map_is_not_all_believed() -> None:
    async with target() as (cluster, _, site):
        say(cluster, KNOWN, ANNOUNCED, PIECE)
        say(cluster, LATER, HOLE)
        found = await read_mirrored_of_lost(site, CONFIG, strict(), [ORDERS])
        assert found.ends == {}
        assert "sealed at 6 (dc2 at 6) by what is believed" in (found.unsure_seal or "")
        assert "at 11 (at 6) by all of it" in (found.unsure_seal or "")


async def test_records_of_others_that_change_no_end_hold_nobody_up() -> None:
    async with target() as (cluster, _, site):
        say(cluster, KNOWN, ANNOUNCED, PIECE)
        say(cluster, LATER, ANNOUNCED, piece_start("other", 0, source_start=0, place=Place(0)))
        follower = MapFollower(site, "dc1", strict())
        await follower.refresh([ORDERS])
        assert await find_unsure_seals(follower, [ORDERS]) == {}
        assert await find_unsure_ends(follower, {ORDERS: 6}) == {}
        assert "2 of producer id 4" in (follower.unbelieved or "")
        found = await read_mirrored_of_lost(site, CONFIG, strict(), [ORDERS])
        assert found.ends == {ORDERS: 6}
        assert found.unsure_seal is None


async def test_another_pair_whose_map_is_in_the_same_topic_makes_no_doubt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its mirror has another id, and other topics."""
    theirs = mirror_producer(MirrorProducer(producer_id=99, producer_epoch=0))
    async with target() as (cluster, log, site):
        say(cluster, KNOWN, ANNOUNCED, PIECE)
        say(cluster, LATER, theirs, piece_start("other", 0, source_start=0, place=Place(0)))
        write(log, "x")
        follower = MapFollower(site, "dc1", strict())
        await follower.refresh([ORDERS])
        monkeypatch.setattr(follower, "as_if_all_were_believed", None)  # nor is the map read again
        assert await find_unsure_seals(follower, [ORDERS]) == {}
        assert await find_unsure_ends(follower, {ORDERS: 6}) == {}


async def test_a_map_that_all_of_its_records_make_absurd_is_named_and_not_taken_for_sure() -> None:
    async with target() as (cluster, _, site):
        say(cluster, KNOWN, ANNOUNCED, PIECE, run_start(*ORDERS, place=Place(2), target_start=2))
        say(cluster, LATER, run_start(*ORDERS, place=Place(4), target_start=1))
        follower = MapFollower(site, "dc1", strict())
        await follower.refresh([ORDERS])
        [why] = (await find_unsure_seals(follower, [ORDERS])).values()
        assert "1 of producer id 4" in why


async def test_what_was_announced_since_the_last_look_makes_no_doubt() -> None:
    async with target() as (cluster, log, site):
        say(cluster, KNOWN, ANNOUNCED, PIECE)
        say(cluster, LATER, ANNOUNCED)
        follower = MapFollower(site, "dc1", strict())
        await follower.refresh([ORDERS])
        write(log, "gh", MIRROR, sequence=6)
        say(cluster, KNOWN, HOLE)
        assert await find_unsure_ends(follower, {ORDERS: 6}) == {}


async def test_a_drain_does_not_wait_for_what_is_there_and_not_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(unbelieved, "ASKS_AFTER_S", 0.1)
    logs = SourceLogs(starts={ORDERS: 0}, ends={ORDERS: 11})
    async with target() as (cluster, _, site):
        say(cluster, KNOWN, ANNOUNCED, PIECE)
        say(cluster, LATER, HOLE)
        follower = MapFollower(site, "dc1", strict())
        told = "orders-0 is mirrored up to 6 by what is believed of the map, and up to 11 by all"
        with pytest.raises(StepFailed, match=f"^{told}"):
            await wait_drained(site, logs, follower, watch_of(), timeout_ms=30_000)


async def test_no_copy_is_advised_to_be_deleted_by_a_map_that_is_not_all_believed() -> None:
    async with target() as (cluster, _, site):
        say(cluster, KNOWN, ANNOUNCED, PIECE, target_topic(*ORDERS, UUID(int=99)))
        follower = MapFollower(site, "dc1", strict())
        await follower.refresh([ORDERS])
        [why] = (await find_recreated_copies(follower, [ORDERS])).values()
        assert "--from-earliest" in why
        say(cluster, LATER, ANNOUNCED)
        await follower.refresh([ORDERS])
        [why] = (await find_recreated_copies(follower, [ORDERS])).values()
        assert "--from-earliest" not in why
        assert "before anything is deleted: dc2 dc1.offset-map.internal holds 1 records" in why
