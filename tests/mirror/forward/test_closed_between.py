"""A connection to the source that is closed while nothing is asked over it."""

from types import SimpleNamespace
from typing import Any

import trio
from trio.testing import MockClock

from mirror.forward.source import SourceFetcher
from mirror.state.partition_state import PartitionState
from tests.mirror.building import Taken, flow_with, way_of
from tests.mirror.forward.slow_map import SlowMap
from tests.mirror.whole_flow import batch_at
from wire.hot.fetch import Fetched, FetchedPartition
from wire.messages.fetch import FetchRequest


class AskedOnce:
    """A connection that answers one fetch, with a record."""

    def __init__(self, offset: int) -> None:
        self._offset = offset
        self.was_asked = False

    def version_of(self, _: object) -> int:
        return FetchRequest.VERSIONS[-1]

    async def ask(self, *_: object) -> Fetched:
        await trio.lowlevel.checkpoint()
        assert not self.was_asked
        self.was_asked = True
        end, records = self._offset + 1, memoryview(batch_at(self._offset, b"v"))
        return Fetched(0, 0, 0, [("t", [FetchedPartition(0, 0, end, end, 0, (), -1, records)])])


class Source:
    """Has another connection for each request, as if each was closed behind its answer."""

    def __init__(self) -> None:
        self.connections: list[AskedOnce] = []

    async def connection(self, *_: int) -> AskedOnce:
        await trio.lowlevel.checkpoint()
        self.connections.append(AskedOnce(len(self.connections)))
        return self.connections[-1]


async def test_where_a_source_was_not_heard_between_two_fetches_it_is_looked_at_anew(
    autojump_clock: MockClock,  # noqa: ARG001 - takes the pauses away
) -> None:
    """It may have started again with a log that was cut, under the leader's epoch of before."""
    flow, partition = flow_with()
    partition.leaders.follow_source(1, 4)
    source, taken = Source(), Taken()
    map_log: Any = SlowMap()
    links: Any = SimpleNamespace(source_data=source)
    fetcher = SourceFetcher(1, flow.for_fetching, links, way_of(map_log, taken))
    with trio.move_on_after(20):
        await fetcher.run()
    assert len(source.connections) > 1
    assert taken.places == [0]
    assert partition.state is PartitionState.WAITING
    assert "closed between two requests" in partition.status.reason
