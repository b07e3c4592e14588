"""The page: all in one file, true to the verdict, and safe from names of outside."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from spark_audit.cli import main
from spark_audit.flow_audit import audit_flow
from spark_audit.result import page_findings
from spark_audit.result.history import KeptVerdict, UnreadableNight, kept
from spark_audit.result.page import html_page
from spark_audit.result.picture import partition_picture
from spark_audit.result.store import VERDICT, replace_result
from spark_audit.result.verdict import Answer, FlowVerdict, Verdict, answer_for, encode, problem_of
from spark_audit.run import report_of
from tests.spark_audit.audits import planner_of
from tests.spark_audit.logs import MemoryReader, Pair, snapshot_of

HOSTILE = "<script>alert(1)</script>"
ENDED_MS = 1_700_000_000_000
VOID = {"meta", "rect"}


class Balanced(HTMLParser):
    """Notes tags that are not closed in their order, and everything that would be fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.fetched += [str(value) for name, value in attrs if name == "src" or tag == "link"]

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


def _audited() -> tuple[Verdict, list[dict[str, object]]]:
    pair = Pair()
    pair.mirror(*(f"a{number}" for number in range(900)))
    pair.source.append(*(f"lost{number}" for number in range(150)))
    (_,) = pair.source.append(f"{HOSTILE}:is this")
    pair.target.append(f"{HOSTILE}:is that")
    pair.mirror(*(f"b{number}" for number in range(500)))
    pairs = {("orders", 0): pair}
    snapshot = snapshot_of(pairs)
    result = audit_flow(MemoryReader(pairs), snapshot, planner_of(snapshot))
    return _verdict(report_of(snapshot, result)), [dict(row) for row in result.findings]


def _verdict(report: FlowVerdict) -> Verdict:
    return Verdict(
        answer=answer_for([report]),
        started_ms=ENDED_MS - 1_000,
        ended_ms=ENDED_MS,
        flows=(report,),
        problem=problem_of([report]),
    )


def test_the_page_is_whole_fetches_nothing_and_takes_names_as_text() -> None:
    verdict, findings = _audited()
    text = html_page(verdict, findings, now_ms=ENDED_MS, docs=None)
    parsed = Balanced()
    parsed.feed(text)
    assert (parsed.open, parsed.fetched) == ([], [])
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "prefers-color-scheme: dark" in text


def test_lost_records_in_a_row_are_one_row_with_their_number() -> None:
    verdict, findings = _audited()
    text = html_page(verdict, findings, now_ms=ENDED_MS, docs=None)
    assert verdict.answer is Answer.FINDINGS
    rows = re.findall(r'<tr><td class="" data-name="finding">(lost|altered)</td>', text)
    assert sorted(rows) == ["altered", "lost"]
    summary = re.findall(r'<tr><td>(\w+)</td><td class="number">(\d+)</td>', text)
    assert ("lost", "150") in summary
    assert '<td class="number" data-name="records">150</td>' in text
    assert "in its place with another value." in text


def test_an_old_verdict_is_said_to_be_old() -> None:
    verdict, findings = _audited()
    hours = 3_600_000
    fresh, old = (
        html_page(verdict, findings, now_ms=ENDED_MS + age * hours, docs=None) for age in (30, 50)
    )
    assert "hours old" not in fresh
    assert "50 hours old" in old
    of_the_future = html_page(verdict, findings, now_ms=ENDED_MS - 50 * hours, docs=None)
    assert "50 hours of the future" in of_the_future


def test_links_lead_to_the_documentation_if_its_address_is_known() -> None:
    verdict, findings = _audited()
    text = html_page(verdict, findings, now_ms=ENDED_MS, docs='https://docs.example/"')
    assert 'href="https://docs.example/&quot;/operate/audit.html#what-to-do-about-findings"' in text


def test_of_very_many_findings_the_page_says_how_many_it_leaves_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(page_findings, "MOST_FINDINGS", 1)
    verdict, findings = _audited()
    assert "1 more rows are not shown" in html_page(verdict, findings, now_ms=0, docs=None)


def test_what_is_very_long_is_cut_and_says_how_long_it_is() -> None:
    verdict, findings = _audited()
    findings[0]["key"] = "k" * 5_000
    text = html_page(verdict, findings, now_ms=ENDED_MS, docs=None)
    assert "k" * 101 not in text
    assert "... (5,000 characters)" in text


def test_partitions_without_findings_are_folded_away_and_others_are_linked() -> None:
    verdict, findings = _audited()
    [flow] = verdict.flows
    [bad] = flow.partitions
    calm = [
        {**bad, "partition": number, **dict.fromkeys(("lost", "altered"), 0), "in_flight": 4}
        for number in range(1, 1_200)
    ]
    text = html_page(
        replace(verdict, flows=(replace(flow, partitions=(*calm, bad)),)),
        findings,
        now_ms=ENDED_MS,
        docs=None,
    )
    parsed = Balanced()
    parsed.feed(text)
    assert parsed.open == []
    assert "<summary>1,199 partitions without findings</summary>" in text
    assert '<h3 id="f0p0">orders-0</h3>' in text.partition("<summary>")[0]
    assert '<a href="#f0p0">orders-0</a>' in text
    assert text.count("<svg") == 1_200


def test_groups_that_would_skip_records_are_named() -> None:
    verdict, findings = _audited()
    [flow] = verdict.flows
    rows = tuple({**row, "positions_too_far": 2} for row in flow.partitions)
    far = {**findings[0], "kind": "position too far", "key": f"billing{HOSTILE}", "records": 7}
    text = html_page(
        replace(verdict, flows=(replace(flow, partitions=rows),)),
        [*findings, far, {**far, "partition": 1}],
        now_ms=ENDED_MS,
        docs=None,
    )
    assert (
        "group billing&lt;script&gt;alert(1)&lt;/script&gt; would never read 14 records of "
        "2 partitions"
    ) in text


def test_the_newest_nights_have_a_mark_each_and_one_that_cannot_be_read_says_why() -> None:
    verdict, findings = _audited()
    night = kept(verdict, findings)
    nights: list[KeptVerdict | UnreadableNight] = [
        night,
        UnreadableNight("20260102T020000Z", f"{HOSTILE}: no JSON"),
    ]
    text = html_page(verdict, findings, now_ms=ENDED_MS, docs=None, kept=nights)
    assert f'class="night findings" role="img" aria-label="{night.night}: findings"' in text
    assert "cannot be read: &lt;script&gt;alert(1)&lt;/script&gt;: no JSON" in text
    assert text.index("20260102T020000Z</td>") < text.index(f"{night.night}</td>")


def test_an_audit_that_could_not_tell_has_a_page_too() -> None:
    verdict = Verdict(
        answer=Answer.UNKNOWN, started_ms=0, ended_ms=1, problem=f"cluster {HOSTILE}\x1b[31m: down"
    )
    text = html_page(verdict, [], now_ms=1, docs=None)
    assert "Could not tell: cluster &lt;script&gt;" in text
    assert "\x1b" not in text
    assert "\\x1b[31m: down" in text


def test_a_picture_stays_within_its_frame_and_shows_single_records() -> None:
    verdict, findings = _audited()
    (row,) = verdict.flows[0].partitions
    picture = ElementTree.fromstring(partition_picture(row, findings))  # noqa: S314 - our own
    bars = [one for one in picture.iter() if one.tag == "rect"]
    for bar in bars:
        left, width = float(bar.attrib["x"]), float(bar.attrib["width"])
        assert left >= 0
        assert left + width <= 1_000
        assert width >= 2
    assert len([bar for bar in bars if bar.attrib["class"] == "mark"]) == 3


def test_the_program_writes_the_page_beside_its_exit_status(tmp_path: Path) -> None:
    verdict, findings = _audited()
    with replace_result(tmp_path / "audit") as result:
        result.append(findings, [dict(row) for row in verdict.flows[0].partitions])
        result.write_text(VERDICT, encode(verdict))
    file = tmp_path / "audit.html"
    assert main(["report", "--html", str(file), str(tmp_path / "audit")]) == 1
    assert file.read_text().startswith("<!doctype html>")
    assert main(["report", "--html", str(tmp_path / "no" / "x"), str(tmp_path / "audit")]) == 2
