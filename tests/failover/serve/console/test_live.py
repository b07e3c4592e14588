"""The console of a `failover serve` beside two sites and a mirror: what each page finds out."""

import logging
import re
from collections.abc import Awaitable, Callable
from functools import partial
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest
import trio
from confluent_kafka import Consumer, Producer, TopicPartition

from failover.serve.program import serve
from runtime.configuration.config import load
from tests.failover.promoting import run_mirror
from tests.failover.serve.fetching import fetch
from tests.failover.two_sites import QUIET, Sites, create_topic, produce

pytestmark = pytest.mark.integration

TOPIC = "console.orders"
PEEKED = "console.peeked"
GROUP = 'console "group" <b>'
AS_OPS = "Basic b3BzOm8="  # ops:o


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


def write_transactions(sites: Sites) -> list[Producer]:
    """Write records to dc1: plain, committed, aborted, hostile, and one in an open transaction."""
    produce(sites.dc1, PEEKED, range(3))
    producers = []
    for end in ("commit_transaction", "abort_transaction", None):
        producer = Producer(
            {
                "bootstrap.servers": sites.dc1.bootstrap,
                "transactional.id": f"console-{end}",
                "linger.ms": 0,
                **QUIET,
            }
        )
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce(
            PEEKED, b"<script>alert(1)</script>", "ключ", 0, headers={"h": b"\xff\x00"}
        )
        producer.flush(30)
        if end is not None:
            getattr(producer, end)(30)
        producers.append(producer)
    return producers


def text_of(page: str) -> str:
    """Return what a reader sees of a page."""
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.partition("<main")[2])))


def offset_parts(page: str, *offsets: int) -> list[str]:
    """Return what a page says of each of these offsets."""
    return [re.split(r"Offset \d", page.partition(f"Offset {at}")[2])[0] for at in offsets]


def peek(**fields: object) -> str:
    """Return the address of records of the peeked topic."""
    return "/console/peek?" + urlencode({"site": "dc1", "topic": PEEKED, **fields})


async def look_at_records(page: Callable[[str], Awaitable[str]]) -> dict[str, str]:
    """Return what a reader sees of the peeked topic, asked for in every way."""
    asked = {
        "newest": peek(),
        "late": peek(time="1970-01-01T00:00:01.002Z"),
        "by_key": peek(key="ключ", offset=1),
        "by_hex": peek(key=b"k".hex(), key_form="hex", site="dc2"),
        "refused": peek(topic=TOPIC),
        "absent": peek(partition=7),
        "behind": peek(offset=500),
    }
    return {name: text_of(await page(address)) for name, address in asked.items()}


def check_records(found: dict[str, str]) -> None:
    """Hold the records, their transactions and their counterparts against what was written."""
    committed, aborted, still_open = offset_parts(found["newest"], 3, 5, 7)
    assert re.match(r" committed .* key ключ 8 bytes, text value <script>", committed)
    assert committed.endswith("other site dc2, offset 3 ")
    assert re.match(r" aborted .* headers h ff 00 2 bytes, hex .* dc2: not known", aborted)
    assert re.match(r" open .* dc2: not known it lies beyond what has been mirrored", still_open)
    assert "Offset 4 control marker: commit " in found["newest"]
    assert "Offset 6 control marker: abort " in found["newest"]
    assert "a transaction is open from offset 7 on" in found["newest"]
    assert re.findall(r"Offset (\d)", found["late"]) == ["2", "3", "4", "5", "6", "7"]
    assert re.findall(r"Offset (\d)", found["by_key"]) == ["3", "5", "7"]
    assert "3 records with this key among 7 records at offsets 1 to 7" in found["by_key"]
    assert re.findall(r"Offset (\d) .*? dc1, offset (\d)", found["by_hex"]) == [
        (at, at) for at in "012"
    ]
    assert "console.peek does not name console.orders" in found["refused"]
    assert "its partitions are 0 to 0" in found["absent"]
    assert "The log ends at offset 8" in found["behind"]


def check_log(text: str) -> None:
    """Hold the log against who has asked."""
    assert "user 'ops' from 127.0.0.1 asks for dc1 console.peeked-0 from offset 1" in text
    assert "was shown 8 records of dc1 console.peeked-0, offsets 0 to 7" in text
    assert "ключ" not in text, "a key may be somebody's name"


async def test_each_page_shows_what_the_sites_the_witness_and_the_mirror_say(
    shared_sites: Sites, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = shared_sites.configure(tmp_path, "/console", r"console\..*")
    guarded = file.read_text().replace("metrics: {", 'metrics: {username: "ops", password: "o", ')
    file.write_text(guarded + f'console: {{peek: ["{PEEKED}"]}}\n')
    caplog.set_level(logging.INFO, "failover.serve.peek.peeker")
    create_topic(shared_sites.dc1, PEEKED)
    create_topic(shared_sites.dc1, TOPIC, 2)
    produce(shared_sites.dc1, TOPIC, range(10))
    commit(shared_sites, 4)
    opened = write_transactions(shared_sites)
    with run_mirror(file):
        async with trio.open_nursery() as nursery:
            port = await nursery.start(partial(serve, load(file)))

            async def page(path: str) -> str:
                return await trio.to_thread.run_sync(fetch, port, path, AS_OPS)

            overview = await shown(page, "/console", "Yes, to dc2", "all but 1 record")
            partitions = await shown(page, "/console/partitions", f"{TOPIC}-1", "streaming")
            groups = await shown(page, "/console/groups", "console &quot;group&quot; &lt;b&gt;")
            sites = await shown(page, "/console/sites?q=console", f">{TOPIC}</a>", "in sync")
            topic = await shown(page, f"/console/sites?topic={TOPIC}", "on dc2")
            divergence = await shown(page, "/console/divergence", "Only on one site")
            audit = await page("/console/audit")
            rehearsals = await shown(page, "/console/rehearsals", "failover rehearse SITE", "dc2")
            records = await look_at_records(page)
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
    assert "failover.rehearsal" in rehearsals
    del opened  # until here a transaction is open
    check_records(records)
    check_log(caplog.text)
