"""A flow that starts at the latest, promoted and taken back: what stays is named, and stays."""

import re
from pathlib import Path

import pytest

from tests.auditing import audited, compared
from tests.failover.both_ways import configure_both_ways, promote
from tests.failover.promoting import run_mirror, tell
from tests.failover.two_sites import (
    Sites,
    commit_by_hand,
    committed,
    create_topic,
    produce,
    read_all,
    values_of,
    wait_length,
)
from tests.mirror.daemon import wait_until

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def sites(own_sites: Sites) -> Sites:
    return own_sites


STAYS = "stays    up to 5 records of dc1 before the flow's start (`start: latest`)"


@pytest.mark.story
def test_what_was_before_the_start_stays_and_all_that_comes_goes_over_and_back(
    sites: Sites, tmp_path: Path
) -> None:
    topic, group = "from-latest", "of-before"
    create_topic(sites.dc1, topic)
    produce(sites.dc1, topic, range(5))
    commit_by_hand(sites.dc1, group, topic, 2)
    file = configure_both_ways(sites, tmp_path, "/p-from-latest", topic)
    both = re.sub(r"(?m)^( *-? *)(source: dc\d)", r"\1start: latest\n    \2", file.read_text())
    file.write_text(both)
    with run_mirror(file):
        wait_until("it has begun", lambda: STAYS in tell("plan", "dc2", str(file)).output)
        produce(sites.dc1, topic, range(5, 8))
        wait_length(sites.dc2, topic, 3)
        said = promote("dc2", file)
        assert STAYS in said
        assert committed(sites.dc2, group, topic) == 0
        produce(sites.dc2, topic, range(10, 13))
        wait_length(sites.dc1, topic, 11)
        report = tell("report", str(file), "--epoch", "1").output
        assert "no record; up to 5 records before the flow's start are not carried" in report
        promote("dc1", file)
        produce(sites.dc1, topic, range(20, 22))
        wait_length(sites.dc2, topic, 8)
        assert values_of(read_all(sites.dc1, topic)) == [*range(8), 10, 11, 12, 20, 21]
        assert values_of(read_all(sites.dc2, topic)) == [5, 6, 7, 10, 11, 12, 20, 21]
    told = audited(file, status=0)
    assert told == {
        "dc1->dc2": {"source_records": 5, "target_records": 5},
        "dc2->dc1": {"source_records": 3, "target_records": 3},
    }
    assert compared(file) == told
