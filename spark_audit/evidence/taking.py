"""One night at one site: what is read, and what the night adds to what is remembered. Pure.

remembered  |=====|=====|=====|=====|          the last link is read again each night,
tonight           '-----'     '-----'-------|  others in turn; the rest is new
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from spark_audit.evidence.belief import Disbelief
from spark_audit.evidence.chain import Chain
from spark_audit.evidence.links import (
    Link,
    NightNumbers,
    chained,
    contradiction,
    is_corrupt,
    span,
    whole,
)
from spark_audit.evidence.remembered import RememberedLog
from spark_audit.evidence.rows import Note, noted, voided
from spark_audit.scan.scan_rows import RowKind, ScanRow
from spark_audit.snapshot.bounds import LogBounds
from wire.topic_partition import TopicPartition

COMPACTED: Final = "a cleaner rewrites the log"
MADE_AGAIN: Final = "the topic was made again"
NOTHING_LEFT: Final = "nothing that was remembered is left of the log, or can be proven"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTonight:
    """How one log is read tonight."""

    place: TopicPartition
    now: LogBounds
    again: tuple[Sequence[Link], ...] = ()
    """Runs of links that are read again."""
    kept: int = 0
    """Offsets that are remembered."""
    resume: int = 0
    """Where what is new begins."""
    begins_because: str | None = None
    """Earlier nights do not count any more."""

    def runs(self) -> list[tuple[int, int]]:
        """Return the offsets [start, stop) to read again."""
        return [span(run) for run in self.again]

    def new(self) -> list[tuple[int, int]]:
        """Return the offsets [start, stop) to read for the first time; none of a compacted log."""
        is_left = self.resume < self.now.stop and not self.now.is_compacted
        return [(self.resume, self.now.stop)] if is_left else []


def forgotten(log: RememberedLog | None, now: LogBounds) -> str | None:
    """Return why what is remembered of a log does not count any more; None if it does."""
    if log is None:
        return None
    if log.topic_id != now.topic_id:
        return MADE_AGAIN
    return COMPACTED if now.is_compacted and log.links else None


def without_memory(place: TopicPartition, now: LogBounds, why: str | None) -> LogTonight:
    """Return how a log is read of which nothing is remembered, or nothing that counts."""
    return LogTonight(place=place, now=now, resume=now.start, begins_because=why)


def going_on(
    place: TopicPartition, now: LogBounds, links: Chain, turns: NightNumbers
) -> LogTonight:
    """Return how a log is read of which these links are proven to be there."""
    start, stop = links.span()
    return LogTonight(
        place=place,
        now=now,
        again=tuple(links.to_read_again(place, turns)),
        kept=stop - start,
        resume=stop,
    )


def note_of(tonight: LogTonight, rows: Iterable[ScanRow]) -> Note | Disbelief | None:
    """Return what the night says of a log whose stretches gave these rows; None for nothing new.

    A log that says otherwise than what is remembered is never believed again until it is taken
    anew; the answer has the reason.
    """
    found = list(rows)
    failed = [row.detail or "" for row in found if row.kind == RowKind.FAILURE.value]
    if failed:
        return Disbelief(failed[0])
    for run in tonight.again:
        of_run = [row for row in found if run[0].start <= row.start_offset < run[-1].stop]
        if (why := contradiction(run, of_run)) is not None:
            return Disbelief(f"{tonight.place}: {why}", is_contradicted=True)
    new = [row for row in found if row.start_offset >= tonight.resume]
    links = whole(chained(tonight.resume, new))
    if not links and tonight.begins_because is None:
        return None
    start = links[0].start if links else tonight.resume
    added = noted(links, start, begins_because=tonight.begins_because)
    return Note(tonight.place, tonight.now.topic_id, tuple(added))


def corrupt_batches(place: TopicPartition, rows: Iterable[ScanRow]) -> list[str]:
    """Return what is said of corrupt batches that were read."""
    return [f"{place}: {row.detail}" for row in rows if is_corrupt(row)]


def void_note(place: TopicPartition, topic_id: UUID, why: str) -> Note:
    """Return the note by which what is remembered of a log is never believed again."""
    return Note(place, topic_id, tuple(voided(why)))
