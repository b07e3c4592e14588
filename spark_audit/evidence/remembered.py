"""What all nights together say of each log of a site. Pure.

A night goes on where those before it ended. One that does not, or that has fewer rows than it says,
lacks a part: what is remembered of the partition is then broken, and says so. It is never taken
for a shorter log.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from typing import TypeAlias
from uuid import UUID

import numpy as np
import pyarrow as pa

from spark_audit.evidence.chain import NO_LINKS, Chain, LinkColumns
from spark_audit.evidence.notes import KeptNote, kept_notes
from spark_audit.evidence.rows import BEGIN, NIGHT, VOID, require_usable
from wire.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedLog:
    """What is remembered of one log."""

    topic_id: UUID
    links: Chain = NO_LINKS
    night: str = ""
    """The last night that spoke of it."""
    fault: str | None = None
    """Why nothing of it may be believed: parts lack, or the log has said otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedSite:
    """What is remembered of one site's logs; `cluster` is None before the first night."""

    cluster: str | None = None
    night: str | None = None
    """The last night; names sort as time does."""
    logs: Mapping[TopicPartition, RememberedLog] = field(default_factory=dict)


Remembered: TypeAlias = Mapping[str, RememberedSite]
"""By site."""


def remembered(table: pa.Table | None, where: str, of_set: str = "") -> RememberedSite:
    """Return what is kept of a site says, or nothing for None; `where` names it.

    `of_set` is the option for the set of topics, in commands that messages name.

    Raises EvidenceUnusable for rows of another format, of more than one cluster, or of no site.
    """
    if table is None or not table.num_rows:
        return RememberedSite()
    require_usable(table, where, of_set)
    kept = kept_notes(table, where)
    return RememberedSite(
        cluster=table.column("cluster")[0].as_py(),
        night=max(note.night for note in kept.notes),
        logs={
            place: _log(kept.links, notes)
            for place, notes in groupby(kept.notes, key=lambda note: note.place)
        },
    )


def _log(links: LinkColumns, notes: Iterable[KeptNote]) -> RememberedLog:
    """Return what the notes of one log, in the order of the nights, say together."""
    log: RememberedLog | None = None
    numbers: list[range] = []
    for note in notes:
        words = {row.kind: row.detail or "" for row in reversed(note.words)}
        if log is None or BEGIN in words:
            log, numbers = RememberedLog(topic_id=note.topic_id), []
        log = replace(log, night=note.night)
        if log.fault is not None:
            continue
        if log.topic_id != note.topic_id:
            log = replace(log, fault=f"night {note.night} is of another topic of this name")
        elif VOID in words:
            log = replace(log, fault=words[VOID])
        else:
            known = int(links.stop[numbers[-1][-1]]) if numbers else None
            added = _added(links, note, known)
            if isinstance(added, str):
                log = replace(log, fault=added)
            elif added:
                numbers.append(added)
    assert log is not None, "a log has a note"
    return log if log.fault is not None else replace(log, links=_chain(links, numbers))


def _added(links: LinkColumns, note: KeptNote, known: int | None) -> range | str:
    """Return which links a note adds to those that end at offset `known`, or what is wrong."""
    spans = [row for row in note.words if row.kind == NIGHT]
    if len(spans) != 1 or spans[0].records != note.rows:
        return f"rows of night {note.night} are missing"
    start, own = spans[0].start_offset, note.links
    stop = int(links.stop[own[-1]]) if own else start
    if not note.is_sound or stop != spans[0].stop_offset:
        return f"rows of night {note.night} contradict each other"
    if known is None or known == start:
        return own
    # A second night that was taken at the same time: what it repeats is known.
    if stop <= known:
        return own[:0]
    own = own[int(np.searchsorted(links.start[own.start : own.stop], known)) :]
    if not own or int(links.start[own[0]]) != known:
        return f"night {note.night} begins at offset {start}, not at {known}"
    return own


def _chain(links: LinkColumns, numbers: list[range]) -> Chain:
    """Return the links of these numbers; nights lie one behind the other but where one repeats."""
    if not numbers:
        return NO_LINKS
    if all(before.stop == after.start for before, after in pairwise(numbers)):
        return Chain(links, numbers[0].start, numbers[-1].stop)
    return Chain.of(link for some in numbers for link in links.links(some))
