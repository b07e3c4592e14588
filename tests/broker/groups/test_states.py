"""The table of a group's states, walked move by move."""

from itertools import product

import pytest

from broker.groups.group import Group
from broker.groups.states import ALLOWED, GroupState


@pytest.mark.parametrize(("origin", "target"), list(product(GroupState, GroupState)))
def test_a_group_moves_only_where_the_table_allows(origin: GroupState, target: GroupState) -> None:
    group = Group(group_id="g", state=origin)
    if target in ALLOWED[origin]:
        group.move_to(target, wall_ms=7)
        assert (group.state, group.state_wall_ms) == (target, 7)
    else:
        with pytest.raises(AssertionError, match="g: "):
            group.move_to(target, wall_ms=7)
        assert group.state is origin


def test_every_state_can_end_and_none_follows_the_end() -> None:
    assert all(GroupState.DEAD in ALLOWED[state] for state in GroupState if state.value != "Dead")
    assert not ALLOWED[GroupState.DEAD]
