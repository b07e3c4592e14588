"""The console of a `failover serve` beside two sites and a mirror: what each page finds out."""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest
import trio
from confluent_kafka import Consumer, TopicPartition

from failover.serve.exporter import serve
from runtime.configuration.config import load
from tests.failover.promoting import run_mirror
from tests.failover.serve.fetching import fetch
from tests.failover.two_sites import QUIET, Sites, create_topic, produce

pytestmark = pytest.mark.integration

TOPIC = "console.orders"
GROUP = 'console "group" <b>'


async def shown(page: Callable[[str], Awaitable[str]], path: str, *words: str) -> str:
    """Return a page as soon as it has all of these words."""
    found = ""
    with trio.move_on_after(60):
        while True:
            found = await page(path)
            if all(word in found for word in words):
                return found
            await trio.sleep(0.3)
    raise AssertionError(f"{path} has not {words}: {found}")


def commit(sites: Sites, offset: int) -> None:
    """Give the group a position on dc1."""
    consumer = Consumer({"bootstrap.servers": sites.dc1.bootstrap, "group.id": GROUP, **QUIET})
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, offset)], asynchronous=False)
    consumer.close()


async def test_each_page_shows_what_the_sites_the_witness_and_the_mirror_say(
    shared_sites: Sites, tmp_path: Path
) -> None:
    file = shared_sites.configure(tmp_path, "/console", r"console\..*")
    create_topic(shared_sites.dc1, TOPIC, 2)
    produce(shared_sites.dc1, TOPIC, range(10))
    commit(shared_sites, 4)
    with run_mirror(file):
        async with trio.open_nursery() as nursery:
            port = await nursery.start(partial(serve, load(file)))

            async def page(path: str) -> str:
                return await trio.to_thread.run_sync(fetch, port, path)

            overview = await shown(page, "/console", "Yes, to dc2", "has mirrored all of it")
            partitions = await shown(page, "/console/partitions", f"{TOPIC}-1", "streaming")
            groups = await shown(page, "/console/groups", "console &quot;group&quot; &lt;b&gt;")
            sites = await shown(page, "/console/sites?q=console", f">{TOPIC}</a>", "in sync")
            topic = await shown(page, f"/console/sites?topic={TOPIC}", "on dc2")
            divergence = await shown(page, "/console/divergence", "Only on one site")
            audit = await page("/console/audit")
            nursery.cancel_scope.cancel()
    assert "dc1 is active" in overview
    assert "Planned: no record" in overview
    assert "dc1-&gt;dc2" in partitions
    assert "they would read 0 records again." in groups
    assert sites.count("controller") == 2
    assert "not known" not in sites
    assert "<strong>1</strong>" in topic
    assert "Neither site has a record that the other one lacks" in divergence
    assert "holds no verdict" in audit
