"""Patterns that are names or beginnings of names: what they take, and what two have in common."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.configuration.name_patterns import NamePattern, alternatives, read_name_pattern

NAMES = st.text("ab.", max_size=4)
PATTERNS = st.builds(NamePattern, NAMES.filter(bool), st.booleans())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("orders", NamePattern("orders")),
        ("orders.eu", NamePattern("orders.eu")),
        (r"orders\.eu", NamePattern("orders.eu")),
        ("orders.*", NamePattern("orders", is_prefix=True)),
        (r"orders\..*", NamePattern("orders.", is_prefix=True)),
        (".*", NamePattern("", is_prefix=True)),
        ("", None),
        ("orders.+", None),
        ("[ab].*", None),
        ("a|b", None),
        ("orders.*eu", None),
        ("(?i)orders", None),
    ],
)
def test_a_name_and_the_beginning_of_names_are_read(text: str, said: NamePattern | None) -> None:
    assert read_name_pattern(text) == said


def test_alternatives_are_read_each_by_itself_and_brackets_stay_whole() -> None:
    assert dict(alternatives("a|b.*|c+")) == {
        "a": NamePattern("a"),
        "b.*": NamePattern("b", is_prefix=True),
        "c+": None,
    }
    assert dict(alternatives("(a|b)")) == {"(a|b)": None}


@given(PATTERNS, NAMES)
def test_the_regular_expression_takes_the_same_names(pattern: NamePattern, name: str) -> None:
    assert (pattern.compiled().fullmatch(name) is not None) == pattern.takes(name)
    assert read_name_pattern(pattern.compiled().pattern) == pattern


@given(PATTERNS, PATTERNS, NAMES)
def test_two_patterns_overlap_where_some_name_matches_both(
    one: NamePattern, other: NamePattern, name: str
) -> None:
    both = one.takes(name) and other.takes(name)
    assert not both or one.overlaps(other)
    if one.overlaps(other):
        longer = max(one.text, other.text, key=len)
        assert one.takes(longer)
        assert other.takes(longer)


@given(PATTERNS, PATTERNS, NAMES)
def test_what_takes_all_of_another_takes_each_of_its_names(
    one: NamePattern, other: NamePattern, name: str
) -> None:
    if one.takes_all_of(other) and other.takes(name):
        assert one.takes(name)
    if not one.takes_all_of(other):
        missed = [other.text, f"{other.text}z", f"{other.text}y"]
        assert any(other.takes(each) and not one.takes(each) for each in missed)


@given(NAMES)
def test_a_pattern_as_people_write_it_is_read_as_itself(name: str) -> None:
    pattern = NamePattern(f"x{name}", is_prefix=True)
    assert read_name_pattern(f"{pattern}") == pattern
    assert re.fullmatch(f"{pattern}", f"{pattern.text}z")
