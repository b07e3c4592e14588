"""The client's settings of a cluster: what both clients get of them, and what is refused."""

from pathlib import Path

import pytest
from confluent_kafka import Producer

from runtime.configuration.config import ConfigurationError
from tests.runtime.cluster_section import cluster
from wire.net.client_settings import UNSET, ClientSettings

ALL = (
    "client:",
    "  request.timeout.ms: 20000",
    "  socket.connection.setup.timeout.ms: 3000",
    "  reconnect.backoff.ms: 100",
    "  reconnect.backoff.max.ms: 4000",
    "  retry.backoff.ms: 250",
    "  retry.backoff.max.ms: 2000",
    "  send.buffer.bytes: 131072",
    "  receive.buffer.bytes: 65536",
)


def test_all_settings_reach_both_clients(tmp_path: Path) -> None:
    found = cluster(tmp_path, *ALL)
    assert found.security.client == ClientSettings(
        request_timeout_ms=20_000,
        connect_timeout_ms=3_000,
        reconnect_backoff_ms=100,
        reconnect_backoff_max_ms=4_000,
        retry_backoff_ms=250,
        retry_backoff_max_ms=2_000,
        send_bytes=131_072,
        receive_bytes=65_536,
    )
    settings = found.client_settings()
    assert settings == {
        "bootstrap.servers": "127.0.0.1:9092",
        "security.protocol": "PLAINTEXT",
        "socket.timeout.ms": 20_000,
        "socket.connection.setup.timeout.ms": 3_000,
        "reconnect.backoff.ms": 100,
        "reconnect.backoff.max.ms": 4_000,
        "retry.backoff.ms": 250,
        "retry.backoff.max.ms": 2_000,
        "socket.send.buffer.bytes": 131_072,
        "socket.receive.buffer.bytes": 65_536,
    }


def test_without_any_librdkafka_keeps_its_own(tmp_path: Path) -> None:
    found = cluster(tmp_path)
    assert found.security.client == UNSET
    assert found.client_settings().keys() == {"bootstrap.servers", "security.protocol"}


def test_a_value_that_is_our_default_reaches_librdkafka_which_has_another_one(
    tmp_path: Path,
) -> None:
    settings = cluster(
        tmp_path, "client: {socket.connection.setup.timeout.ms: 10000, reconnect.backoff.ms: 50}"
    ).client_settings()
    assert settings["socket.connection.setup.timeout.ms"] == 10_000
    assert settings["reconnect.backoff.ms"] == 50


def test_librdkafka_takes_a_first_pause_that_is_longer_than_its_own_longest(
    tmp_path: Path,
) -> None:
    lines = "client: {reconnect.backoff.ms: 20000, retry.backoff.ms: 5000, send.buffer.bytes: -1}"
    settings = cluster(tmp_path, lines).client_settings({"log_level": 0})
    Producer(settings)
    assert settings["reconnect.backoff.max.ms"] == 20_000
    assert settings["retry.backoff.max.ms"] == 5_000
    assert settings["socket.send.buffer.bytes"] == 0


def test_an_applications_own_settings_go_before(tmp_path: Path) -> None:
    own = {"socket.timeout.ms": 7_000}
    assert cluster(tmp_path, *ALL).client_settings(own)["socket.timeout.ms"] == 7_000


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("request.timeout.ms: 1000", "1000 is not between 1500 and 300000"),
        ("request.timeout.ms: soon", "must be a whole number, not 'soon'"),
        ("reconnect.backoff.ms: 0", "0 is not between 1 and 3600000"),
        (
            "reconnect.backoff.max.ms: 20",
            "reconnect.backoff.max.ms: 20 is less than reconnect.backoff.ms, which is 50",
        ),
        (
            "{retry.backoff.ms: 500, retry.backoff.max.ms: 400}",
            "retry.backoff.max.ms: 400 is less than retry.backoff.ms, which is 500",
        ),
        ("send.buffer.bytes: 0", "0 is neither -1 nor 1024 or more"),
        ("receive.buffer.bytes: 200000000", "200000000 is not between -1 and 100000000"),
        ("retries: 3", "retries: is not taken here: a program tries for as long as"),
        ("security.protocol: SSL", "is not taken here: it is `security_protocol` of the cluster"),
        ("request.timeout: 5000", "unknown key; did you mean 'request.timeout.ms'?"),
    ],
)
def test_a_value_that_cannot_be_is_named_by_key(tmp_path: Path, line: str, complaint: str) -> None:
    braced = line if line.startswith("{") else f"{{{line}}}"
    with pytest.raises(ConfigurationError) as caught:
        cluster(tmp_path, f"client: {braced}")
    assert str(caught.value).startswith(f"{tmp_path / 'dc.yaml'}:4: clusters.dc1.client.")
    assert complaint in str(caught.value)


def test_all_that_is_wrong_is_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        cluster(
            tmp_path,
            "client:",
            "  request.timeout.ms: 1",
            "  retry.backoff.ms: 0",
            "  acks: all",
            "  retries: 5",
        )
    places = [line.partition(": ")[0] for line in str(caught.value).splitlines()]
    assert [place.rpartition("/")[2] for place in places] == [
        "dc.yaml:5",
        "dc.yaml:6",
        "dc.yaml:7",
        "dc.yaml:8",
    ]
