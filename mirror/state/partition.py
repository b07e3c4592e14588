"""One mirrored partition at run time: where it stands, what is under way, and how far behind it is.

No I/O and no clock here: times are arguments, wall clock in milliseconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple
from uuid import UUID

from mirror.state.batches import Cursor, Forward
from mirror.state.in_flight import InFlight, InFlightBudget
from mirror.state.join_policy import Joins
from mirror.state.partition_state import (
    ALLOWED,
    FLOWING,
    STOPPED,
    UNAUTHORISED_RETRY_MS,
    PartitionState,
    Status,
    move,
)
from offset_translation.offset_map import OffsetMap

FIRST_BACKOFF_MS: Final = 100
MAX_BACKOFF_MS: Final = 5_000
FRESH_MS: Final = 10_000
"""What was heard of the source longer ago is not known any more."""
REFUSED_AGAIN_MS: Final = 15_000
"""A sequence that is wrong is refused at least so often: tries are MAX_BACKOFF_MS apart."""
REPLICA_MS: Final = 300_000
"""For so long a leader's choice of a replica holds: a Java consumer's metadata.max.age.ms."""
FALLEN_BEHIND_MS: Final = 3_000
"""Not at the source's end for this long: no longer called streaming."""


ANOTHER_LOG: Final = frozenset(
    {
        PartitionState.TARGET_DIVERGED,
        PartitionState.TOPIC_RECREATED,
        PartitionState.SOURCE_WENT_BACK,
    }
)
"""States in which the map may speak of other logs than are there."""


@dataclass(slots=True)
class _Goal:
    """Once everything before ``offset`` is mirrored, the partition was level at ``time_ms``."""

    offset: int
    time_ms: int


class _Replica(NamedTuple):
    """A follower that a leader has named to fetch from (KIP-392), and when."""

    node: int
    named_ms: int


class MirroredPartition:
    """State of one partition of one flow."""

    replica: _Replica | None = None
    """Where to fetch instead of from the source's leader."""

    shift: int = 0
    """Records that others have written to the target before the next one of ours."""

    target_id: UUID | None = None
    """The target topic as last seen, where brokers tell."""

    is_target_new = False
    """It is another topic than before: what is in it may be anybody's."""

    left_at: int | None = None
    """The target's log end as far as was known when this worker last stopped writing there."""

    mirrored_id: UUID | None = None
    """Of the source topic whose copy the target has, where that stops another one."""

    is_announcing = False
    """What was fetched last waits for the map: nothing behind it may go first."""

    _refused_ms = 0

    is_anchored = False
    """Whether the source has been seen to hold the last mirrored record, and not left since."""

    def __init__(  # noqa: PLR0913 - what discovery knows of it, each with its name
        self,
        topic: str,
        index: int,
        *,
        topic_id: UUID,
        offset_map: OffsetMap,
        now_ms: int,
        target_topic: str | None = None,
        budget: InFlightBudget | None = None,
    ) -> None:
        """Begin as discovered; without another name the topic is called the same on the target.

        ``budget`` is the flow's; a partition that another worker mirrors has none of it under way.
        """
        self.topic, self.target_topic = topic, target_topic or topic
        self.index: Final = index
        self.topic_id = topic_id
        self.offset_map = offset_map
        self.status = Status(state=PartitionState.DISCOVERING, since_ms=now_ms)
        self.source_leader = self.source_epoch = self.target_leader = -1
        self.cursor: Cursor | None = None
        self.new_runs: list[tuple[int, int]] = []
        """(place, target offset) of runs that have shown and are not in the map topic yet."""
        self.attempt = 0
        """Grows with every interruption; answers to what was asked before are ignored."""
        self.in_flight: Final = InFlight(budget or InFlightBudget())
        self.source_end: int | None = None
        """The source's high watermark as last heard; None before."""
        self.readable_end: int | None = None
        """The source's last stable offset as last heard: open transactions lie behind it."""
        self.heard_ms = 0
        """When the source's end was last heard of."""
        self.level_ms: int | None = None
        """The last moment known at which everything then readable was mirrored."""
        self.joins = Joins()
        self.lost_records = 0
        """Source offsets that were deleted before they were mirrored, where that has stopped it."""
        self.skipped_records = 0
        """Source offsets that a policy or a command has left out since the daemon began."""
        self.pass_over: int | None = None
        """Once positioned, go on at this source offset at the least."""
        self.refused_through: int | None = None
        """Behind this source offset lies what the target has refused and stopped us for."""
        self.may_skip = False
        """A command has said that what is lost may be left out, once."""
        self.unauthorised_since_ms: int | None = None
        self.is_positioned = False
        """Whether the map has been told the target's log end since the start, or a doubt of it."""
        self.retry_at_ms = 0
        self.failures = 0  # interruptions without progress in between
        self.refused_since_ms: int | None = None
        """Since when the target has called our sequences wrong, without any progress."""
        self._goal: _Goal | None = None
        # Before this source offset is mirrored, progress changes neither state nor lag time.
        self._next_look = 0

    @property
    def state(self) -> PartitionState:
        """The state alone."""
        return self.status.state

    @property
    def is_flowing(self) -> bool:
        """Whether it is to be fetched."""
        return self.status.state in FLOWING

    @property
    def fetched_from(self) -> int:
        """The source broker to fetch from, below 0 while there is none."""
        return self.source_leader if self.replica is None else self.replica.node

    @property
    def has_true_map(self) -> bool:
        """Whether its map speaks of the logs that are there.

        A diverged target's may be another: the other direction's map may speak of records that went
        with the disks. Where a source that went back was cut is not known: its end when that was
        seen may lie behind new records already. No position is applied by such a map, because one
        that is too far is never pulled back.
        """
        is_another = self.is_target_new or self.state in ANOTHER_LOG
        return self.is_positioned and not is_another

    def lag_records(self, now_ms: int) -> int | None:
        """Return the source offsets not yet mirrored; None while unknown, which is not zero.

        Unknown is also what a source says that has not been heard of for FRESH_MS.
        """
        mirrored = self.offset_map.mirrored_source_end
        is_stale = now_ms - self.heard_ms > FRESH_MS
        if self.source_end is None or mirrored is None or is_stale or not self.is_positioned:
            return None
        return max(0, self.source_end - mirrored)

    def lag_ms(self, now_ms: int) -> int | None:
        """Return for how long the oldest unmirrored record has been waiting at most.

        Level now is 0; otherwise the time since it was last level. None while unknown: never
        level since the start.
        """
        if self.lag_records(now_ms) == 0:
            return 0
        return None if self.level_ms is None else max(0, now_ms - self.level_ms)

    # --- changes -----------------------------------------------------------------------------

    def move(self, state: PartitionState, now_ms: int, reason: str = "") -> None:
        """Change the state by the table."""
        self.status = move(self.status, state, now_ms, reason)

    def go_on(self, cursor: Cursor, now_ms: int) -> None:
        """Fetch from here."""
        self.cursor = cursor
        self.shift = self.offset_map.runs.start_of(cursor.target) - cursor.target
        self.is_positioned = True
        self.in_flight.begin(now_ms)
        self.is_target_new = False
        self.move(PartitionState.CATCHING_UP, now_ms)

    def interrupt(self, reason: str, now_ms: int, *, at_once: bool = False) -> None:
        """Stop, to be positioned again once what was sent is answered and a while has passed."""
        if self.state in STOPPED or self.state is PartitionState.PAUSED:
            self._abandon()
            return
        if self.cursor is not None:
            self.failures += 1
        self._abandon()
        backoff = min(FIRST_BACKOFF_MS * 2 ** min(self.failures, 10), MAX_BACKOFF_MS)
        self.retry_at_ms = now_ms if at_once else now_ms + backoff
        self.move(PartitionState.WAITING, now_ms, reason)

    def postpone(self, reason: str, now_ms: int) -> None:
        """Positioning failed: try again later."""
        self.failures += 1
        self._abandon()
        backoff = min(FIRST_BACKOFF_MS * 2 ** min(self.failures, 10), MAX_BACKOFF_MS)
        self.retry_at_ms = now_ms + backoff
        self.move(PartitionState.WAITING, now_ms, reason)

    def stop(self, state: PartitionState, reason: str, now_ms: int) -> None:
        """Stop until somebody decides; what is stopped already only for a reason that says more."""
        assert state in STOPPED, f"{state} does not stop a partition"
        self._abandon()
        since_ms = now_ms
        if state is PartitionState.NOT_AUTHORISED:
            since_ms = self.unauthorised_since_ms = self.unauthorised_since_ms or now_ms
            self.retry_at_ms = now_ms + UNAUTHORISED_RETRY_MS
        if self.state is state or self.state not in STOPPED or state in ALLOWED[self.state]:
            self.move(state, now_ms, reason)
            if state is PartitionState.NOT_AUTHORISED:
                # Asked for again and again, it is still the same trouble.
                self.status = replace(self.status, since_ms=since_ms)

    def come_back(self, now_ms: int) -> None:
        """The source topic that was gone is there again, and is the same."""
        assert self.state is PartitionState.SOURCE_GONE, f"{self.state} does not end by itself"
        self.retry_at_ms = now_ms
        self.move(PartitionState.WAITING, now_ms, "the topic is on the source again")

    def retry(self, reason: str, now_ms: int) -> None:
        """Go on after a stop or a pause, because somebody has decided so."""
        assert self.state in STOPPED or self.state is PartitionState.PAUSED, f"{self.state} goes on"
        if self.state in ANOTHER_LOG:
            self.is_positioned = False  # what the logs are now, positioning finds out
        self.failures = 0
        self.lost_records = 0
        self.refused_through = None
        self.retry_at_ms = now_ms
        self.move(PartitionState.WAITING, now_ms, reason)

    def pause(self, reason: str, now_ms: int) -> None:
        """Stop by a command; a stopped partition keeps its own state, which says more."""
        self._abandon()
        if self.state not in STOPPED:
            self.move(PartitionState.PAUSED, now_ms, reason)

    def read_from(self, replica: int, now_ms: int) -> None:
        """Fetch from this replica until something fails, or its leader is to be asked again."""
        self.replica = _Replica(replica, now_ms)

    def ask_leader_again(self, now_ms: int) -> bool:
        """Go back to the leader once its word is old; it may know a better replica by now."""
        is_due = self.replica is not None and now_ms - self.replica.named_ms > REPLICA_MS
        if is_due:
            self.replica = None
        return is_due

    def meet_target(self, topic_id: UUID) -> bool:
        """Take note of the target topic; return whether it is another one than was known."""
        known = self.target_id
        if not topic_id.int:
            return False
        self.target_id = topic_id
        is_another = known not in {None, topic_id}
        self.is_target_new |= is_another
        return is_another

    def _abandon(self) -> None:
        """Forget what has not been sent; what was sent is still answered."""
        self.attempt += 1
        if self.cursor is not None:
            self.left_at = self.offset_map.target_end
        self.replica = None
        self.cursor = None
        self.is_announcing = False
        self.in_flight.abandon()

    def displaced(self, forward: Forward, base_offset: int) -> None:
        """Others have written before this batch, which lies further behind than was foretold."""
        place = forward.target_base
        self.offset_map.begin_run(place, base_offset)
        self.offset_map.advance(base_offset)
        self.new_runs.append((place, base_offset))
        self.shift = base_offset - place

    def acknowledge(self, forwards: Sequence[Forward], now_ms: int) -> int:
        """Take note that the target holds these batches at the places foretold.

        Return their bytes.
        """
        size = self.in_flight.acknowledge(forwards, now_ms)
        last = forwards[-1]
        source_end = last.source_end
        self.offset_map.reach(last.target_base + last.record_count)
        self.failures = 0
        self.refused_since_ms = None
        self.unauthorised_since_ms = None
        # In a backlog this is called again and again, and only the last time changes anything.
        if source_end >= self._next_look or not self.in_flight.bytes:
            self.note_progress(now_ms)
        return size

    def refuse_sequence(self, now_ms: int) -> int:
        """The target calls our sequence wrong; return for how long it has, try after try."""
        if self.refused_since_ms is None or now_ms - self._refused_ms > REFUSED_AGAIN_MS:
            self.refused_since_ms = now_ms
        self._refused_ms = now_ms
        return now_ms - self.refused_since_ms

    def heard(self, *, source_end: int, readable_end: int, now_ms: int) -> None:
        """The source has told its end."""
        self.source_end = source_end
        self.readable_end = readable_end
        self.heard_ms = now_ms
        mirrored = self.offset_map.mirrored_source_end
        if mirrored is not None and mirrored >= readable_end:
            self.level_ms = now_ms
            self._goal = None
        elif self._goal is None:
            self._goal = _Goal(readable_end, now_ms)
        self.note_progress(now_ms)

    def heard_nothing_new(self, now_ms: int) -> None:
        """The source has said, by leaving it out, that its end is where it was."""
        if self.source_end is not None and self.readable_end is not None and now_ms > self.heard_ms:
            self.heard(source_end=self.source_end, readable_end=self.readable_end, now_ms=now_ms)

    def note_progress(self, now_ms: int) -> None:
        """Work out from the map whether the partition is level with its source."""
        self._next_look = 0
        mirrored = self.offset_map.mirrored_source_end
        if mirrored is None or self.readable_end is None:
            return
        if self._goal is not None and mirrored >= self._goal.offset:
            self.level_ms = self._goal.time_ms
            self._goal = None
        is_level = mirrored >= self.readable_end
        if not is_level:
            self._next_look = min(self._goal.offset, self.readable_end) if self._goal else 0
        if self.state is PartitionState.CATCHING_UP and is_level:
            self.move(PartitionState.STREAMING, now_ms)
        elif (
            self.state is PartitionState.STREAMING
            and not is_level
            and (self.level_ms is None or now_ms - self.level_ms > FALLEN_BEHIND_MS)
        ):
            self.move(PartitionState.CATCHING_UP, now_ms)
