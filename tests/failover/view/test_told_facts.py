"""Reports of journals that hold anything: what is not understood is named, and nothing fails."""

import json
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from failover.journal.facts import Facts
from failover.journal.journal import JournalUnreadable, decode_journal, encode_journal
from failover.journal.steps import ORDER, PromotionKind, StepName
from failover.view.promotion_page import promotion_page
from failover.view.promotion_report import history_row, lost, report_document, report_lines
from failover.view.told_facts import LEFT_OUT, SHAPES, understood
from tests.failover.journals import ended_promotion
from tests.properties import examples

HOSTILE: Final = "\x1b[31m<script>alert(1)</script>"
FACTS: Final[dict[str, Any]] = {
    "appended": [{"topic": "orders", "partition": 0, "start": 4, "stop": 6}],
    "shrunk": [{"topic": "orders", "partition": 0, "drained": 6, "end": 4}],
    "evidence": {"dc1": "silent"},
    "bounded": {"g": {"partitions": 1, "reread": None}},
    "loss": {"records": None, "records_at_least": 9, "seconds": 4.5, "partitions": {"orders-0": 9}},
}
anything = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 2**63) | st.just(HOSTILE),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["topic", "partition", "start", HOSTILE]), inner, max_size=3
        )
    ),
    max_leaves=4,
)
facts = st.dictionaries(st.sampled_from(sorted(SHAPES)), anything, max_size=4)


@pytest.mark.parametrize("key", FACTS)
def test_facts_as_steps_write_them_are_told(key: str) -> None:
    journal = ended_promotion(PromotionKind.PLANNED, {StepName.CONFIRM: {key: FACTS[key]}})
    assert understood(journal) == journal


def test_a_fact_that_is_not_understood_is_named_and_what_it_tells_is_not_known() -> None:
    wrong: Facts = {"appended": {"orders": 3}, "committed": 2}
    journal = understood(ended_promotion(PromotionKind.PLANNED, {StepName.CONFIRM: wrong}))
    assert journal.facts(StepName.CONFIRM) == {"committed": 2, LEFT_OUT: ["appended"]}
    told = "\n".join(report_lines(journal, None))
    assert "what confirm says of appended is not as this version writes it" in told
    assert lost(journal).records is None
    assert '<header class="findings">' in promotion_page(journal, None)


@settings(max_examples=examples(20))
@given(st.sampled_from(PromotionKind), st.data())
def test_whatever_a_journal_holds_is_reported(kind: PromotionKind, data: st.DataObject) -> None:
    found: dict[StepName, Facts] = {
        step: data.draw(facts) for step in data.draw(st.permutations(ORDER[kind]))[:3]
    }
    try:
        journal = decode_journal(encode_journal(ended_promotion(kind, found)))
    except JournalUnreadable:
        return
    times = st.integers(0, 2**63 - 1)
    journal = replace(
        journal, started_ms=data.draw(times), switched_ms=data.draw(st.none() | times)
    )
    journal = understood(journal)
    assert list(report_lines(journal, None))
    assert json.dumps([report_document(journal), history_row(journal)])
    assert HOSTILE not in promotion_page(journal, None)
