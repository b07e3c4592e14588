"""The fence's patterns close what a promotion moves, and nothing else."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.configuration.flow_section import PatternSet
from runtime.configuration.topic_names import Renames
from runtime.topic_patterns import (
    LARGEST,
    NO_PATTERNS,
    decode_patterns,
    encode_patterns,
    moving_patterns,
)
from tests.failover.plans import FLOW

parts = st.sampled_from(
    ["orders", "dc1", "dc2", ".", "-", "__", "internal", ".internal", "diverged", ".diverged", "a"]
)
names = st.lists(parts, min_size=1, max_size=4).map("".join)


def patterns(*include: str, exclude: tuple[str, ...] = ()) -> PatternSet:
    return PatternSet(
        include=tuple(re.compile(one, re.DOTALL) for one in include),
        exclude=tuple(re.compile(one, re.DOTALL) for one in exclude),
    )


@given(names, st.dictionaries(names, names, max_size=3))
def test_the_patterns_say_the_same_as_the_flow_of_any_name_on_each_site(
    topic: str, given_names: dict[str, str]
) -> None:
    flow = replace(FLOW, topics=patterns("orders.*", ".*a.*", "dc1", exclude=("orders-a",)))
    named = {
        name: one
        for one, name in given_names.items()
        if flow.moves(one) and not flow.names.is_internal(name) and name != "orders-a"
    }
    flow = replace(flow, renames=Renames({one: name for name, one in named.items()}))
    for site, is_moved in ((flow.source, flow.moves(topic)), (flow.target, flow.brings(topic))):
        found = decode_patterns(encode_patterns(moving_patterns(flow, site)))
        assert found.matches(topic) == is_moved, (site, flow.renames)


def test_a_text_survives_and_no_patterns_are_an_empty_one() -> None:
    found = patterns("a,b", "ü{1}", exclude=("x",))
    assert decode_patterns(encode_patterns(found)) == found
    assert encode_patterns(NO_PATTERNS) == ""
    assert decode_patterns(" ") == NO_PATTERNS


@pytest.mark.parametrize(
    "value",
    [
        "x",
        "{}",
        '{"include":"a","exclude":[]}',
        '{"include":[],"exclude":[1]}',
        '{"include":["a{99999999999}"],"exclude":[]}',
        " " * LARGEST + "xx",
    ],
)
def test_what_is_no_setting_is_a_value_error(value: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode_patterns(value)
