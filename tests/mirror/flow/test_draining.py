"""A flow that drains begins nothing new: what a fetch under way still brings comes again later."""

from typing import Any

from mirror.clusters.links import Links
from mirror.flow.engine import Engine
from mirror.forward.routing import Routed
from mirror.state.batches import Cursor, Forward
from mirror.state.measurements import FlowMeasurements
from offset_translation.runs import Place
from tests.mirror.building import CONFIG, anybody, flow_with


async def test_what_comes_while_a_flow_drains_is_not_sent() -> None:
    anything: Any = None
    links = Links(
        source_data=anything,
        source_groups=anything,
        source_admin=anything,
        target_data=anything,
        target_admin=anything,
    )
    engine = Engine(
        CONFIG,
        links,
        FlowMeasurements("dc1->dc2"),
        anybody(),
    )
    _, partition = flow_with()
    engine.flow.partitions.take(partition)
    engine.flow.gate.close()
    await engine.flow.wait_settled()
    forward = Forward(Place(0), 1, 1, 0, 1, (b"",))
    engine._writers.forward(partition, Routed(cursor=Cursor(1, Place(1), 0), forwards=[forward]))
    assert engine.flow.partitions.is_settled
    assert partition.in_flight.bytes == 0
