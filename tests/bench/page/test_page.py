"""The page made of build/bench.json."""

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tests.bench.measure.results import (
    BROKER_PRODUCE,
    MIRROR_CPU,
    MIRROR_RATE,
    MIRROR_RSS,
    SYSTEMS,
    UNITS,
)
from tests.bench.page.charts import BARS, COLOURS, chart, number
from tests.bench.page.document import (
    CHARTS,
    NOTHING_YET,
    TITLES,
    best_rival,
    in_words,
    is_headline,
    page,
)
from tests.bench.page.publish import PUBLISHED, merge, publish, published


def row(system: str, median: float | str, **more: Any) -> dict[str, Any]:
    return {
        "bench": MIRROR_CPU,
        "workload": "w",
        "system": system,
        "unit": "CPU-s/GiB",
        "min": median,
        "median": median,
        "max": median,
        **more,
    }


CONTENT: dict[str, Any] = {
    "machine": {
        "date": "2026-11-25 12:52 UTC",
        "processors": 2,
        "versions": {"this project": "abc1234", "python": "3.11"},
        "harness": {"own share": 0.04},
    },
    "rows": [
        row("ours", 0.5, max=0.75),
        row("mm2-tuned", 10.0),
        row("mm2-default", "no figure: no Maven", min=None, max=None),
    ],
    "ratios": [
        {
            "bench": MIRROR_CPU,
            "workload": "w",
            "of": "ours",
            "to": "mm2-tuned",
            "min": 0.05,
            "median": 0.05,
            "max": 0.075,
        }
    ],
}


def bars_of(svg: str) -> list[float]:
    ElementTree.fromstring(svg)  # noqa: S314 - our own, and it has to be well-formed
    return [float(width) for width in re.findall(r'<rect x=\S+ y=\S+ width="([\d.]+)"', svg)]


def test_every_bench_has_a_title_and_every_system_a_colour() -> None:
    assert set(TITLES) == set(UNITS)
    assert set(COLOURS) == set(SYSTEMS)


def test_the_page_begins_with_what_matters_and_has_every_row_and_reason() -> None:
    lines = page(CONTENT).splitlines()
    assert (
        "| Processor time of the mirror for a GiB | w | 0.5 CPU-s/GiB | 10 (mm2-tuned) "
        "| **20 times less** |"
    ) in lines[:16]
    assert "| w | ours | 0.5 | **0.5** | 0.75 |  |" in lines
    assert "| w | mm2-tuned | 10 | **10** | 10 | 0.05 / **0.05** / 0.075 |" in lines
    assert "| w | mm2-default | | no figure: no Maven | | |" in lines
    assert "| own share | 0.04 |" in lines
    assert "| processors | 2 |" in lines
    assert "| versions: python | 3.11 |" in lines


def test_a_row_that_lacks_rounds_says_so_below_the_table() -> None:
    rows = [row("ours", 0.5), row("mm2-tuned", 10.0, missed="3 of 4 rounds: no figure: it stood")]
    text = page({**CONTENT, "rows": rows})
    assert "\n\n- w, mm2-tuned: 3 of 4 rounds: no figure: it stood\n" in text


def test_the_charts_that_the_page_shows_lie_beside_it(tmp_path: Path) -> None:
    publish(CONTENT, tmp_path / "docs" / "page.md")
    shown = [
        line.partition("](")[2].rstrip(")")
        for line in (tmp_path / "docs" / "page.md").read_text().splitlines()
        if line.startswith("![")
    ]
    assert shown == [f"benchmarks/{MIRROR_CPU}.svg"]
    svg = (tmp_path / "docs" / shown[0]).read_text()
    assert "no figure: no Maven" in svg
    assert bars_of(svg) == [BARS * 0.05, BARS]


def test_bars_begin_at_zero_and_show_that_something_is_there() -> None:
    assert bars_of(chart([row("ours", 0.001), row("mm2-tuned", 1000.0), row("relay", 0.0)])) == [
        1.0,
        BARS,
        0.0,
    ]
    assert bars_of(chart([row("ours", 0.0)])) == [0.0]


def test_the_limit_does_not_make_the_others_small() -> None:
    svg = chart([row("ours", 5.0), row("mm2-tuned", 10.0), row("relay", 5000.0)])
    assert bars_of(svg) == [BARS / 2, BARS, BARS]
    assert "5,000 (beyond this scale)" in svg
    assert bars_of(chart([row("relay", 5000.0)])) == [BARS]


def test_ratios_are_told_in_words() -> None:
    assert in_words(0.05) == "20 times less"
    assert in_words(2.5) == "2.5 times more"
    assert in_words(1.02) == "as much"
    assert in_words(0.0) == "none"


def test_numbers_have_the_digits_that_matter() -> None:
    shown = [number(value) for value in (0.12345, 1.5, 12.345, 123.45, 12345.6, 3.0)]
    assert shown == ["0.123", "1.5", "12.3", "123", "12,346", "3"]


def test_without_a_run_the_page_says_so() -> None:
    assert page({"machine": {}, "rows": [], "ratios": []}).endswith(NOTHING_YET)


def test_what_was_measured_later_replaces_what_was_before_with_its_ratio() -> None:
    later = {
        "machine": {
            "date": "d",
            "load_at_start": 0.1,
            "load_at_end": 0.2,
            "processor": "p",
            "versions": {"this project": "abc"},
        },
        "rows": [row("ours", 0.25), row("mm2-tuned", 5.0, workload="other")],
        "ratios": [],
    }
    merged = merge([CONTENT, later])
    assert [(each["workload"], each["system"], each["median"]) for each in merged["rows"]] == [
        ("w", "ours", 0.25),
        ("w", "mm2-tuned", 10.0),
        ("w", "mm2-default", "no figure: no Maven"),
        ("other", "mm2-tuned", 5.0),
    ]
    assert merged["ratios"] == []
    assert merged["machine"]["run 2"] == {
        "date": "d",
        "load at start": 0.1,
        "load at end": 0.2,
        "this project": "abc",
        "processor": "p",
        "workloads": "w; other",
    }
    assert merge([CONTENT]) == CONTENT
    assert merge([merged, later])["machine"]["run 3"] == merged["machine"]["run 2"]


def test_the_page_says_of_which_commits_its_figures_are() -> None:
    machine = {**CONTENT["machine"], "run 2": {"date": "2026-11-26 1:00 UTC", "this project": "d"}}
    text = page({**CONTENT, "machine": machine})
    assert "The figures are of commit `abc1234` (2026-11-25), `d` (2026-11-26).\n" in text


def test_what_is_to_be_known_of_these_figures_stands_at_the_end() -> None:
    assert page({**CONTENT, "notes": ["They are old."]}).endswith(
        "## Notes on these figures\n\n- They are old.\n"
    )


def test_the_published_page_is_made_of_its_figures(tmp_path: Path) -> None:
    publish(published(), tmp_path / PUBLISHED.name)
    assert (tmp_path / PUBLISHED.name).read_text() == PUBLISHED.read_text()
    charts = {file.name: file.read_text() for file in (tmp_path / CHARTS).iterdir()}
    assert charts == {file.name: file.read_text() for file in (PUBLISHED.parent / CHARTS).iterdir()}


def test_what_stands_on_top() -> None:
    assert is_headline(MIRROR_CPU, "w")
    assert is_headline(BROKER_PRODUCE, "w, 3 brokers, rf 3")
    assert not is_headline(BROKER_PRODUCE, "w")
    assert not is_headline(MIRROR_RSS, "w, one core")


def test_ours_is_held_against_the_best_of_the_others_and_not_against_the_limit() -> None:
    def ratios(bench: str) -> list[dict[str, Any]]:
        found = {"mm2-default": 0.5, "mm2-tuned": 0.25, "relay": 5.0}
        return [{"bench": bench, "to": to, "median": median} for to, median in found.items()]

    for bench, best in ((MIRROR_CPU, "mm2-default"), (MIRROR_RATE, "mm2-tuned")):
        rival = best_rival(ratios(bench))
        assert rival is not None
        assert rival["to"] == best
    assert best_rival([{"bench": MIRROR_CPU, "to": "relay", "median": 5.0}]) is None
