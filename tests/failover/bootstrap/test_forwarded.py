"""Forwarded connections before real clusters, with clients that know nothing of it."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
import trio
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from runtime.coordination.witness import WitnessPaths
from tests.clusters import RunningCluster
from tests.failover.bootstrap.served import endpoint, read
from tests.failover.two_sites import (
    QUIET,
    Sites,
    commit_by_hand,
    create_topic,
    pause,
    produce,
    read_what_is_there,
)

pytestmark = pytest.mark.integration

RESUMED_WITHIN_S = 15
"""On a machine that is busy with other tests; as a rule it is less than a second."""
WAIT_S = 20


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = monotonic() + WAIT_S
    while not condition():
        assert monotonic() < deadline, "it has not come to that"
        pause(0.05)


def members_of(cluster: RunningCluster, group: str) -> int:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUIET})
    described: Any = admin.describe_consumer_groups([group])[group]
    return len(described.result(10).members)


def committed(cluster: RunningCluster, group: str) -> int:
    """Return the group's position in partition 0 of the topic of the same name."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group, **QUIET})
    (position,) = consumer.committed([TopicPartition(group, 0)], timeout=10)
    consumer.close()
    return position.offset


class Writer:
    """A producer that writes numbers, one after the other, until it is told to stop."""

    def __init__(self, address: str, topic: str) -> None:
        self.acknowledged: list[int] = []
        self.failed: list[str] = []
        self._topic = topic
        self._producer = Producer(
            {
                "bootstrap.servers": address,
                "enable.idempotence": True,
                "linger.ms": 0,
                "max.in.flight": 1,
                **QUIET,
            }
        )

    def write(self, number: int) -> None:
        """Write it and wait until it is acknowledged."""

        def note(error: object, _: object) -> None:
            self.acknowledged.append(number)
            if error is not None:
                self.failed.append(str(error))

        self._producer.produce(self._topic, b"%d" % number, on_delivery=note)
        assert self._producer.flush(20) == 0


async def test_a_producer_goes_on_at_the_other_site_and_back_though_both_sites_live(
    sites: Sites, tmp_path: Path
) -> None:
    path, topic = "/forward-produce", "forwarded"
    run = trio.to_thread.run_sync
    for cluster in (sites.dc1, sites.dc2):
        create_topic(cluster, topic)
    with sites.active_site(path) as active:
        active.set("dc1", 1)
        async with endpoint(sites, tmp_path, path, forwards=True) as served:
            writer = Writer(served.address, topic)
            # Each site counts its producer ids from the same start, and each has seen others.
            await run(writer.write, 0)
            for number, (site, epoch) in enumerate([("dc2", 2), ("dc1", 3), ("dc2", 4)], start=1):
                await run(partial(active.set, site, epoch))
                await served.wait_shown(site)
                begun = monotonic()
                await run(writer.write, number)
                assert monotonic() - begun < RESUMED_WITHIN_S
            assert writer.failed == []
            found = [
                [int(each.value() or b"-1") for each in await run(read_what_is_there, one, topic)]
                for one in (sites.dc1, sites.dc2)
            ]
            assert found == [[0, 2], [1, 3]]


async def test_while_a_promotion_leads_away_writes_are_held_and_go_to_the_other_site(
    sites: Sites, tmp_path: Path
) -> None:
    path, topic = "/forward-held", "held"
    run = trio.to_thread.run_sync
    for cluster in (sites.dc1, sites.dc2):
        create_topic(cluster, topic)
    with sites.active_site(path) as active:
        active.set("dc1", 1)
        async with endpoint(sites, tmp_path, path, forwards=True) as served:
            writer = Writer(served.address, topic)
            await run(writer.write, 0)
            await run(partial(active.set, "dc1", 1, moving_to="dc2"))
            await trio.sleep(2)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(run, writer.write, 1)
                await trio.sleep(1)
                assert writer.acknowledged == [0]
                active.set("dc2", 2)
            assert (writer.acknowledged, writer.failed) == ([0, 1], [])
            (message,) = await run(read_what_is_there, sites.dc2, topic)
            assert message.value() == b"1"


async def test_clients_are_told_the_ports_of_the_endpoint_alone(
    sites: Sites, tmp_path: Path
) -> None:
    path = "/forward-addresses"
    with sites.active_site(path) as active:
        active.set("dc2", 2)
        async with endpoint(sites, tmp_path, path, forwards=True) as served:
            admin = AdminClient({"bootstrap.servers": served.address, **QUIET})
            brokers = (
                await trio.to_thread.run_sync(partial(admin.list_topics, timeout=10))
            ).brokers
            told = {each.port for each in brokers.values()}
            assert told.isdisjoint({port for _, port in sites.dc2.addresses})


async def test_members_commit_and_leave_before_a_planned_switch_and_read_nothing_twice(
    sites: Sites, tmp_path: Path
) -> None:
    path, topic = "/forward-groups", "consumed"
    run = trio.to_thread.run_sync
    # A hole on dc1 in front: positions differ between the sites.
    for cluster, numbers in ((sites.dc1, [-1, 0, 1, 2]), (sites.dc2, [0, 1, 2, 3, 4])):
        create_topic(cluster, topic)
        await run(produce, cluster, topic, numbers)
    with sites.active_site(path) as active:
        active.set("dc1", 1)
        async with endpoint(sites, tmp_path, path, forwards=True) as served:
            consumer = Consumer(
                {
                    "bootstrap.servers": served.address,
                    "group.id": topic,
                    "auto.offset.reset": "earliest",
                    "heartbeat.interval.ms": 500,
                    **QUIET,
                }
            )
            consumer.subscribe([topic])
            assert await run(read, consumer, 4) == [-1, 0, 1, 2]
            followers = WitnessPaths(root=path).group(topic)
            await run(wait_until, lambda: bool(active.client.get_children(followers)))
            active.set("dc1", 1, moving_to="dc2")
            async with trio.open_nursery() as nursery:
                found: list[int] = []

                def read_on() -> None:
                    found.extend(read(consumer, 2))

                nursery.start_soon(run, read_on)
                await run(wait_until, lambda: members_of(sites.dc1, topic) == 0)
                assert committed(sites.dc1, topic) == 4
                commit_by_hand(sites.dc2, topic, topic, 3)
                active.set("dc2", 2)
                begun = monotonic()
            assert monotonic() - begun < RESUMED_WITHIN_S
            assert found == [3, 4]
            await run(consumer.close)


async def test_transactions_and_new_groups_are_refused_at_once_and_by_name(
    sites: Sites, tmp_path: Path
) -> None:
    path = "/forward-transactions"
    with sites.active_site(path) as active:
        active.set("dc1", 1)
        async with endpoint(sites, tmp_path, path, forwards=True) as served:
            where = {"bootstrap.servers": served.address, **QUIET}
            producer = Producer({**where, "transactional.id": "pay"})
            with pytest.raises(KafkaException) as refused:
                await trio.to_thread.run_sync(producer.init_transactions, WAIT_S)
            code = KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            assert refused.value.args[0].code() == code
            group = {"group.id": "g", "group.protocol": "consumer"}
            consumer = Consumer({**where, **group})
            consumer.subscribe(["pay"])
            told = await trio.to_thread.run_sync(consumer.poll, WAIT_S)
            assert told is not None, "its heartbeats are answered, and it says nothing"
            assert "Fatal error: Broker: API version not supported" in str(told.error())
            await trio.to_thread.run_sync(consumer.close)
