"""Whose lease may be taken before its session ends, and until when who has it may act."""

import json
import os
import subprocess
from pathlib import Path
from typing import cast

import pytest
import trio
from trio.testing import MockClock

from failover.journal.lease import LeaseHeld, LeaseLost, _is_of_dead_process, _machine, hold_lease
from runtime.coordination.witness import WitnessPaths
from runtime.coordination.zookeeper import ZNode, ZooKeeper
from tests.failover.sleeping import OF_ANOTHER, OURS, SleepyWitness
from wire.net import NetworkFault


def lease_of(pid: int) -> bytes:
    return json.dumps({"host": "here", "pid": pid, "machine": _machine()}).encode()


def test_the_lease_of_a_process_that_is_gone_is_free() -> None:
    child = subprocess.Popen(["true"])
    assert not _is_of_dead_process(lease_of(child.pid))
    child.wait()
    assert _is_of_dead_process(lease_of(child.pid))
    assert not _is_of_dead_process(lease_of(1))


def test_a_process_of_somebody_else_that_is_hidden_is_alive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def kill(_: int, __: int) -> None:
        raise PermissionError

    machine = lease_of(1_234)
    monkeypatch.setattr(Path, "exists", lambda _: False)
    monkeypatch.setattr(os, "kill", kill)
    assert not _is_of_dead_process(machine)


async def test_nothing_is_sent_once_the_session_may_be_over() -> None:
    witness = SleepyWitness()
    lease = witness.lease()

    async def work() -> bool:
        return lease.may_send()

    assert await lease.act(work)
    witness.now_ms += witness.session_timeout_ms - 1
    assert lease.may_send()
    witness.now_ms += 1
    assert not lease.may_send()


@pytest.mark.parametrize("is_told", [True, False])
async def test_what_was_done_without_the_right_to_send_is_done_again(is_told: bool) -> None:
    witness = SleepyWitness()
    lease = witness.lease()
    attempts: list[bool] = []

    async def work() -> str:
        if not attempts:
            witness.sleep_through()
        attempts.append(lease.may_send())
        if attempts[-1]:
            return "done"
        if is_told:
            raise NetworkFault("the right to send has run out")
        return "the site does not answer"

    assert await lease.act(work) == "done"
    assert attempts == [False, True]


async def test_a_fault_of_the_site_itself_is_raised() -> None:
    lease = SleepyWitness().lease()

    async def work() -> None:
        assert lease.may_send()
        raise NetworkFault("no answer in time")

    with pytest.raises(NetworkFault, match="no answer in time"):
        await lease.act(work)


async def test_who_slept_for_longer_than_the_session_is_told_that_the_lease_is_lost() -> None:
    witness = SleepyWitness()
    lease = witness.lease()

    async def work() -> None:
        witness.is_over = True
        witness.sleep_through()
        assert not lease.may_send()
        raise NetworkFault("the right to send has run out")

    with trio.fail_after(60), pytest.raises(LeaseLost, match="run the same command again"):
        await lease.act(work)


async def test_a_session_replaced_unseen_ends_what_is_being_done() -> None:
    """As after a pause: the states between two that say CONNECTED are not told."""
    witness = SleepyWitness()
    lease = witness.lease()
    async with trio.open_nursery() as nursery:

        async def work() -> None:
            witness.session_id = OF_ANOTHER
            nursery.start_soon(lease.follow_session)
            await trio.sleep_forever()

        with trio.fail_after(60), pytest.raises(LeaseLost):
            await lease.act(work)
        nursery.cancel_scope.cancel()


async def test_the_session_is_confirmed_for_as_long_as_the_lease_is_held() -> None:
    witness = SleepyWitness(session_timeout_ms=60)
    paths = WitnessPaths(root="/r")
    with trio.fail_after(60):
        async with hold_lease(cast("ZooKeeper", witness), paths.lease, wait_ms=60_000) as lease:
            await witness.asked_often.wait()
            assert lease.undelivered_ms == 30


async def test_another_session_gives_no_right_to_send() -> None:
    witness = SleepyWitness(session_timeout_ms=60)
    lease = witness.lease()
    await lease.act(trio.lowlevel.checkpoint)
    assert lease.may_send()
    witness.session_id = OF_ANOTHER
    with trio.fail_after(60):
        await lease.confirm_session()
    assert not lease.may_send()


async def test_a_lease_goes_with_the_session_that_took_it_and_with_no_later_one() -> None:
    """As after a pause between the two: the node is gone with its session, and we hear nothing."""

    class Replaced(SleepyWitness):
        async def create(self, path: str, *_: object, **__: object) -> str:
            await trio.lowlevel.checkpoint()
            self.session_id = OF_ANOTHER
            return path

    witness = Replaced()
    paths = WitnessPaths(root="/r")
    with trio.fail_after(60):
        async with hold_lease(cast("ZooKeeper", witness), paths.lease, wait_ms=60_000) as lease:
            with pytest.raises(LeaseLost):
                await lease.act(trio.lowlevel.checkpoint)
            assert not lease.may_send()


class SlowWitness(SleepyWitness):
    """Makes a node at once, and says so late."""

    __slots__ = ("node",)

    async def create(self, path: str, data: bytes, **_: object) -> str:  # type: ignore[override]
        self.node: ZNode | None = ZNode(
            data=data, version=0, created_zxid=0, modified_zxid=0, ephemeral_owner=OURS
        )
        await trio.sleep(10)
        return path

    async def get(self, _: str) -> ZNode | None:
        await trio.lowlevel.checkpoint()
        return self.node

    async def delete(self, _: str, *, version: int) -> None:
        assert version == 0
        await trio.lowlevel.checkpoint()
        self.node = None


async def test_a_lease_that_came_too_late_is_given_back(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    """Whoever asked for it may go on with its session, as `failover serve` does."""
    witness = SlowWitness()
    with pytest.raises(LeaseHeld):
        async with hold_lease(
            cast("ZooKeeper", witness), WitnessPaths(root="/r").lease, wait_ms=100
        ):
            raise AssertionError("nobody was told that the lease is taken")
    assert witness.node is None
