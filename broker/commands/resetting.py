"""Where a group goes on after a reset, by each rule of Kafka's own tool. Pure."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from wire.errors import ErrorCode
from wire.topic_partition import TopicPartition
from wire.values import frozen

Offsets = Mapping[TopicPartition, int | ErrorCode]

_UNITS_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION: Final = re.compile(r"(?P<count>[0-9]{1,9})(?P<unit>[smhd])")
MOST_OFFSET: Final = (1 << 63) - 1


@frozen(kw_only=False)
class ToEarliest:
    """The first record that is left."""


@frozen(kw_only=False)
class ToLatest:
    """Behind the last record."""


@frozen(kw_only=False)
class ToOffset:
    """This offset, or the nearest that the log has."""

    offset: int


@frozen(kw_only=False)
class ShiftBy:
    """So many records on from the present position, or back where it is below zero."""

    count: int


@frozen(kw_only=False)
class ToTime:
    """The first record whose time stamp is not older; the log's end where all are."""

    timestamp_ms: int


Rule = ToEarliest | ToLatest | ToOffset | ShiftBy | ToTime


@frozen
class Move:
    """A partition's position before and after; `before` is None where the group had none."""

    place: TopicPartition
    before: int | None
    after: int | None
    """None where it cannot be told; `why` says why."""
    why: str = ""


def planned(
    rule: Rule,
    places: Iterable[TopicPartition],
    positions: Mapping[TopicPartition, int],
    *,
    starts: Offsets,
    ends: Offsets,
    at_time: Offsets,
) -> list[Move]:
    """Return where each partition goes on; never outside its log.

    `at_time` holds -1 where no record is as new as the rule asks for.
    """
    return [
        _move(rule, place, positions.get(place), starts[place], ends[place], at_time.get(place, -1))
        for place in sorted(places)
    ]


def _move(
    rule: Rule,
    place: TopicPartition,
    before: int | None,
    start: int | ErrorCode,
    end: int | ErrorCode,
    at_time: int | ErrorCode,
) -> Move:
    for known in (start, end, at_time):
        if isinstance(known, ErrorCode):
            return Move(place=place, before=before, after=None, why=known.name)
    assert not isinstance(start, ErrorCode)
    assert not isinstance(end, ErrorCode)
    assert not isinstance(at_time, ErrorCode)
    match rule:
        case ToEarliest():
            wanted = start
        case ToLatest():
            wanted = end
        case ToOffset(offset=offset):
            wanted = offset
        case ToTime():
            wanted = end if at_time < 0 else at_time
        case ShiftBy(count=count):
            if before is None:
                return Move(place=place, before=None, after=None, why="the group has no position")
            wanted = before + count
    return Move(place=place, before=before, after=min(max(wanted, start), end))


def parse_time(text: str) -> int:
    """Return the milliseconds of an ISO 8601 date; UTC where it has no zone. Raises ValueError."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError as wrong:
        raise ValueError(f"{text!r} is no date like 2026-05-01T12:00:00Z") from wrong
    zoned = parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)
    return round(zoned.timestamp() * 1000)


def parse_duration(text: str) -> int:
    """Return the milliseconds of `90s`, `15m`, `6h` or `2d`. Raises ValueError."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no length of time like 90s, 15m, 6h or 2d")
    return int(found["count"]) * _UNITS_MS[found["unit"]]


def parse_scope(text: str) -> tuple[str, int | None]:
    """Return the topic, and the partition if one is named. Raises ValueError."""
    topic, colon, partition = text.partition(":")
    if not topic or (colon and not (partition.isascii() and partition.isdigit())):
        raise ValueError(f"{text!r} is not TOPIC or TOPIC:PARTITION")
    return topic, int(partition) if colon else None
