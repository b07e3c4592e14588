"""Evidence as rows of Parquet: what one night adds to what is remembered of a site's logs. Pure.

    range, hole   as a scan gives them, numbered in each night and partition
    night         how far this night came: offsets [start, stop), `records` rows
    begin         what earlier nights say of the partition does not count; `detail` says why
    void          the log contradicted what was remembered; `detail` says where

Each row names the format, the cluster and the topic by its id: a row of another is never taken for
one of these.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from uuid import UUID

import pyarrow as pa

from spark_audit.evidence.links import Link
from spark_audit.scan.scan_rows import ScanRow
from wire.topic_partition import TopicPartition

FORMAT: Final = 1
"""The version of these rows, and of the digests in them."""
NIGHT: Final = "night"
BEGIN: Final = "begin"
VOID: Final = "void"

EVIDENCE: Final = (
    "night string, format int, cluster string, topic string, partition int, topic_id string, "
    "number int, kind string, start_offset bigint, stop_offset bigint, records bigint, "
    "digest binary, timestamp_ms bigint, runs binary, reason string, detail string, "
    "leader_epoch int"
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
        ("kind", pa.string()),
        ("start_offset", pa.int64()),
        ("stop_offset", pa.int64()),
        ("records", pa.int64()),
        ("digest", pa.binary()),
        ("timestamp_ms", pa.int64()),
        ("runs", pa.binary()),
        ("reason", pa.string()),
        ("detail", pa.string()),
        ("leader_epoch", pa.int32()),
    ]
)


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


def nights_of(table: pa.Table, where: str) -> list[Night]:
    """Return what is kept, in order; `where` names it in what is raised.

    Raises EvidenceUnusable for rows of another format or of more than one cluster.
    """
    rows: list[Mapping[str, Any]] = table.to_pylist()
    formats = {row["format"] for row in rows} - {FORMAT}
    if formats:
        raise EvidenceUnusable(
            f"{where}: evidence of format {min(map(str, formats))}, this program knows {FORMAT}; "
            "take it anew with `spark-audit digest SITE --full`"
        )
    clusters = {row["cluster"] for row in rows}
    if len(clusters) > 1:
        named = ", ".join(sorted(map(str, clusters)))
        raise EvidenceUnusable(f"{where}: evidence of several clusters: {named}")
    names = sorted({str(row["night"]) for row in rows})
    by_night: dict[str, list[Mapping[str, Any]]] = {name: [] for name in names}
    for row in rows:
        by_night[str(row["night"])].append(row)
    try:
        return [
            Night(name=name, cluster=str(*clusters), notes=tuple(_notes(of_night)))
            for name, of_night in by_night.items()
        ]
    except (TypeError, ValueError) as error:
        raise EvidenceUnusable(f"{where}: no evidence of a site: {error!r}") from error


def _notes(rows: Iterable[Mapping[str, Any]]) -> Iterator[Note]:
    by_place: dict[tuple[TopicPartition, UUID], list[tuple[int, ScanRow]]] = {}
    for row in rows:
        place = TopicPartition(str(row["topic"]), int(row["partition"]))
        of_place = by_place.setdefault((place, UUID(row["topic_id"])), [])
        of_place.append((int(row["number"]), ScanRow(*(row[name] for name in ScanRow._fields))))
    for (place, topic_id), numbered in by_place.items():
        numbered.sort(key=lambda one: one[0])
        yield Note(place, topic_id, tuple(row for _, row in numbered))
