"""Links of one log in columns: a night's cost does not grow with what was settled long ago. Pure.

A link is made of its columns when somebody asks for it. Most nobody asks for: of a log's remembered
links a night reads a few again, and an audit only those in which both sites differ.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_audit.evidence.links import REREAD_OFFSETS, Link, NightNumbers, shift_of
from spark_audit.no_pandas import forgo_pandas
from spark_audit.scan.digests import DIGEST_BYTES
from spark_audit.scan.scan_rows import ARROW_OF_ROW, ScanRow
from wire.topic_partition import TopicPartition

ROWS: Final = pa.schema(list(ARROW_OF_ROW))
BLOCK_ROWS: Final = 256
Column: TypeAlias = np.ndarray
"""Whole numbers, or whether something is so, an item for each row or link."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LinkColumns:
    """Links of any number of logs; numpy arrays, an item for each link."""

    rows: pa.Table
    """Holes and ranges, those of a link in a row and its range last."""
    first: Column
    """Number of the first row."""
    last: Column
    """Number of the range's row."""
    start: Column
    stop: Column
    digests: Column
    """Two words each."""
    is_plain: Column
    """Whether the link is one range without holes."""

    _made: dict[int, list[ScanRow]] = field(default_factory=dict)
    """Blocks of rows that somebody has asked for. To make some of a column takes as long as to make
    many, and those of small logs lie in one block."""

    def links(self, numbers: range) -> list[Link]:
        """Return these links."""
        some = slice(numbers.start, numbers.stop)
        of_each = (self.start, self.stop, self.first, self.last)
        return [
            Link(start, stop, tuple(self.rows_between(first, last + 1)))
            for start, stop, first, last in zip(
                *(one[some].tolist() for one in of_each), strict=True
            )
        ]

    def rows_between(self, first: int, stop: int) -> list[ScanRow]:
        """Return the rows of these numbers, holes and ranges."""
        found: list[ScanRow] = []
        for block in range(first // BLOCK_ROWS, -(-stop // BLOCK_ROWS)):
            begin = block * BLOCK_ROWS
            made = self._made.get(block)
            if made is None:
                made = self._made[block] = rows_of(self.rows.slice(begin, BLOCK_ROWS))
            found += made[max(0, first - begin) : stop - begin]
        return found


def rows_of(table: pa.Table) -> list[ScanRow]:
    """Return the rows of a table that has their columns."""
    columns = (table.column(name).to_pylist() for name in ScanRow._fields)
    return [ScanRow(*values) for values in zip(*columns, strict=True)]


def numbers_of(column: pa.ChunkedArray) -> Column:
    """Return a column of whole numbers, -1 for what is none."""
    numbers: Column = pc.fill_null(column, -1).to_numpy()
    return numbers


def is_of(column: pa.ChunkedArray, value: str) -> Column:
    """Return of each item of a column whether it is this word."""
    found: Column = pc.fill_null(pc.equal(column, value), fill_value=False).to_numpy()
    return found


def digest_words(digests: pa.ChunkedArray) -> tuple[Column, Column]:
    """Return digests as two words each, and which are none; those count as zeros."""
    lengths = pc.fill_null(pc.binary_length(digests), -1)
    is_digest = pc.equal(lengths, DIGEST_BYTES)
    whole = pc.if_else(is_digest, digests, pa.scalar(bytes(DIGEST_BYTES), pa.binary()))
    words = np.frombuffer(b"".join(whole.to_pylist()), dtype="<u8").reshape(-1, 2)
    return words, ~is_digest.to_numpy()


class Chain(Sequence[Link]):
    """Some links of one log, each beginning where the one before it ends."""

    __slots__ = ("_columns", "_first", "_stop")

    def __init__(self, columns: LinkColumns, first: int, stop: int) -> None:
        """Take links [first, stop) of the columns."""
        self._columns = columns
        self._first = first
        self._stop = stop

    @classmethod
    def of(cls, links: Iterable[Link]) -> "Chain":
        """Return the chain of links that were made already."""
        some = list(links)
        rows = [row for link in some for row in link.rows]
        columns = list(zip(*rows, strict=True)) or [()] * len(ROWS)
        table = pa.table(
            [pa.array(values, one.type) for values, one in zip(columns, ROWS, strict=True)],
            schema=ROWS,
        )
        counts = np.array([len(link.rows) for link in some], dtype=np.int64)
        behind = np.cumsum(counts)
        start = np.array([link.start for link in some], dtype=np.int64)
        return cls(columns_of(table, behind - counts, behind - 1, start), 0, len(some))

    def __len__(self) -> int:
        """Return the number of links."""
        return self._stop - self._first

    @overload
    def __getitem__(self, index: int) -> Link: ...
    @overload
    def __getitem__(self, index: slice) -> "Chain": ...
    def __getitem__(self, index: int | slice) -> "Link | Chain":
        """Return a link, or a part of the chain."""
        numbers = range(self._first, self._stop)[index]
        if isinstance(numbers, int):
            return self._columns.links(range(numbers, numbers + 1))[0]
        assert numbers.step == 1, "links of a chain lie one behind the other"
        return Chain(self._columns, numbers.start, max(numbers.start, numbers.stop))

    def __iter__(self) -> Iterator[Link]:
        """Make all links, in order."""
        return iter(self._columns.links(range(self._first, self._stop)))

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same links."""
        return isinstance(other, Chain) and list(self) == list(other)

    def __hash__(self) -> int:
        """Return the same number for equal chains."""
        return hash(self.span()) if len(self) else 0

    def __repr__(self) -> str:
        """Show the links."""
        return f"Chain.of({list(self)!r})"

    @property
    def starts(self) -> Column:
        """Return where each link starts; a numpy array, as the next four."""
        return self._columns.start[self._first : self._stop]

    @property
    def stops(self) -> Column:
        """Return where each link ends."""
        return self._columns.stop[self._first : self._stop]

    @property
    def digests(self) -> Column:
        """Return the digest of each link's range, two words each."""
        return self._columns.digests[self._first : self._stop]

    @property
    def are_plain(self) -> Column:
        """Return which links are one range without holes."""
        return self._columns.is_plain[self._first : self._stop]

    def span(self) -> tuple[int, int]:
        """Return the offsets [start, stop) of all links; there are some."""
        return int(self.starts[0]), int(self.stops[-1])

    def rows(self) -> list[ScanRow]:
        """Return all holes and ranges, in order."""
        if not len(self):
            return []
        first, last = self._columns.first[self._first], self._columns.last[self._stop - 1]
        return self._columns.rows_between(int(first), int(last) + 1)

    def between(self, start: int, stop: int) -> "Chain":
        """Return the links that lie between two offsets."""
        first = int(np.searchsorted(self.starts, start))
        last = int(np.searchsorted(self.stops, stop, side="right"))
        return self[first : max(first, last)]

    def to_read_again(self, place: TopicPartition, turns: NightNumbers) -> list[Sequence[Link]]:
        """Return the runs of links that are read again tonight.

        The last link always is: what an election cut off a log, and others wrote again, begins
        there at the latest.
        """
        if not len(self):
            return []
        runs: list[range] = []
        for part in self._parts():
            if turns.have_come(part + shift_of(place)):
                first = part * REREAD_OFFSETS
                begin, end = (
                    int(np.searchsorted(self.starts, edge))
                    for edge in (first, first + REREAD_OFFSETS)
                )
                _join(runs, range(begin, end))
        _join(runs, range(len(self) - 1, len(self)))
        return [list(self[run.start : run.stop]) for run in runs]

    def _parts(self) -> list[int]:
        """Return the numbers of the parts in which links start; each has its turn."""
        first, last = (int(one) // REREAD_OFFSETS for one in (self.starts[0], self.starts[-1]))
        if first == last:
            return [first]
        parts: list[int] = np.unique(self.starts // REREAD_OFFSETS).tolist()
        return parts


def _join(runs: list[range], numbers: range) -> None:
    """Add numbers behind those of some runs, to the last one where that reaches them."""
    if runs and numbers.start <= runs[-1].stop:
        runs[-1] = range(runs[-1].start, max(runs[-1].stop, numbers.stop))
    else:
        runs.append(numbers)


def columns_of(rows: pa.Table, first: Column, last: Column, start: Column) -> LinkColumns:
    """Return links by their first and last rows, and where they start."""
    ranges = rows.take(pa.array(last))
    begins = numbers_of(ranges.column("start_offset"))
    stop = numbers_of(ranges.column("stop_offset"))
    is_whole = numbers_of(ranges.column("records")) == stop - start
    return LinkColumns(
        rows=rows,
        first=first,
        last=last,
        start=start,
        stop=stop,
        digests=digest_words(ranges.column("digest"))[0],
        is_plain=(first == last) & (begins == start) & is_whole,
    )


forgo_pandas()
NO_LINKS: Final = Chain.of(())
"""Made of the first arrays of a process that imports this."""
