"""What `failover recover` tells of maps, and that it writes only what it has shown."""

from functools import partial
from pathlib import Path
from uuid import UUID

import pytest
import trio

from failover.journal.lease import hold_lease
from failover.recover import recover, restore_witness
from failover.sites.unknown_writers import (
    CannotRecover,
    MapUnreadable,
    WrittenBy,
    _told_another,
    read_writers,
    restore_writers,
)
from offset_translation.map_records import map_topic_name, piece_start
from offset_translation.runs import Place
from runtime.configuration.config import load
from runtime.coordination.map_registry import WitnessWriters
from runtime.coordination.map_writers import LOST_AT_MOST, MapWriters, Registration, number_record
from runtime.coordination.witness import ActiveSite, Pair, WitnessPaths
from runtime.coordination.zookeeper import ZooKeeper, ZooKeeperUnreachable
from runtime.pair.opening import open_clusters
from runtime.pair.recovery import Restore
from tests.dc_yaml import dc_yaml, flow
from tests.doubles.fake_cluster import run_fake_cluster
from tests.failover.target_batches import MIRROR, write
from tests.mirror.groups.source_logs import damaged, fetched
from tests.zookeeper import open_witness_of_tests
from wire.headers import RequestHeader
from wire.messages.fetch import FetchRequest, FetchResponse
from wire.net import open_cluster
from wire.record_batch import Record, build_batch

MAP = map_topic_name("dc1")
REGISTRY = "ab" * 16


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


async def test_a_map_that_may_not_be_seen_is_not_told_as_an_empty_one() -> None:
    async with run_fake_cluster() as fake, open_cluster(fake.bootstrap, client_id="t") as cluster:
        write(fake.create_topic(MAP, 0).partitions[0], "abcd", MIRROR)
        fake.hidden.add(MAP)
        with pytest.raises(MapUnreadable, match=MAP):
            await read_writers(cluster, MAP)


def test_a_map_that_is_gone_is_adopted_only_by_decision() -> None:
    written = MapWriters(registered={7: 1}, topic_id=UUID(int=3).hex, end=9)
    for gone in (WrittenBy(), WrittenBy(topic_id=UUID(int=3), end=0)):
        told = _told_another(written, gone)
        assert told is not None
        assert "it was deleted" in told or "was written up to 9: it lost its end" in told
    assert _told_another(MapWriters(), WrittenBy()) is None


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
async def test_a_witness_of_before_a_writer_registered_is_told_and_believes_the_map_anew(
    empty_zookeeper: str, tmp_path: Path
) -> None:
    said: list[str] = []
    async with run_fake_cluster() as fake, open_witness_of_tests(empty_zookeeper) as zookeeper:
        paths = WitnessPaths(root="/kafka-dr")
        file = tmp_path / "dc.yaml"
        host, port = fake.bootstrap[0]
        file.write_text(dc_yaml(dc2=f"{host}:{port}", witness=empty_zookeeper))
        old = MapWriters(registered={7: 1}, number=1, registry=REGISTRY)
        node = paths.map_writers("dc1", "dc2")
        await zookeeper.create(node, old.encode(), make_parents=True)
        log = fake.create_topic(MAP, 0).partitions[0]
        for number, producer_id in ((1, 7), (2, 8)):
            key, value = number_record(Registration(REGISTRY, number))
            log.batches.append(
                build_batch(
                    [Record(0, 1, key, value)],
                    base_offset=log.end,
                    producer_id=producer_id,
                    producer_epoch=0,
                    base_sequence=0,
                )
            )
            log.end += 1
        configuration = load(file)

        async def told() -> MapWriters:
            found = await zookeeper.get(node)
            assert found is not None
            return MapWriters.decode(found.data)

        async with open_clusters(configuration) as clusters:
            restore = partial(restore_writers, configuration, zookeeper, clusters, said.append)
            await restore(write=False)
            assert await told() == old
            assert "it knows of 1 writers, and writer 2 has been at work" in said[0]
            await restore(write=True)
            adopted = await told()
            assert (adopted.adopts, adopted.number) == (True, 1 + LOST_AT_MOST)
            said.clear()
            await restore(write=False)
            assert said == ["nothing to restore"]
            mirror = WitnessWriters(zookeeper, paths, "dc1", "dc2")
            assert await mirror.begin(end=log.end, topic_id=UUID(int=1)) == log.end
            newest = await mirror.register(9)
            assert newest.number > adopted.number, "no copy of before has known it"
            said.clear()
            await restore(write=True)
            assert said == ["nothing to restore"], "nobody else's records are believed once more"
            assert not (await told()).adopts


@pytest.mark.integration
async def test_a_recovery_that_is_killed_has_said_of_maps_what_nobody_asks_for_again(
    empty_zookeeper: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the pair is there again, nothing is to be restored, and no writer was believed."""
    paths = WitnessPaths(root="/kafka-dr")
    file = tmp_path / "dc.yaml"
    file.write_text(dc_yaml(witness=empty_zookeeper))
    restore = Restore(
        pair=Pair(pair="p", clusters={"dc1": "a", "dc2": "b"}),
        active=ActiveSite(site="dc1", epoch=0),
        number=1,
    )

    async def killed(*_: object) -> None:
        await trio.lowlevel.checkpoint()
        raise ZooKeeperUnreachable("killed")

    async with open_witness_of_tests(empty_zookeeper) as zookeeper:
        with monkeypatch.context() as patch:
            patch.setattr(ZooKeeper, "transaction", killed)
            with pytest.raises(ZooKeeperUnreachable):
                await restore_witness(zookeeper, load(file), restore)
        assert await zookeeper.get(paths.pair) is None
        node = await zookeeper.get(paths.map_writers("dc1", "dc2"))
        assert node is not None
        assert MapWriters.decode(node.data).adopts
        await restore_witness(zookeeper, load(file), restore)
        assert await zookeeper.get(paths.pair) is not None


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
                async with hold_lease(zookeeper, paths.lease, wait_ms=1_000) as lease:
                    task_status.started()
                    await shown.wait()
                    await lease.act(switch)

            await nursery.start(promote)
            with pytest.raises(CannotRecover, match="not as it was shown any more"):
                await recover(load(file), active="dc1", replaced=(), write=True, show=show)
        node = await zookeeper.get(paths.active)
        assert node is not None
        assert node.data == switched


@pytest.mark.integration
async def test_maps_without_numbers_are_believed_by_decision_although_the_other_site_is_lost(
    empty_zookeeper: str, tmp_path: Path
) -> None:
    """The map that is needed to promote the survivor lies on the survivor."""
    said: list[str] = []
    async with run_fake_cluster() as fake, open_witness_of_tests(empty_zookeeper) as zookeeper:
        paths = WitnessPaths(root="/kafka-dr")
        file = tmp_path / "dc.yaml"
        host, port = fake.bootstrap[0]
        ways = [flow("dc2", "dc1"), flow("dc1", "dc2")]
        failover = {"initial_active": "dc1"}
        file.write_text(
            dc_yaml(
                *ways,
                dc1="127.0.0.1:1",
                dc2=f"{host}:{port}",
                witness=empty_zookeeper,
                failover=failover,
            )
        )
        old = MapWriters(registered={7: 1})
        for way in (("dc1", "dc2"), ("dc2", "dc1")):
            await zookeeper.create(paths.map_writers(*way), old.encode(), make_parents=True)
        log = fake.create_topic(MAP, 0).partitions[0]
        write(log, "ab", 8)
        write(log, "c", -1)
        of_another_pair = piece_start("__theirs", 0, source_start=0, place=Place(0))
        log.batches.append(
            build_batch([Record(0, 1, *of_another_pair)], base_offset=3, producer_id=9)
        )
        log.end = 4
        checkpoints = paths.checkpoint_writers("dc1", "dc2")
        await zookeeper.create(checkpoints, old.encode(), make_parents=True)
        write(fake.create_topic("dc1.checkpoints.internal", 0).partitions[0], "p", 12)
        configuration = load(file)
        async with open_clusters(configuration) as clusters:
            restore = partial(restore_writers, configuration, zookeeper, clusters, said.append)
            with pytest.raises(CannotRecover, match="whether the witness knows all its writers"):
                await restore(write=False)
            await restore(write=True, believes_maps=True)
            assert said[0].endswith(
                ": 1 records are not believed: 1 of producer id 12, from offset 0 on"
            )
            assert "3 records are not believed: 1 of producer id -1 (a plain prod" in said[1]
            assert "2 of producer id 8, from offset 0 on; those of plain producers" in said[1]
            assert said[2].startswith("left as is  dc1 dc2.offset-map.internal")
            believed = {}
            said.clear()
            with pytest.raises(CannotRecover, match="whether the witness knows all its writers"):
                await restore(write=True, believes_maps=True)
            assert len(said) == 1, "what plain producers wrote is still shown, and never believed"
        for way in (("dc1", "dc2"), ("dc2", "dc1")):
            node = await zookeeper.get(paths.map_writers(*way))
            assert node is not None
            known = MapWriters.decode(node.data)
            assert not known.adopts
            believed[way] = set(known.registered)
        node = await zookeeper.get(checkpoints)
        assert node is not None
        assert set(MapWriters.decode(node.data).registered) == {7, 12}
    assert believed == {("dc1", "dc2"): {7, 8}, ("dc2", "dc1"): {7}}
