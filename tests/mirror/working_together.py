"""Workers of one flow: their shares, a writer, and what they mirrored."""

import random
from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, KafkaError, TopicPartition

from offset_translation.map_records import MirrorProducer
from tests.clusters import RunningCluster
from tests.drill.mirrored import compare
from tests.failover.two_sites import QUIET, Sites
from tests.mirror.daemon import (
    MirrorProcess,
    append_to_all,
    wait_until,
)
from wire.record_batch import Record, build_batch

PARTITIONS = 6
LOOP = MirrorProducer(producer_id=900_001, producer_epoch=0)
LOOPED = "looped "
FLOWING = {"catching up", "streaming"}


class Writer:
    """Writes batches into all partitions; what another mirror has written makes holes."""

    def __init__(self, cluster: RunningCluster, topic: str, seed: int) -> None:
        self._cluster = cluster
        self._topic = topic
        self._random = random.Random(seed)
        self._count = 0
        self._looped = [0] * PARTITIONS

    def write(self, batches: int) -> None:
        """Write so many batches to each partition, one partition after the other."""
        append_to_all(
            self._cluster,
            self._topic,
            {
                partition: [self._batch(partition) for _ in range(batches)]
                for partition in range(PARTITIONS)
            },
        )

    def _batch(self, partition: int) -> bytes:
        is_looped = self._random.random() < 0.3
        records = []
        for place in range(self._random.randint(1, 6)):
            self._count += 1
            word = LOOPED if is_looped else ""
            value = f"{word}{self._count} {'x' * self._random.randint(0, 400)}".encode()
            records.append(Record(place, 1_000 + self._count, None, value))
        if not is_looped:
            return build_batch(records)
        sequence = self._looped[partition]
        self._looped[partition] += len(records)
        return build_batch(
            records,
            producer_id=LOOP.producer_id,
            producer_epoch=LOOP.producer_epoch,
            base_sequence=sequence,
        )


def logs(cluster: RunningCluster, topic: str) -> dict[str, dict[int, str]]:
    """Return the records of each partition by offset, without those of the other mirror."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "comparer",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,  # the end is told behind an empty fetch
            **QUIET,
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
    found: dict[str, dict[int, str]] = {f"{topic}-{index}": {} for index in range(PARTITIONS)}
    ended: set[int | None] = set()
    while len(ended) < PARTITIONS:
        message = consumer.poll(60)
        assert message is not None, f"{topic} cannot be read to its end; read to theirs: {ended}"
        error = message.error()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF, error
            ended.add(message.partition())
            continue
        value = (message.value() or b"").decode()
        if not value.startswith(LOOPED):
            found[f"{topic}-{message.partition()}"][message.offset() or 0] = value
    consumer.close()
    return found


def assert_mirrored_once_in_order(sites: Sites, topic: str) -> None:
    source = logs(sites.dc1, topic)
    wait_until(
        "every record on the target",
        lambda: sum(map(len, logs(sites.dc2, topic).values())) >= sum(map(len, source.values())),
    )
    assert compare(source, logs(sites.dc2, topic)) == []


def shares(workers: Mapping[str, MirrorProcess], names: Sequence[str]) -> dict[str, set[int]]:
    """Return the partitions that each worker says it mirrors."""
    return {
        name: {
            one["partition"]
            for one in workers[name].status()["partitions"]
            if one["state"] in FLOWING
        }
        for name in names
    }


def wait_shared(workers: Mapping[str, MirrorProcess], names: Sequence[str]) -> dict[str, set[int]]:
    """Return the shares once they are complete and even."""
    found: dict[str, set[int]] = {}

    def is_shared() -> bool:
        found.update(shares(workers, names))
        sizes = sorted(len(found[name]) for name in names)
        everything = set().union(*(found[name] for name in names))
        is_even = sizes[-1] - sizes[0] <= 1 and sum(sizes) == PARTITIONS
        return is_even and everything == set(range(PARTITIONS))

    wait_until(f"all shared among {names}", is_shared)
    return {name: found[name] for name in names}
