"""build/bench.json: its schema, its ratios, what has no figure."""

from tests.bench.measure.results import (
    BROKER_RSS,
    DUPLICATES,
    MIRROR_CPU,
    MIRROR_RSS,
    MIRROR_WARM_CPU,
    MM2_DEFAULT,
    MM2_TUNED,
    OURS,
    REREAD,
    UNITS,
    Measured,
    Missed,
    RowId,
    has_no_figure,
    report,
    told_ratios,
)


def measured(bench: str, system: str, *values: float, workload: str = "w") -> list[Measured]:
    row = RowId(bench=bench, workload=workload, system=system)
    return [Measured(row=row, run=run, value=value) for run, value in enumerate(values)]


def test_rows_and_ratios_have_the_fields_of_the_schema() -> None:
    content = report(
        {"processors": 2},
        [*measured(MIRROR_CPU, OURS, 0.5, 1.0, 0.75), *measured(MIRROR_CPU, MM2_TUNED, 10, 10, 15)],
    )
    assert content == {
        "machine": {"processors": 2},
        "rows": [
            {
                "bench": "mirror_cpu_s_per_gib",
                "workload": "w",
                "system": "ours",
                "unit": "CPU-s/GiB",
                "min": 0.5,
                "median": 0.75,
                "max": 1.0,
            },
            {
                "bench": "mirror_cpu_s_per_gib",
                "workload": "w",
                "system": "mm2-tuned",
                "unit": "CPU-s/GiB",
                "min": 10,
                "median": 10,
                "max": 15,
            },
        ],
        "ratios": [
            {
                "bench": "mirror_cpu_s_per_gib",
                "workload": "w",
                "of": "ours",
                "to": "mm2-tuned",
                "min": 0.05,
                "median": 0.05,
                "max": 0.1,
            }
        ],
    }


def test_ratios_are_told_in_a_line_each() -> None:
    content = report(
        {},
        [*measured(MIRROR_CPU, OURS, 0.5, 1.0, 0.75), *measured(MIRROR_CPU, MM2_TUNED, 10, 10, 15)],
    )
    assert told_ratios(content, MIRROR_CPU) == ["w: ours / mm2-tuned 0.050 (0.050 to 0.100)"]
    assert told_ratios(content, DUPLICATES) == []


def test_a_ratio_is_taken_within_each_run_and_only_where_both_ran() -> None:
    ours = measured(MIRROR_CPU, OURS, 1.0, 2.0, 3.0)
    other = measured(MIRROR_CPU, MM2_TUNED, 2.0, 8.0)
    [ratio] = report({}, [*ours, *other])["ratios"]
    assert (ratio["min"], ratio["median"], ratio["max"]) == (0.25, 0.375, 0.5)


def test_memory_is_compared_by_the_highest_of_the_workloads_that_all_had() -> None:
    found = [
        *measured(MIRROR_RSS, OURS, 50.0, 60.0, workload="small"),
        *measured(MIRROR_RSS, OURS, 100.0, 40.0, workload="large"),
        *measured(MIRROR_RSS, OURS, 900.0, 900.0, workload="only ours"),
        *measured(MIRROR_RSS, MM2_TUNED, 1000.0, 1500.0, workload="small"),
        *measured(MIRROR_RSS, MM2_TUNED, 2000.0, 1200.0, workload="large"),
    ]
    content = report({}, found)
    highest = "highest of 2 workloads"
    rows = {(row["workload"], row["system"]): row["max"] for row in content["rows"]}
    assert (rows[highest, OURS], rows[highest, MM2_TUNED]) == (100, 2000)
    assert rows["small", MM2_TUNED] == 1500
    [ratio] = content["ratios"]
    assert (ratio["workload"], ratio["min"], ratio["max"]) == (highest, 0.04, 0.05)


def test_what_differs_by_start_is_shown_and_not_compared() -> None:
    found = [
        *measured(MIRROR_WARM_CPU, OURS, 0.4, 0.5),
        *measured(MIRROR_WARM_CPU, MM2_TUNED, 10.2, 6.8),
    ]
    content = report({}, found)
    assert [row["max"] for row in content["rows"]] == [0.5, 10.2]
    assert content["ratios"] == []


def test_nothing_is_divided_by_zero() -> None:
    ours = measured(DUPLICATES, OURS, 0.0, 0.0)
    other = measured(DUPLICATES, MM2_TUNED, 0.0, 500.0)
    [ratio] = report({}, [*ours, *other])["ratios"]
    assert (ratio["min"], ratio["max"]) == (0.0, 0.0)
    assert report({}, [*ours, *measured(DUPLICATES, MM2_TUNED, 0.0, 0.0)])["ratios"] == []


def test_one_odd_run_beside_nothing_is_no_ratio() -> None:
    ours = measured(REREAD, OURS, 0.0, 0.0, 0.0)
    odd = measured(REREAD, MM2_DEFAULT, 0.0, 35.0, 0.0)
    assert report({}, [*ours, *odd])["ratios"] == []


def test_a_row_without_a_figure_says_why() -> None:
    row = RowId(bench=MIRROR_CPU, workload="w", system=MM2_TUNED)
    content = report({}, measured(MIRROR_CPU, OURS, 1.0), [Missed(row=row, reason="no Maven")])
    assert content["rows"][1]["median"] == "no figure: no Maven"
    assert (content["rows"][1]["min"], content["rows"][1]["max"]) == (None, None)
    assert set(content["rows"][0]) == set(content["rows"][1])
    assert [has_no_figure(row) for row in content["rows"]] == [False, True]


def test_a_row_with_some_runs_shows_those() -> None:
    [one] = measured(MIRROR_CPU, OURS, 1.0)
    content = report({}, [one], [Missed(row=one.row, reason="one run did not end")])
    assert content["rows"][0]["median"] == 1.0
    assert content["rows"][0]["missed"] == "1 of 2 rounds: no figure: one run did not end"


def test_rows_stand_in_the_order_of_the_benches() -> None:
    content = report({}, [*measured(BROKER_RSS, OURS, 1.0), *measured(MIRROR_CPU, OURS, 1.0)])
    assert [row["bench"] for row in content["rows"]] == [MIRROR_CPU, BROKER_RSS]
    assert next(iter(UNITS)) == MIRROR_CPU
