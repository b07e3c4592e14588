"""Two runs agree when every ratio of one stands in the other, at most 15 % apart."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.bench.agreement import BAD_INPUT, DIFFERS, Comparison, compare, lines, main
from tests.bench.results import DUPLICATES, MIRROR_CPU, REREAD


def content(*ratios: tuple[str, str, float]) -> dict[str, Any]:
    return {
        "machine": {"versions": {"this project": "abc1234"}},
        "rows": [],
        "ratios": [
            {
                "bench": bench,
                "workload": workload,
                "of": "ours",
                "to": "mm2-tuned",
                "min": median,
                "median": median,
                "max": median,
            }
            for bench, workload, median in ratios
        ],
    }


def only(first: dict[str, Any], second: dict[str, Any]) -> Comparison:
    [one] = compare(first, second)
    return one


def test_the_difference_is_a_share_of_the_smaller_one_whichever_comes_first() -> None:
    near, far = content((MIRROR_CPU, "w", 1.0)), content((MIRROR_CPU, "w", 1.15))
    assert only(near, far).difference == pytest.approx(0.15)
    assert only(far, near).difference == pytest.approx(0.15)
    assert only(near, content((MIRROR_CPU, "w", 1.1))).agrees
    assert not only(near, content((MIRROR_CPU, "w", 1.2))).agrees


def test_no_duplicates_at_all_agree_with_next_to_none_but_speeds_do_not() -> None:
    assert only(content((DUPLICATES, "w", 0.0)), content((DUPLICATES, "w", 0.009))).agrees
    assert only(content((REREAD, "w", 0.0)), content((REREAD, "w", 0.0))).agrees
    assert not only(content((REREAD, "w", 0.0)), content((REREAD, "w", 0.5))).agrees
    assert not only(content((MIRROR_CPU, "w", 0.0)), content((MIRROR_CPU, "w", 0.009))).agrees


def test_a_ratio_of_one_run_only_is_a_difference() -> None:
    compared = compare(content((MIRROR_CPU, "a", 1.0)), content((MIRROR_CPU, "b", 1.0)))
    assert [(each.key[1], each.first, each.second) for each in compared] == [
        ("a", 1.0, None),
        ("b", None, 1.0),
    ]
    assert not any(each.agrees for each in compared)


def test_lines_mark_what_differs() -> None:
    compared = compare(
        content((MIRROR_CPU, "a", 0.05), (MIRROR_CPU, "b", 0.05)),
        content((MIRROR_CPU, "a", 0.05), (MIRROR_CPU, "b", 0.1)),
    )
    assert lines(compared) == [
        "    0.0 %       0.05      0.05  mirror_cpu_s_per_gib: a: ours / mm2-tuned",
        "! 100.0 %       0.05       0.1  mirror_cpu_s_per_gib: b: ours / mm2-tuned",
    ]


def test_the_exit_status_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    first.write_text(json.dumps(content((MIRROR_CPU, "a", 1.0))))
    second.write_text(json.dumps(content((MIRROR_CPU, "a", 2.0))))
    assert main([str(first), str(first)]) == 0
    assert main([str(first), str(second)]) == DIFFERS
    assert "1 ratios of abc1234 and abc1234: 1 differ" in capsys.readouterr().out
    second.write_text("{}")
    assert main([str(first), str(second)]) == BAD_INPUT
    assert main([str(first), str(tmp_path / "none.json")]) == BAD_INPUT
