"""Follows one leader broker: fetches all partitions that it leads and this broker has replicas of.

    ask (one request for all) ─► append as it came, or cut where logs part ─► ask from there

Kafka's ReplicaFetcherThread, as one task per leader. Nothing is awaited between looking at a
partition and changing it: leadership may change at any await.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

import trio

from broker.clock import Clock
from broker.log.results import BatchRefused, StorageError
from broker.replication.fetch_positions import NO_SESSION, FetchPositions, TopicIdPartition
from broker.replication.leader_bounds import LeaderBounds, ask_bounds
from broker.replication.partition import Partition
from broker.replication.quotas import ReplicationQuota
from broker.replication.truncation import UNKNOWN, Divergence, truncation_offset
from wire.errors import ErrorCode
from wire.messages.fetch import (
    FetchPartition,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
    ReplicaState,
)
from wire.net.backoff import Backoff
from wire.net.connection import Connection
from wire.net.errors import NetworkFault
from wire.net.pool import ConnectionPool
from wire.net.transport import Address
from wire.record_batch import Buffer
from wire.values import frozen

_LOG = logging.getLogger(__name__)

HELD_BACK_S: Final = 0.5
"""How soon a throttled replica asks again, as often as Kafka's fetchers come round."""
BY_REPLICA_STATE_SINCE: Final = 15
TURN_BYTES: Final = 256 * 1024
QUIET_ERRORS: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)
"""The leader, or this broker, has not heard the controller's newest word yet."""


@frozen
class FetcherSettings:
    """Kafka's `replica.*` settings."""

    replica_fetch_max_bytes: int = 1_048_576
    replica_fetch_response_max_bytes: int = 10_485_760
    replica_fetch_min_bytes: int = 1
    replica_fetch_wait_max_ms: int = 500
    replica_fetch_backoff_ms: int = 1_000
    replica_socket_timeout_ms: int = 30_000
    quota: ReplicationQuota = field(default_factory=ReplicationQuota)
    """What throttled replicas may have."""
    broker_epoch: Callable[[], int] = lambda: -1
    """This life of this broker, -1 for unknown: leaders let in whom they know to be alive."""


@dataclass(slots=True)
class _Followed:
    """One partition and when it may be asked for again after a fault."""

    partition: Partition
    backoff: Backoff = field(default_factory=Backoff)


class ReplicaFetcher:
    """All partitions that this broker follows on one leader. `run` it for as long as it is used."""

    def __init__(
        self,
        broker_id: int,
        leader_id: int,
        pool: ConnectionPool,
        clock: Clock,
        settings: FetcherSettings,
    ) -> None:
        self.leader_id = leader_id
        self.address: Address | None = None
        """Where the leader is; None until somebody has told."""
        self._broker_id = broker_id
        self._pool = pool
        self._clock = clock
        self._settings = settings
        self._followed: dict[TopicIdPartition, _Followed] = {}
        self._resting: dict[TopicIdPartition, float] = {}
        self._positions = FetchPositions()
        self._changed = trio.Event()

    def follow(self, partition: Partition) -> None:
        """Begin to fetch, or go on in a new leader epoch."""
        name = name_of(partition)
        self._resting.pop(name, None)
        self._followed[name] = _Followed(partition)
        self._ask_or_hold_back(name, partition)
        self.wake()

    def leave(self, partition: Partition) -> None:
        """Fetch it no longer; an answer that is under way is not heeded."""
        name = name_of(partition)
        self._resting.pop(name, None)
        if self._followed.pop(name, None) is not None:
            self._positions.drop(name)

    def wake(self) -> None:
        """Look again at what is to be done."""
        self._changed.set()

    async def run(self) -> None:
        """Fetch until cancelled."""
        while True:
            self._end_rests()
            if self.address is None or self._positions.is_empty:
                await self._wait()
                continue
            try:
                connection = await self._pool.connection(self.address)
                await self._fetch(connection)
            except NetworkFault as fault:
                # The pool leaves a broker alone for longer each time that it cannot be reached.
                _LOG.debug("leader %s: %s", self.leader_id, fault)
                self._positions.lost()

    async def _wait(self) -> None:
        with trio.move_on_at(min(self._resting.values(), default=float("inf"))):
            await self._changed.wait()
        self._changed = trio.Event()

    # -- asking -----------------------------------------------------------------------------------

    def _ask_from_end(self, name: TopicIdPartition, partition: Partition) -> None:
        log = partition.log
        self._positions.put(
            name,
            FetchPartition(
                partition=name.partition,
                current_leader_epoch=partition.leader_epoch,
                fetch_offset=log.log_end_offset,
                last_fetched_epoch=log.latest_leader_epoch,
                log_start_offset=log.log_start_offset,
                partition_max_bytes=self._settings.replica_fetch_max_bytes,
            ),
        )

    def _ask_or_hold_back(self, name: TopicIdPartition, partition: Partition) -> None:
        """Ask, unless throttled replicas have had too much lately (KIP-73): then look later."""
        if partition.arrives_slowly and self._settings.quota.is_exceeded(
            self._clock.monotonic_ms()
        ):
            self._resting[name] = trio.current_time() + HELD_BACK_S
            self._positions.drop(name)
        else:
            self._ask_from_end(name, partition)

    def _rest(self, name: TopicIdPartition, followed: _Followed) -> None:
        """Leave a partition out for a while, longer each time up to replica.fetch.backoff.ms."""
        now = trio.current_time()
        followed.backoff = followed.backoff.after_failure(now, 0.5)
        longest = now + self._settings.replica_fetch_backoff_ms / 1000
        self._resting[name] = min(followed.backoff.not_before, longest)
        self._positions.drop(name)

    def _end_rests(self) -> None:
        if not self._resting:
            return
        now = trio.current_time()
        for name, until in list(self._resting.items()):
            if until <= now:
                del self._resting[name]
                self._ask_or_hold_back(name, self._followed[name].partition)

    async def _fetch(self, connection: Connection) -> None:
        settings = self._settings
        positions = self._positions
        topics, forgotten = positions.next_request()
        names_state = connection.version_of(FetchRequest) >= BY_REPLICA_STATE_SINCE
        request = FetchRequest(
            replica_id=-1 if names_state else self._broker_id,
            replica_state=ReplicaState(
                replica_id=self._broker_id, replica_epoch=settings.broker_epoch()
            )
            if names_state
            else ReplicaState(),
            max_wait_ms=self._wait_max_ms(),
            min_bytes=settings.replica_fetch_min_bytes,
            max_bytes=settings.replica_fetch_response_max_bytes,
            session_id=positions.session_id,
            session_epoch=positions.session_epoch,
            topics=topics,
            forgotten_topics_data=forgotten,
        )
        response = await connection.request(request, timeout_ms=settings.replica_socket_timeout_ms)
        if response.error_code != ErrorCode.NONE:
            _LOG.debug("leader %s: session: %s", self.leader_id, response.error_code)
            positions.lost()
            return
        if positions.session_id == NO_SESSION:
            positions.answered(response.session_id)
        else:
            positions.continued()
        await self._take(response, connection)

    def _wait_max_ms(self) -> int:
        """Wait at the leader no longer than until a partition's rest is over."""
        most = self._settings.replica_fetch_wait_max_ms
        if not self._resting:
            return most
        soonest_s = min(self._resting.values()) - trio.current_time()
        return max(0, min(most, int(soonest_s * 1000) + 1))

    # -- answers ----------------------------------------------------------------------------------

    async def _take(self, response: FetchResponse, connection: Connection) -> None:
        out_of_range: list[TopicIdPartition] = []
        taken_bytes = 0
        for name, data in _answers(response):
            followed = self._awaited(name)
            if followed is None:
                continue
            try:
                self._take_one(name, followed, data, out_of_range)
            except StorageError as fault:
                _LOG.error("%s: not replicated any more: %s", followed.partition.log.name, fault)
                self.leave(followed.partition)
            taken_bytes += len(data.records or b"")
            if taken_bytes >= TURN_BYTES:
                taken_bytes = 0
                await trio.lowlevel.checkpoint()  # a large answer leaves the clients their turn
        if out_of_range:
            await self._find_range(out_of_range, connection)

    def _awaited(self, name: TopicIdPartition) -> _Followed | None:
        """Return the partition if an answer about it is about what it still is."""
        followed = self._followed.get(name)
        asked = self._positions.told.get(name)
        if followed is None or asked is None or name in self._resting:
            return None
        partition = followed.partition
        is_same = (asked.current_leader_epoch, asked.fetch_offset) == (
            partition.leader_epoch,
            partition.log_end_offset,
        )
        return followed if is_same else None

    def _take_one(
        self,
        name: TopicIdPartition,
        followed: _Followed,
        data: FetchPartitionData,
        out_of_range: list[TopicIdPartition],
    ) -> None:
        partition = followed.partition
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            out_of_range.append(name)
        elif data.error_code != ErrorCode.NONE:
            error = ErrorCode(data.error_code)
            level = logging.DEBUG if error in QUIET_ERRORS else logging.WARNING
            _LOG.log(level, "%s: leader %s: %s", partition.log.name, self.leader_id, error.name)
            self._rest(name, followed)
        elif data.diverging_epoch.epoch != UNKNOWN:
            self._truncate(
                partition,
                Divergence(
                    epoch=data.diverging_epoch.epoch, end_offset=data.diverging_epoch.end_offset
                ),
            )
            self._ask_from_end(name, partition)
        else:
            self._append(name, followed, data)

    def _append(
        self, name: TopicIdPartition, followed: _Followed, data: FetchPartitionData
    ) -> None:
        partition = followed.partition
        told = self._positions.told[name]
        records: Buffer = b"" if data.records is None else data.records  # type: ignore[assignment]
        appended = partition.append_fetched(
            records,
            high_watermark=data.high_watermark,
            log_start_offset=data.log_start_offset,
            now_ms=self._clock.now_ms(),
        )
        if isinstance(appended, BatchRefused):
            _LOG.error(
                "%s: leader %s sent: %s", partition.log.name, self.leader_id, appended.reason
            )
            self._rest(name, followed)
            return
        if followed.backoff.failures:
            followed.backoff = Backoff()
        if partition.arrives_slowly:
            self._settings.quota.record(len(records), self._clock.monotonic_ms())
        if data.high_watermark > partition.log_end_offset:
            self._ask_or_hold_back(name, partition)
        elif appended is not None or partition.log_start_offset != told.log_start_offset:
            self._ask_from_end(name, partition)

    def _truncate(self, partition: Partition, divergence: Divergence) -> None:
        offset = truncation_offset(partition.log, divergence)
        _LOG.info(
            "%s: cut from %s to %s: leader %s says that epoch %s ended at %s",
            partition.log.name,
            partition.log_end_offset,
            offset,
            self.leader_id,
            divergence.epoch,
            divergence.end_offset,
        )
        partition.truncate_to(offset, now_ms=self._clock.now_ms())

    async def _find_range(self, names: Iterable[TopicIdPartition], connection: Connection) -> None:
        """Go to where the leader's log is, if ours lies outside of it."""
        for name in names:
            followed = self._awaited(name)
            if followed is None:
                continue
            partition = followed.partition
            bounds = await ask_bounds(
                connection,
                self._broker_id,
                partition.topic,
                name.partition,
                partition.leader_epoch,
            )
            if self._awaited(name) is not followed:
                continue  # the controller has spoken meanwhile
            if bounds is None:
                self._rest(name, followed)
                continue
            try:
                self._move_into(partition, bounds)
            except StorageError as fault:
                _LOG.error("%s: not replicated any more: %s", partition.log.name, fault)
                self.leave(partition)
            else:
                self._ask_from_end(name, partition)

    def _move_into(self, partition: Partition, bounds: LeaderBounds) -> None:
        """Cut what the leader does not have; begin anew where it has deleted all that we have."""
        now_ms = self._clock.now_ms()
        end = partition.log_end_offset
        if bounds.log_end_offset < end:
            _LOG.warning(
                "%s: cut from %s to %s, where leader %s ends",
                partition.log.name,
                end,
                bounds.log_end_offset,
                self.leader_id,
            )
            partition.truncate_to(bounds.log_end_offset, now_ms=now_ms)
        elif bounds.log_start_offset > end:
            _LOG.info(
                "%s: begins anew at %s, where leader %s starts; it ended at %s",
                partition.log.name,
                bounds.log_start_offset,
                self.leader_id,
                end,
            )
            partition.start_anew_at(bounds.log_start_offset, now_ms=now_ms)


def name_of(partition: Partition) -> TopicIdPartition:
    """Return the partition's name in Fetch."""
    return TopicIdPartition(partition.leadership.topic_id, partition.index)


def _answers(response: FetchResponse) -> Iterable[tuple[TopicIdPartition, FetchPartitionData]]:
    for topic in response.responses:
        for data in topic.partitions:
            yield TopicIdPartition(topic.topic_id, data.partition_index), data
