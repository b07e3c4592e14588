"""What `failover recover` tells of the maps that are going to be adopted."""

import pytest

from failover.recover import MapUnreadable, read_writers
from offset_translation.map_records import map_topic_name
from tests.doubles.fake_cluster import run_fake_cluster
from tests.failover.target_batches import MIRROR, write
from tests.mirror.groups.source_logs import damaged, fetched
from wire.headers import RequestHeader
from wire.messages.fetch import FetchRequest, FetchResponse
from wire.net import open_cluster
from wire.record_batch import Record, build_batch

MAP = map_topic_name("dc1")


async def test_the_producers_of_a_map_are_told_with_their_records() -> None:
    async with run_fake_cluster() as fake, open_cluster(fake.bootstrap, client_id="t") as cluster:
        assert (await read_writers(cluster, MAP)).count == 0, "there is no map yet"
        log = fake.create_topic(MAP, 0).partitions[0]
        write(log, "abcd", MIRROR)
        write(log, "x", -1)
        write(log, "ef", MIRROR)
        assert (await read_writers(cluster, MAP)).describe() == [
            "1 of producer id -1 (a plain producer), from offset 4 on",
            "6 of producer id 7, from offset 0 on",
        ]


async def test_a_damaged_map_is_told_as_such() -> None:
    batch = build_batch([Record(0, 1, b"k", b"v")])

    async def fetch(_: RequestHeader, request: FetchRequest) -> FetchResponse:
        return fetched({0: ((1, damaged(batch, 16, 7)),)}, request)

    async with run_fake_cluster() as fake, open_cluster(fake.bootstrap, client_id="t") as cluster:
        fake.create_topic(MAP, 0).partitions[0].end = 1
        fake.brokers[0].scripts[FetchRequest.API_KEY] = fetch
        with pytest.raises(MapUnreadable, match=MAP):
            await read_writers(cluster, MAP)
