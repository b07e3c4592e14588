"""A cluster of either kind as the benchmarks see it, and its topics."""

from collections.abc import Container
from time import monotonic
from typing import Any, Final, Protocol

import trio
from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as ConfluentPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.bench.measure.ledger import RunFailed
from tests.interop.peers.child import pause
from wire.errors import ErrorCode
from wire.net import Cluster, open_cluster
from wire.net.operations import list_offsets
from wire.topic_partition import TopicPartition

TIMEOUT_S: Final = 30
PAUSE_S: Final = 0.1
PERISHABLE: Final = {"log.segment.delete.delay.ms": "1000"}
"""Broker setting: what a run leaves behind is gone before the next but one."""
FREED_S: Final = 1.5
"""That second, and the broker's moment to do it."""


class Served(Protocol):
    """What `KafkaCluster` and `RunningCluster` have in common."""

    @property
    def bootstrap(self) -> str: ...

    @property
    def addresses(self) -> list[tuple[str, int]]: ...

    @property
    def pids(self) -> dict[int, int]: ...


def create_topic(cluster: Served, name: str, partitions: int, replicas: int = 1) -> None:
    """Create a topic and wait until each partition's leader answers for it."""
    admin = _admin(cluster)
    admin.create_topics([NewTopic(name, partitions, replicas)])[name].result(TIMEOUT_S)
    trio.run(_wait_led, cluster, name, partitions)


async def _wait_led(cluster: Served, name: str, partitions: int) -> None:
    """Wait for the leaders themselves: brokers tell of them before they know of it."""
    places = [TopicPartition(name, partition) for partition in range(partitions)]
    async with open_cluster(cluster.addresses, client_id="bench") as client:
        with trio.move_on_after(TIMEOUT_S):
            while True:
                found = await list_offsets(client, places)
                if not any(isinstance(end, ErrorCode) for end in found.values()):
                    return
                await trio.sleep(PAUSE_S)
    raise RunFailed(f"topic {name} has no leaders after {TIMEOUT_S} s")


def delete_before(cluster: Served, name: str, offset: int) -> None:
    """Delete what lies before an offset of a topic's first partition."""
    admin = _admin(cluster)  # its answers come for as long as it lives
    cut = ConfluentPartition(name, 0, offset)
    admin.delete_records([cut])[cut].result(TIMEOUT_S)


def delete_topic(cluster: Served, name: str) -> None:
    """Delete a topic, if it is there; its room is free `FREED_S` later."""
    admin = _admin(cluster)
    if name in admin.list_topics(timeout=TIMEOUT_S).topics:
        admin.delete_topics([name])[name].result(TIMEOUT_S)


def delete_topics(cluster: Served, keep: Container[str] = ()) -> None:
    """Delete every topic that is neither internal to Kafka nor to be kept, and wait for it."""
    admin = _admin(cluster)
    deadline = monotonic() + TIMEOUT_S
    while names := _perishable(admin, keep):
        if monotonic() > deadline:
            raise RunFailed(f"topic {names[0]} is still there after {TIMEOUT_S} s")
        for deletion in admin.delete_topics(names).values():
            try:
                deletion.result(TIMEOUT_S)
            except KafkaException:
                continue  # deleted meanwhile, or not yet deletable: the next look tells
        pause(PAUSE_S)


async def ends(cluster: Cluster, topic: str, partitions: int) -> list[int]:
    """Return the log end of each partition, 0 where there is none yet."""
    places = [TopicPartition(topic, partition) for partition in range(partitions)]
    found = await list_offsets(cluster, places)
    return [0 if isinstance(found[place], ErrorCode) else int(found[place]) for place in places]


def _admin(cluster: Served) -> AdminClient:
    settings: dict[str, Any] = {"bootstrap.servers": cluster.bootstrap, "log_level": 0}
    return AdminClient(settings)


def _perishable(admin: AdminClient, keep: Container[str]) -> list[str]:
    topics = admin.list_topics(timeout=TIMEOUT_S).topics
    return [name for name in topics if not name.startswith("__") and name not in keep]
