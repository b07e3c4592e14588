"""The right to write goes with one session, counts suspended time, and ends by itself."""

import pytest
import trio
from trio.testing import MockClock

from runtime.coordination.session_lease import ASKS_PER_TIMEOUT, SessionLease, SessionReplaced
from runtime.coordination.zookeeper_faults import ZooKeeperUnreachable
from runtime.process.tasks import background_tasks


class FakeWitness:
    """Answers after a while, or not at all."""

    def __init__(self) -> None:
        self.session_id = 7
        self.session_timeout_ms = 3_000
        self.takes_s = 0.0
        self.is_away = False
        self.asked = 0

    async def sync(self) -> None:
        self.asked += 1
        await trio.sleep(self.takes_s)
        if self.is_away:
            raise ZooKeeperUnreachable("away")


def loop_ms() -> int:
    return round(trio.current_time() * 1000)


async def test_nothing_is_held_before_the_witness_has_answered(autojump_clock: MockClock) -> None:
    del autojump_clock
    lease = SessionLease(FakeWitness(), loop_ms)
    assert not lease.is_held()
    await lease.confirm()
    assert lease.is_held()


async def test_it_counts_from_the_question_not_from_the_answer(autojump_clock: MockClock) -> None:
    del autojump_clock
    witness = FakeWitness()
    witness.takes_s = 2.0
    lease = SessionLease(witness, loop_ms)
    await lease.confirm()
    assert lease.is_held()
    await trio.sleep(1.0)
    assert not lease.is_held()


async def test_it_is_kept_while_the_witness_answers_and_runs_out_when_it_does_not(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    witness = FakeWitness()
    lease = SessionLease(witness, loop_ms)
    await lease.confirm()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lease.keep)
        await trio.sleep(60)
        assert lease.is_held()
        assert witness.asked > 60 // 3 * (ASKS_PER_TIMEOUT - 1)
        witness.is_away = True
        await trio.sleep(3.001)
        assert not lease.is_held()
        witness.is_away = False
        await trio.sleep(1)
        assert lease.is_held(), "a session that was only out of reach goes on"
        nursery.cancel_scope.cancel()


async def test_a_later_session_confirms_nothing(autojump_clock: MockClock) -> None:
    del autojump_clock
    witness = FakeWitness()
    lease = SessionLease(witness, loop_ms)
    await lease.confirm()
    witness.session_id = 8
    await trio.sleep(2)
    await lease.confirm()
    await trio.sleep(1)
    assert not lease.is_held()


@pytest.mark.parametrize("began_with", [7, 0])
async def test_who_keeps_it_hears_that_another_session_is_there(
    autojump_clock: MockClock, began_with: int
) -> None:
    del autojump_clock
    witness = FakeWitness()
    witness.session_id = began_with  # 0: it was made while there was no connection
    lease = SessionLease(witness, loop_ms)
    await lease.confirm()
    async with background_tasks() as tasks:
        tasks.start_soon(change_later, witness)
        with pytest.raises(SessionReplaced):
            await lease.keep()
    assert not lease.is_held()


async def change_later(witness: FakeWitness) -> None:
    await trio.sleep(2)
    witness.session_id = 0
    await trio.sleep(2)
    witness.session_id = 8


async def test_it_is_as_long_as_the_session_that_a_witness_grants_by_then(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    witness = FakeWitness()
    lease = SessionLease(witness, loop_ms)
    await lease.confirm()
    witness.session_timeout_ms = 2_000
    await lease.confirm()
    assert lease.undelivered_ms == 1_000
    await trio.sleep(2)
    assert not lease.is_held()
