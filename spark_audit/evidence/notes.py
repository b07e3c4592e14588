"""Evidence in columns, by night and log: what each note says, and whether its rows bear that out.

    note   night  20..40, 4 rows      what a night says of one log
           hole   20..21              '- link of offsets 20..33
           range  21..33              '
           range  33..38              '- links of a row each
           range  38..40              '

All notes of a site are judged at once, with a few steps over whole columns: of what lies in them
years ago no object is made.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_audit.evidence.chain import (
    Column,
    LinkColumns,
    columns_of,
    digest_words,
    is_of,
    numbers_of,
    rows_of,
)
from spark_audit.evidence.rows import NIGHT, EvidenceUnusable
from spark_audit.scan.committed import HoleReason
from spark_audit.scan.scan_rows import RowKind, ScanRow
from wire.topic_partition import TopicPartition

_CONTENT: Final = (RowKind.RANGE.value, RowKind.HOLE.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptNote:
    """What one night says of one log."""

    night: str
    place: TopicPartition
    topic_id: UUID
    words: Sequence[ScanRow]
    """The rows that are neither range nor hole."""
    rows: int
    """How many others there are."""
    links: range
    """The numbers of its links."""
    is_sound: bool
    """Each offset that its links span is accounted for, once, and nothing else is in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptNotes:
    """The notes of a site: of one log one behind the other, in the order of the nights."""

    links: LinkColumns
    notes: Sequence[KeptNote]


def kept_notes(table: pa.Table, where: str) -> KeptNotes:
    """Return what is kept; `where` names it. Raises EvidenceUnusable for ids that are none."""
    keys = _Keys.of(table)
    order = keys.order()
    table, keys = table.take(pa.array(order)), keys.taken(order)
    begins = keys.changes()
    ends: Column = np.append(begins[1:], table.num_rows)

    is_content = is_of(table.column("kind"), _CONTENT[0]) | is_of(table.column("kind"), _CONTENT[1])
    rows = table.filter(pa.array(is_content)).select(ScanRow._fields)
    words = rows_of(table.filter(pa.array(~is_content)))
    content_before = np.concatenate([[0], np.cumsum(is_content)])
    stretches = np.stack([content_before[begins], content_before[ends]], axis=1)
    spoken = np.stack([begins, ends], axis=1) - stretches
    said = [words[first:last] for first, last in spoken.tolist()]

    links, numbers, is_sound = _links(rows, stretches, [_start(one) for one in said])
    try:
        notes = [
            KeptNote(
                night=night,
                place=place,
                topic_id=topic_id,
                words=said[note],
                rows=int(stretches[note, 1] - stretches[note, 0]),
                links=range(*numbers[note]),
                is_sound=is_sound[note],
            )
            for note, (night, place, topic_id) in enumerate(keys.names(begins))
        ]
    except ValueError as error:
        raise EvidenceUnusable(f"{where}: no evidence of a site: {error!r}") from error
    return KeptNotes(links=links, notes=notes)


def _start(words: Sequence[ScanRow]) -> int:
    """Return where the links of a note start, by its own word; -1 without one."""
    starts = [row.start_offset for row in words if row.kind == NIGHT]
    return -1 if not starts or starts[0] is None else starts[0]


def _links(
    rows: pa.Table, stretches: Column, starts: Sequence[int]
) -> tuple[LinkColumns, list[list[int]], list[bool]]:
    """Return all links, of each note which are its own, and whether its rows are sound.

    A note's rows are a stretch of them all, and its first link starts where the note says.
    """
    last = np.flatnonzero(is_of(rows.column("kind"), RowKind.RANGE.value))
    note = np.searchsorted(stretches[:, 1], last, side="right")
    behind_range = np.concatenate([np.zeros(min(1, len(last)), np.int64), last[:-1] + 1])
    first = np.maximum(behind_range, stretches[note, 0])
    before = numbers_of(rows.column("stop_offset").take(pa.array(np.maximum(behind_range - 1, 0))))
    own_start = np.array(starts, dtype=np.int64)[note]
    start = np.where(first == stretches[note, 0], own_start, before)
    links = columns_of(rows, first, last, start)
    numbers = np.stack([np.searchsorted(last, edge) for edge in stretches.T], axis=1)
    bad_rows = np.concatenate([[0], np.cumsum(_bad_rows(rows, links))])
    bad_links = np.concatenate([[0], np.cumsum(_bad_links(rows, links))])
    bad = np.diff(bad_rows[stretches], axis=1) + np.diff(bad_links[numbers], axis=1)
    return links, numbers.tolist(), (bad[:, 0] == 0).tolist()


def _bad_rows(rows: pa.Table, links: LinkColumns) -> Column:
    """Return which rows lie in no link, or lead out of theirs, or are of no such kind."""
    begin, stop = numbers_of(rows.column("start_offset")), numbers_of(rows.column("stop_offset"))
    records = numbers_of(rows.column("records"))
    is_impossible = (records <= 0) | (records > stop - begin)
    is_retention = is_of(rows.column("reason"), HoleReason.RETENTION.name)
    if not len(links.last):
        all_of_them: Column = np.ones(rows.num_rows, dtype=bool)
        return all_of_them
    number = np.arange(rows.num_rows)
    link = np.minimum(np.searchsorted(links.last, number), len(links.last) - 1)
    is_inside = (links.first[link] <= number) & (number <= links.last[link])
    is_between = (links.start[link] <= begin) & (begin <= stop) & (stop <= links.stop[link])
    is_bad: Column = ~is_inside | ~is_between | is_impossible | is_retention
    return is_bad


def _bad_links(rows: pa.Table, links: LinkColumns) -> Column:
    """Return which links do not account for each offset, lack a digest or end as reading did."""
    ranges = rows.take(pa.array(links.last))
    offsets = np.concatenate([[0], np.cumsum(numbers_of(rows.column("records")))])
    accounted = offsets[links.last + 1] - offsets[links.first]
    has_no_end = pc.is_null(ranges.column("leader_epoch")).to_numpy()
    has_no_digest = digest_words(ranges.column("digest"))[1]
    is_bad: Column = (accounted != links.stop - links.start) | has_no_end | has_no_digest
    return is_bad


@dataclass(frozen=True, slots=True, kw_only=True)
class _Keys:
    """What tells the notes apart, as numbers: an item for each row."""

    topic: Column
    partition: Column
    night: Column
    """In the order of their names."""
    topic_id: Column
    number: Column
    topics: Sequence[str]
    nights: Sequence[str]
    topic_ids: Sequence[str]

    @classmethod
    def of(cls, table: pa.Table) -> "_Keys":
        """Return the keys of a table's rows."""
        topic, topics = _encoded(table, "topic")
        night, nights = _encoded(table, "night")
        topic_id, topic_ids = _encoded(table, "topic_id")
        ranks = np.argsort(np.argsort(np.array(nights, dtype=object)))
        return cls(
            topic=topic,
            partition=numbers_of(table.column("partition")),
            night=ranks[night] if nights else night,
            topic_id=topic_id,
            number=numbers_of(table.column("number")),
            topics=topics,
            nights=sorted(nights),
            topic_ids=topic_ids,
        )

    def order(self) -> Column:
        """Return the numbers of the rows in order."""
        order: Column = np.lexsort(
            (self.number, self.topic_id, self.night, self.partition, self.topic)
        )
        return order

    def taken(self, order: Column) -> "_Keys":
        """Return the keys of the rows in another order."""
        return _Keys(
            topic=self.topic[order],
            partition=self.partition[order],
            night=self.night[order],
            topic_id=self.topic_id[order],
            number=self.number[order],
            topics=self.topics,
            nights=self.nights,
            topic_ids=self.topic_ids,
        )

    def changes(self) -> Column:
        """Return the numbers of the rows with which notes begin."""
        if not len(self.number):
            return np.zeros(0, dtype=np.int64)
        differs: Column = np.ones(len(self.number), dtype=bool)
        columns = (self.topic, self.partition, self.night, self.topic_id)
        differs[1:] = np.logical_or.reduce([one[1:] != one[:-1] for one in columns])
        return np.flatnonzero(differs)

    def names(self, numbers: Column) -> Iterator[tuple[str, TopicPartition, UUID]]:
        """Yield night, log and topic id of these rows; ValueError for what is no id."""
        ids = [UUID(one) for one in self.topic_ids]
        columns = (self.night, self.topic, self.partition, self.topic_id)
        for night, topic, partition, topic_id in zip(
            *(one[numbers].tolist() for one in columns), strict=True
        ):
            yield self.nights[night], TopicPartition(self.topics[topic], partition), ids[topic_id]


def _encoded(table: pa.Table, name: str) -> tuple[Column, list[str]]:
    """Return a column of words as numbers, and the words that these stand for."""
    encoded = table.column(name).combine_chunks().dictionary_encode()
    chunks = encoded.chunks if isinstance(encoded, pa.ChunkedArray) else [encoded]
    [one] = chunks or [pa.array([], pa.string()).dictionary_encode()]
    return one.indices.to_numpy(zero_copy_only=False), one.dictionary.to_pylist()
