"""Producer ids that are given again by nobody, also where ZooKeeper was set back to an old copy."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import pytest
import trio
from trio.testing import MockClock

from broker.log.partition_log import PartitionLog
from broker.producer_ids import HIGHEST, ProducerIds
from broker.zookeeper.tree import ProducerIdBlock
from failover.bootstrap.owned_ids import given, owned
from runtime.coordination.zookeeper import SessionState, ZooKeeperFault
from runtime.producer_ids import mirror_id


@dataclass(slots=True)
class Account:
    """ZooKeeper's node; so many questions in a row get no answer."""

    last: int = -1
    unanswered: int = 0

    async def last_producer_id(self) -> int:
        await trio.lowlevel.checkpoint()
        if self.unanswered:
            self.unanswered -= 1
            raise ZooKeeperFault("no answer")
        return self.last

    async def allocate_producer_ids(self, broker_id: int, above: int) -> ProducerIdBlock:
        first = max(await self.last_producer_id(), above) + 1
        self.last = first + 999
        return ProducerIdBlock(broker_id=broker_id, first=first, last=self.last)


@dataclass(slots=True)
class Log:
    """What a log remembers of producers."""

    ids: list[int] = field(default_factory=list)

    def highest_producer_id(self, *, below: int) -> int:
        return max((one for one in self.ids if one < below), default=-1)


def ids_of(account: Account, *logs: Log) -> ProducerIds:
    return ProducerIds(1, account, lambda: cast("Sequence[PartitionLog]", logs))


async def in_session(ids: ProducerIds, *states: SessionState) -> None:
    """Have a broker live through these states of its session."""
    send, receive = trio.open_memory_channel[SessionState](len(states))
    for state in states:
        send.send_nowait(state)
    send.close()
    await ids.follow(receive)


async def test_ids_are_given_in_order_from_a_block_of_ones_own() -> None:
    account = Account()
    ids, others = ids_of(account), ids_of(account)
    assert [await ids.next(), await others.next(), await ids.next()] == [0, 1_000, 1]
    assert [await ids.next() for _ in range(999)][-2:] == [999, 2_000]


async def test_an_account_that_was_set_back_is_raised_above_what_the_logs_know() -> None:
    account = Account(last=2_999)
    await in_session(ids_of(account, Log([4, 7_123]), Log([5_000])), SessionState.CONNECTED)
    assert account.last == 8_123
    assert await ids_of(account).next() == 8_124, "of another broker, which has no such log"


async def test_what_was_taken_and_is_in_no_log_yet_is_not_given_again_either() -> None:
    account = Account()
    ids = ids_of(account)
    await ids.next()
    account.last = -1
    await in_session(ids, SessionState.CONNECTED, SessionState.SUSPENDED, SessionState.CONNECTED)
    assert await ids_of(account).next() > 999


async def test_a_block_is_taken_above_ones_own_logs_without_a_new_session_too() -> None:
    assert await ids_of(Account(last=9), Log([70])).next() == 71


@pytest.mark.parametrize(
    "ids",
    [[], [999], [HIGHEST, (1 << 63) - 1], [given(0, 1), owned(given(7, 1), 3)], [mirror_id(0, 1)]],
)
async def test_an_account_that_is_right_stays_whatever_ids_clients_make_up(ids: list[int]) -> None:
    account = Account(last=999)
    await in_session(ids_of(account, Log(ids)), SessionState.CONNECTED)
    assert account.last == 999


async def test_a_zookeeper_that_does_not_answer_is_asked_again(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    account = Account(last=5, unanswered=3)
    await in_session(ids_of(account, Log([10])), SessionState.CONNECTED)
    assert account.last == 1_010
