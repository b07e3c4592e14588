"""No planned promotion goes by a map of another log than the source holds."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

import pytest

from failover.journal.execute import StepFailed
from failover.journal.journal import begin_step
from failover.journal.steps import StepName
from failover.moving.drain import SourceLogs, wait_drained
from failover.planning.plan import SiteView, decide
from failover.planning.refusal import Refusal
from failover.sites.map_follower import MapFollower
from failover.sites.opening import Ends
from failover.sites.other_log import find_other_copies, find_other_logs
from failover.sites.site import LogUnavailable, Site
from failover.view.snapshot import _read_mirrored
from offset_translation.map_records import (
    MirrorProducer,
    map_topic_name,
    mirror_producer,
    piece_start,
    source_topic,
    target_topic,
)
from offset_translation.runs import Place
from runtime.configuration.config import load
from tests.doubles.fake_cluster import FakeCluster, FakePartition, run_fake_cluster
from tests.doubles.map_writers import MemoryWriters
from tests.failover.between import effects_between
from tests.failover.journals import begun, done, drained, unnoted
from tests.failover.plans import ALL_WELL, DC2, PLANNED
from tests.failover.standing import watch_of
from tests.failover.two_sites import promotable
from wire.net import open_cluster
from wire.record_batch import Record, build_batch
from wire.topic_partition import TopicPartition

ORDERS = TopicPartition("orders", 0)
MIRRORED = 1_000
NEW, OLD = UUID(int=2), UUID(int=1)


MIRROR = MirrorProducer(producer_id=7, producer_epoch=0)


def fill(partition: FakePartition, *records: Record, producer_id: int = -1) -> None:
    batch = build_batch(records, producer_id=producer_id, producer_epoch=0, base_sequence=0)
    partition.batches.append(batch)
    partition.end = len(records)


@dataclass(frozen=True, slots=True)
class Stage:
    """dc1 with a log, and dc2 with what was mirrored of the topic of this name."""

    dc1: FakeCluster
    dc2: FakeCluster
    source: Site
    follower: MapFollower

    @property
    def log(self) -> FakePartition:
        return self.dc1.topics["orders"].partitions[0]

    def logs(self) -> SourceLogs:
        return SourceLogs(starts={ORDERS: 0}, ends={ORDERS: self.log.end})

    async def drain(self) -> int:
        return await wait_drained(
            self.source, self.logs(), self.follower, watch_of(), timeout_ms=500
        )


@asynccontextmanager
async def stage(
    end: int, *, topic_id: UUID = OLD, mirrored: int = MIRRORED
) -> AsyncIterator[Stage]:
    """A source whose log ends here; the topic that was mirrored had the id OLD."""
    async with run_fake_cluster() as dc1, run_fake_cluster() as dc2:
        orders = dc1.create_topic("orders", 0)
        orders.topic_id = topic_id
        orders.partitions[0].end = end
        copy = dc2.create_topic("orders", 0).partitions[0]
        records = (Record(number, 0, None, b"x") for number in range(mirrored))
        fill(copy, *records, producer_id=MIRROR.producer_id)
        said = (
            mirror_producer(MIRROR),
            source_topic("orders", OLD),
            piece_start("orders", 0, source_start=0, place=Place(0)),
        )
        fill(
            dc2.create_topic(map_topic_name("dc1"), 0).partitions[0],
            *(Record(number, 0, key, value) for number, (key, value) in enumerate(said)),
        )
        async with (
            open_cluster(dc1.bootstrap, client_id="failover") as source,
            open_cluster(dc2.bootstrap, client_id="failover") as target,
        ):
            follower = MapFollower(Site(name="dc2", cluster=target), "dc1", MemoryWriters())
            yield Stage(dc1, dc2, Site(name="dc1", cluster=source), follower)


RESTART = "`mirror restart dc1-dc2 orders --from-earliest`"


@pytest.mark.parametrize("end", [0, 300, MIRRORED])
async def test_a_topic_made_again_on_the_source_is_not_drained(end: int) -> None:
    async with stage(end, topic_id=NEW) as there:
        with pytest.raises(StepFailed) as failed:
            await there.drain()
    told = str(failed.value)
    assert told.startswith(f"dc1 orders-0 was made again since it was mirrored (topic id {NEW}, ")
    assert f"ends at {end}, and 1000 offsets of the former one are mirrored" in told
    assert RESTART in told


async def test_a_topic_made_again_is_refused_at_once_though_records_are_missing() -> None:
    async with stage(MIRRORED + 5, topic_id=NEW) as there:
        with pytest.raises(StepFailed, match="was made again"):
            await there.drain()


async def test_a_source_that_lost_its_tail_is_not_drained() -> None:
    async with stage(940) as there:
        with pytest.raises(StepFailed) as failed:
            await there.drain()
    told = str(failed.value)
    assert told.startswith("dc1 orders-0 ends at 940, but 1000 offsets of it are mirrored: ")
    assert RESTART in told


@pytest.mark.parametrize("topic_id", [OLD, UUID(int=0)])
async def test_the_topic_that_was_mirrored_is_drained_and_one_without_an_id(topic_id: UUID) -> None:
    async with stage(MIRRORED, topic_id=topic_id) as there:
        assert await there.drain() == 0


async def test_what_ends_a_transaction_may_be_mirrored_behind_the_ends_that_were_read() -> None:
    async with stage(MIRRORED) as there:
        logs = there.logs()
        there.log.end += 2
        key, value = piece_start("orders", 0, source_start=MIRRORED + 2, place=Place(MIRRORED))
        said = there.dc2.topics[map_topic_name("dc1")].partitions[0]
        said.batches.append(build_batch([Record(3, 0, key, value)], base_offset=3))
        said.end = 4
        drain = wait_drained(there.source, logs, there.follower, watch_of(), timeout_ms=5_000)
        assert await drain == 0
        assert there.follower.mirrored_end(ORDERS) == MIRRORED + 2


async def test_what_a_new_leader_does_not_tell_as_committed_yet_is_not_lost() -> None:
    async with stage(MIRRORED) as there:
        there.log.uncommitted = 60
        await there.follower.refresh([ORDERS])
        ends = await there.source.ends([ORDERS])
        assert ends == {ORDERS: 940}
        assert await find_other_logs(there.source, there.follower, ends) == {}


async def test_a_source_that_does_not_tell_its_end_is_asked_again() -> None:
    async with stage(940) as there:
        logs = there.logs()
        there.log.leader = -1
        await there.source.cluster.metadata(refresh=True)
        await there.follower.refresh([ORDERS])
        with pytest.raises(LogUnavailable, match=r"^dc1 orders-0 does not tell where it ends$"):
            await find_other_logs(there.source, there.follower, logs.ends)


async def test_no_seal_is_written_behind_a_source_that_lost_its_tail(tmp_path: Path) -> None:
    async with (
        stage(940) as there,
        effects_between(tmp_path, there.dc1, there.dc2, "o.*") as effects,
    ):
        journal = begin_step(begun(), StepName.FENCE, 0)
        journal = drained(done(journal, StepName.FENCE, {"topics": {"orders": 1}}), orders=940)
        with pytest.raises(StepFailed, match=r"^dc1 orders-0 ends at 940, but 1000 offsets"):
            await effects.run(StepName.SEAL, journal, unnoted)
        assert there.dc2.topics[map_topic_name("dc1")].partitions[0].end == 3


def name_copy(there: Stage, topic_id: UUID) -> None:
    """Have the map tell which topic holds the copy, and the target have the one of this id."""
    key, value = target_topic("orders", 0, OLD)
    said = there.dc2.topics[map_topic_name("dc1")].partitions[0]
    said.batches.append(build_batch([Record(0, 0, key, value)], base_offset=3))
    said.end = 4
    there.dc2.topics["orders"].topic_id = topic_id


@pytest.mark.parametrize(
    ("end", "topic_id", "told"),
    [
        (MIRRORED, OLD, None),
        (MIRRORED + 1, OLD, "and ends at 1001: somebody writes to dc2, the standby"),
        (MIRRORED - 1, OLD, "and ends at 999: dc2 has lost what was mirrored"),
        (0, NEW, "and ends at 0: dc2 has lost what was mirrored"),
        (MIRRORED, NEW, "and the topic was made again since: dc2 has lost what was mirrored"),
    ],
)
async def test_a_copy_is_looked_at_once_more_behind_its_seal(
    end: int, topic_id: UUID, told: str | None
) -> None:
    async with stage(MIRRORED) as there:
        name_copy(there, OLD)
        copy = there.dc2.topics["orders"]
        await there.follower.refresh([ORDERS])
        copy.topic_id, copy.partitions[0].end = topic_id, end
        found = await find_other_copies(there.follower, {ORDERS: MIRRORED})
    assert (told is None) == (not found)
    assert told is None or (told in found[ORDERS] and "was sealed at 1000" in found[ORDERS])


@pytest.mark.parametrize("lacking", [0, 5])
async def test_a_copy_that_was_made_again_is_refused_at_once(lacking: int) -> None:
    """Also where the mirror has written behind what others wrote as many of."""
    async with stage(MIRRORED + lacking) as there:
        name_copy(there, NEW)
        with pytest.raises(StepFailed) as failed:
            await there.drain()
    told = str(failed.value)
    assert told.startswith(f"dc2 orders-0 was made again since it was mirrored (topic id {NEW}, ")
    assert "that is refused, and `mirror refill dc2 --write` does it" in told
    assert RESTART in told


async def test_a_plan_refuses_a_copy_that_was_made_again(tmp_path: Path) -> None:
    file = tmp_path / "dc.yaml"
    file.write_text(promotable(dc1="a:1", dc2="b:1", witness="w:1", path="/r", topics=".*"))
    [flow] = load(file).flows
    async with stage(MIRRORED) as there:
        name_copy(there, NEW)
        view = SiteView(name="dc1", fault=None, ends={ORDERS: MIRRORED}, groups={})
        ends = Ends(flow=flow, source=there.source, target=there.follower.target)
        found = await _read_mirrored(ends, view, MemoryWriters())
    assert found.other_log is not None
    assert found.other_log.startswith("dc2 orders-0 was made again since it was mirrored")


@pytest.mark.parametrize(("end", "topic_id"), [(300, NEW), (300, OLD), (MIRRORED, OLD)])
async def test_a_plan_refuses_by_a_map_of_another_log(
    tmp_path: Path, end: int, topic_id: UUID
) -> None:
    file = tmp_path / "dc.yaml"
    file.write_text(promotable(dc1="a:1", dc2="b:1", witness="w:1", path="/r", topics=".*"))
    [flow] = load(file).flows
    async with stage(end, topic_id=topic_id) as there:
        view = SiteView(name="dc1", fault=None, ends={ORDERS: end}, groups={})
        target = there.follower.target
        ends = Ends(flow=flow, source=there.source, target=target)
        found = await _read_mirrored(ends, view, MemoryWriters())
        alike = replace(DC2, ends={ORDERS: end})
        seen = replace(
            ALL_WELL, source=view, target=alike, mirrored=found.ends, other_log=found.other_log
        )
        decision = decide(seen, PLANNED)
        if end == MIRRORED:
            assert not isinstance(decision, Refusal)
            return
        assert isinstance(decision, Refusal)
        assert decision.reason.startswith("dc1 orders-0 ")
        assert RESTART in decision.reason
