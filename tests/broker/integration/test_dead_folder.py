"""A broker one of whose log.dirs is dead when it starts, as its clients see it."""

from pathlib import Path

import pytest
import trio
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker.integration.cluster_steps import (
    create,
    live_brokers,
    partitions_of,
    produce_all,
    read_all,
    until,
)
from tests.clusters import RunningCluster, run_broker_program, run_cluster
from wire.errors import ErrorCode
from wire.messages.describe_log_dirs import DescribeLogDirsRequest
from wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from wire.net import open_cluster

pytestmark = pytest.mark.integration


def log_folder_errors(cluster: RunningCluster) -> dict[str, int]:
    async def ask() -> dict[str, int]:
        async with open_cluster(cluster.addresses, client_id="test") as connected:
            answer = await connected.request(DescribeLogDirsRequest(topics=None))
            return {Path(result.log_dir).name: result.error_code for result in answer.results}

    return trio.run(ask)


def offline_partitions(cluster: RunningCluster, topic: str) -> set[int]:
    """Return which partitions have no leader and name broker 0 as an offline replica."""

    async def ask() -> set[int]:
        async with open_cluster(cluster.addresses, client_id="test") as connected:
            request = MetadataRequest(topics=(MetadataRequestTopic(name=topic),))
            answer = await connected.request(request)
            return {
                partition.partition_index
                for partition in answer.topics[0].partitions
                if partition.leader_id == -1 and partition.offline_replicas == (0,)
            }

    return trio.run(ask)


def test_a_dead_log_folder_costs_its_own_partitions_until_it_is_back(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    log_dirs = ",".join(map(str, folders))
    with run_cluster(tmp_path, overrides={"log.dirs": log_dirs}) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        admin.create_topics([NewTopic("t", 4, 1)])["t"].result(60)
        sent = [b"%d" % number for number in range(400)]
        assert len(produce_all(cluster.bootstrap, "t", sent)) == 400
        lost = {int(path.name[2:]) for path in folders[1].glob("t-*")}
        assert len(lost) == 2
        cluster.kill()
        folders[1].rename(tmp_path / "b.away")
        folders[1].touch()
        cluster.start()
        until(lambda: offline_partitions(cluster, "t") == lost)
        said = (cluster.data / "broker-0" / "broker.log").read_text()
        assert said.count(str(folders[1])) == 2, "the folder and the reason, in one line"
        assert f"log folder {folders[1]} is offline until a restart: " in said
        assert log_folder_errors(cluster) == {"a": 0, "b": ErrorCode.KAFKA_STORAGE_ERROR}
        admin.create_topics([NewTopic("new", 2, 1)])["new"].result(60)
        assert len(produce_all(cluster.bootstrap, "new", sent)) == 400
        here = {path.name for path in folders[0].glob("*-[0-9]")}
        assert here == {f"t-{index}" for index in {0, 1, 2, 3} - lost} | {"new-0", "new-1"}
        cluster.kill()
        folders[1].unlink()
        (tmp_path / "b.away").rename(folders[1])
        cluster.start()
        assert sorted(read_all(cluster.bootstrap, "t", 4, 400)) == sorted(sent)
        assert sorted(read_all(cluster.bootstrap, "new", 2, 400)) == sorted(sent)
        assert log_folder_errors(cluster) == {"a": 0, "b": 0}
        refused = run_broker_program(
            [
                "run",
                str(cluster.data / "broker-0" / "server.properties"),
                "--override=broker.id=1",
                "--override=listeners=PLAINTEXT://127.0.0.1:0",
                f"--override=log.dirs={tmp_path}/dc1.log/x,{tmp_path}/dc1.log/y",
            ]
        )
        assert refused.returncode == 1
        assert refused.stderr.splitlines()[-1] == (
            f"broker: {tmp_path}/dc1.log/x: Not a directory; no log folder is left"
        )


@pytest.mark.story
def test_what_lies_on_a_dead_folder_is_led_elsewhere_and_follows_when_it_is_back(
    tmp_path: Path,
) -> None:
    overrides = {
        "zookeeper.session.timeout.ms": "3000",
        "default.replication.factor": "2",
        "auto.create.topics.enable": "false",
        "auto.leader.rebalance.enable": "false",
    }
    with run_cluster(tmp_path, brokers=2, overrides=overrides) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        second = tmp_path / "second"
        restart_with(cluster, admin, f"{cluster.data}/broker-1/logs,{second}")
        until(lambda: is_created(admin, "t"))
        sent = [b"%d" % number for number in range(200)]
        assert len(produce_all(cluster.bootstrap, "t", sent)) == 200
        until(lambda: len(list(second.glob("t-*"))) == 1)
        until(lambda: in_sync(admin) == [[0, 1], [0, 1]])
        (lost,) = (int(path.name[2:]) for path in second.glob("t-*"))
        cluster.kill_broker(1)
        second.rename(tmp_path / "away")
        second.touch()
        cluster.start_broker(1)
        there = [[0], [0, 1]] if lost == 0 else [[0, 1], [0]]
        until(lambda: in_sync(admin) == there)
        more = [b"%d" % number for number in range(200, 400)]
        assert len(produce_all(cluster.bootstrap, "t", more)) == 200
        assert not (cluster.data / "broker-1" / "logs" / f"t-{lost}").exists()
        cluster.kill_broker(1)
        second.unlink()
        (tmp_path / "away").rename(second)
        cluster.start_broker(1)
        until(lambda: in_sync(admin) == [[0, 1], [0, 1]])
        assert sorted(read_all(cluster.bootstrap, "t", 2, 400)) == sorted(sent + more)


def restart_with(cluster: RunningCluster, admin: AdminClient, log_dirs: str) -> None:
    """Give broker 1 other folders."""
    cluster.kill_broker(1)
    properties = cluster.data / "broker-1" / "server.properties"
    kept = [line for line in properties.read_text().splitlines() if line[:9] != "log.dirs="]
    properties.write_text("\n".join([*kept, f"log.dirs={log_dirs}", ""]))
    cluster.start_broker(1)
    until(lambda: live_brokers(admin) == 2)


def is_created(admin: AdminClient, topic: str) -> bool:
    """Create a topic on both brokers; not yet while they look for a new controller."""
    try:
        create(admin, topic, [1, 0], [1, 0])
    except KafkaException:
        return len(partitions_of(admin, topic)) == 2
    return True


def in_sync(admin: AdminClient) -> list[list[int]]:
    return [sorted(one.isrs) for one in partitions_of(admin, "t")]
