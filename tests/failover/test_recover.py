"""What `failover recover` tells of maps, and that it writes only what it has shown."""

from pathlib import Path

import pytest
import trio

from failover.journal.lease import hold_lease
from failover.recover import CannotRecover, MapUnreadable, read_writers, recover
from offset_translation.map_records import map_topic_name
from runtime.configuration.config import load
from runtime.coordination.witness import ActiveSite, WitnessPaths
from tests.dc_yaml import dc_yaml
from tests.doubles.fake_cluster import run_fake_cluster
from tests.failover.target_batches import MIRROR, write
from tests.mirror.groups.source_logs import damaged, fetched
from tests.zookeeper import open_witness_of_tests
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


@pytest.mark.integration
async def test_nothing_is_written_over_a_promotion_that_ended_while_its_lease_was_waited_for(
    empty_zookeeper: str, tmp_path: Path
) -> None:
    paths = WitnessPaths(root="/kafka-dr")
    file = tmp_path / "dc.yaml"
    file.write_text(dc_yaml(witness=empty_zookeeper))
    shown = trio.Event()
    switched = ActiveSite(site="dc2", epoch=1).encode()

    def show(line: str) -> None:
        if line.startswith("dc2"):
            shown.set()

    async def switch() -> None:
        await zookeeper.set(paths.active, switched)

    async with open_witness_of_tests(empty_zookeeper) as zookeeper:
        first = ActiveSite(site="dc1", epoch=0).encode()
        await zookeeper.create(paths.active, first, make_parents=True)
        async with trio.open_nursery() as nursery:

            async def promote(
                task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
            ) -> None:
                async with hold_lease(zookeeper, paths, wait_ms=1_000) as lease:
                    task_status.started()
                    await shown.wait()
                    await lease.act(switch)

            await nursery.start(promote)
            with pytest.raises(CannotRecover, match="not as it was shown any more"):
                await recover(load(file), active="dc1", replaced=(), write=True, show=show)
        node = await zookeeper.get(paths.active)
        assert node is not None
        assert node.data == switched
