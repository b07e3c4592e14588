"""Bring about an unclean election: a broker leads although it lacks what was acknowledged."""

import signal
from collections.abc import Mapping
from functools import partial
from typing import Final

import trio
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, PartitionMetadata

from tests.drill.cluster import Cluster

LEFT_WITHIN_S: Final = 12.0
ALONE_S: Final = 1.0
"""The leader takes records that nobody else has."""
LEADS_WITHIN_S: Final = 25.0
POLL_S: Final = 0.3


async def elect_uncleanly(cluster: Cluster, late: str, leader: str) -> int:
    """Return how many partitions `late` leads now that it was not in sync for.

    Only those whose topics allow it are led by anybody, so that is not waited for longer.
    """
    number = int(late.rpartition("-")[2])
    await cluster.stop(late, signal.SIGTERM)
    alone: set[tuple[str, int]] = set()
    with trio.move_on_after(LEFT_WITHIN_S):
        while not alone:
            seen = await _partitions(cluster, leader)
            alone = {key for key, one in seen.items() if number not in one.isrs}
            if len(alone) < len(seen):
                alone = set()
                await trio.sleep(POLL_S)
    await trio.sleep(ALONE_S)
    await cluster.stop(leader, signal.SIGKILL)
    cluster.start(late)
    led: set[tuple[str, int]] = set()
    with trio.move_on_after(LEADS_WITHIN_S):
        while not led:
            seen = await _partitions(cluster, late)
            led = {key for key, one in seen.items() if one.leader == number} & alone
            await trio.sleep(POLL_S)
    return len(led)


async def _partitions(cluster: Cluster, broker: str) -> Mapping[tuple[str, int], PartitionMetadata]:
    """Return what one broker says of its partitions; nothing while it does not answer."""
    bootstrap = f"127.0.0.1:{cluster.ports[broker]}"
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    try:
        metadata = await trio.to_thread.run_sync(partial(admin.list_topics, timeout=2))
    except KafkaException:
        return {}
    number = int(broker.rpartition("-")[2])
    return {
        (topic, index): one
        for topic, of_topic in metadata.topics.items()
        for index, one in of_topic.partitions.items()
        if number in one.replicas and len(one.replicas) > 1
    }
