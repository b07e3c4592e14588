"""What the tasks of a flow share."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror.state.flow_state import FAR, NEAR, FlowState, Room
from mirror.state.measurements import FlowMeasurements
from tests.mirror.building import CONFIG


@given(limit=st.integers(1, 1 << 30), under_way=st.integers(0, 1 << 31))
def test_a_flow_fetches_on_once_half_of_what_may_be_under_way_is_free(
    limit: int, under_way: int
) -> None:
    config = replace(CONFIG, in_flight_bytes=limit)
    flow = FlowState(config=config, measurements=FlowMeasurements(config.name))
    flow.in_flight_bytes = under_way
    assert flow.has_room == (2 * under_way <= limit or under_way == 0)


@pytest.mark.parametrize(("is_far", "room"), [(False, NEAR), (True, FAR)])
def test_from_afar_more_is_under_way_unless_the_configuration_says(
    *, is_far: bool, room: Room
) -> None:
    said = replace(CONFIG, in_flight_bytes=None, partition_in_flight_bytes=5_000)
    flow = FlowState(config=said, measurements=FlowMeasurements(said.name), is_far=is_far)
    assert (flow.most_in_flight_bytes, flow.most_in_flight_bytes_each) == (
        room.in_flight_bytes,
        5_000,
    )
    flow.config = replace(CONFIG, in_flight_bytes=5_000, partition_in_flight_bytes=None)
    assert (flow.most_in_flight_bytes, flow.most_in_flight_bytes_each) == (
        5_000,
        room.partition_in_flight_bytes,
    )
