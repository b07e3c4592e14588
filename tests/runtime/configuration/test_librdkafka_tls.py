"""What librdkafka makes of our settings of TLS, held against a broker that notes who comes."""

import ssl
from pathlib import Path
from typing import Any

import pytest
import trio
from confluent_kafka import KafkaException, Producer

from tests.doubles.key_stores import PASSWORD, Family, truststore
from tests.doubles.tls_broker import broker_behind
from tests.runtime.cluster_section import cluster

OWN = ("  ssl.keystore.location: client.p12", f"  ssl.keystore.password: {PASSWORD}")


@pytest.fixture(scope="module")
def family() -> Family:
    return Family()


def settings_with(tmp_path: Path, family: Family, *lines: str) -> dict[str, Any]:
    (tmp_path / "client.p12").write_bytes(family.keystore())
    (tmp_path / "authorities.p12").write_bytes(truststore([family.root]))
    trusted = (
        "  ssl.truststore.location: authorities.p12",
        f"  ssl.truststore.password: {PASSWORD}",
    )
    found = cluster(tmp_path, "security_protocol: SSL", "client:", *trusted, *lines)
    return found.client_settings({"log_level": 0})


async def reach(context: ssl.SSLContext, settings: dict[str, Any], timeout_s: float) -> int:
    """Return how many brokers librdkafka finds behind TLS: none, where it does not get through."""
    async with broker_behind(context) as broker:
        host, port = broker.address
        producer = Producer({**settings, "bootstrap.servers": f"{host}:{port}"})

        def ask() -> int:
            try:
                return len(producer.list_topics(timeout=timeout_s).brokers)
            except KafkaException:
                return 0

        return await trio.to_thread.run_sync(ask)


async def test_a_broker_that_trusts_the_root_alone_takes_the_chain_of_a_store(
    tmp_path: Path, family: Family
) -> None:
    settings = settings_with(tmp_path, family, *OWN)
    assert await reach(family.server_context(wants_client=True), settings, 10) == 1


@pytest.mark.parametrize(("protocols", "brokers"), [("TLSv1.3", 0), ("TLSv1.3,TLSv1.2", 1)])
async def test_a_broker_of_an_older_version_is_reached_only_where_that_is_enabled(
    tmp_path: Path, family: Family, protocols: str, brokers: int
) -> None:
    settings = settings_with(tmp_path, family, f"  ssl.enabled.protocols: {protocols}")
    context = family.server_context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    assert await reach(context, settings, 10 if brokers else 0.5) == brokers


async def test_the_newest_version_is_spoken_where_it_alone_is_enabled(
    tmp_path: Path, family: Family
) -> None:
    settings = settings_with(tmp_path, family, "  ssl.enabled.protocols: TLSv1.3")
    assert await reach(family.server_context(), settings, 10) == 1
