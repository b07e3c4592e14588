"""A mirror that is stopped in the middle of a send, and wakes up when its session is long over."""

import signal
import sys
from functools import partial
from pathlib import Path
from typing import Final

import pytest
import trio
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from kazoo.client import KazooClient

from runtime.coordination.witness import FlowCommand, WitnessPaths
from tests.drill.cluster import Cluster, Process, create_topic, run_cluster
from tests.drill.links import Links
from tests.mirror.daemon import TIMEOUT_S, one_flow, wait_until_aside
from tests.zookeeper import look

pytestmark = pytest.mark.integration

TOPIC: Final = "slept"
PARTITIONS: Final = 8
RECORDS: Final = 40
VALUE: Final = bytes(100_000)
"""In all more than the kernel takes, so that a request is in the middle of being sent."""
STUCK_BYTES: Final = 128 * 1024
LOOKS: Final = 20
BROKER: Final = "dc2-broker-0"


def write(cluster: Cluster, count: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "compression.type": "none"})
    for index in range(PARTITIONS):
        for _ in range(count):
            producer.produce(TOPIC, VALUE, partition=index)
        assert producer.flush(TIMEOUT_S) == 0


def ends(cluster: Cluster) -> list[int]:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "ends"})
    try:
        return [
            consumer.get_watermark_offsets(TopicPartition(TOPIC, index), timeout=5)[1]
            for index in range(PARTITIONS)
        ]
    finally:
        consumer.close()


def unsent_bytes(port: int) -> int:
    """Return what the kernel holds of the connections to a port, of which nobody has read yet."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    to_port = (fields for fields in lines if int(fields[2].rpartition(":")[2], 16) == port)
    return max((int(fields[4].partition(":")[0], 16) for fields in to_port), default=0)


async def settled_ends(cluster: Cluster) -> list[int]:
    """Return the ends once nothing has been added for a while."""
    seen: list[list[int]] = []
    while len(seen) < LOOKS or any(one != seen[-1] for one in seen[-LOOKS:]):
        seen.append(await trio.to_thread.run_sync(ends, cluster))
        await trio.sleep(0.05)
    return seen[-1]


@pytest.mark.story
async def test_a_mirror_that_slept_through_a_promotion_completes_no_write_when_it_wakes(
    tmp_path: Path,
) -> None:
    links = Links()
    async with (
        run_cluster(tmp_path / "dc1", links, 1, 1, "dc1-") as source,
        run_cluster(tmp_path / "dc2", links, 1, 1, "dc2-") as target,
        run_cluster(tmp_path / "witness", links, 0, 1, "witness-") as witness,
    ):
        await create_topic(source, TOPIC, partitions=PARTITIONS, factor=1, min_in_sync=1)
        hosts = f"127.0.0.1:{witness.ports[witness.zookeeper]}"
        file = tmp_path / "dc.yaml"
        names = {"dc1": source.bootstrap, "dc2": target.bootstrap, "witness": hosts}
        file.write_text(one_flow(**names, path="/slept", topics=TOPIC))
        mirror = Process(
            name="mirror",
            command=[sys.executable, "-m", "mirror.cli", "run", str(file)],
            log=tmp_path / "mirror.log",
        )
        all_of_it = Cluster(folder=tmp_path, links=links, processes={"mirror": mirror})
        client = look(hosts)
        await trio.to_thread.run_sync(client.start)
        try:
            all_of_it.start("mirror")
            await sleep_and_wake(all_of_it, source, target, client)
        finally:
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(client.stop)
                client.close()
                await all_of_it.stop("mirror", signal.SIGKILL)


async def sleep_and_wake(
    mirrors: Cluster, source: Cluster, target: Cluster, client: KazooClient
) -> None:
    paths = WitnessPaths(root="/slept")
    await trio.to_thread.run_sync(write, source, 1)
    await wait_until_aside("the first records", lambda: mirrored(target) == [1] * PARTITIONS)
    mirrors.links.cut("mirror", BROKER)
    await trio.to_thread.run_sync(write, source, RECORDS)
    port = target.ports[BROKER]
    await wait_until_aside("a request is stuck", lambda: unsent_bytes(port) > STUCK_BYTES)
    mirrors.signal("mirror", signal.SIGSTOP)
    stop = FlowCommand(epoch=1, run=False).encode()
    await trio.to_thread.run_sync(client.create, paths.command("dc1", "dc2"), stop)
    workers = paths.workers("dc1", "dc2")
    await wait_until_aside("the session is over", partial(has_none, client, workers))
    mirrors.links.heal("mirror", BROKER)
    await wait_until_aside("the kernel has sent all", lambda: unsent_bytes(port) == 0)
    before = await settled_ends(target)
    assert sum(before) < PARTITIONS * (1 + RECORDS), "nothing was left to be sent"
    mirrors.signal("mirror", signal.SIGCONT)
    log = mirrors.processes["mirror"].log
    await wait_until_aside("it knows that it has to stop", lambda: ": paused" in log.read_text())
    assert await settled_ends(target) == before


def has_none(client: KazooClient, path: str) -> bool:
    return not client.get_children(path)


def mirrored(target: Cluster) -> list[int]:
    """Return the target's ends, nothing while they cannot be had."""
    try:
        return ends(target)
    except KafkaException:
        return []
