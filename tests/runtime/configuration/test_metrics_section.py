"""The section `metrics`: who may read the pages, and what is wrong with such a section."""

from pathlib import Path
from typing import Any

import pytest

from runtime.configuration.config import ConfigurationError, load
from runtime.configuration.metrics_section import MetricsConfig
from runtime.pages.page_door import UNGUARDED
from tests.dc_yaml import FREE_PORTS, dc_yaml
from tests.doubles.certificates import Certificates

EVERYWHERE = "0.0.0.0"  # noqa: S104


def loaded(folder: Path, **metrics: Any) -> MetricsConfig:
    file = folder / "dc.yaml"
    file.write_text(dc_yaml(metrics={**FREE_PORTS, **metrics}))
    return load(file).metrics


def test_at_loopback_nobody_has_to_show_anything(tmp_path: Path) -> None:
    assert loaded(tmp_path).door == UNGUARDED
    assert loaded(tmp_path, host="::1").door.scheme == "http"


@pytest.mark.parametrize("host", [EVERYWHERE, "::", "10.1.2.3", "mirror1.example"])
def test_beyond_loopback_pages_are_guarded_or_said_not_to_be(tmp_path: Path, host: str) -> None:
    with pytest.raises(ConfigurationError, match=r"metrics\.host.* is reached by others: name"):
        loaded(tmp_path, host=host)
    (tmp_path / "token").write_text("t0ken\n")
    door = loaded(tmp_path, host=host, token_file="token").door  # noqa: S106
    assert door.admits(b"Bearer t0ken")
    guarded = loaded(tmp_path, host=host, username="ops", password="geheim").door  # noqa: S106
    assert not guarded.admits(b"")
    assert loaded(tmp_path, host=host, unguarded=True).door.admits(b"")


def test_a_certificate_makes_it_https_and_clients_may_have_to_show_theirs(tmp_path: Path) -> None:
    Certificates(tmp_path)
    tls = {"certificate": "broker.pem", "key": "broker.key", "ca": "ca.pem"}
    assert loaded(tmp_path, tls=tls).door.scheme == "https"
    with pytest.raises(ConfigurationError, match="is reached by others"):
        loaded(tmp_path, host=EVERYWHERE, tls=tls)
    assert loaded(tmp_path, host=EVERYWHERE, tls={**tls, "client_ca": "ca.pem"}).door.is_guarded


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"username": "ops"}, "metrics.password: is missing"),
        ({"password": "geheim"}, "is of no use without a username"),
        ({"username": "o:ps", "password": "geheim"}, "must not hold a colon"),
        ({"token": ""}, "metrics.token: must not be empty"),
        ({"token": "geheim", "unguarded": True}, "one of them is true"),
        ({"tls": {"key": "dc.yaml"}}, "metrics.tls.certificate: is missing"),
        ({"tls": {"certificate": "dc.yaml"}}, "metrics.tls.certificate: cannot be used"),
        ({"tokens": "geheim"}, "tokens"),
    ],
)
def test_what_is_wrong_is_named_by_its_key_and_shows_no_secret(
    tmp_path: Path, section: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        loaded(tmp_path, **section)
    assert said in str(caught.value)
    assert "geheim" not in str(caught.value)
