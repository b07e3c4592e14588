"""Sets of topics: which topic is of which set, what the file may say, and which groups are cut."""

import re
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from runtime.configuration.flow_section import PatternSet
from runtime.configuration.name_patterns import NamePattern, read_name_pattern
from runtime.configuration.reading.mistakes import ConfigurationError
from runtime.configuration.reading.yaml_file import read_file
from runtime.configuration.topic_sets import (
    DEFAULT_SET,
    MOST_PATTERNS,
    MOST_SETS,
    CutGroup,
    NotSets,
    TopicSet,
    TopicSets,
    find_not_mirrored,
    find_shared,
    flow_of_sets,
    group_sets,
    read_sets,
    sets_of_topics,
)
from runtime.rights.needed import named_by
from tests.failover.plans import FLOW

TOPICS = st.text("ab.", min_size=1, max_size=4)
PATTERNS = st.builds(NamePattern, st.text("ab.", min_size=1, max_size=3), st.booleans())


def plain(text: str) -> NamePattern:
    said = read_name_pattern(text)
    assert said is not None
    return said


def set_of(name: str, *patterns: str) -> TopicSet:
    return TopicSet(name=name, patterns=tuple(map(plain, patterns)))


def flow(*include: str, exclude: Collection[str] = ()) -> PatternSet:
    return PatternSet(
        include=tuple(re.compile(one) for one in include),
        exclude=tuple(re.compile(one) for one in exclude),
    )


SETS = TopicSets(named=(set_of("payments", "pay.*", "invoices"), set_of("stock", "stock.*")))


@st.composite
def topic_sets(draw: st.DrawFn) -> TopicSets:
    """Draw sets that share no topic."""
    named: list[TopicSet] = []
    for index, patterns in enumerate(
        draw(st.lists(st.lists(PATTERNS, min_size=1, max_size=2), max_size=3))
    ):
        one = TopicSet(name=f"set-{index}", patterns=tuple(patterns))
        if all(find_shared(other, one) is None for other in named):
            named.append(one)
    return TopicSets(named=tuple(named))


def read(folder: Path, text: str) -> TopicSets:
    file = folder / "dc.yaml"
    file.write_text(text)
    top = read_file(file)
    return read_sets(top.section("sets", required=False))


def test_a_file_without_sets_has_the_default_set_alone(tmp_path: Path) -> None:
    sets = read(tmp_path, "other: 1\n")
    assert sets.names == (DEFAULT_SET,)
    assert sets.set_of("orders") == DEFAULT_SET
    assert flow_of_sets(FLOW, sets, [DEFAULT_SET]) == FLOW


def test_sets_are_read_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = "sets: {payments: {topics: [pay.*, invoices]}, stock: {topics: stock.*}}\n"
    sets = read(tmp_path, text)
    assert sets == SETS
    assert sets.names == (DEFAULT_SET, "payments", "stock")
    assert [sets.set_of(topic) for topic in ("pay", "pay.in", "invoices", "invoices.old")] == [
        "payments",
        "payments",
        "payments",
        DEFAULT_SET,
    ]


@pytest.mark.parametrize(
    ("sets", "complaint"),
    [
        ("{default: {topics: a}}", "sets.default: is the set of all topics that no other set has"),
        ("{Pay: {topics: a}}", "sets.Pay: a set's name has"),
        ("{-a: {topics: a}}", "sets.-a: a set's name has"),
        (f"{{{'a' * 33}: {{topics: a}}}}", "a set's name has 1 to 32 small letters"),
        ("{pay: {}}", "sets.pay.topics: is missing"),
        ("{pay: {topics: []}}", "sets.pay.topics: must be 1 to 200 patterns, not 0"),
        (f"{{pay: {{topics: {['a'] * (MOST_PATTERNS + 1)}}}}}", "200 patterns, not 201"),
        ("{pay: {topics: 'p[ab]y'}}", "sets.pay.topics: 'p[ab]y' is neither a name nor"),
        ("{pay: {topics: .*}}", "sets.pay.topics: '.*' would leave no topic to the default set"),
        ("{pay: {topic: a}}", "did you mean 'topics'?"),
        ("{pay: {topics: a, site: dc1}}", "sets.pay.site: unknown key"),
        ("{a: {topics: pay.*}, b: {topics: payments}}", "sets.b.topics: payments would also be of"),
        ("{a: {topics: pay.in}, b: {topics: pay.*}}", "pay.in would also be of the set a"),
        ("{a: {topics: pay}, b: {topics: [x, pay]}}", "pay would also be of the set a"),
    ],
)
def test_what_a_set_may_not_say_is_refused_by_name(
    tmp_path: Path, sets: str, complaint: str
) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(complaint)):
        read(tmp_path, f"sets: {sets}\n")


def test_more_sets_than_a_mirror_can_run_are_refused(tmp_path: Path) -> None:
    sets = ", ".join(f"s{index}: {{topics: t{index}}}" for index in range(MOST_SETS + 1))
    with pytest.raises(ConfigurationError, match="sets: has 33 sets, more than 32"):
        read(tmp_path, f"sets: {{{sets}}}\n")


@given(topic_sets(), TOPICS)
def test_no_topic_matches_two_sets(sets: TopicSets, topic: str) -> None:
    assert sum(one.takes(topic) for one in sets.named) <= 1


INCLUDES = st.sampled_from([".*", "a.*", "a.*|b.*", "[ab].*", "a", "b.+", r"a\..*", "ab|ba"])


@given(topic_sets(), st.lists(INCLUDES, min_size=1, max_size=2), TOPICS, st.data())
def test_the_flows_of_all_sets_take_what_the_flow_takes_and_no_topic_twice(
    sets: TopicSets, include: list[str], topic: str, data: st.DataObject
) -> None:
    whole = replace(FLOW, topics=flow(*include, exclude=["b.a"]))
    assume(find_not_mirrored(whole, sets) is None)
    alone = [name for name in sets.names if flow_of_sets(whole, sets, [name]).moves(topic)]
    assert alone == ([sets.set_of(topic)] if whole.moves(topic) else [])
    some = data.draw(st.sets(st.sampled_from(sets.names)))
    assert flow_of_sets(whole, sets, some).moves(topic) == (bool(alone) and alone[0] in some)


def test_rights_name_a_set_s_own_topics_and_no_others() -> None:
    whole = replace(FLOW, topics=flow(".*"))
    named = named_by(flow_of_sets(whole, SETS, ["payments"]).topics)
    assert [(one.name, one.pattern.name) for one in named] == [
        ("pay", "PREFIXED"),
        ("invoices", "LITERAL"),
    ]


@pytest.mark.parametrize(
    ("include", "is_mirrored"),
    [
        ([".*"], True),
        (["p.*", "stock.*", "invoices"], True),
        (["p.*|stock.*|i.+"], True),
        (["pay.+", "stock.*", "invoices"], False),
        (["pay.*", "stock.*"], False),
    ],
)
def test_a_set_of_which_a_flow_may_not_mirror_all_is_found(
    include: list[str], is_mirrored: bool
) -> None:
    found = find_not_mirrored(replace(FLOW, topics=flow(*include)), SETS)
    assert (found is None) == is_mirrored


def test_groups_follow_their_topics_and_a_group_of_two_sets_is_named_with_the_topics_of_each() -> (
    None
):
    whole, cut = group_sets(
        SETS,
        {
            "billing": ["pay.in", "invoices"],
            "web": ["clicks"],
            "report": ["stock", "pay.a", "pay.b", "pay.c", "pay.d", "clicks"],
            "idle": [],
        },
    )
    assert whole == {"billing": "payments", "web": DEFAULT_SET}
    [report] = cut
    assert f"{report}" == (
        "group report reads clicks (set default) and pay.a, pay.b, pay.c and 1 more"
        " (set payments) and stock (set stock)"
    )


@given(topic_sets(), st.lists(TOPICS, max_size=5))
def test_a_group_is_cut_exactly_where_its_topics_are_of_several_sets(
    sets: TopicSets, topics: list[str]
) -> None:
    whole, cut = group_sets(sets, {"g": topics})
    its_sets = {sets.set_of(topic) for topic in topics}
    assert (len(its_sets) == 1) == ("g" in whole)
    assert (len(its_sets) > 1) == bool(cut)
    for one in cut:
        assert isinstance(one, CutGroup)
        assert {each for listed in one.topics.values() for each in listed} == set(topics)


MOVED = ("clicks", "invoices", "pay.in", "pay.out", "stock", "users")


@pytest.mark.parametrize(
    ("pattern", "sets"),
    [
        ("pay.*|invoices", {"payments"}),
        ("stock", {"stock"}),
        ("stock|pay.*|invoices", {"payments", "stock"}),
        ("clicks|users", {DEFAULT_SET}),
        (".*", {DEFAULT_SET, "payments", "stock"}),
    ],
)
def test_topics_that_are_just_those_of_some_sets_choose_them(pattern: str, sets: set[str]) -> None:
    assert sets_of_topics(SETS, pattern, MOVED) == frozenset(sets)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("nothing", "--topics 'nothing' matches no topic that is moved"),
        (
            "pay.*",
            "--topics 'pay.*' cuts the set payments in two: it takes pay.in, pay.out and leaves ",
        ),
        (
            "clicks|stock",
            "--topics 'clicks|stock' cuts the set default in two: it takes clicks and leaves users",
        ),
        ("(", "--topics '(' is no regular expression: missing ), unterminated subpattern"),
    ],
)
def test_topics_that_are_not_those_of_whole_sets_are_refused_by_name(
    pattern: str, reason: str
) -> None:
    found = sets_of_topics(SETS, pattern, MOVED)
    assert isinstance(found, NotSets)
    assert found.reason.startswith(reason)
