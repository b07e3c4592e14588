"""One replica on this broker: its leadership, its high watermark, and who waits for it.

    log start          high watermark        log end
        |-- committed -------|-- not yet on ----|
                               every in-sync replica

Consumers see committed records only. While the leader alone is in sync both ends are one.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from broker.clock import Clock
from broker.led_partition import NotLeader
from broker.log.partition_log import PartitionLog
from broker.log.results import (
    Appended,
    AppendOrigin,
    AppendResult,
    BatchRefused,
    Duplicate,
    OffsetOutOfRange,
)
from broker.log.validation import KeyCheck, RecordRules, record_rules
from broker.replication.in_sync import UNKNOWN, Follower, InSync, IsrRules, PendingIsrChange
from broker.replication.leadership import NO_LEADER, Leadership
from broker.replication.quotas import is_throttled
from broker.replication.replica import Replica
from broker.replication.watching import Waiter
from wire.errors import ErrorCode
from wire.hot.produce_run import PlainBatch
from wire.record_batch import Buffer, CorruptBatch, parse_header

ALL_IN_SYNC: Final = -1
"""The `acks` of a producer that waits for every in-sync replica."""
REPLICA_LAG_TIME_MAX_MS: Final = 30_000


class OwnBatchRefused(RuntimeError):
    """The log refused a batch that this broker built, for instance as larger than it may be."""

    def __init__(self, reason: str, error: ErrorCode = ErrorCode.UNKNOWN_SERVER_ERROR) -> None:
        super().__init__(reason)
        self.error = error


@dataclass(slots=True, kw_only=True)
class Surroundings:
    """The parts of its broker that a replica needs."""

    rules: IsrRules = field(
        default_factory=lambda: IsrRules(
            lag_time_max_ms=REPLICA_LAG_TIME_MAX_MS, is_alive=lambda _: True
        )
    )
    ask_for_isr: Callable[["Partition"], None] = lambda _: None
    """Called when the partition has an `isr_change` to be sent to the controller."""


class Partition(Replica):
    """One replica in its role. Lives as long as the broker holds it; not thread-safe."""

    def __init__(
        self,
        broker_id: int,
        log: PartitionLog,
        leadership: Leadership,
        clock: Clock,
        *,
        high_watermark: int = 0,
        surroundings: Surroundings | None = None,
    ) -> None:
        """Hold the replica in no role; `take` gives it one."""
        super().__init__(log, high_watermark)
        self.leadership = replace(leadership, leader=NO_LEADER)
        self.is_stopped = True
        """It neither leads nor follows until the controller speaks of it again."""
        self._clock = clock
        self._broker_id = broker_id
        self._surroundings = surroundings or Surroundings()
        self._in_sync: InSync | None = None
        self.term = 0
        """The number of this term of leadership: how often this broker has come to lead."""
        self._low_watermark_waits: set[Waiter] = set()

    @property
    def topic(self) -> str:
        return self.leadership.topic

    @property
    def index(self) -> int:
        return self.leadership.index

    @property
    def leader_epoch(self) -> int:
        return self.leadership.leader_epoch

    @property
    def is_led_here(self) -> bool:
        return self._in_sync is not None

    @property
    def is_under_replicated(self) -> bool:
        """Whether this broker leads it and a replica is not in sync."""
        leads = self._in_sync
        return leads is not None and len(leads.isr) < len(leads.followers) + 1

    @property
    def is_under_min_isr(self) -> bool:
        """Whether this broker leads it and producers with acks=all are refused."""
        return self._in_sync is not None and self._too_few(self._in_sync.isr)

    @property
    def has_committed_too_thinly(self) -> bool:
        """Whether what was committed just now may be on fewer replicas than it should be."""
        return self._in_sync is not None and self._too_few(self._in_sync.maximal)

    @property
    def is_behind_its_epoch(self) -> bool:
        """Whether a new leader does not know yet how much its predecessor had committed.

        Until then its high watermark may lie below one that clients have seen (KIP-207).
        """
        leads = self._in_sync
        return leads is not None and self._high_watermark < leads.epoch_start_offset

    @property
    def leaves_slowly(self) -> bool:
        """Whether leader.replication.throttled.replicas names this broker's copy."""
        throttled = self.log.config.leader_replication_throttled_replicas
        return is_throttled(throttled, self.index, self._broker_id)

    @property
    def arrives_slowly(self) -> bool:
        """Whether follower.replication.throttled.replicas names this broker's copy."""
        throttled = self.log.config.follower_replication_throttled_replicas
        return is_throttled(throttled, self.index, self._broker_id)

    # -- roles ----------------------------------------------------------------------------------

    def take(self, leadership: Leadership) -> bool:
        """Follow the controller's word; return whether it was a newer one. Raises StorageError.

        A word that the controller repeats changes nothing, so that a change of the ISR that is
        under way goes on.
        """
        if not self.is_stopped and not self.leadership.is_older_than(leadership):
            return False
        if leadership.is_older_than(self.leadership):
            return False
        was = self.leadership
        self.is_stopped = False
        self.leadership = leadership
        if leadership.leader == self._broker_id:
            self._lead(leadership, is_new_epoch=leadership.leader_epoch != was.leader_epoch)
            self._advance()
        else:
            self._in_sync = None
        self._tell_changed()
        return True

    def _lead(self, leadership: Leadership, *, is_new_epoch: bool) -> None:
        if self._in_sync is None:
            self._in_sync = InSync(self._broker_id, self._surroundings.rules)
            self.term += 1
            is_new_epoch = True
        if is_new_epoch:
            self.log.assign_leader_epoch(leadership.leader_epoch)
        self._in_sync.take(leadership, self.log.log_end_offset, self._clock.monotonic_ms())

    def resign(self) -> None:
        """Neither lead nor follow: every wait ends with NotLeader."""
        self.leadership = replace(self.leadership, leader=NO_LEADER)
        self.is_stopped = True
        self._in_sync = None
        self._tell_changed()

    # -- appending as the leader ----------------------------------------------------------------

    def append_from_client(
        self,
        batch: Buffer,
        *,
        acks: int,
        is_fenced: bool,
        check_keys: KeyCheck | None = None,
        is_verified: bool = False,
    ) -> Appended:
        """Append a producer's batch, or say why not.

        A remembered duplicate is acknowledged even when fenced, so that a producer whose answer got
        lost learns the truth; only then does the fence hold, before anything else is looked at.
        `is_verified`: its transaction's coordinator says that the partition is part of it. Raises
        StorageError.
        """
        duplicate = self._find_duplicate(batch)
        if duplicate is not None:
            return duplicate
        if is_fenced:
            return BatchRefused(
                error=ErrorCode.NOT_ENOUGH_REPLICAS,
                reason=f"writes to {self.topic} are refused by the write fence",
            )
        too_few = self._refuse_too_few_in_sync(acks)
        if too_few is not None:
            return too_few
        appended = self.log.append(
            batch,
            leader_epoch=self.leadership.leader_epoch,
            now_ms=self._clock.now_ms(),
            wall_ms=self._clock.wall_ms(),
            origin=AppendOrigin.VERIFIED_CLIENT if is_verified else AppendOrigin.CLIENT,
            check_keys=check_keys,
        )
        if isinstance(appended, AppendResult):
            self._grown()
        return appended

    def takes_run(self, run: Sequence[PlainBatch], *, acks: int) -> bool:
        """Say whether `append_from_client` would append each of these batches, in order."""
        return (
            self._in_sync is not None
            and self._refuse_too_few_in_sync(acks) is None
            and self.log.takes_run(run, wall_ms=self._clock.wall_ms())
        )

    def append_run(self, view: memoryview, run: Sequence[PlainBatch]) -> Sequence[int]:
        """Append batches that `takes_run` has just allowed; return where each begins.

        Raises StorageError.
        """
        offsets = self.log.append_run(
            view, run, leader_epoch=self.leadership.leader_epoch, now_ms=self._clock.now_ms()
        )
        self._grown()
        return offsets

    def record_rules(self) -> RecordRules | None:
        """Return what single records have to comply with now; None if nobody looks at them."""
        return record_rules(self.log.config, self._clock.wall_ms())

    @property
    def largest_batch_bytes(self) -> int:
        """Return how large a batch the log takes, with its header."""
        return self.log.config.max_message_bytes

    def append_own(self, batch: bytes | bytearray) -> int:
        """Append a batch that this broker built itself; return its first offset.

        Raises NotLeader, StorageError, and OwnBatchRefused when the log does not take it.
        """
        if not self.is_led_here:
            raise NotLeader(f"{self.log.name} is led by {self.leadership.leader}")
        appended = self.log.append(
            batch,
            leader_epoch=self.leadership.leader_epoch,
            now_ms=self._clock.now_ms(),
            wall_ms=self._clock.wall_ms(),
            origin=AppendOrigin.COORDINATOR,
        )
        if isinstance(appended, BatchRefused):
            raise OwnBatchRefused(f"{self.log.name}: {appended.reason}", appended.error)
        self._grown()
        return appended.base_offset

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Return whole batches up to the log's end, at least one; empty at the end.

        Raises StorageError. An offset before the log's start reads from the start.
        """
        found = self.log.read(max(offset, self.log.log_start_offset), max_bytes)
        return b"" if isinstance(found, OffsetOutOfRange) else found

    def _find_duplicate(self, batch: Buffer) -> Duplicate | None:
        try:
            header = parse_header(batch)
        except CorruptBatch:
            return None  # the log says so, unless the fence comes first
        return self.log.find_duplicate(header) if header.producer_id >= 0 else None

    def _refuse_too_few_in_sync(self, acks: int) -> BatchRefused | None:
        leads = self._in_sync
        if acks != ALL_IN_SYNC or leads is None or not self._too_few(leads.isr):
            return None
        return BatchRefused(
            error=ErrorCode.NOT_ENOUGH_REPLICAS,
            reason=f"{len(leads.isr)} replicas in sync, "
            f"min.insync.replicas={self.log.config.min_insync_replicas}",
        )

    def _too_few(self, in_sync: frozenset[int]) -> bool:
        assert self._in_sync is not None, "asked of leaders only"
        needed = self._in_sync.effective_min(self.log.config.min_insync_replicas)
        return len(in_sync) < needed

    def _grown(self) -> None:
        for watcher in self._watchers:
            watcher.grown()
        self._advance()

    def _advance(self) -> None:
        """Move the high watermark to where every in-sync replica is; never back."""
        leads = self._in_sync
        if leads is None:
            return
        end = self.log.log_end_offset
        if leads.followers:
            now_ms = self._clock.monotonic_ms()
            end = leads.high_watermark(end, now_ms, self.log.config.min_insync_replicas)
        self._commit(end)

    # -- the followers of a leader --------------------------------------------------------------

    def follower(self, broker_id: int) -> Follower | None:
        """Return what is known of a replica of this leader, None if it is none."""
        return None if self._in_sync is None else self._in_sync.followers.get(broker_id)

    def follower_lags(self) -> Iterator[tuple[int, int]]:
        """Yield each follower of this leader with the records that it lacks."""
        if self._in_sync is not None:
            for broker_id, follower in self._in_sync.followers.items():
                known = max(follower.log_end_offset, self.log.log_start_offset)
                yield broker_id, max(0, self.log.log_end_offset - known)

    @property
    def low_watermark(self) -> int:
        """The lowest log start of the living replicas; -1 until all have told, or elsewhere."""
        leads = self._in_sync
        return UNKNOWN if leads is None else leads.low_watermark(self.log_start_offset)

    @property
    def in_sync_replicas(self) -> frozenset[int]:
        """The confirmed ISR, this leader with it; empty where this broker does not lead."""
        return frozenset() if self._in_sync is None else self._in_sync.isr

    def fetched_by(
        self, broker_id: int, offset: int, log_start_offset: int, *, broker_epoch: int = UNKNOWN
    ) -> None:
        """Note that a follower asks for `offset`: it has everything below."""
        leads = self._in_sync
        assert leads is not None, "only a leader is fetched from"
        follower = leads.followers[broker_id]
        before, start_before = follower.log_end_offset, follower.log_start_offset
        end, now_ms = self.log.log_end_offset, self._clock.monotonic_ms()
        follower.fetched(offset, log_start_offset, end, now_ms, broker_epoch)
        # At each fetch, also of a quiet partition: a follower's first one outside the ISR may come
        # while another replica is joining.
        self._ask(leads.heard_of(broker_id, self._high_watermark))
        if offset != before:
            self._advance()
        if log_start_offset != start_before:
            self._low_watermark_may_have_moved()

    def look_after_isr(self) -> None:
        """Ask for an ISR without those who lag; call it every half of replica.lag.time.max.ms."""
        leads = self._in_sync
        if leads is not None and leads.followers:
            self._ask(leads.shrink(self.log.log_end_offset, self._clock.monotonic_ms()))
            self._advance()

    def reconsider(self) -> None:
        """See whether more is committed, now that brokers or settings have changed."""
        self._advance()
        self._low_watermark_may_have_moved()

    def _low_watermark_may_have_moved(self) -> None:
        for waiter in self._low_watermark_waits:
            waiter.wake()

    def _ask(self, change: PendingIsrChange | None) -> None:
        if change is not None:
            self._surroundings.ask_for_isr(self)

    @property
    def isr_change(self) -> PendingIsrChange | None:
        """The ISR that the controller is to be asked for, or is being asked for."""
        return None if self._in_sync is None else self._in_sync.change

    def isr_confirmed(self, leadership: Leadership) -> None:
        """Take over the state that the controller answered with, unless a newer one is known."""
        leads = self._in_sync
        if leads is None or not leads.confirmed(leadership):
            return
        self.leadership = replace(
            self.leadership, isr=leadership.isr, partition_epoch=leadership.partition_epoch
        )
        self._advance()

    def isr_unanswered(self, change: PendingIsrChange) -> None:
        """Note that nobody knows what has become of a request for this change."""
        if self._in_sync is not None:
            self._in_sync.unanswered(change)

    def isr_refused(self, change: PendingIsrChange) -> None:
        """Go back to the ISR confirmed last, as soon as that is safe."""
        if self._in_sync is not None:
            self._ask(self._in_sync.refused(change))
            self._advance()

    def isr_outdated(self, change: PendingIsrChange) -> None:
        """Note that the controller knows a newer state than the change goes by."""
        if self._in_sync is not None:
            self._ask(self._in_sync.outdated(change))

    # -- waiting --------------------------------------------------------------------------------

    async def wait_committed(self, offset: int, *, term: int | None = None) -> None:
        """Wait until the record at `offset`, written in this `term` of leadership, is committed.

        Raises NotLeader, and StorageError when the log's folder fails. A new epoch of the same
        leader does not end the wait: its log was never cut, even if others led unheard of.
        """
        term = self.term if term is None else term
        if self.is_led_here and self.term == term and self._high_watermark > offset:
            return
        waiter = Waiter()
        with self.waking(waiter):
            while self.is_led_here and self.term == term:
                if self._high_watermark > offset:
                    return
                self.log.refuse_if_offline()
                await waiter.wait()
        raise NotLeader(f"{self.log.name} is led by {self.leadership.leader}")

    async def wait_low_watermark(self, offset: int) -> None:
        """Wait until every living replica's log starts at `offset` or behind.

        Raises NotLeader, and StorageError when the log's folder fails.
        """
        waiter = Waiter()
        self._low_watermark_waits.add(waiter)
        try:
            with self.waking(waiter):
                while self.is_led_here:
                    if self.low_watermark >= offset:
                        return
                    self.log.refuse_if_offline()
                    await waiter.wait()
        finally:
            self._low_watermark_waits.discard(waiter)
        raise NotLeader(f"{self.log.name} is led by {self.leadership.leader}")
