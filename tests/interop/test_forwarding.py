"""Unmodified clients at a forwarding `failover bootstrap`, through promotions and back."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Final

import pytest
import trio
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AclOperation, ResourceType

from demo.certificates import Authority
from failover.sites.fence import Fence, set_fence
from failover.sites.opening import open_site
from runtime.configuration.config import load
from runtime.pair.evidence import TOPIC as EVIDENCE
from runtime.rights.creation import OF_MOVING
from tests.failover.bootstrap.served import run_forwarding
from tests.failover.promoting import failover, finish
from tests.failover.two_sites import create_topic, run_sites
from tests.interop.applications import (
    PATIENCE_S,
    Applications,
    longest_gap_s,
    run_foreign,
    run_java,
    run_librdkafka,
    wait_more,
)
from tests.interop.closing import TOPIC, Stage, let_applications_in, stage
from tests.interop.foreign.clients import ForeignClient, franz_go, kafkajs, sarama
from tests.interop.matrix import Peer
from tests.interop.peers import KAFKA_4_KRAFT, NEWEST_3, NEWEST_4
from tests.interop.rights import give
from tests.mirror.daemon import run_mirror, wait_until
from tests.secured_cluster import USER
from wire.acls import CLUSTER_NAME
from wire.net.security import Mechanism

SUBJECT: Final = "Unmodified clients at a forwarding `failover bootstrap`"
pytestmark = pytest.mark.matrix(subject=SUBJECT)

RESUMED_WITHIN_S: Final = 5
CLOSED_S: Final = 4.0
MADE: Final = "made"
DENIED: Final = "denied"
EACH_SITE: Final = 300
"""So many records are written while a site is active, a hundred in a second."""
each_java = pytest.mark.parametrize(
    "java",
    [Peer(name="Java clients", version=version) for version in (NEWEST_3, NEWEST_4)],
    ids=str,
)


def promote(file: Path, site: str) -> None:
    ended = finish(failover("promote", site, str(file)))
    assert ended.status == 0, ended


def go_through(applications: Applications, file: Path) -> None:
    """Promote there and back: nothing fails, is lost, read twice or out of order."""
    wait_more(applications, EACH_SITE)
    for site in ("dc2", "dc1", "dc2"):
        promote(file, site)
        begun = monotonic()
        wait_more(applications, 1)
        assert monotonic() - begun < RESUMED_WITHIN_S
        wait_more(applications, EACH_SITE)
    applications.stop_writing()
    written = [number for number, _ in applications.acknowledged()]
    wait_until("all is read", lambda: len(applications.read()) >= len(written), PATIENCE_S)
    assert applications.failed() == []
    assert written == list(range(len(written)))
    assert sorted(applications.read()) == written
    print(f"longest gap {longest_gap_s(applications.acknowledged()):.1f} s")


@each_java
def test_java_goes_through_planned_promotions_of_bundled_brokers(
    java: Peer, witness: str, tmp_path: Path
) -> None:
    with run_sites(tmp_path, witness) as sites:
        file = sites.configure(tmp_path, f"/{java.version}", TOPIC, is_both_ways=True)
        create_topic(sites.dc1, TOPIC)
        with (
            run_mirror(file),
            run_forwarding(file, tmp_path) as (address, _),
            run_java(java, address, TOPIC, tmp_path) as applications,
        ):
            go_through(applications, file)
            assert applications.read() == sorted(applications.read()), "there is one partition"


@each_java
def test_java_tells_brokers_apart_by_names_at_one_port(
    java: Peer, witness: str, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    certificate = authority.sign("endpoint", ["*.kafka.test"])
    names = [f"b{broker}.kafka.test" for broker in range(9)]
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"127.0.0.1 {name}\n" for name in ["boot.kafka.test", *names]))
    by_names = {
        "forward": {"host": "b{broker}.kafka.test"},
        "tls": {"certificate": str(certificate), "key": str(certificate.with_suffix(".key"))},
    }
    security = (
        "security.protocol=SSL\nssl.truststore.type=PEM\n"
        f"ssl.truststore.location={authority.file}\n"
    )
    with run_sites(tmp_path, witness) as sites:
        file = sites.configure(tmp_path, f"/names-{java.version}", TOPIC, is_both_ways=True)
        create_topic(sites.dc1, TOPIC)
        with run_mirror(file), run_forwarding(file, tmp_path, by_names) as (at, _):
            address = f"boot.kafka.test:{at.rpartition(':')[2]}"
            resolve = (f"-Djdk.net.hosts.file={hosts}",)
            with run_java(java, address, TOPIC, tmp_path, security, resolve) as applications:
                go_through(applications, file)


@pytest.mark.matrix(subject=SUBJECT, against="librdkafka")
def test_librdkafka_goes_through_planned_promotions_of_bundled_brokers(
    witness: str, tmp_path: Path
) -> None:
    with run_sites(tmp_path, witness) as sites:
        file = sites.configure(tmp_path, "/librdkafka", TOPIC, is_both_ways=True)
        create_topic(sites.dc1, TOPIC)
        with (
            run_mirror(file),
            run_forwarding(file, tmp_path) as (address, _),
            run_librdkafka({"bootstrap.servers": address}, TOPIC) as applications,
        ):
            go_through(applications, file)
            assert applications.read() == sorted(applications.read()), "there is one partition"


@pytest.mark.parametrize("make", [franz_go, kafkajs, sarama])
def test_other_clients_go_through_planned_promotions_of_bundled_brokers(
    make: Callable[[], ForeignClient],
    record_property: Callable[[str, object], None],
    witness: str,
    tmp_path: Path,
) -> None:
    record_property("against", make.__name__)
    client = make()
    record_property("against", client.name)
    with run_sites(tmp_path, witness) as sites:
        file = sites.configure(tmp_path, f"/{make.__name__}", TOPIC, is_both_ways=True)
        create_topic(sites.dc1, TOPIC)
        with (
            run_mirror(file),
            run_forwarding(file, tmp_path) as (address, _),
            run_foreign(client, address, TOPIC, tmp_path) as applications,
        ):
            go_through(applications, file)


@each_java
def test_java_goes_through_planned_promotions_of_apache_kafka_which_closes_by_rights(
    java: Peer, tmp_path: Path
) -> None:
    with stage(tmp_path, KAFKA_4_KRAFT, KAFKA_4_KRAFT) as at:
        let_endpoint_in(at)
        security = at.dc1.java_properties("SASL_PLAINTEXT", Mechanism.PLAIN, tmp_path)
        with (
            run_mirror(at.file),
            run_forwarding(at.applications, tmp_path) as (address, _),
            run_java(java, address, TOPIC, tmp_path, security.read_text()) as applications,
        ):
            go_through(applications, at.file)


@pytest.mark.matrix(subject=SUBJECT, against="Apache Kafka 4.4")
def test_a_fence_of_which_the_witness_knows_nothing_ends_no_producer(tmp_path: Path) -> None:
    """As where an old copy of the witness is restored amid a promotion."""
    makes_topics = {"auto.create.topics.enable": "true"}
    with stage(tmp_path, KAFKA_4_KRAFT, KAFKA_4_KRAFT, more=makes_topics) as at:
        let_endpoint_in(at)
        give(at.dc1.cluster, USER, ResourceType.TOPIC, MADE, AclOperation.ALL)
        with run_mirror(at.file), run_forwarding(at.applications, tmp_path) as (address, _):
            settings = {**at.dc1.client("SASL_PLAINTEXT"), "bootstrap.servers": address}
            settings |= {"enable.idempotence": True}
            long_there = Producer(settings)
            assert heard_of(long_there, TOPIC) == [None]
            closed = (TOPIC, MADE)  # all that it may write, so that it gets no producer id either
            close_dc1(at, Fence(topics=closed, allowed_clients=("mirror",), bars=OF_MOVING))
            new, makes = Producer(settings), Producer(settings)
            producers = {long_there: TOPIC, new: TOPIC, makes: MADE}
            told = {one: sent(one, topic) for one, topic in producers.items()}
            deadline = monotonic() + CLOSED_S
            while monotonic() < deadline:
                assert [one.poll(0.1) for one in producers] == [0] * 3, told
            close_dc1(at, Fence())
            for one, outcome in told.items():
                assert one.flush(PATIENCE_S) == 0
                assert outcome == [None]
            [lacking] = heard_of(Producer(settings), DENIED)
            assert lacking is not None
            assert lacking.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def sent(producer: Producer, topic: str) -> list[KafkaError | None]:
    """Send a record; return what is told of it, in the end."""
    told: list[KafkaError | None] = []
    producer.produce(topic, b"r", on_delivery=lambda error, _: told.append(error))
    return told


def heard_of(producer: Producer, topic: str) -> list[KafkaError | None]:
    """Send a record; return what is told of it."""
    told = sent(producer, topic)
    producer.flush(PATIENCE_S)
    return told


def close_dc1(at: Stage, fence: Fence) -> None:
    """Have the first site's rights be those of this fence, whatever the witness says."""

    async def close() -> None:
        async with open_site(load(at.file).clusters["dc1"]) as opened:
            await set_fence(opened.cluster, fence)

    trio.run(close)


def let_endpoint_in(at: Stage) -> None:
    """Applications may write and read, and the endpoint, here the same user, look at both sites."""
    let_applications_in(at)
    for site in (at.dc1.cluster, at.dc2.cluster):
        give(site, USER, ResourceType.TOPIC, EVIDENCE, AclOperation.READ)
        give(site, USER, ResourceType.BROKER, CLUSTER_NAME, AclOperation.DESCRIBE)


@each_java
def test_java_goes_on_when_a_site_of_bundled_brokers_is_lost(
    java: Peer, witness: str, tmp_path: Path
) -> None:
    with run_sites(tmp_path, witness) as sites:
        file = sites.configure(tmp_path, f"/lost-{java.version}", TOPIC)
        create_topic(sites.dc1, TOPIC)
        with (
            run_mirror(file),
            run_forwarding(file, tmp_path) as (address, _),
            run_java(java, address, TOPIC, tmp_path) as applications,
        ):
            wait_more(applications, EACH_SITE)
            sites.dc1.kill()
            ended = finish(failover("promote", "dc2", str(file), "--source-lost"))
            assert ended.status in {0, 1}, ended
            begun, known = monotonic(), len(applications.acknowledged())
            more = partial(_has_more, applications, known)
            wait_until("writing goes on", more, PATIENCE_S)
            assert monotonic() - begun < RESUMED_WITHIN_S
            more = partial(_has_more, applications, known + EACH_SITE)
            wait_until("writing goes on", more, PATIENCE_S)
            applications.stop_writing()
            last, _ = applications.acknowledged()[-1]
            wait_until("all is read", lambda: last in applications.read(), PATIENCE_S)
            assert applications.failed() == []
            # What the mirror had not carried yet is lost with the site, and nothing else.
            read = set(applications.read())
            lost = [number for number, _ in applications.acknowledged() if number not in read]
            assert lost == list(range(lost[0], lost[-1] + 1)) if lost else True


def _has_more(applications: Applications, known: int) -> bool:
    return len(applications.acknowledged()) > known
