"""A report of a daemon whose flow has a bit of everything, as its status shows it."""

from mirror.report.status import StatusReport

REPORT: StatusReport = {
    "program": "mirror",
    "pid": 7,
    "started_ms": 0,
    "now_ms": 100_000,
    "flows": [
        {
            "flow": "dc1->dc2",
            "role": "running",
            "since_ms": 40_000,
            "reason": "",
            "faults": ["discovery: dc1 away"],
            "speed": {
                "records_per_second": 81_234.5,
                "bytes_per_second": 83_000_000.0,
                "lag_records": 1_200_000,
                "done_in_seconds": 14.8,
            },
            "groups_by": "polled: no right to read __consumer_offsets",
            "refused_settings": [
                {"topic": topic, "setting": "segment.bytes", "value": "9", "reason": "too small"}
                for topic in ("a", "b", "c", "d", "e", "f", "g")
            ],
            "partitions": [
                {
                    "topic": "orders",
                    "partition": 0,
                    "state": "streaming",
                    "since_ms": 70_000,
                    "reason": "",
                    "advice": "",
                    "source_end": 500,
                    "mirrored_source_end": 500,
                    "mirrored_target_end": 480,
                    "lag_records": 0,
                    "lag_seconds": 0.0,
                    "in_flight_bytes": 0,
                    "lost_records": 0,
                    "skipped_records": 3,
                    "looped_batches": 0,
                },
                {
                    "topic": "orders",
                    "partition": 1,
                    "state": "retention overrun",
                    "since_ms": 99_000,
                    "reason": "source begins at 9",
                    "advice": "delete the target topic",
                    "source_end": None,
                    "mirrored_source_end": None,
                    "mirrored_target_end": None,
                    "lag_records": None,
                    "lag_seconds": None,
                    "in_flight_bytes": 0,
                    "lost_records": 9,
                    "skipped_records": 0,
                    "looped_batches": 0,
                },
            ],
            "groups": [
                {
                    "group": "billing",
                    "topic": "orders",
                    "partition": 0,
                    "state": "settled",
                    "source_offset": 490,
                    "target_offset": 470,
                    "source_lag": 10,
                    "target_lag": 10,
                }
            ],
        }
    ],
}
