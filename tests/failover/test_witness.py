"""The lease, the journal's node and the flow's command, in a real ZooKeeper."""

import os
import signal
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import trio

from failover.client.active_site import ActiveSiteWatch
from failover.journal.execute import StepFailed
from failover.journal.journal import Journal, JournalUnreadable, begin_step, encode_journal
from failover.journal.journals import find_unfinished, read_journals
from failover.journal.lease import Lease, LeaseHeld, LeaseLost, hold_lease
from failover.journal.steps import PromotionKind, PromotionState, StepName
from failover.journal.store import Superseded, WitnessStore
from failover.moving.flow import FlowControl
from failover.promote import PromotionController
from failover.rehearsal.rehearsed_set import RehearsalFailed, giving_way
from runtime.configuration.config import load
from runtime.coordination.witness import ActiveSite, FlowCommand, WitnessPaths, WorkerInfo
from runtime.coordination.zookeeper import Check, ZooKeeper
from runtime.process.ports import free_port
from runtime.process.zookeeper_server import run_zookeeper
from tests.failover.plans import FLOW
from tests.failover.two_sites import promotable
from tests.zookeeper import open_witness_of_tests

pytestmark = pytest.mark.integration

PATHS = WitnessPaths(root="/kafka-dr")
JOURNAL = Journal(epoch=1, site="dc2", source="dc1", kind=PromotionKind.PLANNED, started_ms=5)
SESSION_MS = 4_000


@dataclass(frozen=True, slots=True)
class Witness:
    """One session, and what a controller has of it."""

    zookeeper: ZooKeeper

    def store(self, lease: Lease, epoch: int = 1) -> WitnessStore:
        """A store as a controller has it."""
        return WitnessStore(self.zookeeper, PATHS, lease, epoch)


@asynccontextmanager
async def open_witness(address: str) -> AsyncIterator[Witness]:
    """Open a session of a witness in which dc1 is active."""
    async with open_witness_of_tests(address, SESSION_MS) as zookeeper:
        first = ActiveSite(site="dc1", epoch=0)
        await zookeeper.create(PATHS.active, first.encode(), make_parents=True)
        yield Witness(zookeeper)


async def active_site(zookeeper: ZooKeeper) -> ActiveSite:
    """What the witness says."""
    node = await zookeeper.get(PATHS.active)
    assert node is not None
    return ActiveSite.decode(node.data)


async def test_a_second_controller_waits_for_the_lease_and_then_says_who_has_it(
    empty_zookeeper: str,
) -> None:
    async with open_witness(empty_zookeeper) as there:
        async with hold_lease(there.zookeeper, PATHS.lease, wait_ms=1_000):
            with pytest.raises(LeaseHeld, match=f"process {os.getpid()} on"):
                async with hold_lease(there.zookeeper, PATHS.lease, wait_ms=100):
                    pytest.fail("two controllers at once")
        async with hold_lease(there.zookeeper, PATHS.lease, wait_ms=1_000):
            assert await there.zookeeper.exists(PATHS.lease)
        assert not await there.zookeeper.exists(PATHS.lease)


async def test_a_rehearsal_gives_its_lease_to_whoever_waits_to_promote(
    empty_zookeeper: str,
) -> None:
    def controller() -> AbstractAsyncContextManager[Lease]:
        return hold_lease(there.zookeeper, PATHS.lease, wait_ms=60_000, wanted=PATHS.lease_wanted)

    async def rehearse(task_status: trio.TaskStatus[None]) -> None:
        async with hold_lease(there.zookeeper, PATHS.lease, wait_ms=1_000):
            rehearsing = cast(
                "PromotionController", SimpleNamespace(zookeeper=there.zookeeper, paths=PATHS)
            )
            assert await giving_way(rehearsing, no_work) is JOURNAL
            task_status.started()
            with pytest.raises(RehearsalFailed, match="gave way"):
                await giving_way(rehearsing, trio.sleep_forever)

    async def no_work() -> Journal:
        await trio.sleep(0.01)
        return JOURNAL

    async with open_witness(empty_zookeeper) as there:
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                await nursery.start(rehearse)
                async with controller():
                    assert not await there.zookeeper.exists(PATHS.lease_wanted)


async def test_work_is_cancelled_while_the_witness_is_away_and_done_again_when_it_is_back(
    tmp_path: Path,
) -> None:
    async with (
        run_zookeeper(tmp_path) as server,
        open_witness(server.address) as there,
        hold_lease(there.zookeeper, PATHS.lease, wait_ms=1_000) as lease,
    ):
        attempts: list[str] = []

        async def work() -> str:
            attempts.append("begun")
            if len(attempts) == 1:
                os.kill(server.process.pid, signal.SIGSTOP)
                await trio.sleep_forever()
            return "done"

        async with trio.open_nursery() as nursery:
            nursery.start_soon(resume_after, 3.5, server.process.pid)
            assert await lease.act(work) == "done"
        assert attempts == ["begun", "begun"]


async def resume_after(seconds: float, pid: int) -> None:
    """Let a stopped process go on; the session survives as the server's clock stood still."""
    await trio.sleep(seconds)
    os.kill(pid, signal.SIGCONT)


async def test_a_controller_whose_session_is_lost_gives_up(tmp_path: Path) -> None:
    async with (
        run_zookeeper(tmp_path) as server,
        open_witness(server.address) as there,
        hold_lease(there.zookeeper, PATHS.lease, wait_ms=1_000) as lease,
    ):
        os.killpg(server.process.pid, signal.SIGKILL)
        with trio.fail_after(60), pytest.raises(LeaseLost, match="run the same command again"):
            await lease.act(trio.sleep_forever)


async def test_the_switch_and_its_record_are_one_write(empty_zookeeper: str) -> None:
    async with (
        open_witness(empty_zookeeper) as there,
        hold_lease(there.zookeeper, PATHS.lease, wait_ms=1_000) as lease,
    ):
        store = there.store(lease)
        await store.create(JOURNAL)
        await store.announce(JOURNAL, "dc2")
        await store.announce(JOURNAL, "dc2")
        expected = ActiveSite(site="dc1", epoch=0, moving_to="dc2")
        assert await active_site(there.zookeeper) == expected
        done = replace(JOURNAL, state=PromotionState.DONE, switched_ms=9)
        await store.save_and_switch(done)
        assert await active_site(there.zookeeper) == ActiveSite(site="dc2", epoch=1)
        assert await read_journals(there.zookeeper, PATHS) == [done]
        with pytest.raises(StepFailed, match=r"the active site is dc2 \(epoch 1\), not dc1"):
            await store.save_and_switch(JOURNAL)
        assert await read_journals(there.zookeeper, PATHS) == [done]


async def test_a_superseded_controller_can_write_nothing_any_more(empty_zookeeper: str) -> None:
    async with (
        open_witness(empty_zookeeper) as there,
        hold_lease(there.zookeeper, PATHS.lease, wait_ms=1_000) as lease,
    ):
        zombie = there.store(lease)
        await zombie.create(JOURNAL)
        with pytest.raises(Superseded):
            await there.store(lease).create(replace(JOURNAL, started_ms=6))
        successor = there.store(lease)
        assert await successor.take_over() == JOURNAL
        with pytest.raises(Superseded):
            await zombie.save(begin_step(JOURNAL, StepName.PREFLIGHT, 1))
        with pytest.raises(Superseded):
            await zombie.announce(JOURNAL, "dc2")
        with pytest.raises(Superseded):
            await zombie.save_and_switch(JOURNAL)
        assert await active_site(there.zookeeper) == ActiveSite(site="dc1", epoch=0)
        begun = begin_step(JOURNAL, StepName.PREFLIGHT, 2)
        await successor.save(begun)
        assert find_unfinished(await read_journals(there.zookeeper, PATHS)) == begun


async def test_a_garbled_journal_is_named(empty_zookeeper: str) -> None:
    async with open_witness(empty_zookeeper) as there:
        await there.zookeeper.create(PATHS.journal(7), b"{}", make_parents=True)
        with pytest.raises(JournalUnreadable, match="/kafka-dr/failover/journal/0000000007"):
            await read_journals(there.zookeeper, PATHS)


async def test_a_flow_is_stopped_when_its_daemon_says_so(empty_zookeeper: str) -> None:
    async with open_witness(empty_zookeeper) as there:
        await run_worker(there.zookeeper)
        claim = await journal_of(there.zookeeper)
        control = FlowControl(there.zookeeper, PATHS, FLOW)
        with pytest.raises(StepFailed, match=r"the flow dc1->dc2 did not stop within 0.2 s"):
            await control.stop(1, 200, claim)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(obey, there.zookeeper)
            assert await control.stop(2, 5_000, claim) == {"flow": "settled"}
        assert await control.command() == FlowCommand(epoch=2, run=False)
        await control.start(2, claim)
        assert await control.command() == FlowCommand(epoch=2, run=True)


async def test_what_a_flow_has_obeyed_may_make_no_sense_until_its_daemon_writes_over_it(
    empty_zookeeper: str,
) -> None:
    async with open_witness(empty_zookeeper) as there:
        await run_worker(there.zookeeper)
        claim = await journal_of(there.zookeeper)
        acknowledged = PATHS.acknowledged("dc1", "dc2")
        await there.zookeeper.create(acknowledged, b"garbled")
        control = FlowControl(there.zookeeper, PATHS, FLOW)
        with pytest.raises(StepFailed, match=r"did not stop .*\(it has acknowledged None\)"):
            await control.stop(1, 200, claim)
        await there.zookeeper.set(acknowledged, FlowCommand(epoch=2, run=False).encode())
        assert await control.stop(2, 5_000, claim) == {"flow": "settled"}


async def test_a_flow_whose_daemon_dies_is_stopped_by_that(empty_zookeeper: str) -> None:
    async with open_witness(empty_zookeeper) as there:
        worker = await run_worker(there.zookeeper)
        claim = await journal_of(there.zookeeper)
        control = FlowControl(there.zookeeper, PATHS, FLOW)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(there.zookeeper.delete, worker)
            assert await control.stop(1, 5_000, claim) == {"flow": "nobody runs it"}


async def journal_of(zookeeper: ZooKeeper) -> Check:
    """Write a journal; it is ours."""
    await zookeeper.create(PATHS.journal(1), encode_journal(JOURNAL), make_parents=True)
    return Check(path=PATHS.journal(1), version=0)


async def run_worker(zookeeper: ZooKeeper) -> str:
    """Announce a daemon."""
    info = WorkerInfo(host="h", pid=1, metrics_url="", started_ms=0)
    path = PATHS.worker("dc1", "dc2")
    return await zookeeper.create(path, info.encode(), ephemeral=True, make_parents=True)


async def obey(zookeeper: ZooKeeper) -> None:
    """Acknowledge the next command, as a daemon does."""
    async with zookeeper.watch_data(PATHS.command("dc1", "dc2")) as commands:
        async for node in commands:
            if node is not None and FlowCommand.decode(node.data).epoch == 2:
                await zookeeper.create(PATHS.acknowledged("dc1", "dc2"), node.data)
                return


async def test_an_application_follows_a_witness_that_has_lost_its_data(tmp_path: Path) -> None:
    """A server refuses clients that have seen a later write than it has."""
    port = free_port()
    file = tmp_path / "dc.yaml"
    file.write_text(
        promotable(dc1="a:1", dc2="b:1", witness=f"127.0.0.1:{port}", path="/kafka-dr", topics=".*")
    )
    first = AsyncExitStack()
    server = await first.enter_async_context(run_zookeeper(tmp_path / "old", port=port))
    async with first:
        async with open_witness(server.address) as there:
            for _ in range(50):
                data = ActiveSite(site="dc1", epoch=0).encode()
                await there.zookeeper.set(PATHS.active, data)
            watch = await trio.to_thread.run_sync(ActiveSiteWatch, load(file))
        server.process.kill()
        await server.process.wait()
        await first.aclose()
        async with run_zookeeper(tmp_path / "empty", port=port) as fresh:
            async with open_witness_of_tests(fresh.address, SESSION_MS) as zookeeper:
                moved = ActiveSite(site="dc2", epoch=1)
                await zookeeper.create(PATHS.active, moved.encode(), make_parents=True)
                known = ActiveSite(site="dc1", epoch=0)
                heard = await trio.to_thread.run_sync(watch.wait_changed, known, 20.0)
            watch.close()
    assert heard == moved
