"""Bound what may be in flight: by age, and by what the target's log says of its beginning. Pure."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

from spark_audit.compare.judgements import Judgement
from spark_audit.compare.outcomes import Kind
from spark_audit.snapshot.bounds import PartitionBounds, SeenEnd

CLOCKS_DIFFER_MS: Final = 60_000
"""By so much the clocks of two machines may differ that audit by turns."""


def bounded(
    judged: Iterable[Judgement],
    bounds: PartitionBounds,
    *,
    target_records: int,
    taken_ms: int,
    limit_ms: int,
) -> Iterator[Judgement]:
    """Yield the judgements, of those in flight only as many as such as may still be.

    Where the target holds nothing and its log begins behind records that the source still has,
    those were mirrored and its retention took them: they are not compared. What the mirror had
    brought, as it wrote into the witness, is lost. What has been in flight for longer than
    `limit_ms` is overdue, a finding. By a clock that went back since an earlier audit nobody knows
    for how long, and that is not compared.
    """
    taken = 0 if target_records else _taken(bounds)
    for one in judged:
        if one.kind is not Kind.IN_FLIGHT:
            yield one
            continue
        gone = min(one.records, taken)
        taken -= gone
        if gone:
            yield one._replace(
                kind=Kind.NOT_COMPARED,
                records=gone,
                reason=f"the target's log begins at offset {bounds.target.start} and holds nothing "
                "of this partition: its retention took what was mirrored",
            )
        promised = min(one.records - gone, _promised(one, bounds, gone))
        if promised:
            yield _missing(one._replace(records=promised), bounds)
        waiting = one.records - gone - promised
        if waiting:
            rest = one._replace(records=waiting)
            yield _by_age(rest, bounds, taken_ms=taken_ms, limit_ms=limit_ms)


def held_to_promise(judged: Iterable[Judgement], bounds: PartitionBounds) -> Iterator[Judgement]:
    """Yield the judgements, with what is in flight lost where the mirror had brought it.

    For judgements of one record or of records without holes between them, as long as they are so.
    """
    for one in judged:
        if one.kind is Kind.IN_FLIGHT and _promised(one, bounds, 0):
            yield _missing(one, bounds)
        else:
            yield one


def _missing(one: Judgement, bounds: PartitionBounds) -> Judgement:
    assert bounds.promise is not None, "something was promised"
    reason = f"missing at the target's end, although {bounds.promise.words}"
    return one._replace(kind=Kind.LOST, reason=reason)


def _promised(one: Judgement, bounds: PartitionBounds, gone: int) -> int:
    """Return how many records at most, from the first on, lie before the promised end.

    A promise beyond the source's end is of a log that was cut since, or of another one.
    """
    promise = bounds.promise
    if promise is None or one.source_offset is None or promise.source_end > bounds.source.stop:
        return 0
    return max(0, promise.source_end - one.source_offset - gone)


def _taken(bounds: PartitionBounds) -> int:
    """Return how many of the source's first records the target has had, for certain."""
    if bounds.is_both_ways or not bounds.target.start:
        return 0
    return max(0, bounds.mirrored_stop - bounds.source_gone)


def _by_age(one: Judgement, bounds: PartitionBounds, *, taken_ms: int, limit_ms: int) -> Judgement:
    since_ms, evidence = waiting_since(one, bounds)
    if bounds.source_seen is not None and bounds.source_seen.at_ms > taken_ms + CLOCKS_DIFFER_MS:
        return one._replace(kind=Kind.NOT_COMPARED, reason=_went_back(bounds.source_seen, taken_ms))
    if since_ms is None or taken_ms - since_ms <= limit_ms:
        return one
    hours = (taken_ms - since_ms) / 3_600_000
    return one._replace(
        kind=Kind.OVERDUE,
        reason=f"not mirrored for {hours:,.1f} h, {evidence}: longer than "
        "audit.in_flight_limit_ms; see `mirror status`",
    )


def _went_back(seen: SeenEnd, taken_ms: int) -> str:
    then, now = (
        datetime.fromtimestamp(at_ms / 1_000, UTC).isoformat(timespec="seconds")
        for at_ms in (seen.at_ms, taken_ms)
    )
    return (
        f"an earlier audit was at {then}, and by the clock it is {now}: it went back, and how long "
        "records wait is not known; the next audit counts from now on"
    )


def waiting_since(one: Judgement, bounds: PartitionBounds) -> tuple[int | None, str]:
    """Return since when, at least, records have been in flight, and how that is known.

    An earlier audit that saw the source's log end behind them knows; else the oldest one's time
    says it, which applications may set as they like.
    """
    earlier = bounds.source_seen
    if earlier is not None and one.source_offset is not None and one.source_offset < earlier.stop:
        return earlier.at_ms, "as an earlier audit saw them"
    if one.timestamp_ms is None or one.timestamp_ms < 0:
        return None, ""
    return one.timestamp_ms, "by the oldest one's time"
