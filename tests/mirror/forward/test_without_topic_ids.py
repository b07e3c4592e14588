"""A source whose brokers know no topic ids, although they speak the versions that use them."""

from uuid import UUID

from mirror.clusters.links import Links
from mirror.flow.flow_state import FlowState
from mirror.forward.source import SourceFetcher
from mirror.map.map_log import MapLog
from mirror.state.batches import Cursor
from mirror.state.measurements import FlowMeasurements
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from offset_translation.map_records import MirrorProducer, mirror_producer
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from tests.doubles.fake_cluster import run_fake_cluster
from tests.doubles.map_writers import MemoryWriters
from tests.mirror.building import CONFIG, Taken, way_of
from wire.net import open_cluster
from wire.record_batch import Record, build_batch


async def test_topics_without_an_id_are_fetched_by_name() -> None:
    async with run_fake_cluster(1) as fake:
        topics = [fake.create_topic(name, 0) for name in ("a", "b")]
        for topic in topics:
            topic.topic_id = UUID(int=0)
            topic.partitions[0].batches.append(build_batch([Record(0, 0, None, b"v")]))
            topic.partitions[0].end = 1
        async with open_cluster(fake.bootstrap, client_id="test") as client:
            links = Links(
                source_data=client,
                source_groups=client,
                source_admin=client,
                target_data=client,
                target_admin=client,
            )
            flow = FlowState(config=CONFIG, measurements=FlowMeasurements("dc1->dc2"))
            map_log = MapLog(client, "dc1", 1, MemoryWriters())
            producer = MirrorProducer(producer_id=7, producer_epoch=0)
            map_log.state.replay(*mirror_producer(producer))
            for name in ("a", "b"):
                partition = MirroredPartition(
                    name,
                    0,
                    topic_id=UUID(int=0),
                    offset_map=OffsetMap.from_starts([(0, 0)], 0),
                    now_ms=0,
                )
                flow.partitions.take(partition)
                partition.leaders.follow_source(0, -1)
                partition.move(PartitionState.POSITIONING, 0)
                partition.go_on(Cursor(0, Place(0), 0), 0)
            taken = Taken()
            fetcher = SourceFetcher(0, flow.for_fetching, links, way_of(map_log, taken))
            answer = await fetcher._fetch(fetcher._plan.update())
            await fetcher._take(answer)
    came = [partition.topic for partition, routed in taken.all for _ in routed.forwards]
    assert sorted(came) == ["a", "b"]
