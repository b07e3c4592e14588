"""The group coordinator of one broker: writes what the shards decide, and answers when it is safe.

    decide ─► append ─► replay        one step, nobody gets in between
                          └─► the high watermark passes ─► answers

Every answer waits until everything decided before it is safe, also when it wrote nothing itself:
nobody is ever told of a state that a failover would take back.
"""

import logging
import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, Final, Protocol, TypeAlias, TypeVar

import trio

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.coordinator_log import wait_safe
from broker.groups.consumer.draft import Matches
from broker.groups.consumer.group import ConsumerGroup
from broker.groups.consumer.heartbeats import Beating
from broker.groups.consumer.patterns import PatternMatches
from broker.groups.consumer.sight import SEES_ALL, Hidden, RightsSeen, SightBasis, unseen
from broker.groups.coordinated_partition import CoordinatedPartition
from broker.groups.loading import load
from broker.groups.settings import MAX_STRING_BYTES, GroupSettings
from broker.groups.shard import Shard
from broker.groups.waiting import WaitingRoom
from broker.groups.write_operation import DeferredAnswer, Ticket, WriteOperation
from broker.led_partition import CONSUMER_OFFSETS, LedPartition, NotLeader
from broker.log.results import StorageError
from broker.metadata_cache import MetadataCache
from wire.consumer_offsets import partition_for
from wire.errors import ErrorCode
from wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from wire.primitives import MalformedMessage
from wire.record_batch import CorruptBatch

Result = TypeVar("Result")
Ask: TypeAlias = Callable[[Shard, WriteOperation], Result]
AskLater: TypeAlias = Callable[[Shard, WriteOperation, Ticket], None]

LOAD_RETRY_S: Final = 1.0
SLOW_LOAD_MS: Final = 1_000
"""Clients notice a load that takes longer, so the log should tell of it."""

_log = logging.getLogger(__name__)


class Host(Protocol):
    """The part of its node that the coordinator uses."""

    @property
    def config(self) -> BrokerConfig: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def metadata(self) -> MetadataCache: ...


class GroupCoordinator:
    """Coordinates the groups whose partition of `__consumer_offsets` this broker leads.

    `run` has to be running before the first partition is led.
    """

    def __init__(self, node: Host) -> None:
        self._node = node
        self._settings = GroupSettings.of(node.config)
        self._partitions: dict[int, CoordinatedPartition] = {}
        self._waiting = WaitingRoom()
        self._matches = PatternMatches(node.metadata)
        self._nursery: trio.Nursery | None = None
        self._sleeps_until_ms: float = math.inf
        self._earlier = trio.Event()
        self._one_load = trio.Lock()
        """Held while a partition is loaded: several at once would keep the loop busy."""

    @property
    def settings(self) -> GroupSettings:
        """The limits that requests are checked against."""
        return self._settings

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep the time of all groups and forget old offsets, until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            nursery.start_soon(self._expire_regularly)
            await nursery.start(self._forget_deleted_topics)
            task_status.started()
            await self._keep_time()

    # What requests ask

    async def ask(self, group_id: str, decide: Ask[Result]) -> Result | ErrorCode:
        """Let the group's shard decide; return its decision once it is safe, or why not.

        NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, INVALID_GROUP_ID; and
        COORDINATOR_NOT_AVAILABLE when the decision could not be written, or not be made safe
        within offsets.commit.timeout.ms (then it may still hold).
        """
        partition = self._partition_of(group_id)
        if isinstance(partition, ErrorCode):
            return partition
        return await self._decide(partition, decide)

    async def ask_later(self, group_id: str, decide: AskLater) -> Any:  # noqa: ANN401 - its answer
        """Let the group's shard decide; return the answer, which this or a later operation gives.

        An ErrorCode stands for the whole answer, for the reasons `ask` has.
        """
        partition = self._partition_of(group_id)
        if isinstance(partition, ErrorCode):
            return partition
        with self._waiting.enter() as waiting:
            operation = self._begin(partition.loaded)
            decide(partition.loaded, operation, waiting.ticket)
            self._conclude(partition, operation)
            return await waiting.wait_answered()

    async def ask_all(self, decide: Ask[Iterable[Result]]) -> list[Result] | ErrorCode:
        """Collect from every shard; one that is still loading is an error for the whole."""
        collected: list[Result] = []
        for partition in list(self._partitions.values()):
            if partition.shard is None:
                return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            part = await self._decide(partition, decide)
            if isinstance(part, ErrorCode):
                if part is ErrorCode.NOT_COORDINATOR:  # resigned meanwhile: another one lists it
                    continue
                return part
            collected.extend(part)
        return collected

    async def heartbeat(
        self, beating: Beating, sight: RightsSeen = SEES_ALL
    ) -> ConsumerGroupHeartbeatResponse | ErrorCode:
        """Let a member of the new protocol beat; as `ask`.

        The patterns of the whole group are held against the topics first, if those have changed,
        and that of the member against its rights, if either has.
        """
        partition = self._partition_of(beating.group_id)
        if isinstance(partition, ErrorCode):
            return partition
        group = partition.loaded.consumer.groups.get(beating.group_id)
        wanted = {beating.pattern} if beating.pattern else set()
        changes = self._node.metadata.changes
        if group is not None and group.seen_changes != changes:
            wanted |= group.patterns.keys()
        occasion = _occasion_to_look(beating, group, sight, changes)
        if occasion is not None:
            wanted.add(occasion.pattern)
        if not wanted:
            return await self._decide(partition, partial(_beat, beating))
        found = {pattern: await self._matches.of(pattern) for pattern in sorted(wanted)}
        usable = {name: topics for name, topics in found.items() if topics is not None}
        beating = replace(beating, matches=Matches(topics=usable, changes=changes))
        if occasion is not None:
            matched = beating.matches.topics.get(occasion.pattern, ())
            beating = replace(beating, hidden=Hidden(occasion, await unseen(matched, sight)))
        return await self.ask(beating.group_id, partial(_beat, beating))

    # Transactions

    def has_loaded(self, index: int) -> bool:
        """Say whether a partition's groups are known, so that a marker would be applied."""
        partition = self._partitions.get(index)
        return partition is not None and partition.shard is not None

    def transaction_ended(
        self, index: int, offset: int, producer_id: int, *, is_commit: bool
    ) -> None:
        """Apply the marker that has just been written to a loaded partition at `offset`."""
        partition = self._partitions[index]
        partition.last_written = offset
        partition.loaded.end_transaction(producer_id, is_commit=is_commit)

    # Leadership

    def on_leader(self, partition: LedPartition) -> None:
        """Begin to coordinate a partition's groups: load them first."""
        known = self._partitions.get(partition.index)
        if known is not None and known.shard is not None:
            known.led = partition  # led again in a new epoch; nobody wrote in between
            return
        assert self._nursery is not None, "led before the coordinator runs"
        coordinated = self._partitions[partition.index] = CoordinatedPartition(led=partition)
        if known is not None:
            known.loading.cancel()
            coordinated.deleted_topics = known.deleted_topics
        self._nursery.start_soon(self._load, coordinated)

    def on_resigned(self, topic: str, index: int) -> None:
        """Send everybody who waits for this partition's groups to the next coordinator."""
        partition = self._partitions.pop(index, None)
        if partition is None:
            return
        partition.loading.cancel()
        if partition.shard is not None:
            operation = self._begin(partition.shard)
            partition.shard.resign(operation)
            self._waiting.give(operation.answers)
            _log.debug("no longer coordinates the groups of %s-%d", topic, index)

    async def _load(self, partition: CoordinatedPartition) -> None:
        led = partition.led
        began_ms = self._node.clock.monotonic_ms()
        with partition.loading:
            while partition.shard is None:
                try:
                    async with self._one_load:
                        shard = await load(led, self._settings, self._node.metadata)
                except NotLeader:
                    return  # on_resigned follows
                except (StorageError, CorruptBatch, MalformedMessage) as fault:
                    # Clients see that the groups are being loaded, which stays true.
                    _log.error("%s-%d: %s", led.topic, led.index, fault)
                    await trio.sleep(LOAD_RETRY_S)
                    continue
                partition.shard = shard
                partition.last_written = led.log_end_offset - 1
                operation = self._begin(shard)
                shard.start_sessions(operation)
                shard.forget(partition.deleted_topics, operation)
                self._conclude(partition, operation)
                took_ms = operation.now_ms - began_ms
                _log.log(
                    logging.INFO if took_ms >= SLOW_LOAD_MS else logging.DEBUG,
                    "coordinates %d groups of %s-%d, loaded in %d ms",
                    len(shard.groups),
                    led.topic,
                    led.index,
                    took_ms,
                )

    # One write operation

    def _partition_of(self, group_id: str) -> CoordinatedPartition | ErrorCode:
        if len(group_id.encode(errors="replace")) > MAX_STRING_BYTES:
            return ErrorCode.INVALID_GROUP_ID
        partition_count = self._node.metadata.partition_count(CONSUMER_OFFSETS)
        if not partition_count:
            return ErrorCode.NOT_COORDINATOR
        partition = self._partitions.get(partition_for(group_id, partition_count))
        if partition is None:
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if partition.shard is None else partition

    def _begin(self, shard: Shard) -> WriteOperation:
        clock = self._node.clock
        return shard.begin(clock.monotonic_ms(), clock.wall_ms())

    async def _decide(
        self, partition: CoordinatedPartition, decide: Ask[Result]
    ) -> Result | ErrorCode:
        operation = self._begin(partition.loaded)
        result = decide(partition.loaded, operation)
        error = self._conclude(partition, operation)
        if error is ErrorCode.NONE:
            error = await self._wait_safe(partition, partition.last_written)
        return result if error is ErrorCode.NONE else error

    def _conclude(self, partition: CoordinatedPartition, operation: WriteOperation) -> ErrorCode:
        """Write and replay what was decided, and see to the answers. Never waits."""
        error = partition.write(operation)
        if error is not ErrorCode.NONE:
            self._waiting.give(_instead(operation.answers, error))
        elif partition.is_safe:
            self._waiting.give(operation.answers)
        elif operation.answers:
            assert self._nursery is not None
            self._nursery.start_soon(
                self._give_when_safe, partition, partition.last_written, operation.answers
            )
        due_ms = partition.loaded.next_deadline_ms
        if due_ms is not None and due_ms < self._sleeps_until_ms:
            self._earlier.set()
        return error

    async def _give_when_safe(
        self, partition: CoordinatedPartition, offset: int, answers: list[DeferredAnswer]
    ) -> None:
        error = await self._wait_safe(partition, offset)
        self._waiting.give(answers if error is ErrorCode.NONE else _instead(answers, error))

    async def _wait_safe(self, partition: CoordinatedPartition, offset: int) -> ErrorCode:
        return await wait_safe(partition.led, offset, self._settings.offset_commit_timeout_ms)

    # Time

    async def _keep_time(self) -> None:
        while True:
            self._earlier = trio.Event()
            self._sleeps_until_ms = self._next_deadline_ms()
            now_ms = self._node.clock.monotonic_ms()
            with trio.move_on_after(max(self._sleeps_until_ms - now_ms, 0) / 1000):
                await self._earlier.wait()
            for partition in list(self._partitions.values()):
                self._on_time(partition)

    def _next_deadline_ms(self) -> float:
        deadlines = (partition.next_deadline_ms for partition in self._partitions.values())
        return min((due for due in deadlines if due is not None), default=math.inf)

    def _on_time(self, partition: CoordinatedPartition) -> None:
        due_ms = partition.next_deadline_ms
        if due_ms is not None and due_ms <= self._node.clock.monotonic_ms():
            operation = self._begin(partition.loaded)
            partition.loaded.on_time(operation)
            self._conclude(partition, operation)

    async def _expire_regularly(self) -> None:
        while True:
            await trio.sleep(self._settings.offsets_retention_check_interval_ms / 1000)
            await self._each_shard(
                lambda shard, operation: shard.expire_offsets(operation, self._node.clock.age_ms())
            )

    async def _forget_deleted_topics(self, task_status: trio.TaskStatus[None]) -> None:
        """Forget what groups have committed for topics that the controller has deleted.

        A topic of the same name that is created later has other records: positions in the former
        one would skip some of them. Positions in a topic that is deleted while this broker is down
        stay, as in Kafka.
        """
        metadata = self._node.metadata
        known = {name: view.topic_id for name, view in metadata.topics().items()}
        task_status.started()
        while True:
            now = {name: view.topic_id for name, view in metadata.topics().items()}
            deleted = {name for name, topic_id in known.items() if now.get(name) != topic_id}
            known = now
            if deleted:
                await self._forget(deleted)  # others may be deleted meanwhile
            else:
                await metadata.wait_changed()

    async def _forget(self, topics: Collection[str]) -> None:
        for partition in self._partitions.values():
            if partition.shard is None:
                partition.deleted_topics.update(topics)
        await self._each_shard(lambda shard, operation: shard.forget(topics, operation))

    async def _each_shard(self, decide: Callable[[Shard, WriteOperation], None]) -> None:
        for partition in [one for one in self._partitions.values() if one.shard is not None]:
            if self._partitions.get(partition.led.index) is partition:
                operation = self._begin(partition.loaded)
                decide(partition.loaded, operation)
                self._conclude(partition, operation)
            await trio.lowlevel.checkpoint()


def _beat(
    beating: Beating, shard: Shard, operation: WriteOperation
) -> ConsumerGroupHeartbeatResponse:
    return shard.consumer_heartbeat(beating, operation)


def _instead(answers: Iterable[DeferredAnswer], error: ErrorCode) -> list[DeferredAnswer]:
    return [DeferredAnswer(ticket=answer.ticket, response=error) for answer in answers]


def _occasion_to_look(
    beating: Beating, group: ConsumerGroup | None, sight: RightsSeen, topic_changes: int
) -> SightBasis | None:
    """Return on what occasion a member's sight is looked at now; None where nothing is new."""
    member = None if group is None else group.members.get(beating.member_id)
    pattern = beating.pattern
    if pattern is None and member is not None:
        pattern = member.pattern
    if not pattern or beating.is_leaving:
        return None
    occasion = SightBasis(pattern, topic_changes, sight.changes)
    known = None if group is None else group.hidden.get(beating.member_id)
    return None if known is not None and known.occasion == occasion else occasion
