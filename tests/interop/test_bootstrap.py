"""`failover bootstrap` with Java clients, which come back by it when a site is lost."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Final

import pytest
import trio
from confluent_kafka import Consumer, libversion

from failover.sites.fence import Fence, set_fence
from runtime.process.ports import free_port
from tests.clusters import RunningCluster
from tests.failover.two_sites import (
    QUIET,
    ActiveSiteByHand,
    Sites,
    commit_by_hand,
    create_topic,
    produce,
    run_sites,
)
from tests.forked import start_program
from tests.interop.matrix import Peer
from tests.interop.peers import NEWEST_3, NEWEST_4
from tests.interop.peers.child import Child, start_child
from tests.interop.peers.java_program import JavaProgram
from tests.interop.peers.tools import VERIFIABLE_CONSUMER
from wire.net import open_cluster

pytestmark = pytest.mark.matrix(subject="Unmodified clients at `failover bootstrap`")

PATIENCE_S: Final = 120
RESUMED_WITHIN_S: Final = 10
TOPIC: Final = "shown"
LOOKS_AGAIN: Final = {
    # Since Java 4.0 this is the default (KIP-1102).
    NEWEST_3: "metadata.recovery.strategy=rebootstrap\n",
    NEWEST_4: "",
}
each_java = pytest.mark.parametrize(
    "java",
    [Peer(name="Java clients", version=version) for version in (NEWEST_3, NEWEST_4)],
    ids=str,
)


@contextmanager
def run_endpoint(sites: Sites, folder: Path, path: str) -> Iterator[str]:
    """Run `failover bootstrap` for these sites; its address."""
    file = sites.configure(folder, path)
    address = f"127.0.0.1:{free_port()}"
    text = file.read_text()
    assert text.count("failover: {") == 1
    file.write_text(
        text.replace("failover: {", f"failover: {{bootstrap: {{listen: '{address}'}}, ")
    )
    with (folder / "bootstrap.log").open("ab") as log:
        program = start_program("failover.cli", "bootstrap", str(file), output=log)
    try:
        yield address
    finally:
        program.terminate()
        program.wait(PATIENCE_S)


@contextmanager
def run_consumer(java: Peer, bootstrap: str, folder: Path) -> Iterator[Child]:
    """Run a VerifiableConsumer, which commits what it has read."""
    assert java.version is not None
    settings = folder / "consumer.properties"
    settings.write_text(f"{LOOKS_AGAIN[java.version]}metadata.max.age.ms=1000\n")
    program = JavaProgram(version=java.version, main_class=VERIFIABLE_CONSUMER, heap_mb=256)
    arguments = ["--bootstrap-server", bootstrap, "--topic", TOPIC, "--verbose"]
    arguments += ["--group-id", "shown", "--reset-policy", "earliest"]
    arguments += ["--consumer.config", str(settings)]
    command = program.command(folder, *arguments, is_quiet=True)
    child = start_child("VerifiableConsumer", command, log=folder / "consumer.out")
    try:
        yield child
    finally:
        child.stop(patience_s=PATIENCE_S)


def numbers_read(child: Child) -> list[int]:
    """Return what the consumer says that it has read, in order."""
    lines = [line for line in child.said().splitlines() if line.startswith("{")]
    events = [json.loads(line) for line in lines if line.endswith("}")]
    return [int(event["value"]) for event in events if event["name"] == "record_data"]


@contextmanager
def run_pair(
    witness: str, folder: Path, path: str
) -> Iterator[tuple[Sites, ActiveSiteByHand, str]]:
    """Run two sites, of which dc2 has more records, and the endpoint; dc1 is active."""
    with run_sites(folder, witness) as sites, sites.active_site(path) as active:
        for cluster, numbers in ((sites.dc1, range(50)), (sites.dc2, range(100))):
            create_topic(cluster, TOPIC)
            produce(cluster, TOPIC, numbers)
        commit_by_hand(sites.dc2, "shown", TOPIC, 50)
        active.set("dc1", 1)
        with run_endpoint(sites, folder, path) as address:
            yield sites, active, address


def close_and_send_away(cluster: RunningCluster) -> None:
    """Close the topic as a promotion with `failover.rebootstrap_clients` does."""
    fence = Fence(topics=(TOPIC,), allowed_clients=("mirror-dc2-dc1",), sends_away=True)

    async def close() -> None:
        async with open_cluster(cluster.addresses, client_id="interop") as opened:
            await set_fence(opened, fence)

    trio.run(close)


@each_java
def test_a_java_consumer_goes_on_at_the_other_site_when_one_is_lost(
    java: Peer, witness: str, tmp_path: Path
) -> None:
    with (
        run_pair(witness, tmp_path, f"/java-{java.version}") as (sites, active, address),
        run_consumer(java, address, tmp_path) as consumer,
    ):
        consumer.wait_until(lambda: numbers_read(consumer) == [*range(50)], timeout_s=PATIENCE_S)
        sites.dc1.kill()
        lost_at = monotonic()
        active.set("dc2", 2)
        consumer.wait_until(
            lambda: set(numbers_read(consumer)) == {*range(100)}, timeout_s=PATIENCE_S
        )
        assert monotonic() - lost_at < RESUMED_WITHIN_S
        assert numbers_read(consumer) == [*range(100)]


@pytest.mark.parametrize("java", [Peer(name="Java clients", version=NEWEST_4)], ids=str)
def test_a_consumer_leaves_a_closed_site_that_sends_its_clients_away(
    java: Peer, witness: str, tmp_path: Path
) -> None:
    with (
        run_pair(witness, tmp_path, "/sent-away-java") as (sites, active, address),
        run_consumer(java, address, tmp_path) as consumer,
    ):
        consumer.wait_until(lambda: numbers_read(consumer) == [*range(50)], timeout_s=PATIENCE_S)
        active.set("dc2", 2)
        close_and_send_away(sites.dc1)
        consumer.wait_until(
            lambda: set(numbers_read(consumer)) == {*range(100)}, timeout_s=PATIENCE_S
        )
        assert numbers_read(consumer) == [*range(100)]


def test_librdkafka_leaves_a_closed_site_that_sends_its_clients_away(
    witness: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    record_property("against", f"librdkafka {libversion()[0]}")
    with run_pair(witness, tmp_path, "/sent-away") as (sites, active, address):
        settings = {"bootstrap.servers": address, "group.id": "shown", **QUIET}
        often = {"topic.metadata.refresh.interval.ms": 1_000, "auto.offset.reset": "earliest"}
        consumer = Consumer({**settings, **often})
        consumer.subscribe([TOPIC])
        read = read_until(consumer, 50)
        consumer.commit(asynchronous=False)
        active.set("dc2", 2)
        close_and_send_away(sites.dc1)
        read += read_until(consumer, 50)
        consumer.close()
        assert read == [*range(100)]


def read_until(consumer: Consumer, count: int) -> list[int]:
    """Return the next records, so many of them, or what has come until patience ends."""
    read: list[int] = []
    ends_at = monotonic() + PATIENCE_S
    while len(read) < count and monotonic() < ends_at:
        come = consumer.consume(count - len(read), 1.0)
        read += [int(one.value() or b"-1") for one in come if one.error() is None]
    return read
