"""A controller that is stopped between two requests, and wakes up when another one has finished."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
import trio

from failover.journal.execute import StepFailed
from failover.journal.lease import Lease, LeaseLost
from failover.journal.steps import StepName
from failover.journal.store import WitnessStore
from failover.promote import PromotionController
from failover.serve.guard import Breach, _fence
from offset_translation.map_records import map_topic_name, piece_start
from offset_translation.runs import Place
from runtime.configuration.config import Configuration, load
from runtime.coordination.zookeeper import ZooKeeper
from tests.doubles.fake_answers import ANSWERS
from tests.doubles.fake_cluster import FakeCluster, Raw, run_fake_cluster
from tests.failover.fencing import fence_of_one_set
from tests.failover.journals import begun, drained, unnoted
from tests.failover.sleeping import SleepyWitness
from tests.failover.two_sites import promotable
from wire.headers import RequestHeader
from wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from wire.messages.offset_commit import OffsetCommitRequest
from wire.messages.offset_fetch import OffsetFetchRequest
from wire.messages.table import APIS
from wire.net import NetworkFault
from wire.record_batch import Record, build_batch

PLACE = ("orders", 0)
GROUP = "readers"
COMMITTED = 5


@dataclass(frozen=True, slots=True)
class Stage:
    """Two sites with mirrored records and a group on dc1, and a controller that has the lease."""

    source: FakeCluster
    target: FakeCluster
    witness: SleepyWitness
    lease: Lease
    configuration: Configuration

    async def move_groups(self) -> Any:
        """Do the step of a promotion that sets positions on dc2."""
        controller = PromotionController(
            configuration=self.configuration,
            zookeeper=cast("ZooKeeper", self.witness),
            lease=self.lease,
            show=lambda _: None,
        )
        [flow] = self.configuration.flows
        async with controller._effects(cast("WitnessStore", None), flow) as effects:
            return (
                await effects.run(StepName.GROUPS_MOVE, drained(begun(), orders=10**6), unnoted)
            ).facts

    def asked(self, cluster: FakeCluster, api: int) -> int:
        """Return how many requests of this kind reached a cluster."""
        return sum(header.api_key == api for header, _ in cluster.brokers[0].asked)


@asynccontextmanager
async def stage(folder: Path) -> AsyncIterator[Stage]:
    """Everything that was written on dc1 is on dc2, and the group is to follow."""
    async with run_fake_cluster() as source, run_fake_cluster() as target:
        for cluster in (source, target):
            orders = cluster.create_topic("orders", 0).partitions[0]
            orders.batches.append(build_batch(Record(n, 0, None, b"x", ()) for n in range(10)))
            orders.end = 10
        key, value = piece_start("orders", 0, source_start=0, place=Place(0))
        map_log = target.create_topic(map_topic_name("dc1"), 0).partitions[0]
        map_log.batches.append(build_batch([Record(0, 0, key, value, ())]))
        map_log.end = 1
        source.offsets[GROUP][PLACE] = COMMITTED
        file = folder / "dc.yaml"
        dc1, dc2 = (f"{host}:{port}" for host, port in (*source.bootstrap, *target.bootstrap))
        file.write_text(promotable(dc1=dc1, dc2=dc2, witness="w:1", path="/r", topics="orders"))
        witness = SleepyWitness()
        yield Stage(source, target, witness, witness.lease(), load(file))


def stop_when_positions_are_read(there: Stage, *, is_over: bool) -> None:
    """Let the controller sleep once, between reading the positions on dc2 and committing them.

    Its session is over by then or, as the witness slept too, still there.
    """
    scripts = there.target.brokers[0].scripts

    async def answer_late(header: RequestHeader, request: Any) -> Any:
        del scripts[OffsetFetchRequest.API_KEY]
        there.witness.sleep_through()
        there.witness.is_over = is_over
        broker = there.target.brokers[0]
        return ANSWERS[header.api_key](broker, header.api_version, request)

    scripts[OffsetFetchRequest.API_KEY] = answer_late


async def test_positions_are_moved(tmp_path: Path) -> None:
    async with stage(tmp_path) as there:
        assert (await there.move_groups())["committed"] == 1
        assert there.target.offsets[GROUP] == {PLACE: COMMITTED}


@pytest.mark.parametrize(("most", "kept"), [(4_096, "batch 7, by worker 2"), (5, "")])
async def test_what_a_group_has_stored_beside_its_position_moves_unless_it_is_too_much(
    tmp_path: Path, most: int, kept: str
) -> None:
    async with stage(tmp_path) as there:
        there.source.metadata[GROUP][PLACE] = "batch 7, by worker 2"
        there.target.most_metadata = most
        assert await there.move_groups() == {
            "groups": 1,
            "committed": 1,
            "positions": {GROUP: {"orders": {"0": COMMITTED}}},
            "left": {},
            "ahead": {},
            "has_members": {},
            "more_left": 0,
            "unstable": [],
            "more_unstable": 0,
            "cut": {},
            "more_cut": 0,
            "bounded": {},
            "more_bounded": 0,
        }
        assert there.target.offsets[GROUP] == {PLACE: COMMITTED}
        assert there.target.metadata[GROUP] == {PLACE: kept}


async def test_no_position_is_committed_by_who_slept_through_its_session(tmp_path: Path) -> None:
    async with stage(tmp_path) as there:
        stop_when_positions_are_read(there, is_over=True)
        with trio.fail_after(60), pytest.raises(LeaseLost):
            await there.move_groups()
        assert there.asked(there.target, OffsetCommitRequest.API_KEY) == 0


async def test_positions_are_read_again_by_who_slept_and_has_its_session_still(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as there:
        stop_when_positions_are_read(there, is_over=False)
        facts = await there.move_groups()
        assert (facts["committed"], facts["left"]) == (1, {})
        assert there.asked(there.target, OffsetFetchRequest.API_KEY) == 2
        assert there.target.offsets[GROUP] == {PLACE: COMMITTED}


async def test_a_site_that_ends_the_connection_fails_the_step(tmp_path: Path) -> None:
    async with stage(tmp_path) as there:

        async def cut(_: RequestHeader, __: Any) -> Raw:
            return Raw(b"", cut=True)

        there.target.brokers[0].scripts[OffsetCommitRequest.API_KEY] = cut
        with pytest.raises(StepFailed):
            await there.move_groups()


async def test_a_site_that_is_back_is_not_closed_by_who_slept(tmp_path: Path) -> None:
    async with stage(tmp_path) as there:
        api = IncrementalAlterConfigsRequest.API_KEY
        there.source.versions[api] = APIS[api].VERSIONS
        await there.lease.act(trio.lowlevel.checkpoint)
        there.witness.sleep_through()
        breach = Breach(site="dc1", active="dc2", topics=("orders",))
        with pytest.raises(NetworkFault, match="the right to send has run out"):
            await _fence(fence_of_one_set(there.configuration), breach, there.lease)
        assert not there.source.brokers[0].asked
