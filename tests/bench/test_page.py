"""The page made of build/bench.json."""

from typing import Any

from tests.bench.page import NOTHING_YET, TITLES, bars, number, page
from tests.bench.results import UNITS


def row(system: str, median: float | str, **more: Any) -> dict[str, Any]:
    return {
        "bench": "mirror_cpu_s_per_gib",
        "workload": "w",
        "system": system,
        "unit": "CPU-s/GiB",
        "min": median,
        "median": median,
        "max": median,
        **more,
    }


def test_every_bench_has_a_title() -> None:
    assert set(TITLES) == set(UNITS)


def test_the_page_has_machine_table_ratio_bars_and_reasons() -> None:
    content = {
        "machine": {"processors": 2, "versions": {"python": "3.11"}},
        "rows": [
            row("ours", 0.5, max=0.75),
            row("mm2-tuned", 10.0),
            row("mm2-default", "not run: no Maven", min=None, max=None),
        ],
        "ratios": [
            {
                "bench": "mirror_cpu_s_per_gib",
                "workload": "w",
                "of": "ours",
                "to": "mm2-tuned",
                "min": 0.05,
                "median": 0.05,
                "max": 0.075,
            }
        ],
    }
    lines = page(content).splitlines()
    assert "| processors | 2 |" in lines
    assert "| versions: python | 3.11 |" in lines
    assert "## Processor time of the mirror for a GiB" in lines
    assert "| w | ours | 0.5 | **0.5** | 0.75 |  |" in lines
    assert "| w | mm2-tuned | 10 | **10** | 10 | 0.05 / **0.05** / 0.075 |" in lines
    assert "| w | mm2-default | | not run: no Maven | | |" in lines
    assert f"  mm2-tuned {'█' * 40} 10" in lines
    assert f"  ours      {'█' * 2} 0.5" in lines


def test_bars_begin_at_zero_and_show_that_something_is_there() -> None:
    assert bars([row("a", 1000.0), row("b", 1.0), row("c", 0.0)]) == [
        f"a {'█' * 40} 1,000",
        "b ▏ 1",
        "c  0",
    ]
    assert bars([row("a", 0.0)]) == ["a  0"]
    assert bars([]) == []


def test_numbers_have_the_digits_that_matter() -> None:
    shown = [number(value) for value in (0.12345, 1.5, 12.345, 123.45, 12345.6, 3.0)]
    assert shown == ["0.123", "1.5", "12.3", "123", "12,346", "3"]


def test_without_a_run_the_page_says_so() -> None:
    assert page({"machine": {}, "rows": [], "ratios": []}).endswith(NOTHING_YET)
