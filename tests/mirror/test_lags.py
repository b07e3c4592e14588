"""After a planned switch, groups of any lag go on at exactly the next record.

`python -m tests.freshness lags` asks the same up to a lag of a million records, and beside Apache
Kafka, whose topics have transactions.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.freshness.lags import Scene, both_at_once, fill_plain, one_way
from tests.freshness.switched import Switched, all_exact, row
from tests.interop.sites import BUNDLED, Pair, RunningPair, run_sites

pytestmark = pytest.mark.integration

SCENES: dict[str, tuple[tuple[int, ...], Callable[[Scene], Iterator[Switched]]]] = {
    "plain": ((0, 1_000, 100_000), partial(one_way, fill=fill_plain)),
    "both-at-once": ((0, 100, 1_000, 10_000), both_at_once),
}


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPair]:
    pair = Pair(source=BUNDLED, target=BUNDLED)
    with run_sites(tmp_path_factory.mktemp("sites"), pair) as running:
        yield running


@pytest.mark.story
@pytest.mark.parametrize("topic", SCENES)
def test_a_group_of_any_lag_reads_nothing_again_and_misses_nothing(
    sites: RunningPair, tmp_path: Path, topic: str
) -> None:
    lags, play = SCENES[topic]
    found = list(play(Scene(sites=sites, folder=tmp_path / topic, topic=topic, lags=lags)))
    assert {one.lag for one in found} >= set(lags)
    assert all_exact(found), "\n".join(map(row, found))
