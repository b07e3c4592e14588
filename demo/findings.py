"""Which records the audit lists as lost, read from its Parquet."""

from pathlib import Path

from pyarrow import parquet


def read_lost(findings: Path) -> frozenset[tuple[int, int]]:
    """Return partition and offset of each record that the audit's Parquet lists as lost.

    A row may stand for records in a row.
    """
    columns = ["kind", "partition", "source_offset", "records"]
    rows = parquet.read_table(findings, columns=columns).to_pylist()
    return frozenset(
        (row["partition"], row["source_offset"] + step)
        for row in rows
        if row["kind"] == "lost"
        for step in range(row["records"])
    )
