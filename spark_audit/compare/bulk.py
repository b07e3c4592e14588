"""Judgements of gaps of which too many records differ to look at each. Pure."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final

from spark_audit.compare.explain import NOT_YET, SET_ASIDE, TAKEN_ON_SOURCE, TAKEN_ON_TARGET
from spark_audit.compare.in_flight import held_to_promise
from spark_audit.compare.judgements import Judgement
from spark_audit.compare.outcomes import Kind, WindowGaps
from spark_audit.snapshot.bounds import PartitionBounds

_MANY_MISSING: Final = (Kind.LOST, "missing on the target, among very many")
_MANY_SURPLUS: Final = (Kind.PHANTOM, "not on the source in its place, among very many")


def judged_in_bulk(
    windows: Sequence[WindowGaps], bounds: PartitionBounds, promotion: int | None
) -> Iterator[Judgement]:
    """Yield judgements of gaps where too many records differ to look at each.

    Retention explains the oldest ones, as always; no cleaner is asked.
    """
    is_compacted = bounds.source.is_compacted or bounds.target.is_compacted
    for window in windows:
        for gap in window.gaps:
            waits = gap.is_last and promotion is None and not gap.target
            aside = [at for at in gap.source if bounds.is_set_aside(at)]
            yield from _bulk(aside, len(aside), SET_ASIDE, _MANY_MISSING, is_source=True)
            left = [at for at in gap.source if not bounds.is_set_aside(at)] if aside else gap.source
            missing = (Kind.IN_FLIGHT, NOT_YET) if waits else _MANY_MISSING
            surplus = _MANY_SURPLUS
            if is_compacted:
                missing = missing if waits else (Kind.NOT_COMPARED, _MANY_MISSING[1])
                surplus = (Kind.NOT_COMPARED, _MANY_SURPLUS[1])
            if waits:
                for part in _parted(left, bounds):
                    yield from held_to_promise(_bulk(part, 0, "", missing, is_source=True), bounds)
            else:
                gone = _gone(bounds.target.start, gap.bracket[2:])
                yield from _bulk(left, gone, TAKEN_ON_TARGET, missing, is_source=True)
            gone = _gone(bounds.source.start, gap.bracket[:2])
            yield from _bulk(gap.target, gone, TAKEN_ON_SOURCE, surplus, is_source=False)


def _parted(offsets: Sequence[int], bounds: PartitionBounds) -> tuple[Sequence[int], Sequence[int]]:
    """Return what of these offsets lies before the end that was promised, and the rest."""
    end = 0 if bounds.promise is None else bounds.promise.source_end
    at = bisect_left(offsets, end)
    return offsets[:at], offsets[at:]


def _gone(log_start: int, between: tuple[int, ...]) -> int:
    """Return how many offsets of a bracket lie before a log's start."""
    after, before = between
    return max(0, min(log_start, before) - after - 1)


def _bulk(
    offsets: Sequence[int], gone: int, taken: str, rest: tuple[Kind, str], *, is_source: bool
) -> Iterator[Judgement]:
    for some, (kind, reason) in (
        (offsets[:gone], (Kind.EXPLAINED, taken)),
        (offsets[gone:], rest),
    ):
        if some:
            source, target = (some[0], None) if is_source else (None, some[0])
            yield Judgement(kind, source, target, len(some), None, None, reason)
