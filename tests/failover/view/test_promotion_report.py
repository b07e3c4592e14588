"""The report of a promotion: what it cost, where nothing is not known to be zero, and its page."""

import json
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from failover.journal.facts import Facts
from failover.journal.journal import Journal, begin_step, turn_back
from failover.journal.steps import PromotionKind, PromotionState, StepName
from failover.planning.loss import estimate, loss_summary
from failover.view.promotion_page import promotion_page
from failover.view.promotion_report import (
    UNKNOWN_LOSS,
    closed_ms,
    history_row,
    lost,
    lost_line,
    phases,
    report_document,
    report_lines,
)
from tests.failover.journals import begun, ended_promotion
from wire.topic_partition import TopicPartition

HOSTILE = "<script>alert(1)</script>"
SLIPPED: Facts = {"topic": "orders", "partition": 0, "start": 40, "stop": 42}
MOVED: Facts = {
    "groups": 3,
    "committed": 7,
    "positions": {},
    "left": {HOSTILE: "orders-0: busy (1 partitions)"},
    "cut": {},
    "unstable": [],
    "bounded": {"billing": {"partitions": 1, "reread": 5}},
    "more_bounded": 2,
}


def planned(**confirm: object) -> Journal:
    facts: dict[StepName, Facts] = {
        StepName.FENCE: {"fenced": True, "partitions": 12},
        StepName.DRAIN: {"records": 120},
        StepName.GROUPS_MOVE: MOVED,
        StepName.CONFIRM: dict(confirm),  # type: ignore[arg-type]
    }
    return ended_promotion(PromotionKind.PLANNED, facts)


def disaster(preflight: Facts, **confirm: object) -> Journal:
    facts: dict[StepName, Facts] = {
        StepName.PREFLIGHT: preflight,
        StepName.FENCE: {"fenced": False, "why": "dc1 is silent"},
        StepName.CONFIRM: dict(confirm),  # type: ignore[arg-type]
    }
    return ended_promotion(PromotionKind.SOURCE_LOST, facts)


@pytest.mark.parametrize("kind", PromotionKind)
def test_what_a_journal_does_not_say_is_told_as_not_known(kind: PromotionKind) -> None:
    """One that was cut short by hand, or written by another version, is read as it is."""
    journal = ended_promotion(kind, {})
    told = "\n".join(report_lines(journal, None))
    assert promotion_page(journal, None)
    assert json.dumps(report_document(journal))
    if kind is PromotionKind.SOURCE_LOST:
        assert "dc1 could not be fenced: the journal does not say whether it was tried" in told
    else:
        assert "drained  an unknown number of records" in told
        assert "which groups were moved is not known" in told
    assert "lost     not known" in told


def test_a_planned_promotion_that_was_looked_at_lost_nothing() -> None:
    assert lost_line(lost(planned(appended=[]))) == "no record"


def test_what_slipped_through_is_counted_by_partition() -> None:
    found = lost(planned(appended=[SLIPPED, {**SLIPPED, "start": 50, "stop": 51}]))
    assert (found.records, found.partitions) == (3, {"orders-0": 3})


@pytest.mark.parametrize(
    "journal",
    [
        planned(not_looked="dc1 is silent"),
        planned(),
        disaster({}),
        disaster({}, source_silent="no answer"),
        begun(),
    ],
)
def test_what_nobody_has_looked_at_is_not_known(journal: Journal) -> None:
    assert lost(journal) == UNKNOWN_LOSS
    assert history_row(journal)["lost"] is None
    assert "not known" in "\n".join(report_lines(journal, None))


def test_a_lost_source_costs_what_the_plan_said_until_it_answers() -> None:
    ends = {TopicPartition("orders", 0): 4}
    summary = loss_summary(estimate(None, {}, ends, 0), 10)
    assert lost(disaster({"loss": dict(summary)})).records is None
    told: Facts = {
        "loss": {
            "records": None,
            "records_at_least": 9,
            "seconds": 4.5,
            "partitions": {"orders-0": 9},
        }
    }
    found = lost(disaster(told, source_silent="no answer"))
    assert lost_line(found) == "at least 9 records; how many more is not known, of up to 4.5 s"
    assert lost(disaster(told, appended=[SLIPPED])).records == 2, "it was asked itself"


def test_a_promotion_that_was_taken_back_lost_nothing_unless_the_target_was_open() -> None:
    journal = replace(turn_back(begun(), "drain: slow"), state=PromotionState.ROLLED_BACK)
    assert lost(journal).records == 0
    opened = begin_step(journal, StepName.OPEN_TARGET, 0)
    record = opened.steps[-1]
    taken = replace(record, facts={"not_looked": "dc2 is silent"})
    assert lost(replace(opened, steps=(*opened.steps[:-1], taken))) == UNKNOWN_LOSS


def test_phases_and_the_time_in_which_nobody_could_write_are_told() -> None:
    journal = planned(appended=[])
    assert [one.step for one in phases(journal)] == [
        StepName.FENCE,
        StepName.DRAIN,
        StepName.GROUPS_MOVE,
        StepName.CONFIRM,
    ]
    assert closed_ms(journal) == 3_250, "from the fence, at 0, to the switch"
    assert closed_ms(disaster({})) is None, "nobody knows when it fell"


def test_the_document_is_json_and_says_what_is_not_known_as_null() -> None:
    document = json.loads(json.dumps(report_document(planned(not_looked="dc1 is silent"))))
    assert document["lost"]["records"] is None
    assert document["fence"]["not_looked"] == "dc1 is silent"
    assert document["groups"]["bounded"] == {"billing": {"partitions": 1, "reread": 5}}
    assert document["groups"]["more"] == 2
    assert report_document(begun())["groups"]["bounded"] is None


class Fetched(HTMLParser):
    """Notes tags that are open, and everything that a page would fetch or run."""

    def __init__(self) -> None:
        super().__init__()
        self.depth = 0
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.depth += tag not in {"meta", "rect"}
        self.found += [tag for name, _ in attrs if name in {"src", "href"}]
        self.found += [tag] if tag in {"script", "link"} else []

    def handle_endtag(self, tag: str) -> None:
        self.depth -= tag not in {"meta", "rect"}


@pytest.mark.parametrize(
    ("journal", "tone"),
    [
        (planned(appended=[]), "clean"),
        (planned(appended=[SLIPPED]), "findings"),
        (planned(not_looked=HOSTILE), "findings"),
        (disaster({}), "findings"),
        (begun(), "unknown"),
    ],
)
def test_the_page_is_one_file_safe_from_names_and_not_green_without_a_look(
    journal: Journal, tone: str
) -> None:
    page = promotion_page(journal, None)
    parser = Fetched()
    parser.feed(page)
    assert (parser.depth, parser.found) == (0, [])
    assert f'<header class="{tone}">' in page
    assert HOSTILE not in page
