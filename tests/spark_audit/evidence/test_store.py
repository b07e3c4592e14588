"""Evidence that Spark has written is what Spark reads, night by night."""

from pathlib import Path
from uuid import UUID

import pytest
from pyspark import SparkContext

from spark_audit.evidence.links import Link
from spark_audit.evidence.remembered import remembered
from spark_audit.evidence.rows import EvidenceUnusable, Night, Note, noted
from spark_audit.evidence.store import load, save
from spark_audit.scan.scan_rows import RowKind, ScanRow
from spark_audit.session import PANDAS_COMPLAINT
from wire.topic_partition import TopicPartition

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings(f"ignore:{PANDAS_COMPLAINT}:FutureWarning"),
]

PLACE = TopicPartition("orders", 0)


def _link(start: int, stop: int) -> Link:
    row = ScanRow(
        RowKind.RANGE.value, start, stop, stop - start, bytes(16), 1_000, None, leader_epoch=2
    )
    return Link(start, stop, (row,))


def _night(name: str, *links: Link) -> Night:
    rows = tuple(noted(links, links[0].start))
    return Night(name=name, cluster="c1", notes=(Note(PLACE, UUID(int=1), rows),))


def _remembered(spark: SparkContext, place: str) -> list[Link]:
    table = load(spark, place)
    assert table is not None
    return list(remembered(table, place).logs[PLACE].links)


def test_nights_are_added_and_one_anew_replaces_them_all(
    spark: SparkContext, tmp_path: Path
) -> None:
    place, first, second = str(tmp_path / "dc1"), _link(0, 10), _link(10, 25)
    assert load(spark, place) is None
    save(spark, place, _night("20260101T000000Z", first), is_anew=False)
    save(spark, place, _night("20260102T000000Z", second), is_anew=False)
    assert _remembered(spark, place) == [first, second]
    save(spark, place, _night("20260103T000000Z", second), is_anew=True)
    assert _remembered(spark, place) == [second]


def test_a_place_below_a_file_is_refused_by_name(spark: SparkContext, tmp_path: Path) -> None:
    """Java refuses it: what Spark lets through is no exception of Spark's own."""
    file = tmp_path / "no-folder"
    file.write_text("a file")
    place = str(file / "dc1")
    with pytest.raises(EvidenceUnusable) as refused:
        save(spark, place, _night("20260101T000000Z", _link(0, 10)), is_anew=False)
    said = str(refused.value)
    assert said.startswith(f"{place}: evidence cannot be written (")
    assert str(file) in said.removeprefix(place), "what the file system said is not left out"
    assert said.endswith(
        "name a folder in audit.evidence in which the audit may make folders and files"
    )
    assert "\n" not in said
