"""Which part of a log is to be compacted, and in which groups of segments. Pure.

    | clean        | dirty, cleanable     | not cleanable                        |
    start          first dirty            first uncleanable                      end

Not cleanable are the active segment, what is not below the last stable offset, and segments that
are younger than min.compaction.lag.ms. Rules of Kafka's LogCleanerManager and Cleaner.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from broker.log.config import LogConfig

_INT_MAX: Final = 2**31 - 1


class SegmentShape(NamedTuple):
    """The facts about a segment, which is not the active one, that a cleaning is planned by."""

    base_offset: int
    size: int
    index_bytes: int
    time_index_bytes: int
    first_ms: int
    """The first batch's timestamp, -1 for none or where max.compaction.lag.ms does not ask."""
    newest_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleanable:
    """The dirty part of a log."""

    first_dirty: int
    first_uncleanable: int
    """Where a segment begins."""
    clean_bytes: int
    cleanable_bytes: int
    delay_ms: int = 0
    """For how long a record has been waiting to be compacted beyond max.compaction.lag.ms."""

    @property
    def is_late(self) -> bool:
        return self.delay_ms > 0

    @property
    def ratio(self) -> float:
        """The share of dirty bytes; 0 for an empty log."""
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    def is_due(self, config: LogConfig) -> bool:
        """Say whether compaction is worth while, or promised."""
        if self.is_late and self.cleanable_bytes:
            return True
        return self.ratio > config.min_cleanable_dirty_ratio


def first_dirty_offset(checkpoint: int | None, log_start: int, log_end: int) -> int:
    """Return where cleaning goes on; a checkpoint outside the log counts for nothing."""
    if checkpoint is None or not log_start <= checkpoint <= log_end:
        return log_start
    return checkpoint


def cleanable(
    sealed: Sequence[SegmentShape],
    config: LogConfig,
    *,
    first_dirty: int,
    active_base: int,
    last_stable_offset: int,
    now_ms: int,
) -> Cleanable:
    """Return the dirty part; `sealed` are all segments but the active one, oldest first."""
    dirty = _between(sealed, first_dirty, active_base)
    limits = [last_stable_offset, active_base]
    if config.min_compaction_lag_ms > 0:
        youngest_ms = now_ms - config.min_compaction_lag_ms
        limits += [one.base_offset for one in dirty if one.newest_ms > youngest_ms][:1]
    limit = max(first_dirty, min(limits))
    beyond = _between(sealed, limit, active_base)
    first_uncleanable = beyond[0].base_offset if beyond else active_base
    oldest_ms = now_ms - config.max_compaction_lag_ms
    to_clean = _between(sealed, min(first_dirty, first_uncleanable), first_uncleanable)
    return Cleanable(
        first_dirty=first_dirty,
        first_uncleanable=first_uncleanable,
        clean_bytes=sum(one.size for one in sealed if one.base_offset < first_dirty),
        cleanable_bytes=sum(one.size for one in to_clean),
        delay_ms=max([oldest_ms - one.first_ms for one in dirty if one.first_ms > 0] + [0]),
    )


def _between(sealed: Sequence[SegmentShape], start: int, stop: int) -> Sequence[SegmentShape]:
    """Return the segments from the one on that holds `start`; none begins at `stop` or behind."""
    if start >= stop:
        return ()
    holding = max((one.base_offset for one in sealed if one.base_offset <= start), default=0)
    return [one for one in sealed if holding <= one.base_offset < stop]


def grouped(
    segments: Sequence[SegmentShape], config: LogConfig, first_uncleanable: int
) -> list[range]:
    """Return slots of neighbours that become one segment each, so that segments stay large."""
    groups: list[range] = []
    start = 0
    for slot in range(1, len(segments) + 1):
        if slot < len(segments) and _fits(segments, start, slot, config, first_uncleanable):
            continue
        groups.append(range(start, slot))
        start = slot
    return groups


def _fits(
    segments: Sequence[SegmentShape],
    start: int,
    slot: int,
    config: LogConfig,
    first_uncleanable: int,
) -> bool:
    """Say whether the segment at `slot` still goes into the group that begins at `start`."""
    group = segments[start : slot + 1]
    following = slot + 1 < len(segments)
    end = segments[slot + 1].base_offset if following else first_uncleanable
    return (
        sum(one.size for one in group) <= config.segment_bytes
        and sum(one.index_bytes for one in group) <= config.segment_index_bytes
        and sum(one.time_index_bytes for one in group) <= config.segment_index_bytes
        and (segments[slot].size == 0 or end - 1 - segments[start].base_offset <= _INT_MAX)
    )
