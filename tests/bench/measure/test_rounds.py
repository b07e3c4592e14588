"""Who takes part in the next round, one after the other or all at once."""

from collections.abc import Callable, Sequence
from time import monotonic

import pytest

from tests.bench.measure.ledger import Ledger
from tests.bench.measure.results import MIRROR_CPU, MM2_TUNED, OURS
from tests.bench.measure.rounds import Attempt, OneRound, all_at_once, in_turns, repeat, rotated

SYSTEMS = (OURS, MM2_TUNED)
ROWS = [("w", MIRROR_CPU)]
Way = Callable[[Attempt], OneRound]


def together(attempt: Attempt) -> OneRound:
    return all_at_once(attempt, lambda: None)


@pytest.mark.parametrize("way", [in_turns, together])
def test_a_system_that_cannot_be_had_leaves_and_the_rest_goes_on(way: Way) -> None:
    seen: list[tuple[int, str]] = []

    def attempt(system: str, turn: int) -> bool:
        seen.append((turn, system))
        return system != MM2_TUNED

    repeat(3, SYSTEMS, ROWS, way(attempt), Ledger())
    assert sorted(seen) == [(0, MM2_TUNED), (0, OURS), (1, OURS), (2, OURS)]


def test_the_place_is_cleaned_behind_each_round_when_all_are_done() -> None:
    done: list[str] = []

    def attempt(system: str, turn: int) -> bool:
        done.append(f"{system}{turn}")
        return True

    one_round = all_at_once(attempt, lambda: done.append("clean"))
    repeat(2, ["a", "b"], ROWS, one_round, Ledger())
    assert sorted(done[:2]) == ["a0", "b0"]
    assert done[2] == "clean"
    assert sorted(done[3:5]) == ["a1", "b1"]
    assert done[5:] == ["clean"]


def test_a_further_round_that_does_not_fit_is_not_begun_and_the_rows_say_so() -> None:
    ledger = Ledger()

    def one_round(usable: Sequence[str], turn: int) -> list[str]:
        ledger.add(OURS, turn, {ROWS[0]: 1.0})
        ledger.ends_at = monotonic()  # it took all that was left
        return list(usable)

    repeat(3, [OURS], ROWS, one_round, ledger)
    assert [each.run for each in ledger.measured] == [0]
    assert [(each.row.system, each.reason) for each in ledger.missed] == [
        (OURS, "the time of this part is too short for it")
    ] * 2


def test_everyone_comes_first_once() -> None:
    orders = [rotated(["a", "b", "c"], turn) for turn in range(4)]
    assert orders == [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"], ["a", "b", "c"]]
    assert rotated([], 3) == []
