"""Decide where a partition goes on: read off both logs' ends and the map, never off a side file.

With a flow in the other direction the target may hold records of its own. The mirror goes on behind
them as far as the source has got them. Records that the source has not got are the tail that was
lost with the target when it failed, and only a person may decide about them.
"""

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Final, NamedTuple, TypeAlias

from mirror.clusters.log_ends import LogEnds
from mirror.state.partition_state import PartitionState
from offset_translation.both_ways import first_own_record
from offset_translation.map_records import Begun, PieceStartKey, Reached, RunStartKey, SealKey
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from offset_translation.target_scan import UnmirroredPart
from runtime.set_option import set_option
from wire.topic_partition import TopicPartition
from wire.values import frozen

Withdrawn: TypeAlias = PieceStartKey | RunStartKey | SealKey

NAMED_PARTS: Final = 3
"""So many foreign parts are named in a reason; `failover divergence` lists every record."""


class OwnPart(NamedTuple):
    """Offsets [start, stop) of the target, in which it has records that the source never got."""

    start: int
    stop: int


@frozen
class Start:
    """Go on at the source offset ``source``, whose record gets ``place``, once the map says so.

    ``withdraw`` are announcements whose records never arrived; ``announce`` says that the place
    begins a piece, ``run`` at which target offset the place lies, where others have written before
    it.
    """

    source: int
    place: Place
    announce: bool
    withdraw: tuple[Withdrawn, ...] = ()
    left_out: int = 0
    """Source offsets passed over because somebody has decided so."""
    run: int | None = None
    merged: OwnPart | None = None
    """A part of the target that stays as it is, by decision: the flow back appends it late."""
    runs: tuple[tuple[Place, int], ...] = ()
    """(place, target offset) of runs of mirrored records that the map does not have yet."""
    begun: Begun | None = None
    """What the map is to keep first, of a partition that is begun by the flow's `start`."""


@frozen
class Stop:
    """The partition must not go on."""

    state: PartitionState
    reason: str
    lost_records: int = 0
    """Source offsets that are gone unmirrored; an upper bound of the records."""
    skip_to: Start | None = None
    """Where to go on all the same, if that is decided."""
    own: OwnPart | None = None
    """The part of the target that the source never got, where that is what stops it."""


@frozen
class Situation:
    """The facts by which a start is decided; the map knows the target's end."""

    offset_map: OffsetMap
    source: LogEnds
    target: LogEnds
    arrived: OffsetMap | None = None
    """The bounded map of records that came back into the source; None: nothing is known."""
    reads_holes_again: bool = False
    """Whether an announced hole, behind which nothing was mirrored yet, is to be looked into."""
    is_shared: bool = False
    """Both directions run at once: that others write to the target is as it should be."""
    tail: Reached | None = None
    """The mirrored end of a target that others have written to; None where the log's end tells."""
    runs: tuple[tuple[Place, int], ...] = ()
    """(place, target offset) of runs before that end that only `offset_map` has, not the map topic.
    """
    foreign: tuple[UnmirroredPart, ...] = ()
    """What others have written to a target that is not shared, behind the last sure place."""
    was_returned: bool = False
    """Whether the other direction has a map of the partition, sure or not."""
    set_aside: Mapping[int, int] = field(default_factory=dict)
    """Source offsets, by start their end, that are left out by decision."""
    is_one_way: bool = False
    """The copy has a topic to itself, of which nothing ever comes back."""
    begun: Begun | None = None
    """The place at which it was begun, by the map: where nothing is on the target, it still is."""
    due: Begun | None = None
    """The place at which it is to be begun, by the flow's `start`; None at its first record."""

    @property
    def taken_until(self) -> int | None:
        """The target offset before which the source has all; None if it never took any."""
        return None if self.arrived is None else self.arrived.mirrored_source_end

    @property
    def records_taken_until(self) -> int | None:
        """The target offset behind the last record of its own that the source has.

        The other direction may have passed over more offsets by now than were there when we asked,
        so its last record counts. Where no record is known any more, `taken_until` has to do.
        """
        if self.arrived is None:
            return None
        last = self.arrived.source_of_place(Place(self.arrived.place_end - 1))
        return self.taken_until if last is None else last + 1

    @property
    def undecided(self) -> tuple[UnmirroredPart, ...]:
        """What others have written, and the source has neither got nor left out by decision."""
        taken = self.taken_until or 0
        return tuple(part for part in self.foreign if part.stop > taken)

    @property
    def explained_until(self) -> int:
        """The target offset before which nothing is that the source has not."""
        return self.offset_map.mirrored_until(max(self.taken_until or 0, self.target.start))


def decide_start(topic: str, partition: int, seen: Situation) -> Start | Stop:
    """Return where to go on, or why not. An empty target begins anew whatever the map says."""
    offset_map, target = seen.offset_map, seen.target
    offset_map.advance(target.end)
    if seen.tail is not None:
        offset_map.reach(seen.tail.place)
    beyond = offset_map.beyond()
    keys: list[Withdrawn] = [
        *(PieceStartKey(topic=topic, partition=partition, place=p) for p in beyond.pieces),
        *(RunStartKey(topic=topic, partition=partition, place=place) for place in beyond.runs),
        *(SealKey(topic=topic, partition=partition, target_end=at) for at in beyond.seals),
    ]
    if offset_map.sealed_at == target.end:
        keys.append(SealKey(topic=topic, partition=partition, target_end=target.end))
    taken = seen.records_taken_until
    if taken is not None and target.end < taken:
        return Stop(
            state=PartitionState.TARGET_DIVERGED,
            reason=f"the target ends at {target.end}, but offsets up to {taken - 1} were mirrored "
            "from there: it has lost records of its own",
        )
    if len(offset_map) == 0 or target.end == 0:
        return _first_start(seen, tuple(keys))
    position = offset_map.mirrored_source_end
    if position is None:
        return Stop(
            state=PartitionState.TARGET_DIVERGED,
            reason=f"the target ends at {target.end}, before anything that was mirrored",
        )
    return _go_on(TopicPartition(topic, partition), seen, position, tuple(keys))


def _go_on(
    where: TopicPartition, seen: Situation, position: int, keys: tuple[Withdrawn, ...]
) -> Start | Stop:
    """Go on behind what was mirrored, and behind what both sites have of the target's own."""
    offset_map, source, target = seen.offset_map, seen.source, seen.target
    begin = first_own_record(position, seen.arrived)
    sealed_at = offset_map.sealed_at
    own_from = sealed_at if seen.tail is None else seen.tail.target_end
    own = own_from is not None and own_from < target.end and not seen.is_shared
    start = Start(
        source=begin,
        place=offset_map.place_end,
        announce=sealed_at is not None or begin != position,
        withdraw=keys,
        run=target.end if own else None,
        runs=seen.runs,
    )
    if not own and begin == position and seen.reads_holes_again:
        start = _into_the_hole(where, seen, start)
        begin = start.source
    if seen.undecided:
        return _foreign(seen, start)
    if own and not seen.foreign and seen.explained_until < target.end:
        return _diverged(seen, start)
    if begin < source.start:
        return Stop(
            state=PartitionState.RETENTION_OVERRUN,
            reason=f"source begins at {source.start}, offsets {begin} to {source.start - 1} "
            "were deleted before they were mirrored",
            lost_records=source.start - begin,
            skip_to=replace(
                start, source=source.start, announce=True, left_out=source.start - begin
            ),
        )
    if begin > source.end:
        return Stop(
            state=PartitionState.SOURCE_WENT_BACK,
            reason=f"source ends at {source.end}, but offsets up to {begin - 1} were mirrored",
        )
    return start


def _into_the_hole(where: TopicPartition, seen: Situation, start: Start) -> Start:
    """Return the start that reads an announced hole again, behind which nothing was mirrored.

    Anybody who may write to the map topic could have announced it, and skip records so; or a source
    whose log was cut has records where there were none. Where it is a hole, it is announced again.
    What the source has deleted of it cannot be read, and what came from the target, or was set
    aside, is left out once more. Where nobody knows what came, nothing is read again.
    """
    hole = seen.offset_map.last_hole
    if hole is None or (seen.was_returned and seen.arrived is None):
        return start
    source = _behind_left_out(max(hole.begin, seen.source.start), seen)
    if source >= hole.end:
        return start
    key = PieceStartKey(topic=where.topic, partition=where.partition, place=hole.place)
    return replace(
        start, source=source, announce=source > hole.begin, withdraw=(*start.withdraw, key)
    )


def _behind_left_out(offset: int, seen: Situation) -> int:
    """Return the first source offset from this one on that neither came back nor was set aside."""
    while True:
        behind = first_own_record(offset, seen.arrived)
        behind = max(
            (end for start, end in seen.set_aside.items() if start <= behind < end), default=behind
        )
        if behind == offset:
            return offset
        offset = behind


def unless_untold(decision: Start | Stop, untold: str, source: LogEnds) -> Start | Stop:
    """Return the decision, or a stop where it may take what is mirrored for not mirrored.

    ``untold`` says why the log does not tell how far it is mirrored. If the source has nothing
    behind the last place that is known, nothing more can have been mirrored.
    """
    if not untold or isinstance(decision, Stop) or decision.source >= source.end:
        return decision
    return Stop(state=PartitionState.TARGET_DIVERGED, reason=untold, skip_to=decision)


def unless_own_is_unknown(decision: Start | Stop, topic_set: str | None) -> Start | Stop:
    """Let nobody decide about the target's own records where the source may have got them."""
    if isinstance(decision, Start) or decision.state is not PartitionState.TARGET_DIVERGED:
        return decision
    return Stop(
        state=decision.state,
        reason=f"{decision.reason}; or the source has got them: records of the other direction's"
        " map speak of the partition, and their producers are not registered: before anything is"
        f" decided, see `failover recover --believe-maps{set_option(topic_set)}`",
    )


def passing_over(start: Start, source: int) -> Start:
    """Return the start that leaves out everything before this source offset."""
    if source <= start.source:
        return start
    return replace(
        start, source=source, announce=True, left_out=start.left_out + source - start.source
    )


def _first_start(seen: Situation, withdraw: tuple[Withdrawn, ...]) -> Start | Stop:
    """Begin at the first record of the source's own: nothing of them is on the target.

    Where it was begun by the flow's `start`, or is to be, that is the first from there on.
    """
    source, target, begun = seen.source, seen.target, seen.begun or seen.due
    wanted = source.start if begun is None else max(source.start, begun.source_start)
    begin = first_own_record(wanted, seen.arrived)
    if seen.begun is not None and seen.begun.source_start > source.end:
        return Stop(
            state=PartitionState.SOURCE_WENT_BACK,
            reason=f"source ends at {source.end}, but was begun at {seen.begun.source_start} by"
            f" `start: {seen.begun.start}`",
        )
    if target.start < target.end:
        start = Start(
            source=begin,
            place=Place(0),
            announce=True,
            withdraw=withdraw,
            run=target.end,
            begun=seen.due,
        )
        is_taken = seen.taken_until is not None and target.end <= seen.taken_until
        return start if is_taken or seen.is_shared else _diverged(seen, start)
    is_known = not withdraw and seen.offset_map.mirrored_source_end == begin
    start = Start(
        source=begin,
        place=Place(target.end),
        announce=not is_known,
        withdraw=withdraw,
        begun=seen.due,
    )
    if seen.begun is not None and seen.begun.source_start < source.start:
        return _overrun_begin(seen.begun, start, source)
    return start


def _overrun_begin(begun: Begun, start: Start, source: LogEnds) -> Stop:
    """Name what the source has deleted since the begin, of which the target has nothing."""
    return Stop(
        state=PartitionState.RETENTION_OVERRUN,
        reason=f"source begins at {source.start}, and was begun at {begun.source_start} by"
        f" `start: {begun.start}`: offsets from there to {source.start - 1} were deleted, and the"
        " target has nothing of them",
        lost_records=source.start - begun.source_start,
        skip_to=replace(start, left_out=source.start - begun.source_start),
    )


def _foreign(seen: Situation, start: Start) -> Stop:
    """Name the records that others have written beside the mirror, and no decision has passed.

    What is merged waits for the flow back. So whoever sets records aside behind it, and has the
    flow back pass over them, sets it aside as well.
    """
    parts = seen.undecided
    named = ", ".join(f"{part.start} to {part.stop - 1}" for part in parts[:NAMED_PARTS])
    more = f" and {len(parts) - NAMED_PARTS} parts more" if len(parts) > NAMED_PARTS else ""
    reason = f"the target holds offsets {named}{more} that no mirror has written"
    if seen.was_returned and seen.arrived is None:
        return Stop(state=PartitionState.TARGET_DIVERGED, reason=reason)
    has_merged = seen.arrived is not None or len(seen.offset_map.runs) > len(seen.runs)
    first = min(parts[0].start, seen.explained_until) if has_merged else parts[0].start
    return Stop(
        state=PartitionState.TARGET_DIVERGED,
        reason=reason,
        skip_to=start,
        own=None if seen.is_one_way else OwnPart(first, parts[-1].stop),
    )


def _diverged(seen: Situation, start: Start) -> Stop:
    """Name the records of the target's own that the source has not got.

    Where nothing of the target ever came to the source, a seal tells where they begin: a promotion
    that was taken back had opened the target, or it was active and has no way back.
    """
    target = seen.target
    if seen.arrived is None:
        sealed_at = seen.offset_map.sealed_at
        first = None if sealed_at is None else max(sealed_at, target.start)
        known = "that no mirror has written" if first is None else "of the target's own writers"
        begin = target.start if first is None else first
        reason = f"the target holds offsets {begin} to {target.end - 1} {known}"
        stop = Stop(state=PartitionState.TARGET_DIVERGED, reason=reason)
        if first is None or seen.was_returned:
            return stop
        own = None if seen.is_one_way else OwnPart(first, target.end)
        return replace(stop, skip_to=start, own=own)
    return Stop(
        state=PartitionState.TARGET_DIVERGED,
        reason=f"the target holds offsets {seen.explained_until} to {target.end - 1} that the "
        "source never got",
        skip_to=start,
        own=OwnPart(seen.explained_until, target.end),
    )
