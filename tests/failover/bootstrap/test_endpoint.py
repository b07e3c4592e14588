"""The endpoint before real clusters, with clients that know nothing of it."""

from functools import partial
from pathlib import Path

import pytest
import trio
from confluent_kafka import Consumer, Producer

from tests.failover.bootstrap.served import endpoint, read
from tests.failover.two_sites import QUIET, Sites, commit_by_hand, create_topic, produce

pytestmark = pytest.mark.integration

AT_ONCE = 10


@pytest.mark.story
async def test_an_unmodified_consumer_goes_on_at_the_other_site_when_one_is_lost(
    mortal_sites: Sites, tmp_path: Path
) -> None:
    sites, path, topic = mortal_sites, "/bootstrap-lost", "shown"
    for cluster, numbers in ((sites.dc1, range(5)), (sites.dc2, range(10))):
        create_topic(cluster, topic)
        produce(cluster, topic, numbers)
    with sites.active_site(path) as active:
        active.set("dc1", 1)
        async with endpoint(sites, tmp_path, path) as served:
            consumer = Consumer(
                {
                    "bootstrap.servers": served.address,
                    "group.id": "shown",
                    "auto.offset.reset": "earliest",
                    "enable.auto.commit": False,
                    **QUIET,
                }
            )
            consumer.subscribe([topic])
            run = trio.to_thread.run_sync
            assert await run(partial(read, consumer, 5)) == list(range(5))
            sites.dc1.kill()
            commit_by_hand(sites.dc2, "shown", topic, 5)
            active.set("dc2", 2)
            with trio.fail_after(AT_ONCE):
                assert await run(partial(read, consumer, 5)) == list(range(5, 10))
            await run(consumer.close)


async def test_a_producer_writes_to_the_active_site_and_to_its_brokers_themselves(
    sites: Sites, tmp_path: Path
) -> None:
    path, topic = "/bootstrap-write", "shown-to-writers"
    create_topic(sites.dc2, topic)
    with sites.active_site(path) as active:
        active.set("dc2", 3)
        async with endpoint(sites, tmp_path, path) as served:
            producer = Producer({"bootstrap.servers": served.address, **QUIET})
            producer.produce(topic, b"1")
            assert await trio.to_thread.run_sync(producer.flush, 20) == 0
