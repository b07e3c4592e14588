"""From samples to figures."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.figures import (
    Sample,
    Spread,
    TooFewSamples,
    duplicates,
    percentile,
    reread,
    spread,
    throughput,
)
from tests.bench.workloads import GIB


def sample(at_s: float, records: int, cpu_s: float, resident_bytes: int = 0) -> Sample:
    return Sample(at_s=at_s, records=records, cpu_s=cpu_s, resident_bytes=resident_bytes)


def test_a_slow_and_costly_start_does_not_count() -> None:
    samples = [
        sample(0, 0, 9.0, 30_000_000),
        sample(20, 50, 14.0, 90_000_000),
        sample(21, 500, 15.0, 70_000_000),
        sample(23, 700, 16.0, 70_000_000),
        sample(25, 1000, 17.0, 70_000_000),
    ]
    found = throughput(samples, records=1000, value_bytes=GIB)
    assert found.mb_s == pytest.approx(0.5 * GIB / 1e6 / 4)
    assert found.cpu_s_per_gib == pytest.approx(2.0 / 0.5)
    assert found.peak_resident_mb == 90


def test_what_a_mirror_does_behind_the_last_record_does_not_count() -> None:
    samples = [sample(0, 500, 0), sample(1, 1000, 1), sample(9, 1000, 5)]
    found = throughput(samples, records=1000, value_bytes=GIB)
    assert found.cpu_s_per_gib == pytest.approx(1 / 0.5)


def test_only_what_nobody_else_slowed_down_counts_unless_that_is_too_little() -> None:
    samples = [sample(at, 100 * at, 2.0 * at if at <= 6 else at + 6) for at in range(5, 11)]
    found = throughput(samples, records=1000, value_bytes=GIB, calm=[(6.0, 10.0)])
    assert found.calm_share == pytest.approx(4 / 5)
    assert found.cpu_s_per_gib == pytest.approx(10)
    hardly = throughput(samples, records=1000, value_bytes=GIB, calm=[(9.8, 10.0)])
    assert hardly.calm_share < 0.1
    assert hardly.cpu_s_per_gib == throughput(samples, records=1000, value_bytes=GIB).cpu_s_per_gib


@pytest.mark.parametrize(
    "samples",
    [
        [],
        [sample(0, 0, 0)],
        [sample(0, 0, 0), sample(1, 10, 1)],
        [sample(0, 10, 0)],
        [sample(0, 5, 0.5), sample(0.02, 10, 0.5)],
    ],
)
def test_a_run_that_is_over_too_soon_has_no_figures(samples: list[Sample]) -> None:
    with pytest.raises(TooFewSamples):
        throughput(samples, records=10, value_bytes=GIB)


def test_percentiles_are_values_that_occurred() -> None:
    values = [float(number) for number in range(100, 0, -1)]
    assert [percentile(values, share) for share in (0.5, 0.99, 1.0, 0.0)] == [50, 99, 100, 1]
    assert percentile([7.0], 0.99) == 7


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0.01, 1))
def test_a_percentile_is_not_exceeded_by_its_share(values: list[float], share: float) -> None:
    found = percentile(values, share)
    assert sum(value <= found for value in values) >= share * len(values) - 1e-6


def test_a_spread_is_minimum_median_maximum() -> None:
    assert spread([3.0, 1.0, 2.0]) == Spread(minimum=1, median=2, maximum=3)


def test_copies_beyond_the_first_are_duplicates_and_a_loss_hides_none() -> None:
    assert duplicates([0, 1, 1, 2, 2, 2, 4]) == 3


def test_a_group_without_a_translated_position_reads_everything_again() -> None:
    assert reread(position=500, translated=480) == 20
    assert reread(position=500, translated=None) == 500
    assert reread(position=500, translated=501) == -1
