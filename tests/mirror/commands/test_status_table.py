"""What `mirror status` prints."""

import re
from typing import Any

import pytest

from mirror.commands.status_choice import StatusChoice, UnknownState, states_named
from mirror.commands.status_table import status_parts
from mirror.report.status import StatusReport
from runtime.program.page import page_text
from tests.mirror.commands.status_reports import REPORT

PAGE = """\
flow dc1->dc2: running for 1 m 0 s
  fault: discovery: dc1 away
  warning: mirrored without segment.bytes=9: a, b, c, d, e and 2 more (the target says: too small)
  2 partitions (1 retention overrun, 1 streaming), lag 0 records and unknown for 1 partitions
  81,234 records/s, 83.0 MB/s; 1,200,000 records left, level in 14 s at this rate

  TOPIC   PART  STATE              SINCE  SOURCE END  MIRRORED  TARGET END  LAG  LAG TIME  REASON
  orders     0  streaming           30 s         500       500         480    0       0 s  \
3 offsets left out
  orders     1  retention overrun  1.0 s           ?         ?           ?    ?         ?  \
9 offsets lost; source begins at 9
  retention overrun: delete the target topic
  group positions are polled: no right to read __consumer_offsets

  GROUP    TOPIC   PART  SOURCE POS  LAG  TARGET POS  LAG  STATE
  billing  orders     0         490   10         470   10  settled
"""


def render(report: StatusReport, **choice: Any) -> str:
    return page_text(status_parts(report, StatusChoice(**choice)))


SUMMED = """\
flow dc1->dc2: running for 1 m 0 s
  5001 partitions (1 retention overrun, 5000 streaming), lag 12 records and unknown for 1 partitions

  TOPIC   PARTITIONS  LAG  LAG TIME  STATES
  orders        2501  6+?         ?  2500 streaming, 1 retention overrun
  clicks        2500    6     0.5 s  2500 streaming
  --all lists each of the 5001 partitions; --topic, --state and --lag-over choose

  TOPIC   PART  STATE              SINCE  SOURCE END  MIRRORED  TARGET END  LAG  LAG TIME  REASON
  orders  2500  retention overrun   40 s           ?         ?           ?    ?         ?
  retention overrun: delete the target topic
"""


def part(topic: str, number: int, *, lag: int | None = 0, state: str = "streaming") -> Any:
    known = {} if lag is not None else {"source_end": None, "mirrored_source_end": None}
    return {
        **REPORT["flows"][0]["partitions"][0],
        "topic": topic,
        "partition": number,
        "state": state,
        "since_ms": 60_000,
        "skipped_records": 0,
        "lag_records": lag,
        "lag_seconds": 0.5 if lag else lag,
        **known,
    }


def position(group: str, place: int) -> Any:
    lag = {"a": 1, "b": 2}[group]
    return {
        **REPORT["flows"][0]["groups"][0],
        "group": group,
        "partition": place,
        "source_lag": lag,
        "target_lag": None,
    }


def of_flow(partitions: list[Any]) -> StatusReport:
    flow = {
        **REPORT["flows"][0],
        "faults": [],
        "refused_settings": [],
        "speed": None,
        "groups_by": "",
        "groups": [],
        "partitions": partitions,
    }
    return {**REPORT, "flows": [flow]}  # type: ignore[list-item]


STANDS = {
    **part("orders", 2500, lag=None, state="retention overrun"),
    "mirrored_target_end": None,
    "advice": "delete the target topic",
}
MANY = of_flow(
    [part(topic, one, lag=6 * (one == 7)) for topic in ("clicks", "orders") for one in range(2500)]
    + [STANDS]
)


def test_the_page_shows_states_lags_and_positions_and_marks_the_unknown() -> None:
    assert render(REPORT) == PAGE


def test_a_switch_that_would_refuse_somebody_is_a_warning() -> None:
    told = "2 principals would be refused on dc2: `mirror check` names them"
    [flow] = REPORT["flows"]
    rule = "dc2 does not get the DENY of READ to User:* of topic t"
    refused = {**flow, "refused_after_switch": told, "withheld_rights": [rule]}
    page = render({**REPORT, "flows": [refused]})  # type: ignore[list-item]
    assert f"  warning: {told}\n  warning: {rule}\n" in page


def test_the_walker_of_what_is_fetched_is_named() -> None:
    [flow] = REPORT["flows"]
    page = render({**REPORT, "flows": [{**flow, "walked_by": "Python (switched off)"}]})
    assert "  what is fetched is walked by Python (switched off)\n" in page


def test_many_partitions_are_summed_up_by_topic_and_what_needs_somebody_is_named() -> None:
    page = render(MANY)
    assert page == SUMMED
    assert render(MANY, lists_all=True).count("\n") > 5_000


def test_as_many_topics_as_partitions_are_not_all_listed() -> None:
    topics = [part(f"topic-{number:04}", 0, lag=number) for number in range(4_000)]
    lines = render(of_flow(topics)).splitlines()
    assert len(lines) < 110
    assert lines[4].split()[0] == "topic-3999"
    assert any(line.startswith("  and 3900 topics more; --all lists") for line in lines)


def test_a_lag_that_is_not_known_is_over_any_limit_and_never_zero() -> None:
    found = of_flow([part("a", 0, lag=5), part("b", 0, lag=None), part("c", 0, lag=6)])
    shown = StatusChoice(lag_over=5).of_report(found)["flows"][0]["partitions"]
    assert [one["topic"] for one in shown] == ["b", "c"]
    assert "  chosen of it: 2 of 3 partitions, 0 of 0 positions of groups\n" in render(
        found, lag_over=5
    )


def test_what_is_chosen_matches_whole() -> None:
    shown = StatusChoice(topic=re.compile("order")).of_report(REPORT)["flows"][0]
    assert (shown["partitions"], shown["groups"]) == ([], [])
    shown = StatusChoice(states=states_named(["Streaming"])).of_report(REPORT)["flows"][0]
    assert [one["partition"] for one in shown["partitions"]] == [0]
    assert [one["group"] for one in shown["groups"]] == ["billing"]
    shown = StatusChoice(group=re.compile("bill.*")).of_report(REPORT)["flows"][0]
    assert (shown["partitions"], len(shown["groups"])) == ([], 1)


def test_a_state_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UnknownState, match=r"--state streamin: .*catching up, streaming, waiting"):
        states_named(["streamin"])


def test_positions_of_many_groups_are_summed_up_by_group() -> None:
    positions = [position(group, place) for group in ("a", "b") for place in range(60)]
    lines = render({**MANY, "flows": [{**MANY["flows"][0], "groups": positions}]}).splitlines()
    assert lines[-3:] == [
        "  b             60  120           ?  60 settled",
        "  a             60   60           ?  60 settled",
        "  --all lists each of the 120 positions; --group, --topic and --lag-over choose",
    ]
