"""The section `failover.bootstrap`: where the endpoint listens, and what is wrong with one."""

from pathlib import Path
from typing import Any

import pytest

from runtime.configuration.bootstrap_section import BootstrapConfig
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
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, section: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        loaded(tmp_path, bootstrap=section)
