"""What `mirror status` makes of the reports of several workers."""

from mirror.commands.status_choice import StatusChoice
from mirror.commands.status_table import status_parts
from mirror.report.status import FlowReport, PartitionReport
from mirror.report.worker_statuses import merged
from runtime.program.page import page_text


def partition(index: int, lag: int | None) -> PartitionReport:
    return {
        "topic": "orders",
        "partition": index,
        "state": "streaming",
        "since_ms": 70_000,
        "reason": "",
        "advice": "",
        "source_end": 500,
        "mirrored_source_end": 500,
        "mirrored_target_end": 480,
        "lag_records": lag,
        "lag_seconds": 0.0,
        "in_flight_bytes": 0,
        "lost_records": 0,
        "skipped_records": 0,
        "looped_batches": 0,
    }


def report(*partitions: PartitionReport, rate: float, done: float | None = 0.0) -> FlowReport:
    return {
        "flow": "dc1->dc2",
        "role": "running",
        "since_ms": 40_000,
        "reason": "",
        "faults": ["discovery: dc1 away"] if rate > 1e6 else [],
        "speed": {
            "records_per_second": rate / 1000,
            "bytes_per_second": rate,
            "lag_records": 5,
            "done_in_seconds": done,
        },
        "groups_by": "__consumer_offsets",
        "refused_settings": [],
        "partitions": list(partitions),
        "groups": [
            {
                "group": "readers",
                "topic": "orders",
                "partition": 1,
                "state": "settled",
                "source_offset": 490,
                "target_offset": 470,
                "source_lag": None,
                "target_lag": 10,
            }
        ],
    }


def test_several_workers_are_shown_as_one_flow_with_who_has_what() -> None:
    whole = merged(
        [
            ("h:1", report(partition(0, 3), partition(2, 1), rate=2e6, done=4.0)),
            ("h:2", report(partition(1, None), rate=1e6, done=9.0)),
        ]
    )
    assert [(one["partition"], one["worker"]) for one in whole["partitions"]] == [
        (0, "h:1"),
        (1, "h:2"),
        (2, "h:1"),
    ]
    assert whole["faults"] == ["h:1: discovery: dc1 away"]
    assert whole["speed"] is not None
    assert (whole["speed"]["bytes_per_second"], whole["speed"]["done_in_seconds"]) == (3e6, 9.0)
    [group] = whole["groups"]
    assert group["source_lag"] == 10
    page = page_text(
        status_parts(
            {"program": "mirror", "pid": 0, "started_ms": 0, "now_ms": 100_000, "flows": [whole]},
            StatusChoice(),
        )
    )
    lines = [line.rstrip() for line in page.splitlines()]
    assert "  worker h:1: leads, running, 2 partitions, lag 4, 2.0 MB/s" in lines
    assert "  worker h:2: running, 1 partitions, lag ?, 1.0 MB/s" in lines
    assert any(line.split()[:4] == ["TOPIC", "PART", "WORKER", "STATE"] for line in lines)
    assert any(line.split()[:4] == ["orders", "1", "h:2", "streaming"] for line in lines)


def test_a_single_worker_is_shown_as_before() -> None:
    alone = report(partition(0, 0), rate=1.0)
    assert merged([("h:1", alone)]) == alone
