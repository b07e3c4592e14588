"""The section `failover.bootstrap`: where the endpoint listens, and what is wrong with one."""

from pathlib import Path
from typing import Any

import pytest

from runtime.configuration.bootstrap_section import BootstrapConfig, ForwardConfig
from runtime.configuration.config import ConfigurationError, load
from tests.dc_yaml import dc_yaml
from tests.doubles.certificates import Certificates


def loaded(folder: Path, **failover: Any) -> BootstrapConfig | None:
    file = folder / "dc.yaml"
    file.write_text(dc_yaml(failover=failover))
    return load(file).failover.bootstrap


def test_without_the_section_there_is_no_endpoint(tmp_path: Path) -> None:
    assert loaded(tmp_path) is None


def test_an_address_is_enough(tmp_path: Path) -> None:
    found = loaded(tmp_path, bootstrap={"listen": "kafka.example:9092"})
    assert found == BootstrapConfig(listen=("kafka.example", 9092), max_connections=1_000)


def test_with_a_port_for_each_broker_connections_are_forwarded(tmp_path: Path) -> None:
    forward = {"host": "kafka.example", "ports": "9100-9199"}
    found = loaded(tmp_path, bootstrap={"listen": "0.0.0.0:9092", "forward": forward})
    assert found is not None
    assert found.forward == ForwardConfig(
        host="kafka.example", ports=range(9100, 9200), max_held_bytes=256 * 1024 * 1024
    )


@pytest.mark.parametrize(("told", "port"), [({}, 9093), ({"port": 443}, 443)])
def test_with_a_name_for_each_broker_all_are_at_one_port(
    tmp_path: Path, told: dict[str, int], port: int
) -> None:
    Certificates(tmp_path)
    tls = {"certificate": "broker.pem", "key": "broker.key"}
    forward = {"host": "b{broker}.kafka.example", **told}
    section = {"listen": "0.0.0.0:9093", "forward": forward, "tls": tls}
    found = loaded(tmp_path, bootstrap=section)
    assert found is not None
    assert found.forward == ForwardConfig(
        host="b{broker}.kafka.example", port=port, max_held_bytes=256 * 1024 * 1024
    )


def test_a_certificate_makes_clients_speak_tls(tmp_path: Path) -> None:
    Certificates(tmp_path)
    tls = {"certificate": "broker.pem", "key": "broker.key"}
    found = loaded(tmp_path, bootstrap={"listen": "127.0.0.1:9093", "tls": tls})
    assert found is not None
    assert found.tls is not None
    found.tls.keys()


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"max_connections": 5}, r"failover\.bootstrap\.listen: is missing"),
        ({"listen": "9092"}, r"failover\.bootstrap\.listen: '9092' is not host:port"),
        ({"listen": "a:1", "max_connections": 0}, r"failover\.bootstrap\.max_connections"),
        ({"listen": "a:1", "tls": {"certificate": "dc.yaml"}}, "certificate: cannot be used"),
        ({"listen": "a:1", "tls": {"ca": "dc.yaml"}}, r"failover\.bootstrap\.tls"),
        ({"listen": "a:1", "ports": 3}, "ports"),
        ({"listen": "a:1", "forward": {"host": "a"}}, r"forward\.ports: is missing"),
        ({"listen": "a:1", "forward": {"ports": "2-3"}}, r"forward\.host: is missing"),
        ({"listen": "a:2", "forward": {"host": "a", "ports": "2-3"}}, "port 2 is among those of"),
        ({"listen": "a:1", "forward": {"host": "a:9", "ports": "2-3"}}, "'a:9' is no name"),
        ({"listen": "a:1", "forward": {"host": "a", "ports": "2"}}, "'2' is not FIRST-LAST"),
        ({"listen": "a:1", "forward": {"host": "a", "ports": "3-2"}}, "the first port is 1 or"),
        ({"listen": "a:1", "forward": {"host": "a", "ports": "9-65536"}}, "the last 65535 at most"),
        ({"listen": "a:1", "forward": {"host": "a", "ports": "9-3000"}}, "2000 are allowed"),
        (
            {"listen": "a:1", "forward": {"host": "a", "ports": "2-3", "max_held_bytes": 1}},
            r"forward\.max_held_bytes",
        ),
        ({"listen": "a:1", "forward": {"host": "b{broker}"}}, r"tls\.certificate: is missing"),
        (
            {"listen": "a:1", "forward": {"host": "b{broker}", "ports": "2-3"}},
            r"forward\.ports: \{broker\} in `host` tells",
        ),
        (
            {"listen": "a:1", "forward": {"host": "a", "ports": "2-3", "port": 4}},
            r"forward\.port: is for brokers with names",
        ),
        ({"listen": "a:1", "forward": {"host": "{broker}{broker}"}}, "is no name or address"),
        ({"listen": "a:1", "forward": {"host": "{x}{broker}"}}, "is no name or address"),
        ({"listen": "a:1", "forward": {"host": "b{broker}:9"}}, "is no name or address"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, section: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        loaded(tmp_path, bootstrap=section)
