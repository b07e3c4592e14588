"""What waits for a target that is away does not hold the answers in memory that it came in."""

from typing import Any

import pytest

from mirror.forward.source import SourceFetcher
from mirror.state.batches import Forward
from mirror.state.in_flight import STUCK_MS
from offset_translation.runs import Place
from runtime.process.clock import now_ms
from tests.mirror.building import Taken, flow_with, way_of
from tests.mirror.forward.slow_map import SlowMap
from tests.mirror.whole_flow import batch_at
from wire.hot.fetch import Fetched, FetchedPartition
from wire.net.buffers import BufferPool, _is_free


@pytest.mark.parametrize("waits_ms", [0, 2 * STUCK_MS])
async def test_only_records_that_will_soon_be_sent_hold_their_answer(waits_ms: int) -> None:
    flow, partition = flow_with()
    partition.leaders.follow_source(1, -1)
    taken = Taken()
    anything: Any = None
    map_log: Any = SlowMap()
    fetcher = SourceFetcher(1, flow.for_fetching, anything, way_of(map_log, taken))
    fetcher._plan.update()
    partition.in_flight.enqueue([Forward(Place(0), 1, 1, 0, 1, (b"",))])
    partition.in_flight.begin(now_ms() - waits_ms)
    pool, batch = BufferPool(), batch_at(0, b"v")
    frame = pool.take(len(batch))
    frame[:] = batch
    await fetcher._take(Fetched(0, 0, 0, [("t", [FetchedPartition(0, 0, 1, 1, 0, (), -1, frame)])]))
    del frame
    assert taken.places == [0]
    assert _is_free(pool._buffers[0]) == (waits_ms > 0)
