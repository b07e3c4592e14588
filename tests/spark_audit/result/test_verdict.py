"""The verdict: its JSON, its metrics, its words, and the folder it lies in."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio
from prometheus_client import CollectorRegistry

from runtime.configuration.config import load
from runtime.pages.metrics import serve_metrics
from runtime.process.tasks import background_tasks
from runtime.program.command import Options
from spark_audit.commands import run
from spark_audit.compare.mapped import Standing
from spark_audit.compare.outcomes import CERTAIN, Kind
from spark_audit.compare.summary import EXPLANATIONS, HOLE_COLUMNS
from spark_audit.result.exporter import StoredVerdict
from spark_audit.result.page import html_page
from spark_audit.result.prometheus import textfile
from spark_audit.result.report import finding_line, long_report, short_report
from spark_audit.result.store import VERDICT, Result, ResultUnusable, replace_result
from spark_audit.result.verdict import (
    Answer,
    FlowVerdict,
    Verdict,
    answer_for,
    decode,
    encode,
    problem_of,
)
from spark_audit.run import run_audit, wanted
from spark_audit.snapshot.different_rights import DifferentRight
from spark_audit.snapshot.seals import CannotTell
from spark_audit.snapshot.topic_settings import DifferentSetting
from tests.dc_yaml import NOWHERE, dc_yaml, flow


def _row(partition: int, **numbers: Any) -> dict[str, Any]:
    return {
        "topic": "orders",
        "partition": partition,
        "source_start": 0,
        "source_stop": 10,
        "target_start": 0,
        "target_stop": 9,
        "source_compacted": False,
        "target_compacted": False,
        "source_records": 10,
        "target_records": 9,
        "oldest_in_flight_ms": None,
        "first_in_flight": None,
        **{f"positions_{name.name.lower()}": 0 for name in Standing},
        "positions_read_again": 0,
        "not_compared_source": 0,
        "not_compared_target": 0,
        "not_compared_reason": None,
        "keys_not_compared_reason": None,
        **dict.fromkeys(EXPLANATIONS, 0),
        **{name: 0 for name, _, _ in HOLE_COLUMNS},
        **{kind.column: 0 for kind in Kind},
        **numbers,
    }


def _flow(*rows: dict[str, Any]) -> FlowVerdict:
    return FlowVerdict(
        flow="dc1->dc2", taken_ms=1_000, promotion=2, only_on_target=("native",), partitions=rows
    )


def _verdict(*flows: FlowVerdict) -> Verdict:
    return Verdict(
        answer=answer_for(flows),
        started_ms=1_000,
        ended_ms=3_500,
        flows=flows,
        problem=problem_of(flows),
    )


UNKNOWN = Verdict(
    answer=Answer.UNKNOWN, started_ms=1_000, ended_ms=2_000, problem="cluster dc1 (h:1): down"
)
NO_LEADER = "cluster dc1 (h:1): orders-2 has no leader"
UNTOLD = replace(_flow(_row(0), _row(1)), untold=(("orders", 2, NO_LEADER),))
PARTLY = replace(_verdict(UNTOLD), problem=problem_of([UNTOLD]))
LOST = _verdict(_flow(_row(0), _row(1, lost=2, written_again=3)))


def test_the_exit_status_is_0_1_or_2() -> None:
    assert [answer.exit_status for answer in Answer] == [0, 1, 2]


def test_a_right_that_nothing_explains_is_a_finding_and_is_shown() -> None:
    missing = DifferentRight("orders", "ALLOW READ to User:a from *", True, None)
    flow_report = replace(_flow(_row(0)), rights=(missing,))
    verdict = _verdict(flow_report)
    assert verdict.answer is Answer.FINDINGS
    assert decode(encode(verdict)) == verdict
    assert f"  right: {missing.words}" in list(short_report(verdict))
    assert "Finding: orders: ALLOW READ" in html_page(verdict, [], now_ms=4_000, docs=None)
    assert 'audit_rights_different{explained="false",flow="dc1->dc2"} 1.0' in textfile(verdict)
    explained = replace(flow_report, rights=(missing._replace(explained="by design"),))
    assert _verdict(explained).answer is Answer.CLEAN


def test_rights_that_cannot_be_compared_are_said_and_end_no_audit() -> None:
    verdict = _verdict(replace(_flow(_row(0)), rights_not_compared="dc2: no authorizer"))
    assert verdict.answer is Answer.CLEAN
    assert "  rights not compared: dc2: no authorizer" in list(short_report(verdict))
    assert "Not compared: dc2: no authorizer." in html_page(verdict, [], now_ms=4_000, docs=None)


@pytest.mark.parametrize("kind", Kind)
def test_only_findings_are_findings(kind: Kind) -> None:
    expected = Answer.FINDINGS if kind in CERTAIN else Answer.CLEAN
    if kind is Kind.CORRUPT:
        expected = Answer.UNKNOWN
    assert answer_for([_flow(_row(0), _row(1, **{kind.column: 1}))]) is expected


def test_a_corrupt_batch_leaves_the_audit_without_an_answer_unless_more_is_found() -> None:
    one = _flow(_row(0), _row(1, corrupt=2, missing_by_corruption=3))
    verdict = _verdict(one)
    assert verdict.answer is Answer.UNKNOWN
    assert verdict.problem == "orders-1: corrupt batches (2): nobody knows what is in them"
    lines = list(short_report(verdict))
    assert lines[0] == f"could not tell: {verdict.problem}"
    assert lines[1].startswith("corrupt batches (2): ")
    assert _verdict(_flow(_row(0, lost=1), _row(1, corrupt=2))).answer is Answer.FINDINGS


def test_counts_are_sums_over_all_partitions() -> None:
    verdict = _verdict(_flow(_row(0, lost=1), _row(1, lost=2, in_flight=5)))
    assert verdict.counts["lost"] == 3
    assert verdict.counts["in_flight"] == 5
    assert verdict.records_compared == {"source": 15, "target": 18}


@pytest.mark.parametrize(
    "verdict", [UNKNOWN, PARTLY, LOST], ids=["unknown", "partly unknown", "findings"]
)
def test_a_verdict_survives_its_json(verdict: Verdict) -> None:
    assert decode(encode(verdict)) == verdict


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"version": 99}'])
def test_what_is_no_verdict_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        decode(text)


def test_a_partition_that_could_not_be_compared_makes_no_audit_clean_and_hides_no_findings() -> (
    None
):
    assert (PARTLY.answer, PARTLY.problem) == (Answer.UNKNOWN, NO_LEADER)
    lost = replace(_flow(_row(0, lost=1)), untold=UNTOLD.untold)
    assert answer_for([lost]) is Answer.FINDINGS
    for one, said in ((UNTOLD, "no findings in the rest: "), (lost, "findings: ")):
        lines = list(short_report(replace(_verdict(one), problem=problem_of([one]))))
        assert any(line.startswith(said) for line in lines)
        assert f"  orders-2: not compared: {NO_LEADER}" in lines
    assert 'audit_partitions_not_compared{flow="dc1->dc2"} 1.0' in textfile(PARTLY)


def test_metrics_tell_the_verdict_and_the_counts() -> None:
    text = textfile(LOST)
    assert 'audit_verdict{verdict="findings"} 1.0' in text
    assert 'audit_findings{flow="dc1->dc2",kind="lost"} 2.0' in text
    assert 'audit_records_explained{flow="dc1->dc2",kind="written again"} 3.0' in text
    assert "audit_duration_seconds 2.5" in text


def test_settings_that_lose_records_are_findings_and_others_are_warnings() -> None:
    losing = DifferentSetting("orders", "retention.ms", "9", "5", "deletes records earlier")
    harmless = DifferentSetting("orders", "flush.ms", None, "5", None)
    warned, found = (
        _verdict(replace(_flow(_row(0)), settings=settings))
        for settings in ((harmless,), (harmless, losing))
    )
    assert (warned.answer, found.answer) == (Answer.CLEAN, Answer.FINDINGS)
    assert decode(encode(found)) == found
    lines = list(short_report(found))
    assert "  warning: orders: flush.ms is not set on the source, 5 on the target" in lines
    assert any(line.startswith("  setting: orders: retention.ms is 9 ") for line in lines)
    text = textfile(found)
    assert 'audit_settings_different{flow="dc1->dc2",loses_records="true"} 1.0' in text
    assert 'audit_settings_different{flow="dc1->dc2",loses_records="false"} 1.0' in text
    shown = html_page(found, (), now_ms=found.ended_ms, docs=None)
    assert "<li>Finding: orders: retention.ms is 9 on the source, 5 on the target" in shown


def test_how_keys_end_is_told_and_keys_that_were_not_compared_are_never_clean() -> None:
    numbers = {"keys_alike": 7, "ends_differently": 2, "keys_in_flight": 1}
    verdict = _verdict(_flow(_row(0, **numbers)))
    told = "last values of keys: 7 alike, 2 different, 1 with records in flight"
    assert f"  {told}" in short_report(verdict)
    text = textfile(verdict)
    assert 'audit_keys{flow="dc1->dc2",kind="keys alike"} 7.0' in text
    assert 'audit_keys{flow="dc1->dc2",kind="ends differently"} 2.0' in text
    assert 'audit_records_explained{flow="dc1->dc2",kind="keys alike"}' not in text
    untold = _row(1, keys_not_compared=5, keys_not_compared_reason="too many")
    verdict = _verdict(_flow(_row(0), untold))
    assert (verdict.answer, verdict.problem) == (Answer.UNKNOWN, "orders-1: too many")
    assert any(line.endswith(", of 5 or more nothing is known") for line in short_report(verdict))


def test_an_audit_that_could_not_tell_has_no_counts() -> None:
    text = textfile(UNKNOWN)
    assert 'audit_verdict{verdict="unknown"} 1.0' in text
    assert "audit_findings" not in text


def test_the_short_report_names_what_differs_in_each_partition() -> None:
    lines = list(short_report(LOST))
    assert lines[0] == "findings: 17 source and 18 target records compared in 2.5 s"
    assert "  orders-0: 10 / 9 records, equal" in lines
    assert "  orders-1: 10 / 9 records, 2 lost, 3 written again" in lines
    assert "  only on the target, not audited: native" in lines


FINDING = {
    "topic": "orders",
    "partition": 1,
    "kind": "lost",
    "source_offset": 17,
    "target_offset": None,
    "records": 1,
    "timestamp_ms": 1_500,
    "key": "N5",
    "reason": "not mirrored before promotion 2",
}


def test_a_finding_is_one_line_with_its_place_first() -> None:
    assert finding_line(FINDING) == (
        "lost orders:1:17, key N5, time 1970-01-01T00:00:01.500+00:00: "
        "not mirrored before promotion 2"
    )
    corrupt = {
        **FINDING,
        "kind": "corrupt",
        "source_offset": None,
        "target_offset": 4,
        "records": 3,
        "timestamp_ms": None,
        "key": None,
        "reason": "bad",
    }
    assert finding_line(corrupt) == "corrupt orders:1:-, target offset 4, 3 offsets: bad"


def test_the_long_report_lists_every_finding() -> None:
    assert list(long_report(LOST, [FINDING, FINDING]))[-2:] == [finding_line(FINDING)] * 2


def test_a_new_result_replaces_the_old_one_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "findings").mkdir()
    (tmp_path / "findings" / "old.parquet").write_text("old")
    (tmp_path / "notes.txt").write_text("mine")
    with replace_result(tmp_path) as result:
        result.write_text(VERDICT, encode(UNKNOWN))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.txt", VERDICT]
    assert decode(Result(tmp_path).verdict_text()) == UNKNOWN
    assert list(Result(tmp_path).findings()) == []


def test_a_run_that_fails_leaves_the_old_result(tmp_path: Path) -> None:
    (tmp_path / VERDICT).write_text("old")
    with pytest.raises(RuntimeError), replace_result(tmp_path):
        raise RuntimeError
    assert [path.name for path in tmp_path.iterdir()] == [VERDICT]
    assert Result(tmp_path).verdict_text() == "old"


def test_a_folder_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(ResultUnusable, match="out"), replace_result(tmp_path / "out"):
        pass


def test_a_second_audit_of_a_folder_at_once_is_refused(tmp_path: Path) -> None:
    with replace_result(tmp_path) as result:
        with (
            pytest.raises(ResultUnusable, match=f"{tmp_path}: another audit is writing"),
            replace_result(tmp_path),
        ):
            pass
        result.write_text(VERDICT, "first")
    assert Result(tmp_path).verdict_text() == "first"


def test_what_a_killed_audit_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".new-killed" / "findings").mkdir(parents=True)
    with replace_result(tmp_path) as result:
        result.write_text(VERDICT, "new")
    assert [path.name for path in tmp_path.iterdir()] == [VERDICT]


def test_a_missing_verdict_is_named(tmp_path: Path) -> None:
    with pytest.raises(ResultUnusable, match=r"verdict\.json"):
        Result(tmp_path).verdict_text()


def test_what_cannot_be_told_yet_is_named(tmp_path: Path) -> None:
    file = tmp_path / "dc.yaml"
    file.write_text(dc_yaml(flow(topics="orders"), failover={"initial_active": "dc1"}))
    verdict = run_audit(load(file), ["payments"], tmp_path / "out")
    assert verdict.answer is Answer.UNKNOWN
    assert verdict.problem == "no flow's patterns match payments"
    assert decode(Result(tmp_path / "out").verdict_text()) == verdict


def test_of_several_flows_each_is_asked_for_the_topics_it_mirrors(tmp_path: Path) -> None:
    """`--topic`: the other flow neither has nor lacks it."""
    file = tmp_path / "dc.yaml"
    file.write_text(
        dc_yaml(
            flow("dc1", "dc2", ["a.*", "both"]),
            flow("dc1", "dc3", ["b.*"]),
            clusters={"dc3": NOWHERE},
        )
    )

    def asked(*topics: str) -> list[tuple[str, set[str]]]:
        found = wanted([(flow, False) for flow in load(file).flows], frozenset(topics))
        return [(one.flow.target, set(one.only)) for one in found]

    assert asked() == [("dc2", set()), ("dc3", set())]
    assert asked("apples") == [("dc2", {"apples"})]
    assert asked("both", "bread") == [("dc2", {"both"}), ("dc3", {"both", "bread"})]
    with pytest.raises(CannotTell, match="no flow's patterns match dates, figs"):
        asked("apples", "figs", "dates")


async def test_the_stored_verdict_is_served(tmp_path: Path) -> None:
    stored = StoredVerdict(Result(tmp_path))
    registry = CollectorRegistry()
    registry.register(stored)
    async with background_tasks() as tasks:

        async def serve(task_status: trio.TaskStatus[int]) -> None:
            await serve_metrics(
                "127.0.0.1",
                0,
                ready=lambda: stored.is_there,
                registry=registry,
                task_status=task_status,
            )

        port: int = await tasks.start(serve)
        assert b" 503 " in await _get(port, "/health/ready")
        assert b"audit_" not in await _get(port, "/metrics")
        (tmp_path / VERDICT).write_text(encode(LOST))
        assert b" 200 " in await _get(port, "/health/ready")
        assert b'audit_findings{flow="dc1->dc2",kind="lost"} 2.0' in await _get(port, "/metrics")


async def _get(port: int, path: str) -> bytes:
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        await stream.send_all(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        return b"".join([part async for part in stream])


def test_a_replacement_cut_short_leaves_no_result_rather_than_parts_of_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with replace_result(tmp_path) as result:
        (result.folder / "findings").mkdir()
        result.write_text(VERDICT, encode(_verdict(_flow(_row(0)))))
    rename = Path.rename

    def die_after_the_first(path: Path, target: Path) -> Path:
        monkeypatch.setattr(Path, "rename", _die)
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", die_after_the_first)
    with pytest.raises(SystemExit):
        _store_loss(tmp_path)
    with pytest.raises(ResultUnusable, match=r"verdict\.json"):
        Result(tmp_path).verdict_text()


def _store_loss(folder: Path) -> None:
    with replace_result(folder) as result:
        for part in ("findings", "summary"):
            (result.folder / part).mkdir()
        result.write_text(VERDICT, encode(LOST))


def _die(*_: object) -> None:
    raise SystemExit


def test_a_damaged_result_is_named(tmp_path: Path) -> None:
    (tmp_path / "findings").mkdir()
    (tmp_path / "findings" / "part-0.parquet").write_bytes(b"PAR1 cut")
    with pytest.raises(ResultUnusable, match=f"{tmp_path / 'findings'}: "):
        Result(tmp_path).findings()


@pytest.mark.parametrize("timestamp_ms", [1_790_000_000_000_000, 1 << 62, -(1 << 62)])
def test_a_time_that_no_calendar_has_is_given_as_it_is(timestamp_ms: int) -> None:
    """Some producers stamp microseconds."""
    line = finding_line({**FINDING, "timestamp_ms": timestamp_ms})
    assert f"time {timestamp_ms} ms: not mirrored" in line


def test_a_verdict_printed_as_json_is_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def audited(*_: object, **__: object) -> Verdict:
        with replace_result(tmp_path) as result:
            result.write_text(VERDICT, encode(UNKNOWN))
        return UNKNOWN

    monkeypatch.setattr("spark_audit.commands.run_audit", audited)
    monkeypatch.setattr("spark_audit.commands.unwind_at_signals", lambda: None)
    given = {"master": "local[1]", "conf": None, "full": False}
    run(Options(configuration=None, output=tmp_path, topic=None, json=True, **given))
    assert decode(capsys.readouterr().out) == UNKNOWN
