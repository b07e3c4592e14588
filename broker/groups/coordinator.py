"""The group coordinator of one broker: writes what the shards decide, and answers when it is safe.

    decide ─► append ─► replay        one step, nobody gets in between
                          └─► the high watermark passes ─► answers

Every answer waits until everything decided before it is safe, also when it wrote nothing itself:
nobody is ever told of a state that a failover would take back.
"""

import logging
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, Protocol, TypeAlias, TypeVar

import trio

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.groups.loading import load
from broker.groups.seat import Seat
from broker.groups.settings import MAX_STRING_BYTES, GroupSettings
from broker.groups.shard import Shard
from broker.groups.turn import Answer, Ticket, Turn
from broker.groups.waiting import WaitingRoom
from broker.led_partition import CONSUMER_OFFSETS, LedPartition, NotLeader
from broker.log.results import StorageError
from broker.metadata_cache import MetadataCache
from wire.consumer_offsets import partition_for
from wire.errors import ErrorCode
from wire.primitives import MalformedMessage
from wire.record_batch import CorruptBatch

Result = TypeVar("Result")
Ask: TypeAlias = Callable[[Shard, Turn], Result]
AskLater: TypeAlias = Callable[[Shard, Turn, Ticket], None]

LOAD_RETRY_S: Final = 1.0
SLOW_LOAD_MS: Final = 1_000
"""Clients notice a load that takes longer, so the log should tell of it."""

_log = logging.getLogger(__name__)


class Host(Protocol):
    """What the coordinator uses of the node it runs in."""

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
        self._seats: dict[int, Seat] = {}
        self._waiting = WaitingRoom()
        self._nursery: trio.Nursery | None = None
        self._sleeps_until_ms: float = math.inf
        self._earlier = trio.Event()
        self._loading_turn = trio.Lock()
        """Several at once would each take a slice of the loop between two turns of the others."""

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
        seat = self._seat_of(group_id)
        if isinstance(seat, ErrorCode):
            return seat
        return await self._decide(seat, decide)

    async def ask_later(self, group_id: str, decide: AskLater) -> Any:  # noqa: ANN401 - its answer
        """Let the group's shard decide; return the answer given in this turn or in a later one.

        An ErrorCode stands for the whole answer, for the reasons `ask` has.
        """
        seat = self._seat_of(group_id)
        if isinstance(seat, ErrorCode):
            return seat
        with self._waiting.enter() as waiting:
            turn = self._turn(seat.loaded)
            decide(seat.loaded, turn, waiting.ticket)
            self._conclude(seat, turn)
            return await waiting.wait_answered()

    async def ask_all(self, decide: Ask[Iterable[Result]]) -> list[Result] | ErrorCode:
        """Collect from every shard; one that is still loading is an error for the whole."""
        collected: list[Result] = []
        for seat in list(self._seats.values()):
            if seat.shard is None:
                return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            part = await self._decide(seat, decide)
            if isinstance(part, ErrorCode):
                if part is ErrorCode.NOT_COORDINATOR:  # resigned meanwhile: another one lists it
                    continue
                return part
            collected.extend(part)
        return collected

    def state_counts(self) -> Mapping[str, int]:
        """Return how many groups are in each state, for metrics."""
        counts: dict[str, int] = {}
        for seat in self._seats.values():
            for group in () if seat.shard is None else seat.shard.groups.values():
                counts[group.state.value] = counts.get(group.state.value, 0) + 1
        return counts

    # Leadership

    def on_leader(self, partition: LedPartition) -> None:
        """Begin to coordinate a partition's groups: load them first."""
        known = self._seats.get(partition.index)
        if known is not None and known.shard is not None:
            known.partition = partition  # led again in a new epoch; nobody wrote in between
            return
        assert self._nursery is not None, "led before the coordinator runs"
        seat = self._seats[partition.index] = Seat(partition=partition)
        if known is not None:
            known.loading.cancel()
            seat.deleted_topics = known.deleted_topics
        self._nursery.start_soon(self._load, seat)

    def on_resigned(self, topic: str, index: int) -> None:
        """Send everybody who waits for this partition's groups to the next coordinator."""
        seat = self._seats.pop(index, None)
        if seat is None:
            return
        seat.loading.cancel()
        if seat.shard is not None:
            turn = self._turn(seat.shard)
            seat.shard.resign(turn)
            self._waiting.give(turn.answers)
            _log.debug("no longer coordinates the groups of %s-%d", topic, index)

    async def _load(self, seat: Seat) -> None:
        partition = seat.partition
        began_ms = self._node.clock.monotonic_ms()
        with seat.loading:
            while seat.shard is None:
                try:
                    async with self._loading_turn:
                        shard = await load(partition, self._settings)
                except NotLeader:
                    return  # on_resigned follows
                except (StorageError, CorruptBatch, MalformedMessage) as fault:
                    # Clients see that the groups are being loaded, which stays true.
                    _log.error("%s-%d: %s", partition.topic, partition.index, fault)
                    await trio.sleep(LOAD_RETRY_S)
                    continue
                seat.shard = shard
                seat.last_written = partition.log_end_offset - 1
                turn = self._turn(shard)
                shard.start_sessions(turn)
                shard.forget(seat.deleted_topics, turn)
                self._conclude(seat, turn)
                took_ms = turn.now_ms - began_ms
                _log.log(
                    logging.INFO if took_ms >= SLOW_LOAD_MS else logging.DEBUG,
                    "coordinates %d groups of %s-%d, loaded in %d ms",
                    len(shard.groups),
                    partition.topic,
                    partition.index,
                    took_ms,
                )

    # One turn

    def _seat_of(self, group_id: str) -> Seat | ErrorCode:
        if len(group_id.encode(errors="replace")) > MAX_STRING_BYTES:
            return ErrorCode.INVALID_GROUP_ID
        partition_count = self._node.metadata.partition_count(CONSUMER_OFFSETS)
        if not partition_count:
            return ErrorCode.NOT_COORDINATOR
        seat = self._seats.get(partition_for(group_id, partition_count))
        if seat is None:
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if seat.shard is None else seat

    def _turn(self, shard: Shard) -> Turn:
        clock = self._node.clock
        return shard.turn(clock.monotonic_ms(), clock.wall_ms())

    async def _decide(self, seat: Seat, decide: Ask[Result]) -> Result | ErrorCode:
        turn = self._turn(seat.loaded)
        result = decide(seat.loaded, turn)
        error = self._conclude(seat, turn)
        if error is ErrorCode.NONE:
            error = await self._wait_safe(seat, seat.last_written)
        return result if error is ErrorCode.NONE else error

    def _conclude(self, seat: Seat, turn: Turn) -> ErrorCode:
        """Write and replay what was decided, and see to the answers. Never waits."""
        error = seat.write(turn)
        if error is not ErrorCode.NONE:
            self._waiting.give(_instead(turn.answers, error))
        elif seat.is_safe:
            self._waiting.give(turn.answers)
        elif turn.answers:
            assert self._nursery is not None
            self._nursery.start_soon(self._give_when_safe, seat, seat.last_written, turn.answers)
        due_ms = seat.loaded.next_deadline_ms
        if due_ms is not None and due_ms < self._sleeps_until_ms:
            self._earlier.set()
        return error

    async def _give_when_safe(self, seat: Seat, offset: int, answers: list[Answer]) -> None:
        error = await self._wait_safe(seat, offset)
        self._waiting.give(answers if error is ErrorCode.NONE else _instead(answers, error))

    async def _wait_safe(self, seat: Seat, offset: int) -> ErrorCode:
        return await seat.wait_safe(offset, self._settings.offset_commit_timeout_ms)

    # Time

    async def _keep_time(self) -> None:
        while True:
            self._earlier = trio.Event()
            self._sleeps_until_ms = self._next_deadline_ms()
            now_ms = self._node.clock.monotonic_ms()
            with trio.move_on_after(max(self._sleeps_until_ms - now_ms, 0) / 1000):
                await self._earlier.wait()
            for seat in list(self._seats.values()):
                self._on_time(seat)

    def _next_deadline_ms(self) -> float:
        deadlines = (seat.next_deadline_ms for seat in self._seats.values())
        return min((due for due in deadlines if due is not None), default=math.inf)

    def _on_time(self, seat: Seat) -> None:
        due_ms = seat.next_deadline_ms
        if due_ms is not None and due_ms <= self._node.clock.monotonic_ms():
            turn = self._turn(seat.loaded)
            seat.loaded.on_time(turn)
            self._conclude(seat, turn)

    async def _expire_regularly(self) -> None:
        while True:
            await trio.sleep(self._settings.offsets_retention_check_interval_ms / 1000)
            await self._each_shard(
                lambda shard, turn: shard.expire_offsets(turn, self._node.clock.age_ms())
            )

    async def _forget_deleted_topics(self, task_status: trio.TaskStatus[None]) -> None:
        """Forget what groups have committed for topics that the controller has deleted.

        A topic of the same name that is created later has other records: positions in the former
        one would skip some of them. What is deleted while this broker is down stays, as in Kafka.
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
        for seat in self._seats.values():
            if seat.shard is None:
                seat.deleted_topics.update(topics)
        await self._each_shard(lambda shard, turn: shard.forget(topics, turn))

    async def _each_shard(self, decide: Callable[[Shard, Turn], None]) -> None:
        for seat in [seat for seat in self._seats.values() if seat.shard is not None]:
            if self._seats.get(seat.partition.index) is seat:
                turn = self._turn(seat.loaded)
                decide(seat.loaded, turn)
                self._conclude(seat, turn)
            await trio.lowlevel.checkpoint()


def _instead(answers: Iterable[Answer], error: ErrorCode) -> list[Answer]:
    return [Answer(ticket=answer.ticket, response=error) for answer in answers]
