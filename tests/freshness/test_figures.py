"""What the freshness figures are made of."""

from dataclasses import replace

import pytest

from tests.freshness.figures import Arrivals, Freshness, Usage, told


def test_a_commit_has_arrived_when_all_its_partitions_have() -> None:
    arrivals = Arrivals(groups=1, partitions=2)
    arrivals.acknowledged(0, 0, at_s=10.0)
    arrivals.seen({(0, 0): 0}, at_s=10.1)
    assert arrivals.missing(0, 99) == 1
    arrivals.seen({(0, 1): 0}, at_s=10.25)
    assert arrivals.freshness(0, 99) == Freshness(
        commits=1, never=0, p50_s=0.25, p99_s=0.25, most_s=0.25
    )


def test_a_later_commit_stands_for_those_before_it() -> None:
    arrivals = Arrivals(groups=1, partitions=1)
    for number in range(3):
        arrivals.acknowledged(0, number, at_s=float(number))
    arrivals.seen({(0, 0): 1}, at_s=5.0)
    found = arrivals.freshness(0, 99)
    assert (found.commits, found.never, found.most_s) == (3, 1, 5.0)
    assert not found.is_reached


def test_only_the_measured_time_counts() -> None:
    arrivals = Arrivals(groups=2, partitions=1)
    arrivals.acknowledged(0, 0, at_s=1.0)
    arrivals.acknowledged(1, 0, at_s=9.0)
    arrivals.seen({(1, 0): 0}, at_s=9.5)
    assert arrivals.freshness(5, 10) == Freshness(
        commits=1, never=0, p50_s=0.5, p99_s=0.5, most_s=0.5
    )


@pytest.mark.parametrize(
    ("never", "p99_s", "mirror", "wrong", "is_reached"),
    [
        (0, 0.9, 0.19, 0, True),
        (1, 0.9, 0.19, 0, False),
        (0, 1.0, 0.19, 0, False),
        (0, 0.9, 0.2, 0, False),
        (0, 0.9, 0.19, 1, False),
    ],
)
def test_the_verdict_wants_all_of_it(
    never: int, p99_s: float, mirror: float, wrong: int, is_reached: bool
) -> None:
    fresh = Freshness(commits=5, never=never, p50_s=0.1, p99_s=p99_s, most_s=2.0)
    usage = Usage(mirror=mirror, source_brokers=0.5, target_brokers=0.5, this_program=0.1)
    verdict = told(fresh, usage, wrong=wrong).splitlines()[-1].split(maxsplit=1)[1]
    assert verdict == ("reached" if is_reached else "NOT reached")
    nothing = replace(fresh, commits=0)
    assert told(nothing, usage, wrong=0).rstrip().endswith("NOT reached")
