"""The heaviest common subsequence, against a slow and obvious one."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from spark_audit.scan.alignment import Match, common_subsequence, taken_late


def _best_weight(source: str, target: str, weights: Sequence[int]) -> int:
    """The textbook table: the best total of each pair of prefixes."""
    above = [0] * (len(target) + 1)
    for index, item in enumerate(source):
        row = [0]
        for column, other in enumerate(target):
            best = max(row[-1], above[column + 1])
            row.append(max(best, above[column] + weights[index]) if item == other else best)
        above = row
    return above[-1]


def _is_common(pairs: Sequence[Match], source: str, target: str) -> bool:
    ascends = all(
        before.source < after.source and before.target < after.target
        for before, after in pairwise(pairs)
    )
    return ascends and all(source[pair.source] == target[pair.target] for pair in pairs)


@given(st.text("abcd", max_size=30), st.text("abcd", max_size=30))
def test_a_longest_common_subsequence_is_found(source: str, target: str) -> None:
    pairs = common_subsequence(source, target)
    assert _is_common(pairs, source, target)
    assert len(pairs) == _best_weight(source, target, [1] * len(source))


@given(
    st.text("abcdef", max_size=20),
    st.text("abcdef", max_size=20),
    st.fixed_dictionaries({letter: st.integers(1, 50) for letter in "abcdef"}),
)
def test_the_heaviest_common_subsequence_is_found(
    source: str, target: str, weight: dict[str, int]
) -> None:
    weights = [weight[item] for item in source]
    pairs = common_subsequence(source, target, weights)
    assert _is_common(pairs, source, target)
    assert sum(weights[pair.source] for pair in pairs) == _best_weight(source, target, weights)


@given(st.permutations(range(12)))
def test_of_different_items_a_longest_ascending_run_stays(order: list[int]) -> None:
    letters = "abcdefghijkl"
    shuffled = "".join(letters[place] for place in order)
    pairs = common_subsequence(letters, shuffled)
    assert len(pairs) == _best_weight(letters, shuffled, [1] * 12)


@given(st.text("ab", max_size=30), st.text("ab", max_size=30))
def test_with_too_many_candidates_the_answer_is_still_common(source: str, target: str) -> None:
    pairs = common_subsequence(source, target, max_candidates=0)
    assert _is_common(pairs, source, target)


def test_the_second_of_two_copies_is_the_surplus_one() -> None:
    assert common_subsequence("abc", "abbc") == [Match(0, 0), Match(1, 1), Match(2, 3)]
    assert common_subsequence("abbc", "abc") == [Match(0, 0), Match(1, 1), Match(3, 2)]


@given(st.text("abc", max_size=20), st.text("abc", max_size=20))
def test_taken_late_it_is_what_is_taken_early_from_the_other_end(source: str, target: str) -> None:
    pairs = common_subsequence(source, target)
    late = taken_late(source, target, pairs, Match(len(source), len(target)))
    assert _is_common(late, source, target)
    assert [source[pair.source] for pair in late] == [source[pair.source] for pair in pairs]
    assert all(
        one.source >= other.source and one.target >= other.target
        for one, other in zip(late, pairs, strict=True)
    )


def test_of_a_run_that_begins_in_what_is_gone_the_last_are_taken() -> None:
    pairs = common_subsequence("xxxxy", "xxy")
    assert taken_late("xxxxy", "xxy", pairs, Match(5, 3)) == [Match(2, 0), Match(3, 1), Match(4, 2)]


def test_one_heavy_item_outweighs_many_light_ones() -> None:
    assert common_subsequence("Xabc", "abcX", [10, 1, 1, 1]) == [Match(0, 3)]


def test_a_long_reversed_sequence_is_quick() -> None:
    numbers = list(range(20_000))
    assert len(common_subsequence(numbers, numbers[::-1])) == 1
