"""What became of records: every kind planted alone, and hypothesis's mixtures."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spark_audit.compare.outcomes import (
    Bracket,
    Kind,
    Outcome,
    Records,
    WindowRecords,
    gaps_of,
    outcomes,
)
from spark_audit.scan.entries import Entry

EVERYTHING = Bracket(-1, 1 << 40, -1, 1 << 40)


def _entries(content: str, first_offset: int = 0) -> list[Entry]:
    """One record per letter: a capital has the time and key of its small letter."""
    return [
        Entry(
            first_offset + place, letter.encode(), ord(letter.lower()), letter.lower().encode(), 7
        )
        for place, letter in enumerate(content)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Both sides of a window."""

    source: list[Entry]
    target: list[Entry]
    bracket: Bracket = EVERYTHING
    is_last: bool = True
    is_cut: bool = False
    source_begin: int = 0
    target_begin: int = 0


def _window(
    source: str,
    target: str,
    *,
    is_last: bool = True,
    is_cut: bool = False,
    source_begin: int = 0,
    target_begin: int = 0,
) -> Window:
    return Window(
        is_last=is_last,
        is_cut=is_cut,
        source_begin=source_begin,
        target_begin=target_begin,
        source=_entries(source),
        target=_entries(target, first_offset=100),
    )


def _told(
    windows: Sequence[Window], originals: Mapping[bytes, Entry] = MappingProxyType({})
) -> list[Outcome]:
    return outcomes(
        [
            gaps_of(
                WindowRecords(
                    bracket=window.bracket,
                    is_last=window.is_last,
                    is_cut=window.is_cut,
                    source_begin=window.source_begin,
                    target_begin=window.target_begin,
                    source=_records(window.source),
                    target=_records(window.target),
                )
            )
            for window in windows
        ],
        {entry.offset: entry for window in windows for entry in window.source},
        {entry.offset: entry for window in windows for entry in window.target},
        originals,
    )


def _records(entries: Sequence[Entry]) -> Records:
    return Records(
        offsets=[entry.offset for entry in entries], digests=[entry.digest for entry in entries]
    )


def _short(found: list[Outcome]) -> set[tuple[Kind, int | None, int | None]]:
    return {
        (
            one.kind,
            None if one.source is None else one.source.offset,
            None if one.target is None else one.target.offset - 100,
        )
        for one in found
    }


def _outcomes(source: str, target: str) -> set[tuple[Kind, int | None, int | None]]:
    return _short(_told([_window(source, target)]))


def test_equal_logs_have_no_outcomes() -> None:
    assert _outcomes("abcd", "abcd") == set()


def test_a_missing_record_before_one_that_arrived_is_lost() -> None:
    assert _outcomes("abcd", "abd") == {(Kind.LOST, 2, None)}


def test_the_end_of_the_source_that_nothing_of_arrived_is_in_flight() -> None:
    assert _outcomes("abcd", "ab") == {(Kind.IN_FLIGHT, 2, None), (Kind.IN_FLIGHT, 3, None)}


def test_a_record_missing_before_one_that_arrived_elsewhere_is_lost() -> None:
    assert _outcomes("abcd", "dab") == {(Kind.REORDERED, 3, 0), (Kind.LOST, 2, None)}


def test_a_second_copy_is_duplicated() -> None:
    assert _outcomes("abc", "abbc") == {(Kind.DUPLICATED, 1, 2)}


def test_a_copy_before_its_place_is_duplicated_and_nothing_moved() -> None:
    assert _outcomes("abc", "cabc") == {(Kind.DUPLICATED, 2, 0)}


def test_one_record_that_moved_is_the_only_one_reordered() -> None:
    assert _outcomes("abcdef", "acdebf") == {(Kind.REORDERED, 1, 4)}


def test_other_content_in_the_same_place_is_altered() -> None:
    assert _outcomes("abcd", "aBcd") == {(Kind.ALTERED, 1, 1)}


def test_an_alteration_beside_a_loss_is_told_by_its_time_and_key() -> None:
    assert _outcomes("abcd", "aCd") == {(Kind.LOST, 1, None), (Kind.ALTERED, 2, 1)}


@pytest.mark.parametrize(
    ("source", "target", "altered"),
    [
        ("aaaaaa", "aaxaaa", {(Kind.ALTERED, 2, 2)}),
        ("aaaaaa", "xaaaaa", {(Kind.ALTERED, 0, 0)}),
        ("aaaaaa", "aaaaax", {(Kind.ALTERED, 5, 5)}),
        ("aaaaaa", "axayaa", {(Kind.ALTERED, 1, 1), (Kind.ALTERED, 3, 3)}),
        ("baaaab", "baaxab", {(Kind.ALTERED, 3, 3)}),
        ("aabaab", "axbaab", {(Kind.ALTERED, 1, 1)}),
        ("ababab", "abXbab", {(Kind.ALTERED, 2, 2)}),
    ],
)
def test_an_altered_record_among_identical_ones_is_told_at_its_place(
    source: str, target: str, altered: set[tuple[Kind, int, int]]
) -> None:
    assert _outcomes(source, target) == altered


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("abaz", "xyaz", {(Kind.ALTERED, 0, 0), (Kind.ALTERED, 1, 1)}),
        ("abababz", "xyababz", {(Kind.ALTERED, 0, 0), (Kind.ALTERED, 1, 1)}),
        ("abaz", "aaxaz", {(Kind.DUPLICATED, 0, 1), (Kind.ALTERED, 1, 2)}),
        ("abbz", "aabxz", {(Kind.DUPLICATED, 0, 1), (Kind.ALTERED, 2, 3)}),
    ],
)
def test_two_faults_beside_each_other_among_equal_records_are_told_at_their_places(
    source: str, target: str, expected: set[tuple[Kind, int, int]]
) -> None:
    assert _outcomes(source, target) == expected


@given(st.text("ab", min_size=2, max_size=8), st.integers(0, 6), st.sampled_from(["xy", "x", ""]))
def test_two_neighbours_that_were_altered_or_lost_are_two_findings(
    source: str, place: int, instead: str
) -> None:
    """Which of equal records was lost no log tells; that there are no more findings it does."""
    place = min(place, len(source) - 2)
    found = _outcomes(f"{source}z", f"{source[:place]}{instead}{source[place + 2 :]}z")
    assert len(found) == 2
    assert Counter(kind for kind, _, _ in found) == Counter(
        {Kind.ALTERED: len(instead), Kind.LOST: 2 - len(instead)}
    )


def test_an_alteration_of_time_and_key_is_told_by_its_place() -> None:
    assert _outcomes("abcd", "axcd") == {(Kind.ALTERED, 1, 1)}


def test_a_record_of_nowhere_is_a_phantom() -> None:
    assert _outcomes("abc", "abxc") == {(Kind.PHANTOM, None, 2)}


def test_a_loss_and_a_duplicate_do_not_cancel_out() -> None:
    assert _outcomes("abcde", "acdee") == {
        (Kind.LOST, 1, None),
        (Kind.DUPLICATED, 4, 4),
    }


def test_of_identical_records_one_too_few_is_one_lost() -> None:
    assert _outcomes("xxxa", "xxa") == {(Kind.LOST, 2, None)}


def test_a_copy_whose_original_is_outside_the_windows_is_duplicated() -> None:
    original = Entry(4_000, b"z", 1, None, 7)
    found = _told([_window("ab", "azb")], {b"z": original})
    assert _short(found) == {(Kind.DUPLICATED, 4_000, 1)}


def test_a_record_that_moved_to_another_window_is_reordered() -> None:
    windows = [
        Window(
            bracket=Bracket(-1, 10, -1, 110),
            is_last=False,
            source=_entries("ab"),
            target=_entries("b", 100),
        ),
        Window(
            bracket=Bracket(19, 30, 119, 130),
            is_last=True,
            source=_entries("cd", 20),
            target=_entries("cad", 120),
        ),
    ]
    assert _short(_told(windows)) == {(Kind.REORDERED, 0, 21)}


def test_the_bracket_names_the_neighbours_that_are_in_their_place() -> None:
    (lost,) = _told([_window("abc", "ac")])
    assert lost.bracket == Bracket(0, 2, 100, 101)


def test_nothing_in_a_window_before_equal_ranges_is_in_flight() -> None:
    assert _short(_told([_window("ab", "", is_last=False)])) == {
        (Kind.LOST, 0, None),
        (Kind.LOST, 1, None),
    }


@pytest.mark.parametrize(
    ("source", "target", "is_last"),
    [
        ("xxxxxy", "xxxy", True),
        ("xxxy", "xxxxxy", True),
        ("xxxxx", "xxx", False),
        ("xxx", "xxxxx", False),
        ("xxx", "xxxxx", True),
    ],
)
def test_of_a_run_across_a_log_start_that_is_gone_the_first_are_missing(
    source: str, target: str, is_last: bool
) -> None:
    """One log begins two records further on than the other."""
    found = _told([_window(source, target, is_last=is_last, is_cut=True)])
    assert len(found) == 2
    assert {one.bracket.source_after for one in found} == {-1}
    assert {one.bracket.target_after for one in found} == {-1}


def test_a_copy_that_is_in_flight_is_so_where_a_log_start_is_gone_too() -> None:
    found = _told([_window("abcxx", "cx", is_cut=True)])
    assert _short(found) == {(Kind.LOST, 0, None), (Kind.LOST, 1, None), (Kind.IN_FLIGHT, 4, None)}


@pytest.mark.parametrize(
    ("source", "target", "source_begin", "altered"),
    [
        ("def", "abc", 3, set()),
        ("def", "abc", 2, {(Kind.ALTERED, 0, 2)}),
        ("def", "abxef", 3, {(Kind.ALTERED, 0, 2)}),
        ("def", "xyz", 3, {(Kind.ALTERED, 0, 0), (Kind.ALTERED, 1, 1), (Kind.ALTERED, 2, 2)}),
    ],
)
def test_what_is_older_than_all_of_a_source_that_lost_its_beginning_is_not_altered(
    source: str, target: str, source_begin: int, altered: set[tuple[Kind, int, int]]
) -> None:
    """Times go by the alphabet, and the source's log began so many records before."""
    window = _window(source, target, is_cut=True, source_begin=source_begin)
    found = _short(_told([window]))
    assert {one for one in found if one[0] is Kind.ALTERED} == altered
    assert {one[0] for one in found - altered} <= {Kind.PHANTOM, Kind.IN_FLIGHT}


@given(st.text("abcdeF", max_size=25), st.text("abcdeF", max_size=25), st.booleans())
def test_every_record_is_accounted_for_as_a_multiset(
    source: str, target: str, is_cut: bool
) -> None:
    found = _told([_window(source, target, is_cut=is_cut)])
    kinds = Counter(one.kind for one in found)
    missing = kinds[Kind.LOST] + kinds[Kind.IN_FLIGHT]
    surplus = kinds[Kind.DUPLICATED] + kinds[Kind.PHANTOM]
    assert len(source) - missing == len(target) - surplus
    sources = [one.source.offset for one in found if one.source and one.kind is not Kind.DUPLICATED]
    targets = [one.target.offset for one in found if one.target]
    assert len(set(sources)) == len(sources)
    assert len(set(targets)) == len(targets)


@given(st.permutations("abcdefgh"))
def test_of_a_shuffled_log_only_reorderings_are_found(letters: list[str]) -> None:
    found = _told([_window("abcdefgh", "".join(letters))])
    assert {one.kind for one in found} <= {Kind.REORDERED}


FAULTS = (Kind.LOST, Kind.DUPLICATED, Kind.ALTERED, Kind.PHANTOM)


@given(st.lists(st.sampled_from(FAULTS), min_size=1, max_size=12))
def test_planted_faults_are_found_exactly(faults: list[Kind]) -> None:
    """Each fault stands between two records that are in their place."""
    source: list[Entry] = []
    target: list[Entry] = []
    expected: set[tuple[Kind, int | None, int | None]] = set()

    def add(log: list[Entry], content: str) -> int:
        offset = len(log) if log is source else 100 + len(log)
        log.append(Entry(offset, content.encode(), 1, None, 7))
        return len(log) - 1

    for number, fault in enumerate(faults):
        add(source, f"before {number}")
        add(target, f"before {number}")
        match fault:
            case Kind.LOST:
                expected.add((fault, add(source, f"lost {number}"), None))
            case Kind.DUPLICATED:
                place = add(source, f"twice {number}")
                add(target, f"twice {number}")
                expected.add((fault, place, add(target, f"twice {number}")))
            case Kind.ALTERED:
                expected.add((fault, add(source, f"was {number}"), add(target, f"is {number}")))
            case Kind.PHANTOM:
                expected.add((fault, None, add(target, f"phantom {number}")))
            case _:
                raise AssertionError(fault)
        add(source, f"after {number}")
        add(target, f"after {number}")
    assert _short(_told([Window(source=source, target=target)])) == expected


@pytest.mark.parametrize(
    ("source", "target", "gone", "differing"),
    [
        ("abc", "aabaab", 4, {(Kind.IN_FLIGHT, 2)}),
        ("aaaaab", "aaaaaaaa", 5, {(Kind.IN_FLIGHT, 5)}),
        ("abaabaab", "ab", 0, {(Kind.IN_FLIGHT, place) for place in range(2, 8)}),
        ("xabaabaab", "ab", 0, {(Kind.LOST, 0), *((Kind.IN_FLIGHT, n) for n in range(3, 9))}),
    ],
)
def test_equal_records_across_the_beginning_of_a_cut_log_are_where_nothing_is_lost(
    source: str, target: str, gone: int, differing: set[tuple[Kind, int]]
) -> None:
    """What the target alone has, retention took from the source's beginning."""
    found = _told([_window(source, target, is_cut=True, source_begin=gone)])
    of_source = {(one.kind, one.source.offset) for one in found if one.source is not None}
    assert of_source == differing
    of_target = [one for one in found if one.source is None]
    assert {one.kind for one in of_target} <= {Kind.PHANTOM}
    assert all(one.bracket.source_after == -1 for one in of_target)


@given(
    st.text("ab", min_size=1, max_size=14),
    st.integers(0, 14),
    st.integers(0, 14),
    st.integers(0, 4),
)
@example("aabaaa", 1, 0, 4)
def test_a_mirror_that_is_behind_logs_with_retention_has_lost_nothing(
    history: str, source_begin: int, target_begin: int, behind: int
) -> None:
    mirrored = max(1, len(history) - behind)
    source_begin, target_begin = min(source_begin, mirrored - 1), min(target_begin, mirrored - 1)
    window = _window(
        history[source_begin:],
        history[target_begin:mirrored],
        is_cut=source_begin + target_begin > 0,
        source_begin=source_begin,
        target_begin=target_begin,
    )
    found = _told([window])
    explained = {Kind.IN_FLIGHT, Kind.PHANTOM if source_begin else Kind.LOST, Kind.LOST}
    assert {one.kind for one in found} <= explained
    taken = {Kind.PHANTOM: source_begin, Kind.LOST: target_begin}
    for kind, most in taken.items():
        of_kind = [one for one in found if one.kind is kind]
        assert len(of_kind) <= most
        after = {one.bracket.source_after for one in of_kind} | {
            one.bracket.target_after for one in of_kind
        }
        assert after <= {-1}
