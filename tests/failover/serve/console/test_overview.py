"""What the console's first page says; what nobody knows is not known, and never good."""

import re
from dataclasses import replace
from html import unescape

from failover.planning.readiness import IfLost, Readiness
from failover.planning.refusal import Cause
from failover.serve.console.mirrors import SummariesSeen
from failover.serve.console.overview import OverviewSeen, SetSeen, overview_page
from tests.failover.serve.console.seen import (
    HOSTILE,
    audit,
    loss,
    overview,
    running,
    set_seen,
    status,
    summary,
    words,
)


def answers(seen: OverviewSeen) -> list[tuple[str, str]]:
    """Return the tone and the words of each of the three answers."""
    html = " ".join(part.html for part in overview_page(seen).parts)
    found = re.findall(r'<div class="answer (\w+)"><h3>.*?</h3><p class="says">(.*?)</p>', html)
    return [(tone, unescape(says)) for tone, says in found]


def ready(**changes: object) -> SetSeen:
    well = set_seen().readiness[0]
    return set_seen(readiness=[replace(well, **changes)])  # type: ignore[arg-type]


def test_where_all_is_well_each_answer_says_so() -> None:
    assert answers(overview()) == [
        ("good", "dc1->dc2 has mirrored all but 12 records (0.4 s)"),
        ("good", "Yes, to dc2"),
        ("good", "Planned: no record"),
    ]
    said = words(overview_page(overview()))
    assert "failover promote dc2 /etc/kafka-dr/dc.yaml" in said
    assert "12 records would be mirrored first, 3 groups would move" in said
    assert "If the active site were lost now: at least 12 records, of up to 0.4 s" in said


def test_what_is_in_the_way_is_named_with_its_reason() -> None:
    [_, could, _] = answers(overview(ready(cause=Cause.HOLD, reason="promotions are held")))
    assert could == ("bad", "No, not to dc2")
    said = words(overview_page(overview(ready(cause=Cause.HOLD, reason="promotions are held"))))
    assert "hold promotions are held" in said
    assert "failover plan dc2" in said


def test_a_lost_site_has_the_stated_loss_as_the_cost() -> None:
    silent = Readiness(
        site="dc2",
        cause=Cause.SOURCE_SILENT,
        reason="dc1 does not answer",
        if_lost=IfLost(loss=loss(40), refusal="40 records would be lost, 10 are allowed"),
    )
    seen = overview(set_seen(readiness=[silent], found=status(fault="connection refused")))
    assert answers(seen)[1:] == [("bad", "No, not to dc2"), ("bad", "At least 40 records")]
    said = words(overview_page(seen))
    assert "over budget 40 records would be lost" in said
    assert "failover plan dc2 --source-lost" in said
    assert "connection refused" in said


def test_what_nobody_knows_is_never_good() -> None:
    unknown = set_seen(why_not="the witness cannot be read: no answer")
    page = overview_page(overview(unknown))
    assert "the active site is not known" in words(page)
    assert "the witness cannot be read: no answer" in words(page)
    assert answers(overview(unknown)) == []
    not_looked = replace(set_seen(), looked_ms=None, readiness=())
    faults = SummariesSeen(flows=(), faults=["dc1->dc2: no daemon runs this flow"])
    seen = overview(not_looked, summaries=faults)
    assert [tone for tone, _ in answers(seen)] == ["unsure", "unsure", "unsure"]
    assert "no daemon runs this flow" in words(overview_page(seen))
    lost = ready(if_lost=None, lag=None, cause=Cause.TARGET_SILENT, reason="dc2 is silent")
    assert answers(overview(lost))[2] == ("unsure", "Not known")


def test_data_is_not_safe_where_partitions_stand_still_or_an_audit_has_findings() -> None:
    stopped = replace(summary(), states={"streaming": 3, "retention overrun": 2})
    [safe, *_] = answers(overview(summaries=SummariesSeen(flows=[stopped])))
    assert safe == ("bad", "dc1->dc2: 2 partitions stand still")
    [safe, *_] = answers(overview(set_seen(verdict=audit(answer="findings"))))
    assert safe == ("bad", "The last audit has findings")
    unknown_lag = SummariesSeen(flows=[summary(lag=None)])
    assert answers(overview(summaries=unknown_lag))[0][0] == "unsure"
    nothing = SummariesSeen(flows=[replace(summary(), states={}, lag_records=0)])
    assert answers(overview(summaries=nothing))[0] == ("unsure", "dc1->dc2 mirrors no partition")


def test_a_promotion_under_way_comes_first_with_each_step() -> None:
    page = overview_page(overview(set_seen(found=status(unfinished=running()))))
    said = words(page)
    assert page.parts[0].id == "s0-steps"
    assert re.search(r"fence done .* drain started .* groups-leave to come", said)
    assert "moving to dc2" in said


def test_names_from_outside_are_text() -> None:
    flows = SummariesSeen(flows=[summary(HOSTILE)], faults=[HOSTILE])
    page = overview_page(overview(ready(cause=Cause.OTHER, reason=HOSTILE), summaries=flows))
    html = " ".join(part.html for part in page.parts)
    assert "<script>" not in html
    assert "\x1b" not in html
    assert "\u202e" not in html
