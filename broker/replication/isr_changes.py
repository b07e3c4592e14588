"""Asks the controller for the ISRs that leaders want (AlterPartition, KIP-497).

One request at a time, with everything that is wanted by then; Kafka's DefaultAlterPartitionManager.
A change whose fate is unknown stays under way until the controller has spoken of that partition,
and a request that got no answer may still be carried out: `InSync` says what is done about that.
"""

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

import trio

from broker.replication.in_sync import PendingIsrChange
from broker.replication.isr_news import IsrNews
from broker.replication.partition import Partition
from wire.errors import ErrorCode
from wire.messages.alter_partition import (
    AlterPartitionBrokerState,
    AlterPartitionPartition,
    AlterPartitionPartitionResult,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionTopic,
)
from wire.net.errors import NetworkFault
from wire.net.pool import ConnectionPool
from wire.net.transport import Address
from wire.values import frozen

_LOG = logging.getLogger(__name__)

RETRY_S: Final = 0.05
BURST_PAUSE_S: Final = 0.5
"""Changes that follow each other faster are told of together, until it has been..."""
BURST_LONGEST_S: Final = 10.0
UNKNOWN_EPOCH: Final = -1
ANSWER_WITHIN_MS: Final = 5_000
NOT_MADE: Final = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})
"""The controller left the ISR as it was. Surely, unless an earlier request got no answer."""
TOLD_ELSEWHERE: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)
"""The controller knows a newer state and tells it by LeaderAndIsr; what was asked for is void."""


@dataclass(slots=True, kw_only=True)
class IsrCounts:
    """How often this broker's partitions lost and gained in-sync replicas."""

    shrinks: int = 0
    expands: int = 0


@frozen(kw_only=False)
class _Asked:
    partition: Partition
    change: PendingIsrChange


class IsrChanges:
    """The changes that are wanted. `controller` gives where it is, None when unknown."""

    def __init__(
        self,
        broker_id: int,
        pool: ConnectionPool,
        controller: Callable[[], Address | None],
    ) -> None:
        self.counts = IsrCounts()
        self.broker_epoch: Callable[[], int] = lambda: UNKNOWN_EPOCH
        """This registration's epoch."""
        self._broker_id = broker_id
        self._pool = pool
        self._controller = controller
        self._wanted: dict[tuple[UUID, int], Partition] = {}
        self._come = trio.Event()
        self._news = IsrNews()
        self._news_since = -math.inf

    def ask(self, partition: Partition) -> None:
        """Ask for the partition's `isr_change` soon."""
        self._wanted[partition.leadership.topic_id, partition.index] = partition
        self._come.set()

    async def run(self) -> None:
        """Ask until cancelled."""
        while True:
            await self._wait_come()
            asked = self._take_wanted()
            if not asked:
                continue
            response = await self._ask(asked)
            if response is None:
                for one in asked:
                    one.partition.isr_unanswered(one.change)
                    self.ask(one.partition)
                await trio.sleep(RETRY_S)
            elif self._take(asked, response):
                await trio.sleep(RETRY_S)

    async def _wait_come(self) -> None:
        """Wait for the next wish; when none comes for a while, say what has changed till then."""
        if self._news:
            longest = self._news_since + BURST_LONGEST_S
            with trio.move_on_at(min(trio.current_time() + BURST_PAUSE_S, longest)) as pause:
                await self._come.wait()
            if pause.cancelled_caught:
                _LOG.info("%s", self._news.take())
        await self._come.wait()
        self._come = trio.Event()
        if not self._news:
            self._news_since = trio.current_time()

    def _take_wanted(self) -> list[_Asked]:
        wanted, self._wanted = self._wanted, {}
        return [
            _Asked(partition, partition.isr_change)
            for partition in wanted.values()
            if partition.isr_change is not None
        ]

    async def _ask(self, asked: Sequence[_Asked]) -> AlterPartitionResponse | None:
        """Return the controller's answer, None when it could not be had.

        Nor is an error for the whole request an answer: a controller that stands down half way has
        maybe written what it was asked for.
        """
        address = self._controller()
        if address is None:
            return None
        try:
            connection = await self._pool.connection(address)
            response = await connection.request(
                _request(self._broker_id, self.broker_epoch(), asked), timeout_ms=ANSWER_WITHIN_MS
            )
        except NetworkFault as fault:
            _LOG.debug("the controller cannot be asked for an ISR: %s", fault)
            return None
        if response.error_code != ErrorCode.NONE:
            _LOG.debug("the controller gives no ISR: %s", ErrorCode(response.error_code).name)
            return None
        return response

    def _take(self, asked: Sequence[_Asked], response: AlterPartitionResponse) -> bool:
        """Give each partition its answer; return whether some are to be asked for again."""
        answers = {
            (topic.topic_id, answer.partition_index): answer
            for topic in response.topics
            for answer in topic.partitions
        }
        again = False
        for one in asked:
            partition = one.partition
            answer = answers.get((partition.leadership.topic_id, partition.index))
            if partition.isr_change is not one.change:
                continue  # the controller has spoken of it in another way meanwhile
            if answer is None or not self._settle(one, answer):
                self.ask(partition)
                again = True
        return again

    def _settle(self, one: _Asked, answer: AlterPartitionPartitionResult) -> bool:
        """Return whether the answer is a final one."""
        partition, change = one.partition, one.change
        if answer.error_code == ErrorCode.NONE:
            self._confirm(partition, answer)
            return True
        error = ErrorCode(answer.error_code)
        self._news.note_refused(str(partition.log.name), error)
        if error in NOT_MADE:
            partition.isr_refused(change)
        elif error is ErrorCode.INVALID_UPDATE_VERSION:
            partition.isr_outdated(change)
        return error in NOT_MADE or error in TOLD_ELSEWHERE

    def _confirm(self, partition: Partition, answer: AlterPartitionPartitionResult) -> None:
        before = partition.in_sync_replicas
        partition.isr_confirmed(
            replace(
                partition.leadership,
                leader_epoch=answer.leader_epoch,
                isr=answer.isr,
                partition_epoch=answer.partition_epoch,
            )
        )
        after = partition.in_sync_replicas
        if after != before:
            self.counts.shrinks += bool(before - after)
            self.counts.expands += bool(after - before)
            self._news.note_changed(str(partition.log.name), before, after)


def _request(broker_id: int, broker_epoch: int, asked: Sequence[_Asked]) -> AlterPartitionRequest:
    by_topic: dict[UUID, list[AlterPartitionPartition]] = {}
    for one in asked:
        by_topic.setdefault(one.partition.leadership.topic_id, []).append(
            AlterPartitionPartition(
                partition_index=one.partition.index,
                leader_epoch=one.change.leader_epoch,
                new_isr_with_epochs=tuple(
                    AlterPartitionBrokerState(
                        broker_id=broker,
                        broker_epoch=one.change.broker_epochs.get(broker, UNKNOWN_EPOCH),
                    )
                    for broker in one.change.isr
                ),
                partition_epoch=one.change.partition_epoch,
            )
        )
    return AlterPartitionRequest(
        broker_id=broker_id,
        broker_epoch=broker_epoch,
        topics=tuple(
            AlterPartitionTopic(topic_id=topic_id, partitions=tuple(partitions))
            for topic_id, partitions in by_topic.items()
        ),
    )
