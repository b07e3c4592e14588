"""Verdicts of nights: kept, listed, and held against each other."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_audit.cli import main
from spark_audit.result import history, store
from spark_audit.result.history import (
    KeptVerdict,
    change_between,
    change_lines,
    decode,
    encode,
    history_lines,
    kept,
    night_of,
)
from spark_audit.result.store import FINDINGS, HISTORY, VERDICT, Result, replace_result
from spark_audit.result.verdict import Answer, FlowVerdict, Verdict
from spark_audit.result.verdict import encode as encode_verdict
from spark_audit.snapshot.different_rights import DifferentRight
from spark_audit.snapshot.topic_settings import DifferentSetting

FIRST_MS, SECOND_MS = 1_790_000_000_000, 1_790_086_400_000


def _finding(offset: int, kind: str = "lost", **changes: Any) -> dict[str, Any]:
    return {
        "kind": kind,
        "flow": "dc1->dc2",
        "topic": "orders",
        "partition": 0,
        "source_offset": offset,
        "target_offset": None,
        "records": 1,
        "reason": "missing on the target",
        **changes,
    }


def _verdict(started_ms: int, answer: Answer = Answer.FINDINGS, **more: Any) -> Verdict:
    return Verdict(answer=answer, started_ms=started_ms, ended_ms=started_ms + 1_500, **more)


def _keep(folder: Path, verdict: Verdict, *offsets: int) -> str:
    """Store a result as a run does, and return the name of its night."""
    with replace_result(folder) as result:
        result.append([_finding(offset) | _more() for offset in offsets], [{"topic": "orders"}])
        result.write_text(VERDICT, encode_verdict(verdict))
        result.keep_night(verdict)
    return night_of(verdict.started_ms)


def _more() -> dict[str, Any]:
    return {"timestamp_ms": None, "key": None}


def test_a_kept_verdict_comes_back() -> None:
    one = kept(_verdict(FIRST_MS), [_finding(5), _finding(9, target_offset=3)])
    assert decode(one.night, encode(one)) == one
    assert (one.night, len(one.findings)) == ("20260921T141320Z", 2)


def test_what_a_night_did_not_look_at_is_not_gone_in_it() -> None:
    whole = kept(_verdict(FIRST_MS), [_finding(5), _finding(9, topic="bills")])
    part = kept(_verdict(SECOND_MS, Answer.CLEAN, only=("bills",)), [])
    assert decode(part.night, encode(part)) == part
    assert [one.topic for one in change_between(whole, part).gone] == ["bills"]
    lines = list(change_lines(whole, part))
    assert f"{part.night} looked at these topics only: bills" in lines
    assert [line.endswith("; only of bills") for line in history_lines([whole, part])] == [
        False,
        True,
    ]
    old = encode(part).replace('"only_topics"', '"unknown"')
    assert decode(part.night, old).only == ()


def test_of_very_many_findings_the_number_of_those_left_out_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(history, "MOST_FINDINGS", 3)
    one = kept(_verdict(FIRST_MS), [_finding(offset) for offset in range(5)])
    assert (len(one.findings), one.left_out) == (3, 2)
    lines = list(history.change_lines(one, one))
    assert f"2 findings of {one.night} are not kept, and not compared here" in lines


def test_a_finding_is_the_same_in_two_nights_by_its_place_whatever_is_said_of_it() -> None:
    earlier = kept(_verdict(FIRST_MS), [_finding(5), _finding(9)])
    later = kept(
        _verdict(SECOND_MS),
        [_finding(5, reason="in other words", records=7), _finding(9, kind="hole")],
    )
    change = change_between(earlier, later)
    assert [one.words for one in change.new] == ["hole orders:0:9: missing on the target"]
    assert [one.words for one in change.gone] == ["lost orders:0:9: missing on the target"]
    assert change.same == 1


def test_settings_and_rights_that_are_findings_are_kept_and_held_against_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    losing = DifferentSetting("orders", "retention.ms", "7", "1", "takes records earlier")
    other = DifferentSetting("orders", "segment.bytes", "7", "1", None)
    right = DifferentRight("orders", "ALLOW READ to User:a from *", True, None)
    told = FlowVerdict(
        flow="dc1->dc2", taken_ms=1, promotion=None, only_on_target=(), partitions=()
    )
    first = _keep(tmp_path, _verdict(FIRST_MS, Answer.CLEAN, flows=(told,)))
    differing = replace(told, settings=(losing, other), rights=(right,))
    second = _keep(tmp_path, _verdict(SECOND_MS, flows=(differing,)))
    assert main(["history", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[1].endswith("  1 settings, 1 rights")
    assert main(["diff", str(tmp_path), first, second]) == 1
    new = [line for line in capsys.readouterr().out.splitlines() if line.startswith("new")]
    assert new == [f"new   setting {losing.words}", f"new   right {right.words}"]
    assert main(["diff", str(tmp_path), second, second]) == 0


def test_of_a_night_with_more_findings_than_are_kept_nobody_says_that_none_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MOST_FINDINGS", 2)
    first = _keep(tmp_path, _verdict(FIRST_MS), 5, 9)
    second = _keep(tmp_path, _verdict(SECOND_MS), 5, 9, 11)
    assert main(["diff", str(tmp_path), first, second]) == 2
    assert main(["diff", str(tmp_path), second, first]) == 0


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 7}', '{"version": 1}'])
def test_what_is_no_verdict_of_a_night_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"JSON|no verdict of a night|version 7|Expecting"):
        decode("x", text)


def test_nights_are_listed_and_held_against_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = _keep(tmp_path, _verdict(FIRST_MS), 5, 9)
    second = _keep(tmp_path, _verdict(SECOND_MS), 9, 11)
    third = _keep(tmp_path, _verdict(SECOND_MS + 5_000, Answer.UNKNOWN, problem="dc2 is down"), 9)
    assert Result(tmp_path).nights() == [first, second, third]
    assert main(["history", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(" ")[0] for line in lines] == [first, second, third]
    assert lines[2].endswith("dc2 is down")
    assert main(["diff", str(tmp_path), first, second]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{first} findings, {second} findings: 1 findings are new, 1 gone, 1 in both",
        "new   lost orders:0:11: missing on the target",
        "gone  lost orders:0:5: missing on the target",
    ]
    assert main(["diff", str(tmp_path), second, first]) == 1
    assert main(["diff", str(tmp_path), first, first]) == 0
    capsys.readouterr()
    assert main(["diff", str(tmp_path), first, third]) == 2
    assert f"could not tell in {third}: dc2 is down" in capsys.readouterr().out


def test_a_night_that_is_not_there_or_damaged_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["history", str(tmp_path)]) == 2
    assert "no night is kept there" in capsys.readouterr().err
    night = _keep(tmp_path, _verdict(FIRST_MS), 5)
    for name in ("20200101T000000Z", "../verdict"):
        assert main(["diff", str(tmp_path), night, name]) == 2
        assert f"no night {name!r}" in capsys.readouterr().err
    (tmp_path / HISTORY / f"{night}.json").write_text("{")
    assert main(["history", str(tmp_path)]) == 2
    assert f"{night}.json" in capsys.readouterr().err


def test_a_report_says_how_old_it_is_and_that_its_findings_are_gone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = FlowVerdict(
        flow="dc1->dc2", taken_ms=1, promotion=None, only_on_target=(), partitions=()
    )
    for started_ms, said in ((FIRST_MS, "ago"), (FIRST_MS * 2, "ahead")):
        _keep(tmp_path, _verdict(started_ms, flows=(told,)), 5)
        assert main(["report", str(tmp_path)]) == 1
        assert f"hours {said} by the clock" in capsys.readouterr().err
    shutil.rmtree(tmp_path / FINDINGS)
    assert main(["report", str(tmp_path)]) == 2
    assert "findings is gone" in capsys.readouterr().err


def test_the_oldest_of_too_many_nights_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "HISTORY_NIGHTS", 2)
    nights = [_keep(tmp_path, _verdict(FIRST_MS + 60_000 * number)) for number in range(4)]
    assert Result(tmp_path).nights() == nights[2:]
    assert isinstance(Result(tmp_path).night(nights[3]), KeptVerdict)
