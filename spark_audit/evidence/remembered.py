"""What all nights together say of each log of a site. Pure.

A night goes on where those before it ended. One that does not, or that has fewer rows than it says,
lacks a part: what is remembered of the partition is then broken, and says so. It is never taken
for a shorter log.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias
from uuid import UUID

from spark_audit.evidence.links import Link, chained, whole
from spark_audit.evidence.rows import BEGIN, NIGHT, VOID, Night, Note
from spark_audit.scan.committed import HoleReason
from spark_audit.scan.scan_rows import RowKind, ScanRow
from wire.topic_partition import TopicPartition

_CONTENT: Final = frozenset({RowKind.RANGE.value, RowKind.HOLE.value})


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedLog:
    """What is remembered of one log."""

    topic_id: UUID
    links: tuple[Link, ...] = ()
    night: str = ""
    """The last night that spoke of it."""
    fault: str | None = None
    """Why nothing of it may be believed: parts lack, or the log has said otherwise."""

    @property
    def stop(self) -> int | None:
        """Return the offset behind the last link, None if there is none."""
        return self.links[-1].stop if self.links else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedSite:
    """What is remembered of one site's logs; `cluster` is None before the first night."""

    cluster: str | None = None
    logs: Mapping[TopicPartition, RememberedLog] = field(default_factory=dict)


def remembered(nights: Sequence[Night]) -> RememberedSite:
    """Return what these nights, in order and of one cluster, say together."""
    logs: dict[TopicPartition, RememberedLog] = {}
    for night in nights:
        for note in night.notes:
            logs[note.place] = _with_note(logs.get(note.place), note, night.name)
    return RememberedSite(cluster=nights[-1].cluster if nights else None, logs=logs)


def _with_note(before: RememberedLog | None, note: Note, night: str) -> RememberedLog:
    log = before
    if log is None or any(row.kind == BEGIN for row in note.rows):
        log = RememberedLog(topic_id=note.topic_id)
    log = replace(log, night=night)
    if log.fault is not None:
        return log
    if log.topic_id != note.topic_id:
        return replace(log, fault=f"night {night} is of another topic of this name")
    voids = [row.detail or "" for row in note.rows if row.kind == VOID]
    if voids:
        return replace(log, fault=voids[0])
    return _going_on(log, note.rows, night)


def _going_on(log: RememberedLog, rows: Iterable[ScanRow], night: str) -> RememberedLog:
    says = [row for row in rows if row.kind == NIGHT]
    content = [row for row in rows if row.kind in _CONTENT]
    if len(says) != 1 or says[0].records != len(content):
        return replace(log, fault=f"rows of night {night} are missing")
    [span] = says
    has_retention = any(row.reason == HoleReason.RETENTION.name for row in content)
    links = whole(chained(span.start_offset, content))
    stop = links[-1].stop if links else span.start_offset
    if (
        has_retention
        or stop != span.stop_offset
        or sum(len(one.rows) for one in links) != len(content)
    ):
        return replace(log, fault=f"rows of night {night} contradict each other")
    known = log.stop
    if known is not None and known != span.start_offset:
        # A second night that was taken at the same time: what it repeats is known.
        if stop <= known:
            return log
        links = [link for link in links if link.start >= known]
        if not links or links[0].start != known:
            return replace(
                log, fault=f"night {night} begins at offset {span.start_offset}, not at {known}"
            )
    return replace(log, links=(*log.links, *links))


Remembered: TypeAlias = Mapping[str, RememberedSite]
"""By site."""
