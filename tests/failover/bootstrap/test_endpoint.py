"""The endpoint before real clusters, with clients that know nothing of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio
from confluent_kafka import Consumer, Producer

from failover.bootstrap.endpoint import serve_bootstrap
from runtime.configuration.config import load
from runtime.process.ports import free_port
from tests.failover.two_sites import QUIET, Sites, commit_by_hand, create_topic, produce

pytestmark = pytest.mark.integration

AT_ONCE = 10


@asynccontextmanager
async def endpoint(sites: Sites, folder: Path, path: str) -> AsyncIterator[str]:
    """Serve clients of these sites; its address."""
    file = sites.configure(folder, path)
    port = free_port()
    text = file.read_text()
    assert text.count("failover: {") == 1
    listen = f"failover: {{bootstrap: {{listen: '127.0.0.1:{port}'}}, "
    file.write_text(text.replace("failover: {", listen))
    async with trio.open_nursery() as nursery:
        await nursery.start(serve_bootstrap, load(file))
        yield f"127.0.0.1:{port}"
        nursery.cancel_scope.cancel()


def read(consumer: Consumer, count: int) -> list[int]:
    """Return the numbers of so many records, as long as they come."""
    found: list[int] = []
    while len(found) < count:
        message = consumer.poll(30)
        assert message is not None, f"only {found}"
        if message.error() is None:
            found.append(int(message.value() or b"-1"))
    return found


async def test_an_unmodified_consumer_goes_on_at_the_other_site_when_one_is_lost(
    mortal_sites: Sites, tmp_path: Path
) -> None:
    sites, path, topic = mortal_sites, "/bootstrap-lost", "shown"
    for cluster, numbers in ((sites.dc1, range(5)), (sites.dc2, range(10))):
        create_topic(cluster, topic)
        produce(cluster, topic, numbers)
    with sites.active_site(path) as active:
        active.set("dc1", 1)
        async with endpoint(sites, tmp_path, path) as address:
            consumer = Consumer(
                {
                    "bootstrap.servers": address,
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
        async with endpoint(sites, tmp_path, path) as address:
            producer = Producer({"bootstrap.servers": address, **QUIET})
            producer.produce(topic, b"1")
            assert await trio.to_thread.run_sync(producer.flush, 20) == 0
