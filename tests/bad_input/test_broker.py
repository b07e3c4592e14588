"""What a running cluster is spared: garbage from the net, a full disk, damage, a twin on its data.

Each test holds that the records that were acknowledged are there afterwards.
"""

import os
import resource
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from broker.up import SECRET
from runtime.process.ports import free_port
from tests.bad_input.programs import complaint, start
from tests.clusters import RunningCluster, run_cluster
from tests.failover.two_sites import create_topic, produce, read_all, values_of
from tests.fuzz.processes import resident_bytes
from tests.mirror.daemon import wait_until
from tests.zookeeper import USER

pytestmark = pytest.mark.integration

API_VERSIONS, UNSUPPORTED_VERSION = 18, 35


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    with run_cluster(tmp_path_factory.mktemp("bad-input"), shares_zookeeper=True) as running:
        yield running


def frame(api_key: int, version: int, body: bytes = b"") -> bytes:
    request = struct.pack(">hhih", api_key, version, 7, 1) + b"q" + body
    return struct.pack(">i", len(request)) + request


GARBAGE = {
    struct.pack(">i", 2**31 - 1) + b"x": "a frame of 2147483647 bytes; the limit is 104857600",
    struct.pack(">i", -5): "a frame of -5 bytes",
    b"GET / HTTP/1.1\r\n\r\n": "a frame of 1195725856 bytes",
    struct.pack(">i", 3) + b"abc": "header: needs 8 bytes, 3 are left",
    frame(99, 0): "API 99 is not served",
    frame(1, 99, b"\0"): "Fetch version 99 is not served",
    frame(3, 1, struct.pack(">i", 2**31 - 1)): "MetadataRequest.topics: 2147483647 elements",
}


def ask(cluster: RunningCluster, request: bytes) -> tuple[str, bytes]:
    """Return who asked, as the broker's log names it, and the answer until the connection ends."""
    with socket.create_connection(cluster.addresses[0], timeout=10) as connection:
        connection.sendall(request)
        return "{}:{}".format(*connection.getsockname()), connection.recv(65536)


def test_garbage_ends_its_own_connection_with_one_line(cluster: RunningCluster) -> None:
    create_topic(cluster, "beside")
    log = cluster.data / "broker-0" / "broker.log"
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 0})
    for number, (garbage, reason) in enumerate(GARBAGE.items()):
        producer.produce("beside", b"%d" % number, partition=0)
        peer, answer = ask(cluster, garbage)
        assert answer == b""
        [line] = [line for line in log.read_text().splitlines() if peer in line]
        assert f"{peer}: connection closed: {reason}" in line
    assert producer.flush(60) == 0
    assert values_of(read_all(cluster, "beside")) == list(range(len(GARBAGE)))


def test_an_unknown_version_of_api_versions_is_answered(cluster: RunningCluster) -> None:
    _, answer = ask(cluster, frame(API_VERSIONS, 99, b"\0"))
    assert struct.unpack_from(">ih", answer, 4) == (7, UNSUPPORTED_VERSION)


def test_a_second_cluster_on_the_same_data_is_refused(cluster: RunningCluster) -> None:
    create_topic(cluster, "twins")
    produce(cluster, "twins", range(10))
    memory = (cluster.data / "cluster.json").read_text()
    ports = [f"--port={free_port()}", f"--zookeeper-port={free_port()}"]
    twin = start("broker.cli", "up", "--brokers=1", "--data", cluster.data, *ports)
    assert complaint(twin, 1) == f"broker: --data {cluster.data}: another `broker up` runs on it"
    assert (cluster.data / "cluster.json").read_text() == memory
    assert values_of(read_all(cluster, "twins")) == list(range(10))


def test_damage_is_cut_at_the_first_bad_batch_and_said(tmp_path: Path) -> None:
    with run_cluster(tmp_path) as cluster:
        create_topic(cluster, "damaged", 3)
        for number in range(10, 30):  # batches of one size
            for partition in range(3):
                produce(cluster, "damaged", [number], partition)
        cluster.kill()
        logs = cluster.data / "broker-0" / "logs"
        segments = [logs / f"damaged-{index}" / f"{0:020}.log" for index in range(3)]
        sizes = [segment.stat().st_size for segment in segments]
        batch = sizes[0] // 20
        os.truncate(segments[0], sizes[0] - 3)
        altered = bytearray(segments[1].read_bytes())
        altered[-1] ^= 0xFF
        segments[1].write_bytes(altered)
        with segments[2].open("ab") as file:
            file.write(b"\0" * 10)
        cluster.start()
        said = (logs.parent / "broker.log").read_text()
        for segment, cut, end in (
            (segments[0], f"cut {batch - 3} bytes from byte {sizes[0] - batch} on", 19),
            (segments[1], f"cut {batch} bytes from byte {sizes[1] - batch} on", 19),
            (segments[2], f"cut 10 bytes from byte {sizes[2]} on", 20),
        ):
            assert f"{segment}: {cut}, the log now ends at offset {end}: " in said
        for partition, count in enumerate((19, 19, 20)):
            assert values_of(read_all(cluster, "damaged", partition)) == list(range(10, 10 + count))


def run_second_broker(
    cluster: RunningCluster, folder: Path, most_bytes: int
) -> subprocess.Popen[bytes]:
    """Start broker 1, none of whose files may become larger than `most_bytes`."""
    properties = folder / "server.properties"
    properties.write_text(
        f"broker.id=1\nlisteners=PLAINTEXT://127.0.0.1:{free_port()}\n"
        f"log.dirs={folder / 'a'},{folder / 'b'}\n"
        f"zookeeper.connect={cluster.zookeeper}\n"
        f"zookeeper.username={USER}\nzookeeper.set.acl=true\n"
        f"zookeeper.password.file={cluster.data / SECRET}\n"
    )
    arguments = ["-m", "broker.cli", "run", str(properties)]
    with (folder / "broker.log").open("ab") as log:
        process = subprocess.Popen([sys.executable, *arguments], stdout=log, stderr=log)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    wait_until("both brokers", lambda: len(admin.list_topics(timeout=60).brokers) == 2)
    return process


def test_an_idle_broker_is_small(cluster: RunningCluster, tmp_path: Path) -> None:
    """One that a new interpreter runs: those of other tests are forks that hold every program."""
    broker = run_second_broker(cluster, tmp_path, most_bytes=100_000)
    try:
        assert 20_000_000 < resident_bytes(broker.pid) < 60_000_000
    finally:
        broker.terminate()
        broker.wait(60)


def leaders(admin: AdminClient) -> dict[int, int]:
    """Return the leader of each partition of the topic `full`, -1 for none."""
    partitions = admin.list_topics("full", timeout=60).topics["full"].partitions
    return {index: partition.leader for index, partition in partitions.items()}


def deliver(producer: Producer, partition: int, count: int) -> tuple[list[int], set[str]]:
    """Produce numbers; return the acknowledged ones and the errors of the others."""
    acknowledged: list[int] = []
    errors: set[str] = set()

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is None:
            acknowledged.append(int((message.value() or b"-1").split()[0]))
        else:
            errors.add(error.name())

    for number in range(count):
        value = b"%d %s" % (number, os.urandom(1_000))
        producer.produce("full", value, partition=partition, on_delivery=delivered)
    producer.flush(60)
    return acknowledged, errors


def leaderless(admin: AdminClient) -> set[int]:
    return {index for index, leader in leaders(admin).items() if leader == -1}


@pytest.mark.story
def test_a_full_disk_costs_its_own_partitions_and_no_acknowledged_record(tmp_path: Path) -> None:
    """Two partitions on two disks of one broker, a third elsewhere; the disks fill one by one."""
    with run_cluster(tmp_path) as cluster:
        folder = tmp_path / "second"
        folder.mkdir()
        broker = run_second_broker(cluster, folder, most_bytes=100_000)
        try:
            admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
            placed = [[1], [1], [0]]
            topic = NewTopic("full", 3, replica_assignment=placed)
            admin.create_topics([topic])["full"].result(60)
            wait_until("all leaders", lambda: leaders(admin) == {0: 1, 1: 1, 2: 0})
            settings = {"bootstrap.servers": cluster.bootstrap, "log_level": 0}
            few = {"message.timeout.ms": 4_000, "batch.num.messages": 10, **settings}
            acknowledged = {0: deliver(Producer(few), 0, 200)}
            wait_until("one is without a leader", lambda: leaderless(admin) == {0})
            acknowledged[1] = deliver(Producer(settings), 1, 50)
            assert acknowledged[1] == (list(range(50)), set()), "its disk is not full"
            [full] = folder.glob("*/full-0")
            said = (folder / "broker.log").read_text()
            line = f"log folder {full.parent} is offline until a restart: {full}: File too large"
            assert said.count(str(full.parent)) == 2, "the folder and the reason, in one line"
            assert line in said
            last, errors = deliver(Producer(few), 1, 200)
            assert acknowledged[0][1] == errors == {"_MSG_TIMED_OUT"}
            assert all(50 < len(found) < 100 for found in (acknowledged[0][0], [*range(50), *last]))
            assert deliver(Producer(settings), 2, 200) == (list(range(200)), set())
            assert broker.wait(60) == 1
            [first] = folder.glob("a/full-*")
            said = (folder / "broker.log").read_text().splitlines()[-1]
            assert said == f"broker: {first}: File too large; no log folder is left"
            wait_until("two are without leaders", lambda: leaderless(admin) == {0, 1})
        finally:
            broker.send_signal(signal.SIGTERM)
            broker.wait(60)
        broker = run_second_broker(cluster, folder, most_bytes=resource.RLIM_INFINITY)
        try:
            wait_until("all leaders", lambda: leaders(admin) == {0: 1, 1: 1, 2: 0})
            for partition, expected in ((0, acknowledged[0][0]), (1, [*range(50), *last])):
                found = read_all(cluster, "full", partition)
                assert [int((one.value() or b"-1").split()[0]) for one in found] == expected
        finally:
            broker.send_signal(signal.SIGTERM)
            broker.wait(60)
