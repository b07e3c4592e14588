"""After a planned switch, groups of any lag go on at exactly the next record, holes or not.

`python -m tests.freshness lags --apache` prints the same as a table.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.freshness.lags import LAGS, SCENES, Scene
from tests.freshness.switched import all_exact, row
from tests.interop.selection import QUICK_PAIR
from tests.interop.sites import RunningPair, run_sites

pytestmark = pytest.mark.matrix(subject="The mirror between kinds of clusters")


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPair]:
    with run_sites(tmp_path_factory.mktemp("sites"), QUICK_PAIR) as running:
        yield running


def play(sites: RunningPair, folder: Path, name: str) -> None:
    """Have groups of every lag switch; each must go on at its next record."""
    found = list(SCENES[name](Scene(sites=sites, folder=folder / name, topic=name)))
    assert {one.lag for one in found} >= set(LAGS)
    assert all_exact(found), "\n".join(map(row, found))


def test_a_group_of_any_lag_in_a_transactional_topic_reads_nothing_twice_or_never(
    sites: RunningPair, tmp_path: Path
) -> None:
    play(sites, tmp_path, "transactional")


def test_a_group_of_any_lag_in_a_compacted_topic_reads_nothing_twice_or_never(
    sites: RunningPair, tmp_path: Path
) -> None:
    play(sites, tmp_path, "compacted")


def test_a_group_of_any_lag_where_both_sites_are_written_to_reads_nothing_twice_or_never(
    sites: RunningPair, tmp_path: Path
) -> None:
    play(sites, tmp_path, "both-at-once")
