"""A far broker that cannot be reached at first gets as many connections as any, once it can."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
import trio
from trio.testing import MockClock

from mirror.flow.flow_state import FlowState
from mirror.forward import source, target
from mirror.forward.lanes import Lane
from mirror.forward.source import SourceFetcher, fetch_from
from mirror.forward.target import TargetWriter
from mirror.state.batches import Cursor, Forward
from mirror.state.measurements import FlowMeasurements
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from runtime.configuration.flow_section import MOST_FETCH_BYTES
from tests.mirror.building import CONFIG, Taken, way_of
from wire.net.errors import BrokerUnreachable

LANES = 3
NODE = 1
BATCH = Forward(Place(0), 1, 1, 0, 9, (b"",))


class Away:
    """Links to a broker that cannot be reached the first times."""

    def __init__(self, times: int) -> None:
        self.source_data = self.target_data = self
        self.asked = 0
        self._times = times

    async def connection(self, _: int, __: int = 0) -> None:
        await trio.lowlevel.checkpoint()
        self.asked += 1
        if self.asked <= self._times:
            raise BrokerUnreachable("away")


async def count_three(_: object) -> int:
    await trio.lowlevel.checkpoint()
    return LANES


def flowing(flow: FlowState) -> MirroredPartition:
    partition = MirroredPartition(
        "t", 0, topic_id=UUID(int=1), offset_map=OffsetMap(), now_ms=0, budget=flow.budget
    )
    flow.partitions.take(partition)
    partition.leaders.follow_source(NODE, -1)
    partition.leaders.follow_target(NODE)
    partition.move(PartitionState.POSITIONING, 0)
    partition.go_on(Cursor(0, Place(0), 0), 0)
    return partition


def record(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[Any]:
    """Return the lanes that will be made in the stead of those of this module."""
    made: list[Any] = []

    class Recorded:
        def __init__(self, *arguments: Any, **_: Any) -> None:
            made.append(arguments)

        def put(self, _: MirroredPartition) -> None:
            pass

        async def run(self) -> None:
            await trio.sleep_forever()

    monkeypatch.setattr(module, "count_lanes", count_three)
    monkeypatch.setattr(module, name, Recorded)
    return made


async def fetching(flow: FlowState, links: Any) -> None:
    await fetch_from(NODE, flow.for_fetching, links, way_of(links, Taken()))


async def writing(flow: FlowState, links: Any) -> None:
    writer = TargetWriter(NODE, flow.for_producing, links)
    for partition in flow.partitions.own.values():
        partition.in_flight.enqueue([BATCH])
        writer.put(partition)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(writer.run)
        await trio.sleep(1)
        for partition in flow.partitions.own.values():
            writer.put(partition)


@pytest.mark.parametrize(
    ("module", "name", "work"),
    [(source, "SourceFetcher", fetching), (target, "TargetLane", writing)],
    ids=["source", "target"],
)
async def test_a_far_broker_that_was_away_at_first_gets_all_its_connections(
    monkeypatch: pytest.MonkeyPatch,
    autojump_clock: MockClock,  # noqa: ARG001
    module: Any,
    name: str,
    work: Callable[[FlowState, Any], Awaitable[None]],
) -> None:
    made, away = record(monkeypatch, module, name), Away(times=1)
    flow = FlowState(config=CONFIG, measurements=FlowMeasurements("f"))
    partition = flowing(flow)
    with trio.move_on_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(work, flow, away)
            await trio.sleep(0.5)
            assert partition.state is PartitionState.WAITING
            assert "away" in partition.status.reason
            assert flow.budget.total == 0
            assert (away.asked, len(made)) == (1, 0), "nobody wants it now"
            partition.move(PartitionState.POSITIONING, 0)
            partition.go_on(Cursor(0, Place(0), 0), 0)
            flow.wakeups.fetch_anew()
    assert len(made) == LANES
    assert flow.budget.is_far


def test_however_much_may_be_under_way_a_fetch_asks_for_no_more_than_an_answer_may_be() -> None:
    """Its numbers are of four bytes."""
    much = replace(CONFIG, in_flight_bytes=1 << 40, partition_in_flight_bytes=1 << 40)
    flow = FlowState(config=much, measurements=FlowMeasurements(CONFIG.name))
    anything: Any = None
    fetcher = SourceFetcher(
        NODE, flow.for_fetching, anything, way_of(anything, anything), Lane(0, LANES, {})
    )
    assert fetcher._chunk_bytes() == (MOST_FETCH_BYTES, MOST_FETCH_BYTES)
