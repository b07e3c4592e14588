"""Which segments retention deletes."""

from dataclasses import replace

import pytest

from broker.log.config import LogConfig
from broker.log.retention import SegmentFacts, deletable

NONE = LogConfig(retention_ms=-1, retention_bytes=-1)
SEGMENTS = [
    SegmentFacts(10, 100, 1000),
    SegmentFacts(20, 100, 2000),
    SegmentFacts(30, 100, 500),
    SegmentFacts(40, 100, 4000),
]


@pytest.mark.parametrize(
    ("changes", "log_start", "stop", "now", "count"),
    [
        ({}, 0, 40, 10**9, 0),
        ({"retention_ms": 1000}, 0, 40, 2000, 0),
        ({"retention_ms": 1000}, 0, 40, 2001, 1),
        ({"retention_ms": 1000}, 0, 40, 3001, 3),
        ({"retention_ms": 1000}, 0, 40, 5001, 4),
        ({"retention_ms": 1000}, 0, 39, 5001, 3),
        ({"retention_ms": 1000}, 0, 20, 5001, 2),
        ({"retention_ms": 1000}, 0, 9, 5001, 0),
        ({"retention_bytes": 400}, 0, 40, 0, 0),
        ({"retention_bytes": 301}, 0, 40, 0, 0),
        ({"retention_bytes": 300}, 0, 40, 0, 1),
        ({"retention_bytes": 0}, 0, 40, 0, 4),
        ({}, 9, 40, 0, 0),
        ({}, 10, 40, 0, 1),
        ({}, 35, 40, 0, 3),
        ({"cleanup_policy": frozenset({"compact"}), "retention_bytes": 0}, 0, 40, 0, 0),
        ({"cleanup_policy": frozenset({"compact"}), "retention_bytes": 0}, 20, 40, 0, 2),
        ({"cleanup_policy": frozenset({"compact", "delete"}), "retention_bytes": 0}, 0, 40, 0, 4),
    ],
)
def test_the_oldest_segments_go(
    changes: dict[str, int], log_start: int, stop: int, now: int, count: int
) -> None:
    config = replace(NONE, **changes)  # type: ignore[arg-type]
    found = deletable(SEGMENTS, config, log_start_offset=log_start, stop_offset=stop, now_ms=now)
    assert found == count


def test_an_empty_last_segment_stays() -> None:
    config = replace(NONE, retention_ms=1)
    segments = [SegmentFacts(10, 100, 0), SegmentFacts(10, 0, 0)]
    found = deletable(segments, config, log_start_offset=0, stop_offset=10, now_ms=10**6)
    assert found == 1
