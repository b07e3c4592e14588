"""After a planned switch, groups of any lag go on at exactly the next record, holes or not."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from tests.interop.selection import QUICK_PAIR
from tests.interop.sites import (
    Sites,
    append_batches,
    commit,
    committed,
    create_topic,
    end_of,
    read_batches,
    read_committed,
    run_sites,
    write_transactions,
)
from tests.mirror.daemon import run_mirror, wait_until
from wire.record_batch import Record, build_batch

pytestmark = pytest.mark.matrix(subject="The mirror between kinds of clusters")

LAGS = (0, 1_000, 100_000, 1_000_000)
EACH = 10_000
TRANSACTIONS = 153
"""Every third is aborted."""
BATCHES = 130
REPEATED = 5
"""Every fifth record of the compacted topic has the key of many others."""
COMPACTED_S = 90


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    with run_sites(tmp_path_factory.mktemp("sites"), QUICK_PAIR) as running:
        yield running


def write_compacted(sites: Sites, topic: str) -> None:
    """Write numbered records, and wait until the cleaner has taken most repetitions out."""
    create_topic(
        sites.dc1,
        topic,
        cleanup_policy="compact",
        segment_bytes=str(4 * 1024 * 1024),
        min_cleanable_dirty_ratio="0.01",
    )

    def record(number: int) -> Record:
        is_repeated = number % REPEATED == 0
        key = b"again" if is_repeated else number.to_bytes(8)
        return Record(number % EACH, 1, key, b"0123456789")

    append_batches(
        sites.dc1,
        topic,
        [build_batch([record(n * EACH + place) for place in range(EACH)]) for n in range(BATCHES)],
    )
    few = BATCHES * EACH * 0.85

    def is_compacted() -> bool:
        return sum(one.header.record_count for one in read_batches(sites.dc1, topic)) < few

    wait_until("compaction", is_compacted, COMPACTED_S)


def is_there(sites: Sites, group: str, topic: str) -> bool:
    return committed(sites.dc2, group, topic) >= 0


def distances(sites: Sites, folder: Path, topic: str, log: Sequence[int]) -> dict[int, int]:
    """Return by lag how many records behind a group's next one it goes on, below 0 before.

    ``log`` holds the offsets of the source's committed records.
    """
    end = end_of(sites.dc1, topic)
    positions = {lag: log[len(log) - lag] if lag else end for lag in LAGS}
    with run_mirror(sites.configure(folder, topic)) as mirror:
        mirror.wait_mirrored(topic, end)
        for lag, position in positions.items():
            commit(sites.dc1, f"{topic}-{lag}", topic, position)
        for lag in LAGS:
            wait_until(f"lag {lag}", partial(is_there, sites, f"{topic}-{lag}", topic))
        assert mirror.stop() == 0
    # The target holds the same records, one behind the other: a record's number is its offset.
    assert end_of(sites.dc2, topic) == len(log)
    return {
        lag: committed(sites.dc2, f"{topic}-{lag}", topic) - bisect_left(log, position)
        for lag, position in positions.items()
    }


def test_a_group_of_any_lag_in_a_transactional_topic_reads_nothing_twice_or_never(
    sites: Sites, tmp_path: Path
) -> None:
    create_topic(sites.dc1, "lag-transactions")
    write_transactions(sites.dc1, "lag-transactions", count=TRANSACTIONS, each=EACH)
    log = [offset for offset, _, _ in read_committed(sites.dc1, "lag-transactions")]
    assert len(log) == TRANSACTIONS * EACH * 2 // 3
    found = distances(sites, tmp_path, "lag-transactions", log)
    assert found == dict.fromkeys(LAGS, 0)


def test_a_group_of_any_lag_in_a_compacted_topic_reads_nothing_twice_or_never(
    sites: Sites, tmp_path: Path
) -> None:
    write_compacted(sites, "lag-compacted")
    log = [offset for offset, _, _ in read_committed(sites.dc1, "lag-compacted")]
    assert len(log) > max(LAGS)
    found = distances(sites, tmp_path, "lag-compacted", log)
    assert found == dict.fromkeys(LAGS, 0)
