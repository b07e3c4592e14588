"""Killed processes cost time, not data; what keeps a broker from starting is said in one line."""

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from runtime.coordination.zookeeper import open_zookeeper
from runtime.process.ports import free_port
from tests.broker.integration.cluster_steps import (
    controller_of,
    live_brokers,
    produce_all,
    read_all,
    until,
)
from tests.broker.integration.settings import set_fence
from tests.clusters import RunningCluster, is_alive, run_broker_program, run_cluster
from tests.zookeeper import (
    USER,
    all_paths,
    is_refused_everything,
    open_witness_of_tests,
    write_password,
)

pytestmark = pytest.mark.integration

QUICK = {"zookeeper.session.timeout.ms": "3000"}
"""A dead broker is noticed sooner than by default."""


@pytest.fixture(scope="module")
def of_one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    with run_cluster(tmp_path_factory.mktemp("one"), brokers=1) as running:
        yield running


@pytest.fixture(scope="module")
def of_three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    with run_cluster(tmp_path_factory.mktemp("three"), brokers=3, overrides=QUICK) as running:
        yield running


def test_a_site_killed_and_restarted_has_everything_it_acknowledged(
    of_one: RunningCluster,
) -> None:
    admin = AdminClient({"bootstrap.servers": of_one.bootstrap})
    settings = {"retention.ms": "5000000"}
    admin.create_topics([NewTopic("kept", 3, 1, config=settings)])["kept"].result(60)
    before = of_one.bootstrap
    sent = [b"%d" % number for number in range(3_000)]
    assert sorted(produce_all(before, "kept", sent)) == sorted(sent)
    children = [*of_one.pids.values()]
    of_one.kill()
    assert not any(map(is_alive, children))
    of_one.start()
    assert of_one.bootstrap == before
    assert sorted(read_all(before, "kept", 3, 3_000)) == sorted(sent)
    resource = ConfigResource(ResourceType.TOPIC, "kept")
    described = admin.describe_configs([resource])[resource].result(60)
    assert described["retention.ms"].value == "5000000"


def test_a_killed_broker_comes_back_with_its_records_and_the_others_go_on(
    of_three: RunningCluster,
) -> None:
    """The controller is the one killed, so that another has to take over first."""
    admin = AdminClient({"bootstrap.servers": of_three.bootstrap})
    admin.create_topics([NewTopic("kept", 3, 1)])["kept"].result(60)
    sent = [b"%d" % number for number in range(600)]
    assert len(produce_all(of_three.bootstrap, "kept", sent)) == 600
    victim = controller_of(admin)
    of_three.kill_broker(victim)
    until(lambda: controller_of(admin) not in {victim, -1})
    assert f"broker {victim} (process " in of_three.log
    admin.create_topics([NewTopic("meanwhile", 2, 1)])["meanwhile"].result(60)
    partitions = admin.list_topics("kept").topics["kept"].partitions
    assert sum(partition.leader == -1 for partition in partitions.values()) == 1
    of_three.start_broker(victim)
    until(lambda: live_brokers(admin) == 3)
    assert sorted(read_all(of_three.bootstrap, "kept", 3, 600)) == sorted(sent)


def test_a_fence_outlives_the_cluster(of_one: RunningCluster) -> None:
    admin = AdminClient({"bootstrap.servers": of_one.bootstrap})
    admin.create_topics([NewTopic("fenced", 1, 1)])["fenced"].result(60)
    set_fence(of_one, "fenced", "")
    of_one.kill()
    of_one.start()
    client = Producer({"bootstrap.servers": of_one.bootstrap, "message.timeout.ms": 1_500})
    failed: list[bool] = []
    client.produce("fenced", b"x", on_delivery=lambda error, _: failed.append(error is not None))
    client.flush(60)
    assert failed == [True]


@pytest.mark.story
def test_a_topic_on_a_dead_broker_is_deleted_when_that_is_back(of_three: RunningCluster) -> None:
    admin = AdminClient({"bootstrap.servers": of_three.bootstrap})
    until(lambda: live_brokers(admin) == 3)
    admin.create_topics([NewTopic("gone", 3, 1)])["gone"].result(60)
    logs = "broker-*/logs/gone-?"
    until(lambda: len(list(of_three.data.glob(logs))) == 3)
    victim = next(broker for broker in range(3) if broker != controller_of(admin))
    of_three.kill_broker(victim)
    until(lambda: live_brokers(admin) == 2)
    admin.delete_topics(["gone"], operation_timeout=1)
    until(lambda: "gone" not in admin.list_topics(timeout=60).topics)
    assert list(of_three.data.glob(logs)), "the dead broker has what it led"
    of_three.start_broker(victim)
    until(lambda: not list(of_three.data.glob(logs)))


@pytest.mark.story
def test_zookeeper_lost_and_back_costs_nothing(tmp_path: Path) -> None:
    """Brokers serve what they lead without ZooKeeper, and register again when it is back."""
    with run_cluster(tmp_path, brokers=1, overrides=QUICK) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        admin.create_topics([NewTopic("t", 1, 1)])["t"].result(60)
        sent = [b"%d" % number for number in range(100)]
        zookeeper = cluster.zookeeper_pid
        os.kill(zookeeper, signal.SIGSTOP)
        try:
            until(lambda: "no decisions" in (cluster.data / "broker-0/broker.log").read_text())
            assert len(produce_all(cluster.bootstrap, "t", sent)) == 100
        finally:
            os.kill(zookeeper, signal.SIGCONT)
        until(lambda: "epoch 2" in (cluster.data / "broker-0/broker.log").read_text())
        until(lambda: created(admin, "after"))
        assert read_all(cluster.bootstrap, "t", 1, 100) == sent


def created(admin: AdminClient, topic: str) -> bool:
    try:
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(60)
    except KafkaException:
        return False
    return True


def test_children_do_not_outlive_a_killed_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here each process is one that `broker up` itself started, as users have it."""
    monkeypatch.setenv("PYTHONHASHSEED", "17")
    with run_cluster(tmp_path, brokers=2) as cluster:
        for broker, pid in cluster.pids.items():
            words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
            properties = str(cluster.data / f"broker-{broker}/server.properties")
            assert words[1:] == ["-m", "broker.cli", "run", properties, "--end-with-stdin", ""]
        cluster.kill_broker(1)
        dead = f"broker 1 (process {cluster.pids[1]}) ended with status -9"
        until(lambda: dead in cluster.log)
        children = [cluster.pids[0], cluster.zookeeper_pid]
        cluster.kill_parent_only()
        until(lambda: not any(map(is_alive, children)), timeout_s=120)


@pytest.fixture
def properties(tmp_path: Path) -> Path:
    path = tmp_path / "server.properties"
    path.write_text(
        f"broker.id=0\nlisteners=PLAINTEXT://127.0.0.1:0\nlog.dirs={tmp_path / 'logs'}\n"
        f"zookeeper.connect=127.0.0.1:{free_port()}\nzookeeper.connection.timeout.ms=500\n"
    )
    return path


def last_line(arguments: list[str], status: int) -> str:
    ended = run_broker_program(arguments)
    assert ended.returncode == status, ended.stderr
    assert "Traceback" not in ended.stderr
    return ended.stderr.strip().splitlines()[-1]


def test_a_wrong_setting_ends_with_status_2(properties: Path) -> None:
    with properties.open("a") as file:
        file.write("num.partition=1\n")
    said = last_line(["run", str(properties)], 2)
    assert said == f"broker: {properties}:6: num.partition: unknown setting"
    said = last_line(["run", str(properties.parent / "absent")], 2)
    assert said.endswith("absent: cannot be read: No such file or directory")
    said = last_line(["run", str(properties), "--override", "broker.id"], 2)
    assert said == "broker: --override broker.id: expected key=value"


def test_a_zookeeper_that_does_not_answer_is_named(properties: Path) -> None:
    said = last_line(["run", str(properties)], 1)
    connect = properties.read_text().split("zookeeper.connect=")[1].split()[0]
    assert connect in said


def test_a_port_in_use_is_named(properties: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        address = f"PLAINTEXT://127.0.0.1:{holder.getsockname()[1]}"
        said = last_line(["run", str(properties), "--override", f"listeners={address}"], 1)
    assert said == f"broker: listeners: {address}: cannot listen: Address already in use"


async def test_a_stranger_at_zookeepers_port_reads_and_writes_nothing(
    of_one: RunningCluster,
) -> None:
    async with open_witness_of_tests(of_one.zookeeper) as zookeeper:
        paths = await all_paths(zookeeper)
        assert "/brokers/ids/0" in paths
        assert "/cluster/secret" in paths
    async with open_zookeeper(of_one.zookeeper, session_timeout_ms=4_000) as stranger:
        for path in paths:
            await is_refused_everything(stranger, path)


def test_what_a_running_cluster_refuses_to_a_newcomer(
    tmp_path: Path, properties: Path, of_one: RunningCluster
) -> None:
    """Without a login, a second broker of an id, an unusable folder, another cluster's folder."""
    connect = f"--override=zookeeper.connect={of_one.zookeeper}"
    said = last_line(["run", str(properties), connect], 1)
    assert "the node's rights are for another login than ours" in said
    password = write_password(tmp_path / "password")
    with properties.open("a") as settings:
        settings.write(f"zookeeper.password.file={password}\nzookeeper.set.acl=true\n")
    said = last_line(["run", str(properties), connect], 1)
    assert said == "broker: /cluster/owner: it is another login's: see zookeeper.password.file"
    with properties.open("a") as settings:
        settings.write(f"zookeeper.username={USER}\n")
    said = last_line(["run", str(properties), connect], 1)
    host, port = of_one.addresses[0]
    assert said == f"broker: broker.id 0 is in use by a broker at {host}:{port}"
    occupied = tmp_path / "a-file"
    occupied.write_text("")
    said = last_line(["run", str(properties), connect, f"--override=log.dirs={occupied}"], 1)
    assert str(occupied) in said
    foreign = of_one.data / "broker-0" / "logs"
    said = last_line(["run", str(properties), connect, f"--override=log.dirs={foreign}"], 1)
    assert str(foreign) in said
    said = last_line(
        [
            "run",
            str(properties),
            connect,
            "--override=broker.id=5",
            f"--override=log.dirs={foreign}",
        ],
        1,
    )
    assert str(foreign) in said


def test_up_refuses_a_port_in_use_and_a_folder_that_is_none(tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        arguments = ["up", "--brokers", "1", "--data", str(tmp_path / "d"), "--port", str(port)]
        said = last_line(arguments, 1)
    assert f"PLAINTEXT://127.0.0.1:{port}: cannot listen: Address already in use" in said
    (tmp_path / "file").write_text("")
    said = last_line(["up", "--data", str(tmp_path / "file")], 1)
    assert said.startswith(f"broker: --data {tmp_path / 'file'}: ")


def test_up_that_cannot_note_its_ports_says_so(tmp_path: Path) -> None:
    memory = tmp_path / "cluster.json"
    memory.symlink_to(tmp_path / "gone" / "cluster.json")
    arguments = ["up", "--brokers", "1", "--data", str(tmp_path), "--port", "0"]
    said = last_line([*arguments, "--zookeeper-port", "0", "--metrics-port", "0"], 1)
    assert said == f"broker: {memory}: No such file or directory"


@pytest.mark.story
def test_interrupting_leaves_nothing_behind(of_three: RunningCluster) -> None:
    """The last test of the module: nobody has the three brokers behind it."""
    children = [*of_three.pids.values(), of_three.zookeeper_pid]
    assert all(map(is_alive, children))
    of_three.stop()
    assert not any(map(is_alive, children))
