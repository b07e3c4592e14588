"""Pages that explain by a list of names have all of them, as the code has them."""

import re
from pathlib import Path

import pytest

from failover.journal.steps import ORDER, PromotionKind, StepName
from mirror.commands.group_rows import Exactness
from mirror.state.partition_state import PartitionState
from spark_audit.compare.outcomes import FINDINGS, Kind
from tests.docs.pages import ROOT

DOCS = ROOT / "docs"


def first_cells(page: Path) -> list[str]:
    """Return the first cell of each row of a page's tables."""
    return re.findall(r"^\| `?([^|`]+?)`? \|", page.read_text(), re.MULTILINE)


@pytest.mark.parametrize("kind", PromotionKind)
def test_the_steps_of_a_promotion_are_shown_in_their_order(kind: PromotionKind) -> None:
    page = " ".join((DOCS / "concepts" / "promotion.md").read_text().split())
    assert f"{kind.value} {' → '.join(ORDER[kind])} " in page


def test_every_step_of_a_promotion_is_explained() -> None:
    assert set(first_cells(DOCS / "concepts" / "promotion.md")) >= set(StepName)


def test_everything_that_an_audit_says_of_records_is_explained() -> None:
    page = (DOCS / "concepts" / "audit.md").read_text()
    findings, others = page.split("| no finding |")
    for kind in Kind:
        assert f"\n| {kind.value} |" in (findings if kind in FINDINGS else others)


def test_everything_that_is_said_of_a_groups_position_is_explained() -> None:
    explained = first_cells(DOCS / "operate" / "positions.md")
    assert [one for one in Exactness if one.value.partition(":")[0] not in explained] == []


def test_states_that_pages_name_are_states() -> None:
    states = {state.value for state in PartitionState}
    named = re.compile(r"(?:stops|stop|stopped) in `([a-z ]+)`")
    for page in sorted(DOCS.rglob("*.md")):
        assert set(named.findall(page.read_text())) <= states, page.name
