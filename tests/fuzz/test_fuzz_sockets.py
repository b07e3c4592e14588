"""Mutated requests over sockets at a broker process, while a client goes on with its work."""

import random
import socket
import struct
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.clusters import RunningCluster, is_alive, run_cluster
from tests.failover.two_sites import read_all
from tests.fuzz.corpus import Corpus
from tests.fuzz.frames import FRAMES, SEED, is_harmless
from tests.fuzz.mutations import mutated
from tests.fuzz.processes import open_files, resident_bytes

pytestmark = pytest.mark.integration

SHARE = max(FRAMES // 6, 3_000)
THROWERS = 8
PATIENCE_S = 0.02
MOST_GROWTH_BYTES = 100 * 2**20
EACH = 4
ABORT = struct.pack("ii", 1, 0)
"""SO_LINGER: close with a reset, so that no port stays behind."""


@dataclass(slots=True)
class Bystander:
    """A client that goes on with its work, and what was acknowledged to it."""

    producer: Producer
    acknowledged: int = 0
    error: KafkaError | None = None

    def produce(self) -> None:
        self.producer.produce("kept", b"%d" % self.acknowledged, on_delivery=self._delivered)
        assert self.producer.flush(60) == 0

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        self.error = self.error or error
        self.acknowledged += error is None


async def throw(address: tuple[str, int], frame: bytes) -> None:
    """Send one frame and take whatever comes, but do not wait for it long."""
    stream = await trio.open_tcp_stream(*address)
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)
    async with stream:
        with trio.move_on_after(PATIENCE_S):
            try:
                await stream.send_all(frame)
                await stream.send_eof()
                while await stream.receive_some():
                    continue
            except trio.BrokenResourceError:
                return


async def throw_all(cluster: RunningCluster, count: int, luck: random.Random) -> int:
    """Throw so many, and let the bystander produce all the time; return what it wrote."""
    frames = list(filter(is_harmless, Corpus(luck).frames(EACH)))
    left = iter(range(count))
    bystander = Bystander(Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 0}))

    async def throw_some() -> None:
        for _ in left:
            frame = mutated(luck, frames)
            if is_harmless(frame):
                await throw(cluster.addresses[0], frame)

    async def stand_by(throwers: trio.CancelScope) -> None:
        with throwers:
            while True:
                await trio.to_thread.run_sync(bystander.produce)

    async with trio.open_nursery() as nursery:
        standing = trio.CancelScope()
        nursery.start_soon(stand_by, standing)
        async with trio.open_nursery() as throwers:
            for _ in range(THROWERS):
                throwers.start_soon(throw_some)
        standing.cancel()
    assert bystander.error is None
    return bystander.acknowledged


@pytest.mark.story
async def test_mutated_requests_over_sockets_leave_broker_and_bystander_in_peace(
    tmp_path: Path,
) -> None:
    settings = {"auto.create.topics.enable": "false", "offsets.topic.num.partitions": "2"}
    with run_cluster(tmp_path, overrides=settings, shares_zookeeper=True) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        created = admin.create_topics([NewTopic(name, 1, 1) for name in ("thrown", "kept")])
        for done in created.values():
            done.result(60)
        pid = cluster.pids[0]
        luck = random.Random(SEED)
        await throw_all(cluster, SHARE // 10, luck)  # fills what is filled once
        before_bytes, before_files = resident_bytes(pid), open_files(pid)
        written = await throw_all(cluster, SHARE, luck)
        assert resident_bytes(pid) < before_bytes + MOST_GROWTH_BYTES
        assert open_files(pid) < before_files + 500
        assert written > 20
        assert {message.value() for message in read_all(cluster, "kept")} >= {
            b"%d" % number for number in range(written)
        }
        assert is_alive(pid)
        said = (cluster.data / "broker-0" / "broker.log").read_text()
        assert "Traceback" not in said
        assert " ERROR " not in said
