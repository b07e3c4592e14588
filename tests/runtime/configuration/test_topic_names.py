"""Names on the target, held to what MirrorMaker's policies answer."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.configuration.topic_names import TopicNames

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
