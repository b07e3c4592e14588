"""What members of a group tell each other when their site is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kazoo.protocol.paths import normpath

from failover.client.carried import Carried
from failover.client.position_handover import (
    Handover,
    HandoverGarbled,
    is_complete,
    merge,
)
from runtime.coordination.witness import WitnessPaths
from wire.topic_partition import TopicPartition

PLACES = st.dictionaries(
    st.tuples(st.text(max_size=5), st.integers(0, 9)), st.integers(0, 1 << 62), max_size=5
)
HANDOVERS = st.builds(
    lambda epoch, site, positions: Handover(
        epoch=epoch, carried=Carried(site=site, positions=positions)
    ),
    st.integers(0, 3),
    st.sampled_from(["dc1", "dc2"]),
    PLACES,
)


@given(HANDOVERS)
def test_a_handover_reads_back_as_it_was_written(handover: Handover) -> None:
    assert Handover.decode(handover.encode()) == handover


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"epoch":1,"site":"a","positions":[1]}'])
def test_anything_else_is_named(data: bytes) -> None:
    with pytest.raises(HandoverGarbled, match="not a handover"):
        Handover.decode(data)


@given(PLACES, st.lists(HANDOVERS), st.integers(0, 3))
def test_the_furthest_position_of_the_same_site_and_epoch_counts(
    own: dict[TopicPartition, int], handovers: list[Handover], epoch: int
) -> None:
    merged = merge(Carried(site="dc1", positions=own), handovers, epoch)
    told = [own] + [
        handover.carried.positions
        for handover in handovers
        if handover.epoch == epoch and handover.carried.site == "dc1"
    ]
    assert merged.site == "dc1"
    assert dict(merged.positions) == {
        place: max(positions[place] for positions in told if place in positions)
        for positions in told
        for place in positions
    }


def test_a_member_that_has_not_told_for_this_epoch_is_waited_for() -> None:
    nothing = Carried(site="dc1", positions={})
    early, late = Handover(epoch=1, carried=nothing), Handover(epoch=2, carried=nothing)
    assert is_complete([], 2)
    assert is_complete([late, late], 2)
    assert not is_complete([late, early], 2)


def test_a_group_of_any_name_has_one_node() -> None:
    assert WitnessPaths(root="/kafka-dr").group("a/b ü") == "/kafka-dr/groups/a%2Fb%20%C3%BC"


@pytest.mark.parametrize(("group", "node"), [(".", "%2E"), ("..", "%2E%2E"), ("a.b", "a.b")])
def test_a_group_whose_name_zookeeper_would_not_take_has_one_too(group: str, node: str) -> None:
    assert WitnessPaths(root="/kafka-dr").group(group) == f"/kafka-dr/groups/{node}"
    assert normpath(WitnessPaths(root="/kafka-dr").group(group)) == f"/kafka-dr/groups/{node}"
