"""The worker that leads hears how far the others have come, once for each step."""

from mirror.flow.flow_state import FlowState
from mirror.map.map_log import MapLog
from mirror.state.measurements import FlowMeasurements
from mirror.workers.peer_progress import PeerProgress
from offset_translation.map_records import piece_start
from offset_translation.runs import Place
from tests.doubles.map_writers import MemoryWriters
from tests.mirror.building import CONFIG
from tests.mirror.two_fakes import two_fakes
from wire.topic_partition import TopicPartition

PLACE = TopicPartition("orders", 0)


async def test_a_peers_partition_is_told_of_when_it_has_moved_on_or_is_vouched_for() -> None:
    async with two_fakes() as (dc1, dc2, links):
        source, target = (one.create_topic("orders", 0).partitions[0] for one in (dc1, dc2))
        dc2.create_topic("dc1.offset-map.internal", 0)
        source.end = target.end = 10
        flow = FlowState(config=CONFIG, measurements=FlowMeasurements(CONFIG.name))
        flow.share.see({PLACE})
        map_log = MapLog(links.target_admin, "dc1", 1, MemoryWriters())
        map_log.state.replay(*piece_start(*PLACE, source_start=0, place=Place(0)))
        elsewhere = PeerProgress(
            flow.live_config,
            partitions=flow.partitions,
            share=flow.share,
            progress=flow.progress,
            links=links,
            map_log=map_log,
        )

        async def told() -> set[TopicPartition]:
            await elsewhere.read_progress()
            return flow.progress.take()

        assert await told() == {PLACE}, "it is known from now on"
        assert await told() == set()
        target.end = source.end = 12
        assert await told() == {PLACE}
        assert await told() == set()
        flow.share.hear_of_peers({}, frozenset({PLACE}))
        assert await told() == {PLACE}
        assert flow.partitions.peers[PLACE].has_true_map
        flow.share.forget({PLACE})
        assert await told() == set()
        flow.share.see({PLACE})
        assert await told() == {PLACE}, "another worker has it anew"
