"""The section `coordination`: who we are to the witness, and what is wrong with such a section."""

from pathlib import Path
from typing import Any

import pytest

from runtime.configuration import coordination_section
from runtime.configuration.config import ConfigurationError, load
from runtime.coordination.zookeeper_access import (
    ANYBODY,
    LoginMechanism,
    NodeRight,
    digest_identity,
)
from tests.dc_yaml import dc_yaml
from tests.doubles.certificates import Certificates

APPS = digest_identity("apps", "theirs")


def loaded(folder: Path, **coordination: Any) -> coordination_section.CoordinationConfig:
    file = folder / "dc.yaml"
    file.write_text(dc_yaml(path="/p", coordination={"auth": None, **coordination}))
    return load(file).coordination


def test_without_a_login_every_node_is_everybodys(tmp_path: Path) -> None:
    access = loaded(tmp_path).access
    assert (access.login, access.tls) == (None, None)
    assert [grant.identity for grant in access.grants("/p/active")] == [ANYBODY]


def test_a_login_takes_its_password_from_a_file_which_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("first\n")
    access = loaded(tmp_path, auth={"username": "dr", "password_file": "secret"}).access
    assert access.login is not None
    assert access.login.mechanism is LoginMechanism.DIGEST
    assert access.login.identity == digest_identity("dr", "first")
    (tmp_path / "secret").write_text("second\n")
    assert access.login.identity == digest_identity("dr", "second")


def test_applications_read_the_active_site_and_write_below_groups(tmp_path: Path) -> None:
    auth = {"username": "dr", "password": "x", "applications": str(APPS)}
    grants = loaded(tmp_path, auth=auth).access.grants
    assert {
        path: grant.rights
        for path in ("/p/active", "/p/groups", "/p/groups/g/one", "/p/pair")
        for grant in grants(path)
        if grant.identity == APPS
    } == {
        "/p/active": NodeRight.READ,
        "/p/groups": NodeRight.READ | NodeRight.CREATE,
        "/p/groups/g/one": NodeRight.READ
        | NodeRight.WRITE
        | NodeRight.CREATE
        | NodeRight.DELETE
        | NodeRight.ADMIN,
    }


def test_what_an_application_makes_our_programs_may_read(tmp_path: Path) -> None:
    programs = digest_identity("dr", "x")
    auth = {"username": "apps", "password": "theirs", "programs": str(programs)}
    grants = loaded(tmp_path, auth=auth).access.grants("/p/groups/g/one")
    assert {grant.identity for grant in grants} == {APPS, programs}


def test_tls_takes_the_files_that_connections_to_brokers_take(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    tls = loaded(
        tmp_path,
        tls={"ca": "ca.pem", "certificate": "client.pem", "key": "client.key"},
    ).access.tls
    assert tls is not None
    assert (tls.ca, tls.certificate) == (certificates.ca, certificates.client)


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"auth": {"username": "dr"}}, "auth.password: is missing"),
        ({"auth": {"password": "topsecret"}}, "auth.username: is missing"),
        ({"auth": {"username": "d:r", "password": "topsecret"}}, "must not hold a colon"),
        (
            {"auth": {"username": "dr", "password": "topsecret", "mechanism": "PLAIN"}},
            "'PLAIN' is not one of digest, DIGEST-MD5",
        ),
        ({"auth": {"username": "dr", "password": "topsecret", "user": "x"}}, "user"),
        (
            {"auth": {"username": "dr", "password": "topsecret", "applications": "apps"}},
            "'apps' is neither digest:<user>:<hash> nor sasl:<user>",
        ),
        ({"tls": {"ca": "/nowhere/at/all"}}, "No such file"),
        ({"tls": {"key_password": "topsecret"}}, "is of no use without a certificate"),
        ({"tls": {"ca": "dc.yaml"}}, "tls.ca"),
    ],
)
def test_what_is_wrong_is_named_by_its_key_and_shows_no_secret(
    tmp_path: Path, section: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        loaded(tmp_path, **section)
    assert said in str(caught.value)
    assert "topsecret" not in str(caught.value)


def test_sasl_names_the_package_that_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    auth = {"username": "dr", "password": "topsecret", "mechanism": "DIGEST-MD5"}
    monkeypatch.setattr(coordination_section, "find_spec", lambda _: None)
    with pytest.raises(ConfigurationError, match="DIGEST-MD5 takes the Python package pure-sasl"):
        loaded(tmp_path, auth=auth)
    monkeypatch.setattr(coordination_section, "find_spec", str)
    login = loaded(tmp_path, auth=auth).access.login
    assert login is not None
    assert str(login.identity) == "sasl:dr"
    with pytest.raises(ConfigurationError, match="previous_password: is of no use with DIGEST-MD5"):
        loaded(tmp_path, auth={**auth, "previous_password": "topsecret"})
