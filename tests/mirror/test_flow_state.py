"""What the tasks of a flow share."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from mirror.flow_state import FlowState
from mirror.measurements import FlowMeasurements
from tests.mirror.test_policies import CONFIG


@given(limit=st.integers(1, 1 << 30), under_way=st.integers(0, 1 << 31))
def test_a_flow_fetches_on_once_half_of_what_may_be_under_way_is_free(
    limit: int, under_way: int
) -> None:
    config = replace(CONFIG, in_flight_bytes=limit)
    flow = FlowState(config=config, measurements=FlowMeasurements(config.name))
    flow.in_flight_bytes = under_way
    assert flow.has_room == (2 * under_way <= limit or under_way == 0)
