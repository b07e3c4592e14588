"""Asking a controller for in-sync replicas: what is asked, asked again, and said of it."""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from uuid import UUID

import pytest
import trio
from trio.testing import MockClock

from broker.apis import alter_partition
from broker.controller.decisions import decide
from broker.log.config import LogConfig
from broker.replication.in_sync import IsrRules
from broker.replication.isr_changes import IsrChanges
from broker.replication.leadership import Leadership
from broker.replication.partition import Partition, Surroundings
from tests.broker.controller.clusters import cluster, registered, state
from tests.broker.replication.clocks import HandClock
from tests.broker.replication.list_log import ListLog
from tests.broker.rig import leadership
from wire.errors import ErrorCode
from wire.messages.alter_partition import (
    AlterPartitionPartitionResult,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionTopicResult,
)
from wire.net.errors import RequestTimedOut

ALONE = replace(leadership(0), isr=(0,), replicas=(0, 1), partition_epoch=1)


@dataclass(slots=True)
class FakeController:
    """Stands in for the pool and its one connection; answers by the script, one entry a request."""

    script: list[Callable[[AlterPartitionRequest], AlterPartitionResponse]]
    asked: list[tuple[int, ...]] = field(default_factory=list)
    """The ISR that each request wanted for its first partition."""

    async def connection(self, _: object) -> "FakeController":
        return self

    async def request(self, request: AlterPartitionRequest, **_: object) -> AlterPartitionResponse:
        await trio.lowlevel.checkpoint()
        partition = request.topics[0].partitions[0]
        self.asked.append(tuple(one.broker_id for one in partition.new_isr_with_epochs))
        return self.script.pop(0)(request)


def no_answer(_: AlterPartitionRequest) -> AlterPartitionResponse:
    raise RequestTimedOut("no answer in time")


def answer(request: AlterPartitionRequest, error: ErrorCode) -> AlterPartitionResponse:
    """Say this of each partition; without an error, that it is as it was wanted, one version on."""
    return AlterPartitionResponse(
        error_code=ErrorCode.NONE,
        topics=tuple(
            AlterPartitionTopicResult(
                topic_id=topic.topic_id,
                partitions=tuple(
                    AlterPartitionPartitionResult(
                        partition_index=one.partition_index,
                        error_code=error,
                        leader_id=0,
                        leader_epoch=one.leader_epoch,
                        isr=tuple(member.broker_id for member in one.new_isr_with_epochs),
                        partition_epoch=one.partition_epoch + 1,
                    )
                    for one in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def done(request: AlterPartitionRequest) -> AlterPartitionResponse:
    return answer(request, ErrorCode.NONE)


def ineligible(request: AlterPartitionRequest) -> AlterPartitionResponse:
    return answer(request, ErrorCode.INELIGIBLE_REPLICA)


def outdated(request: AlterPartitionRequest) -> AlterPartitionResponse:
    return answer(request, ErrorCode.INVALID_UPDATE_VERSION)


@asynccontextmanager
async def asking(controller: FakeController) -> AsyncIterator[IsrChanges]:
    changes = IsrChanges(0, controller, lambda: ("here", 1))  # type: ignore[arg-type]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(changes.run)
        yield changes
        nursery.cancel_scope.cancel()


def led(changes: IsrChanges, known: Leadership = ALONE) -> Partition:
    """Lead a partition whose follower, broker 1, is not in sync."""
    rules = IsrRules(lag_time_max_ms=1_000, is_alive=lambda _: True)
    partition = Partition(
        0,
        ListLog(LogConfig(), known.index),  # type: ignore[arg-type]
        known,
        HandClock(),
        surroundings=Surroundings(rules=rules, ask_for_isr=changes.ask),
    )
    partition.take(known)
    return partition


async def settled(partition: Partition) -> None:
    while partition.isr_change is not None:  # noqa: ASYNC110 - a plain attribute
        await trio.sleep(0.01)


async def test_a_lost_request_whose_copy_was_refused_is_made_void(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    controller = FakeController([no_answer, ineligible, done])
    async with asking(controller) as changes:
        partition = led(changes)
        partition.fetched_by(1, 0, 0)
        await settled(partition)
    assert controller.asked == [(0, 1), (0, 1), (0,)]
    assert partition.in_sync_replicas == {0}


async def test_a_lost_request_that_was_carried_out_late_is_found_out(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    controller = FakeController([no_answer, ineligible, outdated, done])
    async with asking(controller) as changes:
        partition = led(changes)
        partition.fetched_by(1, 0, 0)
        await settled(partition)
    assert controller.asked == [(0, 1), (0, 1), (0,), (0, 1)]
    assert partition.in_sync_replicas == {0, 1}


async def test_a_refusal_of_the_only_request_is_the_last_word(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    controller = FakeController([ineligible])
    async with asking(controller) as changes:
        partition = led(changes)
        partition.fetched_by(1, 0, 0)
        await settled(partition)
    assert controller.asked == [(0, 1)]


def as_controller(*, epoch_of_follower: int) -> Callable[..., AlterPartitionResponse]:
    """Decide as the real one does; broker 1 is registered in that life, and is not in sync."""
    live = registered(0, 1)
    live[1] = replace(live[1], epoch=epoch_of_follower)
    known = replace(cluster({0: state(0, (0,))}, (0, 1)), live=live)

    def decided(request: AlterPartitionRequest) -> AlterPartitionResponse:
        return alter_partition.answer(
            request, decide(known, alter_partition.proposal(request, known))
        )

    return decided


async def test_who_has_begun_a_new_life_since_is_not_let_in_by_what_it_held_before(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    """It had all there is, the controller was away for a while, and then its disk was empty."""
    restarted = as_controller(epoch_of_follower=205)
    controller = FakeController([no_answer, restarted, restarted, restarted])
    known = replace(ALONE, topic_id=UUID(int=1), partition_epoch=8)
    async with asking(controller) as changes:
        partition = led(changes, known)
        partition.fetched_by(1, 0, 0, broker_epoch=101)
        await settled(partition)
        assert partition.in_sync_replicas == {0}


async def test_what_an_earlier_life_sent_comes_late_and_tells_nothing(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    controller = FakeController([as_controller(epoch_of_follower=205)])
    async with asking(controller) as changes:
        partition = led(changes, replace(ALONE, topic_id=UUID(int=1), partition_epoch=8))
        partition.fetched_by(1, 0, 0, broker_epoch=205)
        partition.fetched_by(1, 9, 0, broker_epoch=101)
        follower = partition.follower(1)
        assert follower is not None
        assert (follower.log_end_offset, follower.broker_epoch) == (0, 205)
        await settled(partition)
        assert partition.in_sync_replicas == {0, 1}


async def test_a_burst_of_changes_is_one_line(
    autojump_clock: MockClock,  # noqa: ARG001
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "broker.replication")
    controller = FakeController([done] * 100)
    async with asking(controller) as changes:
        for index in range(40):
            partition = led(changes, replace(ALONE, index=index))
            partition.fetched_by(1, 0, 0)
            await trio.sleep(0.1)
        await trio.sleep(5)
    assert [record.getMessage() for record in caplog.records] == [
        "ISR: 40 partitions (t-0, t-1, t-10, ...) changed: broker 1 joined 40"
    ]
