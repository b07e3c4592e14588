"""After a planned switch, groups of any lag go on at exactly the next record.

Beside Apache Kafka, whose topics have transactions, `tests/interop/test_lags.py` asks the same.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.failover.sites import Sites, commit_by_hand, committed, create_topic, run_sites
from tests.mirror.daemon import append_batches, configure, run_mirror, wait_until
from wire.record_batch import Record, build_batch

pytestmark = pytest.mark.integration

LAGS = (0, 1_000, 100_000, 1_000_000)
EACH = 20_000
BATCHES = 51
"""A batch more than the largest lag, so that no position is the beginning."""


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    with run_sites(tmp_path_factory.mktemp("sites")) as running:
        yield running


def is_there(sites: Sites, group: str, topic: str) -> bool:
    return committed(sites.dc2, group, topic) >= 0


def test_a_group_of_any_lag_reads_nothing_again_and_misses_nothing(
    sites: Sites, tmp_path: Path
) -> None:
    create_topic(sites.dc1, "lag")
    batch = build_batch([Record(offset, 1, None, b"0123456789") for offset in range(EACH)])
    append_batches(sites.dc1, "lag", [batch] * BATCHES)
    end = EACH * BATCHES
    groups = {f"lag-{lag}": end - lag for lag in LAGS}
    with run_mirror(configure(sites, tmp_path, "lag")) as mirror:
        mirror.wait_mirrored("lag", end)
        for group, position in groups.items():
            commit_by_hand(sites.dc1, group, "lag", position)
        for group in groups:
            wait_until(group, partial(is_there, sites, group, "lag"))
        assert mirror.stop() == 0
    assert {group: committed(sites.dc2, group, "lag") for group in groups} == groups
