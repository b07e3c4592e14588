"""The map topic, written by several workers, one of which has been given up for dead."""

from collections.abc import Iterator

import pytest

from mirror.map.map_log import MapLog, MapUnwritable
from offset_translation.map_records import piece_start
from offset_translation.runs import Place
from tests.clusters import RunningCluster, run_cluster
from wire.net import open_cluster
from wire.topic_partition import TopicPartition

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    with run_cluster(tmp_path_factory.mktemp("target"), 1, "dc2") as running:
        yield running


async def test_a_fenced_worker_writes_nothing_and_what_it_wrote_before_is_read(
    cluster: RunningCluster,
) -> None:
    async with open_cluster(cluster.addresses, client_id="test") as client:
        asleep, awake = MapLog(client, "dc1", 1), MapLog(client, "dc1", 1)
        await asleep.load()
        await asleep.ensure_producer()
        await awake.load()
        assert awake.producer == asleep.producer
        assert awake.writer != asleep.writer
        await asleep.write(lambda: [piece_start("t", 0, source_start=5, place=Place(0))])
        await awake.write(lambda: [piece_start("t", 1, source_start=7, place=Place(0))])
        await asleep.write(lambda: [piece_start("t", 0, source_start=9, place=Place(2))])
        for _ in range(2):  # another leader may not know that it is done
            await awake.fence(asleep.writer)
        await awake.catch_up()
        awake.state.advance({TopicPartition("t", 0): 3, TopicPartition("t", 1): 1})
        assert awake.state.maps[TopicPartition("t", 0)].mirrored_source_end == 10
        with pytest.raises(MapUnwritable, match="INVALID_PRODUCER_EPOCH"):
            await asleep.write(lambda: [piece_start("t", 0, source_start=90, place=Place(2))])
        await awake.write(lambda: [piece_start("t", 0, source_start=9, place=Place(2))])
        late = MapLog(client, "dc1", 1)
        await late.load()
        late.state.advance({TopicPartition("t", 0): 3, TopicPartition("t", 1): 1})
        assert late.state.maps[TopicPartition("t", 0)].mirrored_source_end == 10
        assert late.state.maps[TopicPartition("t", 1)].mirrored_source_end == 8


async def test_a_worker_that_has_written_nothing_can_be_fenced_too(
    cluster: RunningCluster,
) -> None:
    async with open_cluster(cluster.addresses, client_id="test") as client:
        asleep, awake = MapLog(client, "dc9", 1), MapLog(client, "dc9", 1)
        await asleep.load()
        await awake.load()
        await awake.ensure_producer()
        await awake.fence(asleep.writer)
        with pytest.raises(MapUnwritable, match="INVALID_PRODUCER_EPOCH"):
            await asleep.write(lambda: [piece_start("t", 0, source_start=1, place=Place(0))])
