"""Which of the oldest segments may go: Kafka's three reasons, as one pure decision."""

from collections.abc import Sequence
from typing import NamedTuple

from broker.log.config import LogConfig


class SegmentFacts(NamedTuple):
    """The facts about a segment that retention goes by."""

    end_offset: int
    """Where the next segment begins; the log's end for the last one."""
    size: int
    newest_ms: int


def deletable(
    segments: Sequence[SegmentFacts],
    config: LogConfig,
    *,
    log_start_offset: int,
    stop_offset: int,
    now_ms: int,
) -> int:
    """Return how many segments, from the oldest on, are to be deleted.

    Whole segments only, none that reaches above `stop_offset` (the high watermark), and not an
    empty last one. Below the log start a segment goes whatever the policy; the two limits hold
    only where cleanup.policy has `delete`. All may go: then the caller rolls first.
    """
    count = 0
    surplus = sum(segment.size for segment in segments) - config.retention_bytes
    for slot, segment in enumerate(segments):
        is_empty_end = slot == len(segments) - 1 and segment.size == 0
        if segment.end_offset > stop_offset or is_empty_end:
            break
        is_old = 0 <= config.retention_ms < now_ms - segment.newest_ms
        is_surplus = config.retention_bytes >= 0 and surplus >= segment.size
        is_below_start = segment.end_offset <= log_start_offset
        if not is_below_start and not (config.deletes and (is_old or is_surplus)):
            break
        surplus -= segment.size
        count += 1
    return count
