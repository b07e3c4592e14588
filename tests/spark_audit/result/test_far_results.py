"""Findings and verdicts kept through Spark's writers, night by night."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark import SparkContext

from spark_audit.result.far_results import keep_far
from spark_audit.result.history import night_of
from spark_audit.result.store import ResultUnusable
from spark_audit.result.verdict import Answer, Verdict
from spark_audit.session import PANDAS_COMPLAINT

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings(f"ignore:{PANDAS_COMPLAINT}:FutureWarning"),
]

FIRST_MS, SECOND_MS = 1_790_000_000_000, 1_790_086_400_000
LOST = {
    "topic": "orders",
    "partition": 0,
    "kind": "lost",
    "source_offset": 5,
    "target_offset": None,
    "records": 1,
    "timestamp_ms": None,
    "key": None,
    "reason": "missing on the target",
    "flow": "dc1->dc2",
}


def _verdict(started_ms: int, answer: Answer) -> Verdict:
    return Verdict(answer=answer, started_ms=started_ms, ended_ms=started_ms + 5)


def test_each_night_adds_its_verdict_and_its_findings(spark: SparkContext, tmp_path: Path) -> None:
    place = (tmp_path / "far").as_uri()
    keep_far(spark, place, _verdict(FIRST_MS, Answer.CLEAN), [])
    keep_far(spark, place, _verdict(SECOND_MS, Answer.FINDINGS), [LOST])
    rows = pq.read_table(tmp_path / "far" / "verdicts").to_pylist()
    kept = sorted(rows, key=lambda row: str(row["night"]))
    assert [(one["night"], one["verdict"]) for one in kept] == [
        (night_of(FIRST_MS), "clean"),
        (night_of(SECOND_MS), "findings"),
    ]
    assert json.loads(kept[1]["document"])["started_ms"] == SECOND_MS
    assert pq.read_table(tmp_path / "far" / "findings").to_pylist() == [
        {**LOST, "night": night_of(SECOND_MS)}
    ]


def test_a_place_that_takes_nothing_is_named(spark: SparkContext, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    place = (tmp_path / "file").as_uri()
    with pytest.raises(ResultUnusable, match=rf"audit.results: {place}: "):
        keep_far(spark, place, _verdict(FIRST_MS, Answer.CLEAN), [LOST])
