"""The page of rehearsals, its line on the overview, and the overview of a file that has them."""

from pathlib import Path

import pytest

from failover.planning.readiness import Readiness
from failover.planning.refusal import Cause
from failover.serve.console.pages import FailoverConsole
from failover.serve.console.rehearsals import RehearsalsSeen, rehearsal_line, rehearsals_page
from failover.serve.readiness import ReadinessCollector
from failover.serve.status_collector import StatusCollector
from runtime.configuration.config import load
from runtime.pages.browsing import BadTarget, PageRequest
from tests.dc_yaml import dc_yaml, flow
from tests.failover.serve.console.seen import rehearsals, words

BEHIND = Readiness(site="dc2", cause=Cause.OTHER, reason="orders-0 is behind")


def page(seen: RehearsalsSeen | None, **query: str) -> str:
    return words(rehearsals_page(seen, {"": ([BEHIND], "")}, query))


def test_each_rehearsal_has_its_times_its_counts_and_by_whom() -> None:
    said = page(rehearsals())
    assert "dc2 passed 2.14 s 1.98 s 0 0 jo" in said
    assert "dc2 failed 2.14 s not known 0 4 jo 4 records read again" in said
    assert "dc2 refused not known not known not known not known jo" in said
    parts = rehearsals_page(rehearsals(), {}, {}).parts
    assert not any("<script" in part.html for part in parts)


def test_what_would_refuse_today_is_beside_them() -> None:
    assert "all dc2 no orders-0 is behind" in page(rehearsals())
    unknown = words(rehearsals_page(rehearsals(), {"a": ((), "no witness")}, {}))
    assert "a - not known no witness" in unknown


def test_a_rehearsal_has_the_phases_of_each_way_and_what_became_of_records() -> None:
    said = page(rehearsals(), number="12")
    assert "drain 0.64 s preflight 0.31 s" in said
    assert "dc1 9 1.98 s 1.31 s 1.72 s 1.91 s" in said
    assert "acknowledged 2,316" in said
    assert "payments dc2 not known nobody answers" in said
    assert "did not come as far" in page(rehearsals(), number="10")
    for number in ("99", "x", "1" * 30):
        with pytest.raises(BadTarget):
            page(rehearsals(), number=number)


def test_what_is_not_known_or_not_there_is_said() -> None:
    assert "the witness is silent" in page(RehearsalsSeen(why_not="the witness is silent"))
    assert "no failover.rehearsal" in page(RehearsalsSeen(is_configured=False))
    assert "There was none yet" in page(RehearsalsSeen())
    assert "being read" in page(None)
    assert "not known" in rehearsal_line(RehearsalsSeen(why_not="silent"))
    assert "passed" in rehearsal_line(rehearsals())


async def test_the_overview_of_a_file_with_rehearsals_shows_the_sets_of_applications(
    tmp_path: Path,
) -> None:
    file = tmp_path / "dc.yaml"
    topics = ["orders", "failover.rehearsal.*"]
    flows = (flow("dc1", "dc2", topics), flow("dc2", "dc1", topics))
    file.write_text(dc_yaml(*flows, failover={"initial_active": "dc1", "rehearsal": {}}))
    configuration = load(file)
    statuses = {name: StatusCollector() for name in configuration.by_set()}
    readiness = {name: ReadinessCollector() for name in configuration.sets.of_applications}
    assert statuses.keys() != readiness.keys()
    answer = await FailoverConsole(configuration, statuses, readiness).browse(
        PageRequest("/console")
    )
    assert answer is not None
    assert answer.status == 200
    assert b"Topics of default" in answer.body
    assert b"Topics of rehearsal" not in answer.body
