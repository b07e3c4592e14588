"""Orders for a flow: scopes, pauses that do not overlap, restarts, and their JSON."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror.state.orders import How, OrderRefused, Orders, Pause, Restart, Scope
from runtime.coordination.witness import WitnessGarbled
from wire.topic_partition import TopicPartition

SCOPES = st.builds(
    lambda topic, partition: Scope(topic=topic, partition=partition if topic else None),
    st.sampled_from([None, "a", "b"]),
    st.sampled_from([None, 0, 1]),
)
ALL = [
    TopicPartition("a", 0),
    TopicPartition("a", 1),
    TopicPartition("b", 0),
    TopicPartition("b", 1),
]


def paused_at(orders: Orders) -> set[TopicPartition]:
    return {place for place in ALL if orders.pause_of(*place) is not None}


def pause(text: str | None) -> Pause:
    return Pause(scope=Scope.parse(text), by="me@here", since_ms=5)


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        (None, Scope()),
        ("orders", Scope(topic="orders")),
        ("dc1.orders:12", Scope(topic="dc1.orders", partition=12)),
    ],
)
def test_a_scope_is_read_as_it_is_written(text: str | None, scope: Scope) -> None:
    assert Scope.parse(text) == scope
    assert str(scope) == (text or "the flow")


@pytest.mark.parametrize("text", ["", ":3", "a:", "a:-1", "a:x", "a b", "a:1:2", "a:9999999999"])
def test_what_is_no_scope_is_refused(text: str) -> None:
    with pytest.raises(OrderRefused):
        Scope.parse(text)


def test_a_wider_pause_takes_its_parts_in() -> None:
    orders = Orders().paused(pause("a:1")).paused(pause("b")).paused(pause("a"))
    assert orders.pauses == (pause("b"), pause("a"))
    assert orders.paused(pause(None)).pauses == (pause(None),)


def test_what_is_paused_is_not_paused_again_and_not_resumed_in_part() -> None:
    orders = Orders().paused(pause("a"))
    for text in ("a", "a:1"):
        with pytest.raises(OrderRefused, match="a is paused already, by me@here"):
            orders.paused(pause(text))
    with pytest.raises(OrderRefused, match="a is paused as a whole, by me@here: resume that"):
        orders.resumed(Scope.parse("a:1"))
    with pytest.raises(OrderRefused, match="b is not paused"):
        orders.resumed(Scope.parse("b"))
    assert orders.resumed(Scope()).pauses == ()


@given(st.lists(st.tuples(st.booleans(), SCOPES), max_size=12))
def test_pauses_and_resumptions_do_to_each_partition_what_they_say(
    steps: list[tuple[bool, Scope]],
) -> None:
    orders = Orders()
    expected: set[TopicPartition] = set()
    for is_pause, scope in steps:
        covered = {place for place in ALL if scope.covers(*place)}
        try:
            if is_pause:
                orders = orders.paused(Pause(scope=scope, by="me", since_ms=1))
                expected |= covered
            else:
                orders = orders.resumed(scope)
                expected -= covered
        except OrderRefused:
            assert is_pause <= (covered <= expected)
        assert paused_at(orders) == expected
        assert Orders.decode(orders.encode()) == orders


def test_a_restart_is_taken_out_when_it_is_done_and_others_stay() -> None:
    first, second = (
        Restart(scope=Scope(topic="a"), how=How.SKIP, by="me", at_ms=at) for at in (1, 2)
    )
    orders = Orders(pauses=(pause("b"),), restarts=(first, second))
    assert Orders.decode(orders.encode()) == orders
    assert orders.without([first]) == Orders(pauses=(pause("b"),), restarts=(second,))


def decision(scope: str, how: How, at_ms: int = 1) -> Restart:
    return Restart(scope=Scope.parse(scope), how=how, by="me@here", at_ms=at_ms)


@pytest.mark.parametrize("earlier", ["a", "a:1"])
@pytest.mark.parametrize("last", [How.QUARANTINE, How.MERGE, How.ANEW])
def test_of_decisions_that_wait_the_last_one_holds_and_tells_what_it_replaces(
    earlier: str, last: How
) -> None:
    """Else the copy would be deleted before it is saved, whatever was ordered first."""
    waits, other = decision(earlier, How.QUARANTINE), decision("b", How.QUARANTINE)
    retry = decision("a", How.RETRY)
    orders = Orders(pauses=(pause("b"),), restarts=(waits, other, retry))
    new = decision("a", last, 2)
    decided, replaced = orders.decided(new)
    assert (decided.pauses, decided.restarts) == (orders.pauses, (other, retry, new))
    assert replaced == (waits,)


def test_no_part_of_a_topic_that_is_to_begin_anew_is_decided_about() -> None:
    orders = Orders(restarts=(decision("a", How.ANEW),))
    with pytest.raises(OrderRefused, match="a is to begin anew, ordered by me@here"):
        orders.decided(decision("a:1", How.QUARANTINE))
    assert orders.decided(decision("a", How.QUARANTINE))[1] == orders.restarts


def test_a_garbled_node_is_named_with_what_to_do_about_it() -> None:
    with pytest.raises(WitnessGarbled, match=r"no valid orders.*; delete the node /x/orders of"):
        Orders.read("/x/orders", b"{garbage")


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"pauses": [3], "restarts": []}'])
def test_a_garbled_node_is_named(data: bytes) -> None:
    with pytest.raises(WitnessGarbled, match="no valid orders"):
        Orders.decode(data)
