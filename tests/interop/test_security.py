"""TLS and SASL against Apache Kafka: the client, sessions that end, refusals, and the mirror."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
import trio
from confluent_kafka.admin import AdminClient

from runtime.configuration.config import ClusterConfig
from tests.dc_yaml import dc_yaml, flow
from tests.interop.client_calls import create_topic
from tests.interop.peers import KAFKA_3_ZOOKEEPER, KAFKA_4_KRAFT, Kind
from tests.interop.secured import SESSION_MS, SecuredKafka, run_secured
from tests.interop.sites import create_topic as make_topic
from tests.interop.sites import read_committed, write
from tests.mirror.daemon import run_mirror
from tests.secured_cluster import RIGHT, USER, WRONG
from tests.zookeeper import run_witness
from wire.errors import ErrorCode
from wire.net import AuthenticationFailed, Cluster, open_cluster
from wire.net.operations import append, read_partition
from wire.net.security import WITH_PASSWORDS, Mechanism, Sasl, Security, Tls
from wire.record_batch import Record, build_batch

pytestmark = pytest.mark.matrix(subject="TLS and SASL")

WAYS: Final = (
    ("SSL", Mechanism.PLAIN),
    ("SASL_PLAINTEXT", Mechanism.PLAIN),
    ("SASL_PLAINTEXT", Mechanism.SCRAM_SHA_256),
    ("SASL_SSL", Mechanism.SCRAM_SHA_512),
)


@pytest.fixture(scope="module", params=(KAFKA_3_ZOOKEEPER, KAFKA_4_KRAFT), ids=str)
def kafka(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredKafka]:
    kind: Kind = request.param
    with run_secured(tmp_path_factory.mktemp(kind.label), kind) as running:
        yield running


async def round_trip(cluster: Cluster, topic: str) -> None:
    """Write a batch larger than a TLS record and read it back."""
    assert await create_topic(cluster, topic) == ErrorCode.NONE
    batch = build_batch([Record(0, 1_700_000_000_000, None, b"v" * 300_000, ())])
    with trio.fail_after(120):
        answer = await append(cluster, topic, 0, batch)
        assert answer.error_code == ErrorCode.NONE
        found = [bytes(data) async for _, data in read_partition(cluster, topic, 0, 0, 1)]
    assert found[0][61:] == batch[61:]


@pytest.mark.parametrize(
    ("protocol", "mechanism"), WAYS, ids=[f"{way}-{how.value}" for way, how in WAYS]
)
async def test_our_client_writes_and_reads_over(
    kafka: SecuredKafka, protocol: str, mechanism: Mechanism
) -> None:
    security = kafka.security(protocol, mechanism)
    address = kafka.address(protocol)
    async with open_cluster([address], client_id="interop", security=security) as cluster:
        await round_trip(cluster, f"way-{protocol}-{mechanism.value}")
        view = await cluster.metadata((), refresh=True)
    assert [broker.address for broker in view.brokers.values()] == [address]


@pytest.mark.parametrize("protocol", ["SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_applications_are_let_in_with_the_same_section_over(
    kafka: SecuredKafka, protocol: str
) -> None:
    address = kafka.address(protocol)
    security = kafka.security(protocol, Mechanism.SCRAM_SHA_256)
    cluster = ClusterConfig(name="dc1", bootstrap=(address,), security=security)
    admin = AdminClient(cluster.client_settings({"log_level": 0}))
    (broker,) = admin.list_topics(timeout=60).brokers.values()
    assert f"{broker.host}:{broker.port}" == "{}:{}".format(*address)


@pytest.mark.parametrize("mechanism", WITH_PASSWORDS, ids=lambda one: one.value)
async def test_a_wrong_password_is_told_in_words(kafka: SecuredKafka, mechanism: Mechanism) -> None:
    sasl = Sasl(mechanism=mechanism, username=USER, password=WRONG)
    address = kafka.address("SASL_PLAINTEXT")
    security = Security(sasl=sasl)
    opened = open_cluster([address], client_id="interop", name="dc2", security=security)
    async with opened as cluster:
        with pytest.raises(AuthenticationFailed) as caught:
            await cluster.any_connection()
    host, port = address
    assert str(caught.value).startswith(f"dc2: {host}:{port}: SASL authentication failed: ")
    assert WRONG not in str(caught.value)


async def test_who_is_not_trusted_is_told_in_words(kafka: SecuredKafka) -> None:
    made = kafka.certificates
    cases = (
        ("SASL_SSL", Tls(ca=made.strange_ca), "certificate is not trusted"),
        ("SSL", Tls(ca=made.ca), "certificate"),
    )
    for protocol, tls, words in cases:
        security = replace(kafka.security(protocol), tls=tls)
        address = kafka.address(protocol)
        async with open_cluster([address], client_id="interop", security=security) as cluster:
            with pytest.raises(AuthenticationFailed, match=words):
                await cluster.any_connection()


async def test_a_session_is_renewed_on_the_same_connection(kafka: SecuredKafka) -> None:
    security = kafka.security("SASL_SSL", Mechanism.SCRAM_SHA_512)
    address = kafka.address("SASL_SSL")
    async with open_cluster([address], client_id="interop", security=security) as cluster:
        await round_trip(cluster, "renewed")
        connection = await cluster.any_connection()
        over = trio.current_time() + 2.5 * SESSION_MS / 1_000
        while trio.current_time() < over:
            async with trio.open_nursery() as nursery:  # several at once, as the mirror asks
                for _ in range(4):
                    nursery.start_soon(cluster.metadata, ("renewed",))
                    nursery.start_soon(_ask, cluster)
        assert await cluster.any_connection() is connection


async def _ask(cluster: Cluster) -> None:
    await cluster.metadata(("renewed",), refresh=True)


def test_the_mirror_runs_between_secured_sites(
    kafka: SecuredKafka, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if kafka.cluster.kind is not KAFKA_3_ZOOKEEPER:
        pytest.skip("the pair is run once")
    other = tmp_path_factory.mktemp("other")
    with (
        run_secured(other, KAFKA_4_KRAFT, name="dc2") as target,
        run_witness(other / "witness") as witness,
    ):
        (tmp_path / "password").write_text(RIGHT)
        from_a_file = {
            "mechanism": Mechanism.SCRAM_SHA_512.value,
            "username": USER,
            "password_file": "password",
        }
        file = tmp_path / "dc.yaml"
        file.write_text(
            dc_yaml(
                flow(topics="secured.*", discovery_interval_ms=300),
                dc1={**kafka.section("SASL_SSL"), "sasl": from_a_file},
                dc2=target.section("SASL_PLAINTEXT"),
                witness=witness,
                path="/secured",
                coordination={"session_timeout_ms": 4_000},
            )
        )
        make_topic(kafka.cluster, "secured")
        write(kafka.cluster, "secured", 0, 5_000, value_bytes=200)
        with run_mirror(file) as mirror:
            mirror.wait_mirrored("secured", 5_000)
            write(kafka.cluster, "secured", 5_000, 100)
            mirror.wait_mirrored("secured", 5_100)
            mirror.wait_state("secured", "streaming")
            assert mirror.stop() == 0
            assert RIGHT not in mirror.log
        source = read_committed(kafka.cluster, "secured")
        assert read_committed(target.cluster, "secured") == source
