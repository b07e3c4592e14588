"""All that a flow takes from a source is closed, whenever it was made."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import trio

from failover.journal.execute import StepFailed
from failover.journal.journal import Journal, begin_step
from failover.journal.steps import StepName
from failover.moving.effects import PromotionEffects
from failover.sites.fence import read_fence, wait_holds
from failover.sites.slipped import find_appended
from offset_translation.map_records import map_topic_name, piece_start
from offset_translation.runs import Place
from tests.doubles.fake_cluster import FakeCluster, run_fake_cluster
from tests.failover.between import effects_between
from tests.failover.fencing import FencedCluster
from tests.failover.journals import begun, done, drained, unnoted
from wire.errors import ErrorCode
from wire.headers import RequestHeader
from wire.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from wire.record_batch import Record, build_batch


@dataclass(frozen=True, slots=True)
class Stage:
    """A promotion of dc2 that is about to close dc1."""

    source: FencedCluster
    effects: PromotionEffects

    def make(self, topic: str, records: int = 0) -> None:
        """A topic on dc1."""
        self.source.cluster.create_topic(topic, 0).partitions[0].end = records

    async def run(self, journal: Journal, step: StepName) -> Journal:
        """Do a step, and note it."""
        journal = begin_step(journal, step, 0)
        return done(journal, step, (await self.effects.run(step, journal, unnoted)).facts)


@asynccontextmanager
async def stage(folder: Path) -> AsyncIterator[Stage]:
    """The topic orders was there when the promotion began."""
    async with run_fake_cluster() as source, run_fake_cluster() as target:
        for cluster in (source, target):
            cluster.create_topic("orders", 0).partitions[0].end = 10
        let_create_topics(target)
        fenced = FencedCluster(source)
        fenced.serve()
        async with effects_between(folder, source, target, "o.*") as effects:
            yield Stage(fenced, effects)


def let_create_topics(cluster: FakeCluster) -> None:
    """Have the cluster's brokers make the topics that they are asked for."""

    async def create(_: RequestHeader, request: CreateTopicsRequest) -> CreateTopicsResponse:
        for topic in request.topics:
            cluster.create_topic(topic.name, *[0] * topic.num_partitions)
        return CreateTopicsResponse(
            topics=tuple(
                CreatableTopicResult(name=topic.name, error_code=0) for topic in request.topics
            )
        )

    cluster.versions[CreateTopicsRequest.API_KEY] = range(5)
    for broker in cluster.brokers.values():
        broker.scripts[CreateTopicsRequest.API_KEY] = create


def have_mirrored(target: FakeCluster, topic: str, records: int) -> None:
    """Have the target hold all of a topic, as its map says."""
    target.create_topic(topic, 0).partitions[0].end = records
    piece = piece_start(topic, 0, source_start=0, place=Place(0))
    map_log = target.create_topic(map_topic_name("dc1"), 0).partitions[0]
    map_log.batches.append(build_batch([Record(0, 0, *piece)]))
    map_log.end = 1


async def test_a_topic_made_since_the_preflight_is_closed_and_moves(tmp_path: Path) -> None:
    async with stage(tmp_path) as there:
        there.make("o-new", records=3)
        there.make("another")
        journal = await there.run(begun(), StepName.FENCE)
        assert there.source.topics == ("o-new", "orders")
        assert journal.moving == (("o-new", 0), ("orders", 0))


@pytest.mark.usefixtures("taken_evidence")
async def test_what_no_mirror_takes_is_neither_closed_nor_waited_for(tmp_path: Path) -> None:
    """Patterns of one's own take the place of those that leave internal topics out by default."""
    async with run_fake_cluster() as source, run_fake_cluster() as target:
        for name in ("orders", "orders-scratch", "dc2.offset-map.internal", ".hidden", "__state"):
            source.create_topic(name, 0).partitions[0].end = 3
        have_mirrored(target, "orders", 3)
        fenced = FencedCluster(source)
        for cluster in (fenced, FencedCluster(target)):
            cluster.serve()
        own = {"include": [".*"], "exclude": [".*-scratch"]}
        async with effects_between(tmp_path, source, target, own) as effects:
            there = Stage(fenced, effects)
            journal = await there.run(replace(begun(), steps=()), StepName.PREFLIGHT)
            journal = await there.run(journal, StepName.FENCE)
            assert fenced.topics == ("orders",)
            assert journal.moving == (("orders", 0),)


async def test_a_topic_made_while_the_fence_is_tried_is_closed_and_moves(tmp_path: Path) -> None:
    async with stage(tmp_path) as there:

        async def make() -> None:
            there.make("o-new")

        there.source.on_probe = make
        journal = await there.run(begun(), StepName.FENCE)
        assert there.source.topics == ("o-new", "orders")
        assert journal.moving == (("o-new", 0), ("orders", 0))


async def test_an_answer_with_a_code_of_a_later_kafka_is_no_fence_and_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold: Any = wait_briefly
    monkeypatch.setattr("failover.moving.closing.wait_holds", hold)
    monkeypatch.setattr(FencedCluster, "_code", lambda *_: 9_999)
    async with stage(tmp_path) as there:
        with pytest.raises(StepFailed, match="orders-0 answers a foreign write with UNKNOWN_"):
            await there.run(begun(), StepName.FENCE)


@pytest.mark.parametrize("records", [0, 3])
async def test_a_topic_made_behind_the_drain_is_closed_and_may_hold_nothing(
    tmp_path: Path, records: int
) -> None:
    async with stage(tmp_path) as there:
        journal = drained(await there.run(begun(), StepName.FENCE), orders=10)
        there.make("o-late", records)
        if records:
            with pytest.raises(StepFailed, match="did not hold: dc1 o-late-0 ends at 3, and 0"):
                await there.run(journal, StepName.VERIFY_FENCE)
        else:
            verified = await there.run(journal, StepName.VERIFY_FENCE)
            assert verified.facts(StepName.VERIFY_FENCE)["made"] == ["o-late"]
        assert there.source.topics == ("o-late", "orders")


def batch_at(offset: int, *, is_control: bool) -> bytes:
    """One record, or the end of a transaction."""
    record = Record(offset=offset, timestamp_ms=0, key=b"k", value=b"v", headers=())
    return build_batch(
        [record],
        base_offset=offset,
        producer_id=7,
        producer_epoch=0,
        base_sequence=-1,
        is_transactional=True,
        is_control=is_control,
    )


@pytest.mark.parametrize(
    ("appended", "holds"),
    [("mm", True), ("mrm", False), ("r", False), ("m_", False), ("_m", False), ("", True)],
)
async def test_the_ends_of_transactions_may_come_behind_the_drain_and_nothing_else(
    tmp_path: Path, appended: str, holds: bool
) -> None:
    async with stage(tmp_path) as there:
        journal = drained(await there.run(begun(), StepName.FENCE), orders=10)
        log = there.source.cluster.topics["orders"].partitions[0]
        for offset, what in enumerate(appended, log.end):
            if what != "_":  # what was there is gone
                log.batches.append(batch_at(offset, is_control=what == "m"))
        log.end += len(appended)
        if holds:
            await there.run(journal, StepName.VERIFY_FENCE)
            return
        with pytest.raises(StepFailed, match=f"orders-0 ends at {log.end}, and 10 was drained"):
            await there.run(journal, StepName.VERIFY_FENCE)


@pytest.mark.parametrize("is_back", [True, False])
async def test_a_leader_that_moves_before_the_switch_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_back: bool
) -> None:
    monkeypatch.setattr("failover.moving.effects.LEADER_MOVES_S", 5.0 if is_back else 0.5)
    async with stage(tmp_path) as there, trio.open_nursery() as nursery:
        journal = drained(await there.run(begun(), StepName.FENCE), orders=10)
        log = there.source.cluster.topics["orders"].partitions[0]
        asked_before: list[object] = []

        async def elect() -> None:
            await trio.sleep(0.8)
            log.leader = 0

        async def lose(*asked: Any) -> Any:
            if not asked_before:
                log.leader = -1
                if is_back:
                    nursery.start_soon(elect)
            asked_before.append(asked)
            return await find_appended(*asked)

        monkeypatch.setattr("failover.moving.effects.find_appended", lose)
        if is_back:
            await there.run(journal, StepName.VERIFY_FENCE)
            return
        with pytest.raises(StepFailed, match="dc1 orders-0: LEADER_NOT_AVAILABLE"):
            await there.run(journal, StepName.VERIFY_FENCE)


async def test_a_fence_that_holds_is_not_set_again(tmp_path: Path) -> None:
    async with stage(tmp_path) as there:
        journal = drained(await there.run(begun(), StepName.FENCE), orders=10)
        await there.run(journal, StepName.VERIFY_FENCE)
        assert there.source.times_set == 1


@pytest.mark.parametrize("records", [0, 3])
async def test_a_fence_lifted_late_by_an_earlier_request_is_set_anew_at_once(
    tmp_path: Path, records: int
) -> None:
    """The new site may be open by then: what the old one took in between is found out."""
    async with stage(tmp_path) as there:
        journal = drained(await there.run(begun(), StepName.FENCE), orders=10)
        fence = await read_fence(there.effects.source.cluster)
        there.source.topics = ()
        there.source.cluster.topics["orders"].partitions[0].end += records
        if records:
            with pytest.raises(StepFailed, match="did not hold: dc1 orders-0 ends at 13, and 10"):
                await there.run(journal, StepName.VERIFY_FENCE)
        else:
            await there.run(journal, StepName.VERIFY_FENCE)
        assert await read_fence(there.effects.source.cluster) == fence
        assert there.source.times_set == 2


async def test_a_fence_that_somebody_lifts_again_and_again_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold: Any = wait_briefly
    monkeypatch.setattr("failover.moving.closing.wait_holds", hold)
    async with stage(tmp_path) as there:
        journal = drained(await there.run(begun(), StepName.FENCE), orders=10)
        monkeypatch.setattr(FencedCluster, "_code", lambda *_: ErrorCode.CORRUPT_MESSAGE)
        with pytest.raises(StepFailed, match="dc1 cannot be fenced: orders-0 answers"):
            await there.run(journal, StepName.VERIFY_FENCE)


async def wait_briefly(*arguments: Any, **named: Any) -> None:
    """Ask the fence for a moment only."""
    await trio.lowlevel.checkpoint()
    await wait_holds(*arguments, **named, timeout_s=0.2)


async def test_partitions_beyond_what_a_journal_holds_are_refused_before_the_fence_and_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as that may have been made since the plan."""
    async with stage(tmp_path) as there:
        monkeypatch.setattr("failover.journal.journal_size.MAX_BYTES", 0)
        why = "MB can be read: share the topics among two files"
        with pytest.raises(StepFailed, match=why):
            await there.run(replace(begun(), steps=()), StepName.PREFLIGHT)
        assert there.source.times_set == 0
        with pytest.raises(StepFailed, match=why):
            await there.run(begun(), StepName.FENCE)
