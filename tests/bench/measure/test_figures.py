"""From samples to figures."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.measure.figures import (
    Sample,
    Spread,
    Throughput,
    TooFewSamples,
    duplicates,
    percentile,
    reread,
    spread,
    throughput,
)
from tests.bench.measure.workloads import GIB


def sample(at_s: float, records: int, cpu_s: float, resident_bytes: int = 0) -> Sample:
    return Sample(at_s=at_s, records=records, cpu_s=cpu_s, resident_bytes=resident_bytes)


def figures(*turns: list[Sample]) -> Throughput:
    return throughput(turns, records=1000, record_bytes=GIB // 1000, peak_resident_bytes=0)


def test_a_rate_is_that_of_the_turns_alone() -> None:
    first = [sample(0, 50, 0), sample(0.1, 100, 1), sample(1.1, 200, 2)]
    second = [sample(9, 500, 6), sample(9.1, 600, 7), sample(10.1, 1000, 9)]
    assert figures(first, second).mb_s == pytest.approx(0.5 * GIB / 1e6 / 2, rel=1e-3)


def test_what_lay_in_buffers_when_a_turn_began_does_not_count_for_the_rate() -> None:
    looks = [sample(0, 0, 0), sample(0.06, 400, 0), sample(0.56, 700, 1), sample(1.06, 1000, 1)]
    found = figures(looks)
    assert found.mb_s == pytest.approx(0.6 * GIB / 1e6, rel=1e-3)


def test_processor_time_is_that_from_the_start_to_the_last_record() -> None:
    first = [sample(0, 50, 3), sample(0.1, 100, 4), sample(1.1, 400, 5)]
    second = [sample(9, 500, 6), sample(9.1, 600, 7), sample(10, 1000, 9), sample(11, 1000, 20)]
    found = figures(first, second)
    assert found.cpu_s_per_gib == pytest.approx(9, rel=1e-3)
    assert found.warm_cpu_s_per_gib == pytest.approx((9 - 6) / 0.5, rel=1e-3)


@pytest.mark.parametrize(
    "turn",
    [
        [],
        [sample(0, 0, 0)],
        [sample(0, 0, 0), sample(1, 10, 1)],
        [sample(0, 0, 0), sample(1, 400, 1), sample(2, 900, 2)],
        [sample(0, 0, 0), sample(0.01, 1000, 1), sample(2, 1000, 2)],
        [sample(0, 0, 0), sample(0.1, 500, 0.5), sample(0.2, 500, 0.5)],
    ],
)
def test_turns_that_are_over_too_soon_have_no_figures(turn: list[Sample]) -> None:
    with pytest.raises(TooFewSamples):
        figures(turn)


def test_percentiles_are_values_that_occurred() -> None:
    values = [float(number) for number in range(100, 0, -1)]
    assert [percentile(values, share) for share in (0.5, 0.99, 1.0, 0.0)] == [50, 99, 100, 1]
    assert percentile([7.0], 0.99) == 7
    with pytest.raises(TooFewSamples, match="nothing arrived"):
        percentile([], 0.99)


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
