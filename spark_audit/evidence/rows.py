"""Evidence as rows of Parquet: what one night adds to what is remembered of a site's logs. Pure.

    range, hole   as a scan gives them, numbered in each night and partition
    night         how far this night came: offsets [start, stop), `records` rows
    begin         what earlier nights say of the partition does not count; `detail` says why
    void          the log contradicted what was remembered; `detail` says where

Each row names the format, the cluster and the topic by its id: a row of another is never taken for
one of these.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from uuid import UUID

import pyarrow as pa

from spark_audit.evidence.links import Link
from spark_audit.scan.scan_rows import ARROW_OF_ROW, OF_ROW, ScanRow
from wire.topic_partition import TopicPartition

FORMAT: Final = 1
"""The version of these rows, and of the digests in them."""
NIGHT: Final = "night"
BEGIN: Final = "begin"
VOID: Final = "void"

EVIDENCE: Final = (
    "night string, format int, cluster string, topic string, partition int, topic_id string, "
    f"number int, {OF_ROW}"
)
"""The columns, for Spark and, below, for Arrow."""
ARROW_EVIDENCE: Final = pa.schema(
    [
        ("night", pa.string()),
        ("format", pa.int32()),
        ("cluster", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("topic_id", pa.string()),
        ("number", pa.int32()),
        *ARROW_OF_ROW,
    ]
)
_NAMES: Final = ("night", "cluster", "topic", "partition", "topic_id", "number")
"""The columns of which each row has a value."""


class EvidenceUnusable(Exception):
    """Evidence of a site cannot be read or written, or is none of it; one line."""


class Note(NamedTuple):
    """What one night says of one partition."""

    place: TopicPartition
    topic_id: UUID
    rows: tuple[ScanRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """What one night says of a site; `name` sorts as time does."""

    name: str
    cluster: str
    notes: tuple[Note, ...]


def noted(links: Sequence[Link], start: int, *, begins_because: str | None = None) -> list[ScanRow]:
    """Return the rows of a partition that a night adds: these links, the first of which begins
    at `start`. With a reason it begins anew.
    """
    rows = [row for link in links for row in link.rows]
    stop = links[-1].stop if links else start
    begin = [] if begins_because is None else [ScanRow(BEGIN, start, start, detail=begins_because)]
    return [*begin, ScanRow(NIGHT, start, stop, len(rows)), *rows]


def voided(why: str) -> list[ScanRow]:
    """Return the row by which a log has contradicted what was remembered of it."""
    return [ScanRow(VOID, 0, 0, detail=why)]


def table_of(night: Night) -> pa.Table:
    """Return a night as a table of `EVIDENCE`."""
    rows = [
        (night.name, FORMAT, night.cluster, *note.place, str(note.topic_id), number, *row)
        for note in night.notes
        for number, row in enumerate(note.rows)
    ]
    columns = list(zip(*rows, strict=True)) or [()] * len(ARROW_EVIDENCE)
    return pa.table(
        [pa.array(values, one.type) for values, one in zip(columns, ARROW_EVIDENCE, strict=True)],
        schema=ARROW_EVIDENCE,
    )


def require_usable(table: pa.Table, where: str, of_set: str) -> None:
    """Raise EvidenceUnusable for rows of another format or of more than one cluster."""
    formats = set(table.column("format").unique().to_pylist()) - {FORMAT}
    if formats:
        raise EvidenceUnusable(
            f"{where}: evidence of format {min(map(str, formats))}, this program knows {FORMAT}; "
            f"take it anew with `spark-audit digest SITE --full{of_set}`"
        )
    clusters = set(table.column("cluster").unique().to_pylist())
    if len(clusters) > 1:
        named = ", ".join(sorted(map(str, clusters)))
        raise EvidenceUnusable(f"{where}: evidence of several clusters: {named}")
    unnamed = [name for name in _NAMES if table.column(name).null_count]
    if unnamed:
        raise EvidenceUnusable(f"{where}: no evidence of a site: rows without {unnamed[0]}")
