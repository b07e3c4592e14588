"""Both directions between two clusters: their configuration, promotions, what both logs hold."""

from collections.abc import Sequence
from pathlib import Path
from time import monotonic

from confluent_kafka import Consumer, TopicPartition

from tests.clusters import RunningCluster
from tests.failover.promoting import (
    tell,
)
from tests.failover.two_sites import (
    QUIET,
    READ_TIMEOUT_S,
    Sites,
    pause,
    read_what_is_there,
    values_of,
)


def configure_both_ways(sites: Sites, folder: Path, path: str, topic: str) -> Path:
    """Both directions, with the same names of topics."""
    return sites.configure(folder, path, topic, is_both_ways=True)


def go_on_reading(
    cluster: RunningCluster, group: str, topic: str, count: int, partition: int = 0
) -> list[int]:
    """Read so many records from where the group is, and commit them, as no member of it."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            **QUIET,
        }
    )
    consumer.assign([TopicPartition(topic, partition)])
    found: list[int] = []
    deadline = monotonic() + READ_TIMEOUT_S
    while len(found) < count:
        assert monotonic() < deadline, f"{len(found)} of {count} records read: {found[-3:]}"
        messages = [one for one in consumer.consume(count - len(found), 0.2) if not one.error()]
        found += values_of(messages)
        if messages:
            end = (messages[-1].offset() or 0) + 1
            consumer.commit(offsets=[TopicPartition(topic, partition, end)], asynchronous=False)
    consumer.close()
    return found


def promote(site: str, file: Path, *arguments: str, status: int = 0) -> str:
    """Promote and return what was said."""
    ended = tell("promote", site, str(file), *arguments)
    assert ended.status == status, f"{ended}\n{(file.parent / 'mirror.log').read_text()[-3000:]}"
    return ended.output


def wait_same_logs(sites: Sites, topic: str, count: int) -> Sequence[int]:
    """Return what both logs hold once it is so many records."""
    deadline = monotonic() + READ_TIMEOUT_S
    logs: list[list[int]] = [[], [0]]
    while logs[0] != logs[1] or len(logs[0]) != count:
        assert monotonic() < deadline, f"{[len(log) for log in logs]}, {count} wanted"
        logs = [values_of(read_what_is_there(one, topic)) for one in (sites.dc1, sites.dc2)]
        pause(0.1)
    return logs[0]


def wait_logged(file: Path, words: str) -> str:
    """Return what the daemon has said once these words are in it."""
    log, deadline = file.parent / "mirror.log", monotonic() + READ_TIMEOUT_S
    while words not in log.read_text():
        assert monotonic() < deadline, log.read_text()[-3000:]
        pause(0.1)
    return log.read_text()
