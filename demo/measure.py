"""The demo's measures from outside: CPU time, bytes on disk, and the surviving log."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from demo.data_set import number_of
from wire.values import frozen

GIBIBYTE: Final = 1 << 30
READ_TIMEOUT_S: Final = 30
READ_RECORDS: Final = 10_000
READ_PATIENCE_S: Final = 0.2  # consume() waits this long for the last records to fill its count


class LogUnreadable(RuntimeError):
    """The surviving log could not be read to its end; the message names the partitions."""


@frozen
class MirrorSample:
    """The mirror's CPU time and what it has written, at one moment."""

    cpu_s: float
    mirrored_bytes: int

    def cpu_s_per_gib(self, earlier: "MirrorSample") -> float:
        """Return CPU-seconds per GiB since an earlier sample, 0 when nothing was mirrored."""
        mirrored = self.mirrored_bytes - earlier.mirrored_bytes
        return (self.cpu_s - earlier.cpu_s) / (mirrored / GIBIBYTE) if mirrored else 0.0


def sample_mirror(pid: int, target_data: Path, topic: str) -> MirrorSample:
    """Read the process's accounting and the size of the topic's segments on the target."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    segments = target_data.rglob(f"{topic}-*/*.log")
    return MirrorSample(
        cpu_s=ticks / os.sysconf("SC_CLK_TCK"),
        mirrored_bytes=sum(segment.stat().st_size for segment in segments),
    )


def resident_mb(pid: int) -> float:
    """Return a process's resident memory in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def create_topic(client: Mapping[str, Any], topic: str, partitions: int) -> None:
    """Create the topic with these settings of a client; raises KafkaException."""
    admin = AdminClient({**client, "log_level": 4})
    made = admin.create_topics([NewTopic(topic, num_partitions=partitions, replication_factor=1)])
    made[topic].result(READ_TIMEOUT_S)


class PlainReader:
    """A plain client of one site, apart from the service under test."""

    def __init__(self, client: Mapping[str, Any], group: str, topic: str) -> None:
        self._topic = topic
        self._consumer = Consumer(
            {
                **client,
                "group.id": group,
                "enable.auto.commit": False,
                "enable.partition.eof": False,
            }
        )

    def close(self) -> None:
        """Leave the site."""
        self._consumer.close()

    def end_offsets(self) -> dict[int, int]:
        """Return the end of each partition."""
        metadata = self._consumer.list_topics(self._topic, timeout=READ_TIMEOUT_S)
        ends: dict[int, int] = {}
        for partition in metadata.topics[self._topic].partitions:
            _, end = self._consumer.get_watermark_offsets(
                TopicPartition(self._topic, partition), timeout=READ_TIMEOUT_S
            )
            ends[partition] = end
        return ends

    def group_is_at_the_end(self) -> bool:
        """Return whether the group has committed the end of every partition."""
        ends = self.end_offsets()
        wanted = [TopicPartition(self._topic, partition) for partition in ends]
        committed = self._consumer.committed(wanted, timeout=READ_TIMEOUT_S)
        return all(
            position.offset == ends[position.partition] or not ends[position.partition]
            for position in committed
        )

    def read_all(self) -> dict[int, tuple[int, ...]]:
        """Return the numbers of all records by partition in log order; raises LogUnreadable."""
        ends = {partition: end for partition, end in self.end_offsets().items() if end}
        numbers: dict[int, list[int]] = {partition: [] for partition in ends}
        self._consumer.assign(
            [TopicPartition(self._topic, partition, OFFSET_BEGINNING) for partition in ends]
        )
        unfinished = set(ends)
        idle_s = 0.0
        while unfinished:
            messages = self._consumer.consume(READ_RECORDS, timeout=READ_PATIENCE_S)
            idle_s = 0.0 if messages else idle_s + READ_PATIENCE_S
            if idle_s > READ_TIMEOUT_S:
                raise LogUnreadable(f"{self._topic}: partitions {unfinished} gave no more records")
            for message in messages:
                if message.error():
                    raise LogUnreadable(f"{self._topic}: {message.error()}")
                partition, offset = message.partition(), message.offset()
                assert partition is not None
                assert offset is not None
                numbers[partition].append(number_of(message.value() or b""))
                if offset + 1 >= ends[partition]:
                    unfinished.discard(partition)
        return {partition: tuple(found) for partition, found in numbers.items()}
