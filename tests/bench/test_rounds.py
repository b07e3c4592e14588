"""Who takes part in the next round, one after the other or all at once."""

from collections.abc import Callable

import pytest

from tests.bench.rounds import Rounds, all_at_once, in_turns

Way = Callable[[Callable[[str, int], bool]], None]


def by_turns(attempt: Callable[[str, int], bool]) -> None:
    in_turns("w", ["a", "b"], Rounds(runs=3), attempt)


def together(attempt: Callable[[str, int], bool]) -> None:
    all_at_once("w", ["a", "b"], Rounds(runs=3), attempt, lambda: None)


@pytest.mark.parametrize("way", [by_turns, together])
def test_a_system_that_cannot_be_had_leaves_and_the_rest_goes_on(way: Way) -> None:
    seen: list[tuple[int, str]] = []

    def attempt(system: str, turn: int) -> bool:
        seen.append((turn, system))
        return system != "b"

    way(attempt)
    assert sorted(seen) == [(0, "a"), (0, "b"), (1, "a"), (2, "a")]


def test_the_place_is_cleaned_behind_each_round_when_all_are_done() -> None:
    told: list[str] = []

    def attempt(system: str, turn: int) -> bool:
        told.append(f"{system}{turn}")
        return True

    all_at_once("w", ["a", "b"], Rounds(runs=2), attempt, lambda: told.append("clean"))
    assert sorted(told[:2]) == ["a0", "b0"]
    assert told[2] == "clean"
    assert sorted(told[3:5]) == ["a1", "b1"]
    assert told[5:] == ["clean"]
