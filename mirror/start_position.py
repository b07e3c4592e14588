"""Decide where a partition goes on: read off both logs' ends and the map, never off a side file."""

from dataclasses import dataclass, replace
from uuid import UUID

from mirror.partition_state import PartitionState
from offset_translation.map_records import PieceStartKey, SealKey
from offset_translation.offset_map import OffsetMap

NO_ID = UUID(int=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEnds:
    """Where a log begins and ends."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Go on at ``source`` → ``target`` once the map says so.

    ``withdraw`` are announcements whose records never arrived; ``announce`` says that the place
    begins a piece.
    """

    source: int
    target: int
    announce: bool
    withdraw: tuple[PieceStartKey | SealKey, ...] = ()
    left_out: int = 0
    """Source offsets passed over because somebody has decided so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """The partition must not go on."""

    state: PartitionState
    reason: str
    lost_records: int = 0
    """Source offsets that are gone unmirrored; an upper bound of the records."""
    skip_to: Start | None = None
    """Where to go on all the same, if that is decided."""


def decide_start(
    topic: str, partition: int, *, offset_map: OffsetMap, source: LogEnds, target: LogEnds
) -> Start | Stop:
    """Return where to go on, or why not. An empty target begins anew whatever the map says."""
    keys: list[PieceStartKey | SealKey] = [
        PieceStartKey(topic=topic, partition=partition, target_start=start)
        for start in offset_map.announced_beyond(target.end)
    ]
    is_sealed = offset_map.is_sealed_at(target.end)
    if is_sealed:
        keys.append(SealKey(topic=topic, partition=partition, target_end=target.end))
    if len(offset_map) == 0 or target.end == 0:
        is_known = not keys and offset_map.source_position(target.end) == source.start
        return _first_start(source, target, tuple(keys), is_known=is_known)
    position = offset_map.source_position(target.end)
    if position is None:
        return _no_position(offset_map, target)
    if position < source.start:
        return Stop(
            state=PartitionState.RETENTION_OVERRUN,
            reason=f"source begins at {source.start}, offsets {position} to {source.start - 1} "
            "were deleted before they were mirrored",
            lost_records=source.start - position,
            skip_to=Start(
                source=source.start,
                target=target.end,
                announce=True,
                withdraw=tuple(keys),
                left_out=source.start - position,
            ),
        )
    if position > source.end:
        return Stop(
            state=PartitionState.SOURCE_WENT_BACK,
            reason=f"source ends at {source.end}, but offsets up to {position - 1} were mirrored",
        )
    return Start(source=position, target=target.end, announce=is_sealed, withdraw=tuple(keys))


def passing_over(start: Start, source: int) -> Start:
    """Return the start that leaves out everything before this source offset."""
    if source <= start.source:
        return start
    return replace(
        start, source=source, announce=True, left_out=start.left_out + source - start.source
    )


def _first_start(
    source: LogEnds,
    target: LogEnds,
    withdraw: tuple[PieceStartKey | SealKey, ...],
    *,
    is_known: bool,
) -> Start | Stop:
    """Begin at the source's first record: nothing of it is on the target."""
    if target.end > target.start:
        return Stop(
            state=PartitionState.TARGET_DIVERGED,
            reason=f"the target holds offsets {target.start} to {target.end - 1} "
            "that no mirror has written",
        )
    return Start(source=source.start, target=target.end, announce=not is_known, withdraw=withdraw)


def _no_position(offset_map: OffsetMap, target: LogEnds) -> Stop:
    offset_map.advance(target.end)
    mirrored_end = offset_map.mirrored_target_end
    if mirrored_end is None:
        reason = f"the target ends at {target.end}, before anything that was mirrored"
    else:
        reason = f"behind target offset {mirrored_end} lie records of the target's own writers"
    return Stop(state=PartitionState.TARGET_DIVERGED, reason=reason)


def is_recreated(known: UUID | None, seen: UUID) -> bool:
    """Whether the source topic is another one than was mirrored; brokers without ids never say."""
    return known is not None and NO_ID not in {known, seen} and known != seen
