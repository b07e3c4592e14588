"""A worker that sleeps while its source is compacted and another one goes on, and then wakes up.

What the sleeper had fetched is no more on the source: the successor sends other records under the
same sequences. Each request holds one record, so that one of the sleeper's begins exactly where the
successor has ended, and a broker would take it.
"""

import json
import re
import signal
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import trio
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from tests.drill.cluster import Cluster, Process, create_topic, run_cluster
from tests.drill.links import Links
from tests.drill.mirrored import compare_compacted
from tests.mirror.daemon import TIMEOUT_S, one_flow, wait_until_aside

pytestmark = pytest.mark.integration

TOPIC: Final = "compacted-late"
PARTITIONS: Final = 2
SLEEPER: Final = "mirror-b"
BROKER: Final = "dc2-broker-0"
VALUE_BYTES: Final = 600_000
"""More than the relay holds, so that nothing is under way but what is with the sleeper."""
RELAY_BYTES: Final = 4_096
STUCK_BYTES: Final = 9 * VALUE_BYTES // 2
"""Four whole requests at least: of what is left of the source the successor makes two or three."""
BACKLOG: Final = 30
KEYS: Final = ("k0", "k1")
QUICK: Final = {"log.cleaner.backoff.ms": "200"}
CLEANABLE: Final = {"min.cleanable.dirty.ratio": "0.01"}
MORE: Final = "topic_settings: {exclude: [cleanup.policy]}"
SESSION: Final = ("session_timeout_ms: 2000", "session_timeout_ms: 20000")
"""Long enough for the source to be compacted before anybody takes over, and for requests to be seen
stuck: for the half of it, before the kernel takes them back."""
LOOKS: Final = 8
Content = dict[str, dict[int, str]]


@dataclass(slots=True)
class Source:
    """What is written to the source, and where."""

    cluster: Cluster
    count: int = 0
    written: Content = field(default_factory=dict)

    def write(self, records: int) -> None:
        """Write records of a few keys to every partition, one a batch, and wait for all."""
        settings: dict[str, Any] = {"linger.ms": 0, "batch.num.messages": 1}
        producer = Producer({"bootstrap.servers": self.cluster.bootstrap, **settings})
        for index in range(PARTITIONS):
            for _ in range(records):
                key = KEYS[self.count % len(KEYS)]
                content = f"{self.count} {key}"
                self.count += 1
                value = content.encode().ljust(VALUE_BYTES)
                producer.produce(TOPIC, value, key, index, on_delivery=partial(self._note, content))
        assert producer.flush(TIMEOUT_S) == 0

    def _note(self, content: str, error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        log = f"{TOPIC}-{message.partition()}"
        self.written.setdefault(log, {})[message.offset() or 0] = content


def read(cluster: Cluster) -> Content:
    """Return what is in a cluster's partitions, by offset."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "comparer",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
        }
    )
    consumer.assign([TopicPartition(TOPIC, index, 0) for index in range(PARTITIONS)])
    found: Content = {f"{TOPIC}-{index}": {} for index in range(PARTITIONS)}
    ended: set[int | None] = set()
    while len(ended) < PARTITIONS:
        message = consumer.poll(TIMEOUT_S)
        assert message is not None, "the log cannot be read to its end"
        error = message.error()
        if error is None:
            content = (message.value() or b"").rstrip().decode()
            found[f"{TOPIC}-{message.partition()}"][message.offset() or 0] = content
        else:
            assert error.code() == KafkaError._PARTITION_EOF, error
            ended.add(message.partition())
    consumer.close()
    return found


def compact(cluster: Cluster) -> None:
    """Have the topic compacted from now on."""
    policy = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    change = ConfigResource(ResourceType.TOPIC, TOPIC, incremental_configs=[policy])
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.incremental_alter_configs([change])[change].result(TIMEOUT_S)


def unsent_bytes(port: int) -> int:
    """Return what the kernel holds of the connection to a port of which it holds most."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    to_port = (fields for fields in lines if int(fields[2].rpartition(":")[2], 16) == port)
    return max((int(fields[4].partition(":")[0], 16) for fields in to_port), default=0)


def flowing(mirrors: Cluster, name: str) -> dict[int, int]:
    """Return what a worker mirrors, and up to which source offset."""
    ports = re.findall(r"metrics on port (\d+)", mirrors.processes[name].log.read_text())
    if not ports:
        return {}
    with urllib.request.urlopen(f"http://127.0.0.1:{ports[-1]}/status", timeout=60) as answer:
        report: Any = json.load(answer)
    return {
        one["partition"]: one["mirrored_source_end"]
        for one in report["flows"][0]["partitions"]
        if one["state"] in {"catching up", "streaming"}
    }


@asynccontextmanager
async def run_mirrors(folder: Path, links: Links, file: Path) -> AsyncIterator[Cluster]:
    """Run two workers; the sleeper is the second, which does not lead."""
    processes = {
        name: Process(
            name=name,
            command=[sys.executable, "-m", "mirror.cli", "run", str(file)],
            log=folder / f"{name}.log",
        )
        for name in ("mirror-a", SLEEPER)
    }
    mirrors = Cluster(folder=folder, links=links, processes=processes)
    try:
        mirrors.start("mirror-a")
        await wait_until_aside("a leads", lambda: len(flowing(mirrors, "mirror-a")) == PARTITIONS)
        mirrors.start(SLEEPER)
        await wait_until_aside("shared", partial(is_shared, mirrors))
        yield mirrors
    finally:
        with trio.CancelScope(shield=True):
            for name in processes:
                await mirrors.stop(name, signal.SIGKILL)


def is_shared(mirrors: Cluster) -> bool:
    return [len(flowing(mirrors, name)) for name in mirrors.processes] == [1, 1]


@pytest.mark.story
async def test_a_worker_that_slept_while_its_source_was_compacted_adds_nothing(
    tmp_path: Path,
) -> None:
    links, others = Links(RELAY_BYTES), Links()
    async with (
        run_cluster(tmp_path / "dc1", others, 1, 1, "dc1-", QUICK) as dc1,
        run_cluster(tmp_path / "dc2", links, 1, 1, "dc2-") as dc2,
        run_cluster(tmp_path / "witness", others, 0, 1, "witness-") as witness,
    ):
        await create_topic(
            dc1, TOPIC, partitions=PARTITIONS, factor=1, min_in_sync=1, more=CLEANABLE
        )
        hosts = f"127.0.0.1:{witness.ports[witness.zookeeper]}"
        file = tmp_path / "dc.yaml"
        names = {"dc1": dc1.bootstrap, "dc2": dc2.bootstrap, "witness": hosts}
        text = one_flow(**names, path="/compacted", topics=TOPIC, more=MORE)
        file.write_text(text.replace(*SESSION))
        async with run_mirrors(tmp_path, links, file) as mirrors:
            await sleep_through_a_compaction(mirrors, Source(dc1), dc2)


async def sleep_through_a_compaction(mirrors: Cluster, source: Source, dc2: Cluster) -> None:
    in_thread = trio.to_thread.run_sync
    await in_thread(source.write, 2)
    await wait_until_aside("the first records", lambda: lengths(read(dc2)) == [2, 2])
    [slept] = await in_thread(flowing, mirrors, SLEEPER)
    log, last = f"{TOPIC}-{slept}", 1 + BACKLOG
    mirrors.links.cut(SLEEPER, BROKER)
    port = dc2.ports[BROKER]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(in_thread, source.write, BACKLOG)
        await wait_until_aside("requests are stuck", lambda: unsent_bytes(port) > STUCK_BYTES)
        mirrors.signal(SLEEPER, signal.SIGSTOP)
    await in_thread(compact, source.cluster)  # earlier, it might be done before all is fetched
    few_left = last - len(KEYS)
    await wait_until_aside("compacted", lambda: first_offset(source.cluster, slept) >= few_left)
    assert len((await in_thread(read, dc2))[log]) == 2, "taken over before it was compacted"

    def goes_on() -> bool:
        ends = flowing(mirrors, "mirror-a")
        return set(ends.values()) == {2 + BACKLOG} and len(ends) == PARTITIONS

    await wait_until_aside("the other one goes on", goes_on)
    before = await in_thread(read, dc2)
    mirrors.links.heal(SLEEPER, BROKER)
    await wait_until_aside("nothing is on its way any more", lambda: unsent_bytes(port) == 0)
    assert await settled(dc2) == before
    mirrors.signal(SLEEPER, signal.SIGCONT)
    await wait_until_aside("shared again", partial(is_shared, mirrors))
    assert await settled(dc2) == before
    await in_thread(source.write, 3)
    newest = {max(written.values(), key=number) for written in source.written.values()}
    await wait_until_aside(
        "the last records",
        lambda: newest <= {one for found in read(dc2).values() for one in found.values()},
    )
    there = await settled(dc2)
    here = await in_thread(read, source.cluster)
    assert compare_compacted(here, there, source.written) == []


def first_offset(cluster: Cluster, partition: int) -> int:
    """Return the offset of the first record that a partition still has."""
    few = {"max.partition.fetch.bytes": 1, "queued.min.messages": 1}
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "comparer", **few})
    consumer.assign([TopicPartition(TOPIC, partition, 0)])
    message = consumer.poll(TIMEOUT_S)
    consumer.close()
    assert message is not None, "the log cannot be read"
    assert message.error() is None, message.error()
    return message.offset() or 0


def number(content: str) -> int:
    return int(content.split(maxsplit=1)[0])


def lengths(found: Content) -> list[int]:
    return [len(records) for records in found.values()]


async def settled(cluster: Cluster) -> Content:
    """Return what is there once nothing has been added for a while: this log is not compacted."""
    in_thread = trio.to_thread.run_sync
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "comparer"})
    seen: list[list[int]] = []
    while len(seen) < LOOKS or any(one != seen[-1] for one in seen[-LOOKS:]):
        seen.append(await in_thread(ends, consumer))
        await trio.sleep(0.15)
    consumer.close()
    return await in_thread(read, cluster)


def ends(consumer: Consumer) -> list[int]:
    """Return where each partition ends now."""
    partitions = (TopicPartition(TOPIC, index) for index in range(PARTITIONS))
    return [consumer.get_watermark_offsets(one, timeout=TIMEOUT_S)[1] for one in partitions]
