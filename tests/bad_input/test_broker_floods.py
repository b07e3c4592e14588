"""Very many connections, and bytes that never come: bounded memory, and others are served."""

import resource
import select
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.bad_input.asking import ask
from tests.broker.rig import outcome
from tests.broker.rig import produce as request_of
from tests.clusters import RunningCluster, run_cluster
from tests.failover.two_sites import create_topic, produce, read_all, values_of
from tests.fuzz.processes import open_files, resident_bytes
from tests.mirror.daemon import wait_until
from wire.compression import Compression
from wire.record_batch import Record, build_batch

pytestmark = pytest.mark.integration

MEGABYTE = 2**20
SPARE_FILES = 500
CONNECT_MS = 20_000
AT_ONCE = 200
LONG_QUEUE = {"socket.listen.backlog.size": "1000"}
"""With Kafka's 50, whoever connects faster than the broker accepts tries again a second later."""


@pytest.fixture(scope="module")
def many_files() -> Iterator[int]:
    """Allow as many open files as may be, here and in children; return how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture(scope="module")
def cluster(many_files: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    """One broker for the tests in their order: what takes most memory comes last.

    Each asks how much its own flood adds, and memory that an earlier one gave back would hide that.
    """
    assert many_files > SPARE_FILES
    with run_cluster(
        tmp_path_factory.mktemp("floods"), overrides=LONG_QUEUE, shares_zookeeper=True
    ) as running:
        yield running


def open_connections(cluster: RunningCluster, count: int, held: ExitStack) -> list[socket.socket]:
    """Connect as often as that, as many at a time as the listener's backlog takes."""
    opened: list[socket.socket] = []
    while len(opened) < count:
        missing = min(AT_ONCE, count - len(opened))
        batch = [held.enter_context(socket.socket()) for _ in range(missing)]
        for one in batch:
            one.setblocking(False)
            one.connect_ex(cluster.addresses[0])
        for one in batch:
            waiting = select.poll()
            waiting.register(one, select.POLLOUT)
            assert waiting.poll(CONNECT_MS), "the listener takes no connections"
            one.setblocking(True)
        opened += batch
    return opened


def test_a_decompression_bomb_is_stored_as_it_came(cluster: RunningCluster) -> None:
    """The broker keeps batches closed: 300 MB of zeros in a few kilobytes stay a few kilobytes."""
    record = Record(
        offset=0, timestamp_ms=1_700_000_000_000, key=b"k", value=bytes(300 * MEGABYTE), headers=()
    )
    bomb = build_batch([record], compression=Compression.ZSTD)
    assert len(bomb) < MEGABYTE
    del record
    create_topic(cluster, "t")
    pid = cluster.pids[0]
    before = resident_bytes(pid)
    for offset in range(5):
        assert outcome(ask(cluster, request_of(bomb))) == (0, offset)
    assert resident_bytes(pid) < before + 50 * MEGABYTE
    create_topic(cluster, "beside")
    produce(cluster, "beside", range(5))
    assert values_of(read_all(cluster, "beside")) == list(range(5))


def test_frames_that_are_announced_and_never_come_cost_no_memory(
    cluster: RunningCluster,
) -> None:
    with ExitStack() as held:
        create_topic(cluster, "t-announced")
        pid = cluster.pids[0]
        before = resident_bytes(pid)
        announced = struct.pack(">ihhih", 100 * MEGABYTE, 0, 9, 1, -1)
        trickling = open_connections(cluster, 300, held)
        for number in range(20):  # a byte now and then from each
            for connection in trickling:
                connection.sendall(announced if number == 0 else b"x")
            produce(cluster, "t-announced", range(number * 5, number * 5 + 5))
        assert resident_bytes(pid) < before + 100 * MEGABYTE
        assert values_of(read_all(cluster, "t-announced")) == list(range(100))


@pytest.mark.story
def test_ten_thousand_idle_connections_leave_the_others_in_peace(
    cluster: RunningCluster, many_files: int
) -> None:
    count = min(10_000, (many_files - SPARE_FILES) * 3 // 4)
    with ExitStack() as held:
        create_topic(cluster, "t-idle")
        pid = cluster.pids[0]
        before = resident_bytes(pid)
        open_connections(cluster, count, held)
        produce(cluster, "t-idle", range(100))
        assert open_files(pid) > count
        assert resident_bytes(pid) < before + 100 * MEGABYTE + count * 12_000
        assert values_of(read_all(cluster, "t-idle")) == list(range(100))
        held.close()
        produce(cluster, "t-idle", range(100, 110))
        assert values_of(read_all(cluster, "t-idle")) == list(range(110))


@pytest.mark.story
def test_connections_beyond_what_the_system_allows_are_refused_and_cost_no_partition(
    tmp_path: Path,
) -> None:
    """Idle connections must not take the files that the logs need."""
    with (
        run_cluster(tmp_path, overrides=LONG_QUEUE, shares_zookeeper=True) as cluster,
        ExitStack() as held,
    ):
        create_topic(cluster, "t", 10)
        resource.prlimit(cluster.pids[0], resource.RLIMIT_NOFILE, (400, 400))
        opened = open_connections(cluster, 1_000, held)
        wait_until("refused", lambda: sum(map(_is_closed, opened)) > 500)
        held.close()
        produce(cluster, "t", range(10), 9)
        assert values_of(read_all(cluster, "t", 9)) == list(range(10))
        said = (cluster.data / "broker-0" / "broker.log").read_text().splitlines()
        assert sum("refused" in line for line in said) in range(1, 200)
        assert not [line for line in said if "Traceback" in line or "offline" in line]


def _is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1, socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
