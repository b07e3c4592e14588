"""One mirrored partition at run time: its identity, its state, and the parts that know the rest.

    source      what is known of its log on the source, and the lag
    target      what is known of its log on the target, and how far that is trusted
    leaders     which brokers lead it on both sides
    in_flight   the batches under way between them
    retries     its trouble, and when it is tried again
    skips       what is left out of the copy

Each part changes by its own methods, and nothing assigns an attribute of another object. No I/O and
no clock here: times are arguments, wall clock in milliseconds.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final
from uuid import UUID

from mirror.state.batches import Cursor, Forward
from mirror.state.in_flight import InFlight, InFlightBudget
from mirror.state.leadership import PartitionLeaders
from mirror.state.partition_state import (
    ALLOWED,
    ASKED_AGAIN_MS,
    FLOWING,
    STOPPED,
    PartitionState,
    PartitionStatus,
    move,
)
from mirror.state.retries import Retries
from mirror.state.skips import Skips
from mirror.state.source_log import SourceLog
from mirror.state.target_log import TargetLog
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from wire.topic_partition import TopicPartition

ANOTHER_LOG: Final = frozenset(
    {
        PartitionState.TARGET_DIVERGED,
        PartitionState.TOPIC_RECREATED,
        PartitionState.COPY_RENAMED,
        PartitionState.SOURCE_WENT_BACK,
    }
)
"""States in which the map may speak of other logs than are there."""


class MirroredPartition:
    """State of one partition of one flow."""

    __slots__ = (
        "attempt",
        "cursor",
        "in_flight",
        "index",
        "is_announcing",
        "leaders",
        "offset_map",
        "retries",
        "skips",
        "source",
        "status",
        "target",
        "target_partition",
        "topic",
        "topic_partition",
    )

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
        self.topic: Final = topic
        self.index: Final = index
        self.topic_partition: Final = TopicPartition(topic, index)
        self.target_partition: Final = TopicPartition(target_topic or topic, index)
        self.offset_map: Final = offset_map
        self.status = PartitionStatus(state=PartitionState.DISCOVERING, since_ms=now_ms)
        self.cursor: Cursor | None = None
        self.attempt = 0
        """Grows with every interruption; answers to what was asked before are ignored."""
        self.is_announcing = False
        """What was fetched last waits for the map: nothing behind it may go first."""
        self.source: Final = SourceLog(topic_id)
        self.target: Final = TargetLog()
        self.leaders: Final = PartitionLeaders()
        self.in_flight: Final = InFlight(budget or InFlightBudget())
        self.retries: Final = Retries()
        self.skips: Final = Skips()

    @property
    def target_topic(self) -> str:
        """The name of the copy."""
        return self.target_partition.topic

    @property
    def state(self) -> PartitionState:
        """The state alone."""
        return self.status.state

    @property
    def is_flowing(self) -> bool:
        """Whether it is to be fetched."""
        return self.status.state in FLOWING

    @property
    def has_true_map(self) -> bool:
        """Whether its map speaks of the logs that are there.

        A diverged target's may be another: the other direction's map may speak of records that went
        with the disks. Where a source that went back was cut is not known: its end when that was
        seen may lie behind new records already. No position is applied by such a map, because one
        that is too far is never pulled back.
        """
        is_another = self.target.is_new or self.state in ANOTHER_LOG
        return self.target.is_positioned and not is_another

    def lag_records(self, now_ms: int) -> int | None:
        """Return the source offsets not yet mirrored; None while unknown, which is not zero.

        By a map that may speak of other logs nobody knows what of these is mirrored.
        """
        if not self.target.is_positioned or self.state in ANOTHER_LOG:
            return None
        return self.source.lag_records(self.offset_map.mirrored_source_end, now_ms)

    def lag_ms(self, now_ms: int) -> int | None:
        """Return for how long the oldest unmirrored record has been waiting at most.

        Level now is 0; otherwise the time since it was last level. None while unknown: never
        level since the start.
        """
        return 0 if self.lag_records(now_ms) == 0 else self.source.since_level_ms(now_ms)

    # --- changes -----------------------------------------------------------------------------

    def move(self, state: PartitionState, now_ms: int, reason: str = "") -> None:
        """Change the state by the table."""
        self.status = move(self.status, state, now_ms, reason)

    def go_on(self, cursor: Cursor, now_ms: int) -> None:
        """Fetch from here."""
        self.cursor = cursor
        self.target.go_on(self.offset_map.runs.start_of(cursor.place) - cursor.place)
        self.in_flight.begin(now_ms)
        self.move(PartitionState.CATCHING_UP, now_ms)

    def interrupt(self, reason: str, now_ms: int, *, at_once: bool = False) -> None:
        """Stop, to be positioned again once what was sent is answered and a while has passed."""
        was_flowing = self.cursor is not None
        self._abandon()
        if self.state in STOPPED or self.state is PartitionState.PAUSED:
            return
        if was_flowing:
            self.retries.fail()
        if at_once:
            self.retries.try_now(now_ms)
        else:
            self.retries.put_off(now_ms)
        self.move(PartitionState.WAITING, now_ms, reason)

    def postpone(self, reason: str, now_ms: int) -> None:
        """Positioning failed: try again later."""
        self._abandon()
        self.retries.fail()
        self.retries.put_off(now_ms)
        self.move(PartitionState.WAITING, now_ms, reason)

    def stop(self, state: PartitionState, reason: str, now_ms: int) -> None:
        """Stop until somebody decides; what is stopped already only for a reason that says more."""
        assert state in STOPPED, f"{state} does not stop a partition"
        self._abandon()
        since_ms = now_ms
        if state in ASKED_AGAIN_MS:
            since_ms = self.retries.ask_again(state, now_ms)
        if self.state is state or self.state not in STOPPED or state in ALLOWED[self.state]:
            self.move(state, now_ms, reason)
            if state in ASKED_AGAIN_MS:
                # Asked for again and again, it is still the same trouble.
                self.status = replace(self.status, since_ms=since_ms)

    def come_back(self, now_ms: int) -> None:
        """The source topic that was gone is there again, and is the same."""
        assert self.state is PartitionState.SOURCE_GONE, f"{self.state} does not end by itself"
        self.retries.try_now(now_ms)
        self.move(PartitionState.WAITING, now_ms, "the topic is on the source again")

    def retry(self, reason: str, now_ms: int) -> None:
        """Go on after a stop or a pause, because somebody has decided so."""
        assert self.state in STOPPED or self.state is PartitionState.PAUSED, f"{self.state} goes on"
        if self.state in ANOTHER_LOG:
            self.target.doubt_position()  # what the logs are now, positioning finds out
            self.target.lose_anchor()
        self.skips.forget_stop()
        self.retries.begin_anew(now_ms)
        self.move(PartitionState.WAITING, now_ms, reason)

    def pause(self, reason: str, now_ms: int) -> None:
        """Stop by a command; a stopped partition keeps its own state, which says more."""
        self._abandon()
        if self.state not in STOPPED:
            self.move(PartitionState.PAUSED, now_ms, reason)

    def _abandon(self) -> None:
        """Forget what has not been sent; what was sent is still answered."""
        self.attempt += 1
        if self.cursor is not None:
            self.target.leave(self.offset_map.target_end)
        self.leaders.read_from_leader()
        self.cursor = None
        self.is_announcing = False
        self.in_flight.abandon()

    def advance(self, cursor: Cursor) -> None:
        """Fetch on from this cursor, behind the chunk that has come."""
        self.cursor = cursor

    def hold_back(self, attempt: int) -> None:
        """Hold back later chunks of this attempt until the map has the pieces of this one."""
        if attempt == self.attempt:
            self.is_announcing = True

    def let_through(self) -> None:
        """Go on: the map has the pieces for which this attempt was held back."""
        self.is_announcing = False

    def displaced(self, forward: Forward, base_offset: int) -> None:
        """Note a batch that lies further behind than foretold: others have written before it."""
        self.offset_map.begin_run(forward.place, base_offset)
        self.offset_map.advance(base_offset)
        self.target.displace(forward, base_offset)

    def acknowledge(self, forwards: Sequence[Forward], now_ms: int) -> int:
        """Take note that the target holds these batches at the places foretold.

        Return their bytes.
        """
        size = self.in_flight.acknowledge(forwards, now_ms)
        last = forwards[-1]
        self.offset_map.reach(Place(last.place + last.record_count))
        self.retries.succeed()
        # In a backlog this is called again and again, and only the last time changes anything.
        if last.source_end >= self.source.next_look or not self.in_flight.bytes:
            self.note_progress(now_ms)
        return size

    def heard(self, *, source_end: int, readable_end: int, now_ms: int) -> None:
        """Note the end that the source has told."""
        self.source.hear(source_end, readable_end, self.offset_map.mirrored_source_end, now_ms)
        self.note_progress(now_ms)

    def heard_nothing_new(self, now_ms: int) -> None:
        """Note that the source's end is where it was: the answer left the partition out."""
        end, readable_end = self.source.end, self.source.readable_end
        if end is not None and readable_end is not None and now_ms > self.source.heard_ms:
            self.heard(source_end=end, readable_end=readable_end, now_ms=now_ms)

    def note_progress(self, now_ms: int) -> None:
        """Work out from the map whether the partition is level with its source."""
        is_level = self.source.reach(self.offset_map.mirrored_source_end)
        if self.state is PartitionState.CATCHING_UP and is_level:
            self.move(PartitionState.STREAMING, now_ms)
        elif (
            self.state is PartitionState.STREAMING
            and is_level is False
            and self.source.has_fallen_behind(now_ms)
        ):
            self.move(PartitionState.CATCHING_UP, now_ms)
