"""Names on the target, held to what MirrorMaker's policies answer."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.configuration.config import Configuration, ConfigurationError, load
from runtime.configuration.topic_names import Renames, TopicNames

PREFIXED = TopicNames(source="dc1", target="dc2", is_prefixed=True)
IDENTICAL = TopicNames(source="dc1", target="dc2")
BEATING = TopicNames(source="dc1", target="dc2", has_heartbeats=True)


@pytest.mark.parametrize(
    ("topic", "source", "upstream", "original"),
    [
        ("orders", None, None, "orders"),
        ("dc1.orders", "dc1", "orders", "orders"),
        ("dc3.dc1.orders", "dc3", "dc1.orders", "orders"),
        # Java's Pattern.split: empty parts stay, but not at the end.
        ("orders.", None, None, "orders."),
        ("orders..", None, None, "orders.."),
        (".", None, None, "."),
        ("..", None, None, ".."),
        (".orders", "", "orders", "orders"),
        ("a..b", "a", ".b", "b"),
        ("a.b.", "a", "b.", "b."),
    ],
)
def test_names_say_where_a_topic_comes_from(
    topic: str, source: str | None, upstream: str | None, original: str
) -> None:
    assert PREFIXED.topic_source(topic) == source
    assert PREFIXED.upstream_topic(topic) == upstream
    assert PREFIXED.original_topic(topic) == original


def test_another_separator_leaves_dots_alone() -> None:
    names = TopicNames(source="dc1", target="dc2", is_prefixed=True, separator="__")
    assert names.on_target("a.b") == "dc1__a.b"
    assert names.topic_source("dc1.a") is None
    assert names.upstream_topic("dc3__a.b") == "a.b"
    assert names.checkpoints_topic == "dc1__checkpoints__internal"
    assert names.offset_syncs_topic("dc2") == "mm2-offset-syncs__dc2__internal"
    assert names.is_internal(names.checkpoints_topic)


@pytest.mark.parametrize(
    "topic",
    [
        "__consumer_offsets",
        ".hidden",
        "mm2-offset-syncs.dc2.internal",
        "dc1.checkpoints.internal",
        "dc1.offset-map.internal",
        "connect-offsets-internal",
    ],
)
def test_internal_topics_are_known_by_their_names(topic: str) -> None:
    assert PREFIXED.is_internal(topic)
    assert IDENTICAL.is_internal(topic)


@pytest.mark.parametrize(
    "topic", ["internal", "orders", "_orders", "internals.x", "dc1.heartbeats"]
)
def test_other_topics_are_not_internal(topic: str) -> None:
    assert not PREFIXED.is_internal(topic)


@pytest.mark.parametrize(
    ("topic", "is_cycle"),
    [
        ("orders", False),
        ("dc2.orders", True),
        ("dc3.orders", False),
        ("dc3.dc2.orders", True),
        ("dc1.orders", False),
        ("dc2", False),
        ("dc2.", False),
        ("orders.dc2", False),
        ("dc2.heartbeats", True),
    ],
)
def test_what_has_come_from_the_target_is_not_sent_back(topic: str, *, is_cycle: bool) -> None:
    assert PREFIXED.is_cycle(topic) == is_cycle


def test_identical_names_know_no_cycles_but_of_heartbeats() -> None:
    assert not IDENTICAL.is_cycle("dc2.orders")
    assert not BEATING.is_cycle("dc2.orders")
    assert BEATING.is_cycle("dc2.heartbeats")
    assert BEATING.is_cycle("dc3.dc2.heartbeats")
    assert not BEATING.is_cycle("dc3.heartbeats")


def test_heartbeats_are_prefixed_even_where_names_are_identical() -> None:
    assert BEATING.on_target("heartbeats") == "dc1.heartbeats"
    assert BEATING.on_target("dc3.heartbeats") == "dc1.dc3.heartbeats"
    assert BEATING.on_target("engine-heartbeats") == "engine-heartbeats"
    assert BEATING.on_source("dc1.heartbeats") == "heartbeats"
    assert BEATING.on_source("dc3.heartbeats") is None
    assert IDENTICAL.on_target("heartbeats") == "heartbeats"


NAMES = st.lists(
    st.sampled_from(["dc1", "dc2", "dc3", "orders", "heartbeats", ".", "__", "-"]), min_size=1
).map("".join)
POLICIES = [
    TopicNames(source="dc1", target="dc2", is_prefixed=p, separator=s, has_heartbeats=h)
    for p, s, h in product((True, False), (".", "__"), (True, False))
]


GIVEN = st.dictionaries(NAMES, NAMES).filter(lambda names: len({*names.values()}) == len(names))


@given(GIVEN, st.sets(NAMES, min_size=1), st.sampled_from(POLICIES))
def test_given_names_lead_back_and_no_two_topics_share_one(
    given_names: dict[str, str], topics: set[str], policy: TopicNames
) -> None:
    """But for a topic whose name was given to another one, which stays behind."""
    names = replace(policy, renames=Renames(given_names))
    mirrored = [one for one in topics | given_names.keys() if names.ousted_by(one) is None]
    copies = {names.on_target(topic): topic for topic in mirrored}
    assert len(copies) == len(mirrored)
    assert {copy: names.on_source(copy) for copy in copies} == copies
    assert all(copies[names.on_target(one)] == one for one in given_names)
    for ousted in topics - {*mirrored}:
        assert names.on_source(names.on_target(ousted)) == names.ousted_by(ousted)


def test_a_renamed_topic_comes_back_and_a_prefixed_one_has_a_topic_to_itself() -> None:
    swapped = replace(IDENTICAL, renames=Renames({"orders": "orders-eu", "a": "b", "b": "a"}))
    homes = {one: swapped.home(one) for one in ("orders-eu", "orders", "a", "b", "clicks")}
    assert homes == {"orders-eu": "orders", "orders": None, "a": "b", "b": "a", "clicks": "clicks"}
    assert (PREFIXED.home("dc1.orders"), PREFIXED.home("orders")) == (None, None)
    assert (IDENTICAL.way_home, swapped.words("orders")) == (None, "orders as orders-eu")


@given(NAMES, st.sampled_from(POLICIES))
def test_a_name_on_the_target_leads_back(topic: str, names: TopicNames) -> None:
    assert names.on_source(names.on_target(topic)) == topic


@given(st.sets(NAMES, min_size=2), st.sampled_from(POLICIES))
def test_no_two_topics_share_a_name(topics: set[str], names: TopicNames) -> None:
    """But for an identical flow into a target where somebody else has called a topic so."""
    assert len({names.on_target(topic) for topic in topics}) == len(topics)


@given(NAMES, st.sampled_from(POLICIES))
def test_what_is_mirrored_is_a_cycle_on_the_way_back(topic: str, names: TopicNames) -> None:
    back = TopicNames(source="dc2", target="dc1", is_prefixed=True, separator=names.separator)
    if names.is_prefixed and names.topic_source(names.on_target(topic)) is not None:
        assert back.is_cycle(names.on_target(topic))


FILE = """
clusters: {{dc1: {{bootstrap: "a:1"}}, dc2: {{bootstrap: "b:1"}}, dc3: {{bootstrap: "c:1"}}}}
flows:
  - {{source: dc1, target: dc2, rename: {{{renames}}}{more}}}
  {others}
coordination: {{zookeeper: "w:1"}}
failover: {{initial_active: dc1}}
"""


def read(folder: Path, renames: str, more: str = "", others: str = "") -> Configuration:
    file = folder / "dc.yaml"
    file.write_text(FILE.format(renames=renames, more=more, others=others))
    return load(file)


def refused(folder: Path, renames: str, more: str = "", others: str = "") -> str:
    with pytest.raises(ConfigurationError) as wrong:
        read(folder, renames, more, others)
    return str(wrong.value).split("flows[0].", 1)[1]


def test_names_are_given_beside_a_prefix_and_go_before_it(tmp_path: Path) -> None:
    renames = 'orders: orders-eu, "legacy.invoices": invoices, as-it-is: as-it-is'
    for more, other in (("", "clicks"), (", names: prefixed", "dc1.clicks")):
        [flow] = read(tmp_path, renames, more).flows
        topics = ("orders", "legacy.invoices", "as-it-is", "clicks")
        copies = [*map(flow.names.on_target, topics)]
        assert copies == ["orders-eu", "invoices", "as-it-is", other]
        assert [*map(flow.brings, copies)] == [True] * 4
        assert flow.heeds_promotions != flow.is_prefixed


def test_a_topic_whose_name_was_given_away_is_not_mirrored(tmp_path: Path) -> None:
    [flow] = read(tmp_path, "orders: orders-eu").flows
    assert [*map(flow.mirrors, ("orders", "orders-eu"))] == [True, False]
    [swapped] = read(tmp_path, "orders: orders-eu, orders-eu: orders").flows
    assert [*map(swapped.mirrors, ("orders", "orders-eu"))] == [True, True]


@pytest.mark.parametrize(
    ("renames", "told"),
    [
        ("a: c, b: c", "rename.b: 'c' is the name of the copy of 'a' already"),
        ("a: x.y, b: x_y", "rename.b: Kafka takes 'x_y' for 'x.y', the name of the copy of 'a'"),
        ("a: __b", "rename.a: '__b' is kept for internal topics, which are never mirrored"),
        ("a: b.diverged", "rename.a: 'b.diverged' is kept for internal topics"),
        ("a: dc1.offset-map.internal", "rename.a: 'dc1.offset-map.internal' is kept for internal"),
        ("a: heartbeats", "rename.a: 'heartbeats' is kept for MirrorMaker's heartbeats"),
        ("a: b c", "rename.a: 'b c' is no topic's name"),
        ('a: "b\\n"', r"rename.a: 'b\n' is no topic's name"),
        ("a: ..", "rename.a: '..' is no topic's name"),
        (f"a: {'b' * 250}", "has 250 characters, and a topic's name 249 at most"),
        ("a: 7", "rename.a: must be a text, not '7'"),
        ("__a: b", "rename.__a: '__a' is kept for internal topics"),
    ],
)
def test_names_that_no_copy_can_have_are_refused(tmp_path: Path, renames: str, told: str) -> None:
    assert told in refused(tmp_path, renames)


@pytest.mark.parametrize(
    ("more", "others", "told"),
    [
        (", topics: {include: clicks}", "", "dc1->dc2 mirrors no topic of this name"),
        (", active_active: true", "", "rename: cannot be beside `active_active: true` yet"),
        ("", "- {source: dc3, target: dc2}", "dc3->dc2 brings a topic of the name 'orders-eu'"),
        (
            "",
            "- {source: dc2, target: dc1}",
            "would bring 'orders-eu' back as 'orders-eu': give it `rename: {orders-eu: orders}`",
        ),
        (
            "",
            "- {source: dc2, target: dc1, rename: {orders-eu: orders-b}}",
            "dc2->dc1 would bring 'orders-eu' back as 'orders-b'",
        ),
        (
            ", names: prefixed",
            "- {source: dc2, target: dc1, names: prefixed}",
            "with `names: prefixed` both directions run at once: leave 'orders-eu' out",
        ),
        (
            ", topics: {include: [orders, b]}",
            "- {source: dc2, target: dc1, topics: {include: x}, rename: {x: orders}}",
            "dc2->dc1 brings 'x' into 'orders'",
        ),
        (
            "",
            "- {source: dc2, target: dc1, topics: {include: orders}}",
            "dc2->dc1 brings 'orders' into 'orders'",
        ),
    ],
)
def test_names_that_are_others_or_come_back_as_another_are_refused(
    tmp_path: Path, more: str, others: str, told: str
) -> None:
    assert told in refused(tmp_path, "orders: orders-eu", more, others)


def test_a_flow_back_turns_names_round_or_leaves_renamed_topics_alone(tmp_path: Path) -> None:
    for settings in ("topics: {include: clicks}", "rename: {orders-eu: orders}"):
        others = f"- {{source: dc2, target: dc1, {settings}}}"
        away, back = read(tmp_path, "orders: orders-eu", "", others).flows
        assert (away.names.home("orders-eu"), away.heeds_promotions) == ("orders", True)
        if back.renames:
            turned = away.names.turned_round()
            assert (back.names, turned.home("orders")) == (turned, "orders-eu")


def test_renames_beside_what_goes_by_one_name_are_refused(tmp_path: Path) -> None:
    for more, told in (
        (
            "sets: {payments: {topics: pay.*}}",
            "go by one name of a topic, and dc1->dc2 has `rename`",
        ),
        ("canary: {topic: orders}", "failover.canary.topic: dc1->dc2 calls it 'orders-eu' on dc2"),
    ):
        file = tmp_path / "dc.yaml"
        file.write_text(
            FILE.format(renames="orders: orders-eu", more="", others="")
            .replace(', dc3: {bootstrap: "c:1"}', "")
            .replace("initial_active: dc1", f"initial_active: dc1, {more}")
        )
        with pytest.raises(ConfigurationError) as wrong:
            load(file)
        assert told in str(wrong.value)
