"""Security in the configuration file: what it yields for both clients, and what it complains of."""

import os
from pathlib import Path

import pytest

from runtime.configuration import security_section
from runtime.configuration.config import ConfigurationError
from tests.doubles.certificates import KEY_PASSWORD, Certificates
from tests.runtime.cluster_section import cluster
from wire.net.security import PLAINTEXT, KerberosSasl, Mechanism, Sasl, Security, Tls, reveal

SASL = '{mechanism: SCRAM-SHA-512, username: mirror, password: "%s"}'
FROM_OUTSIDE, FROM_A_FILE = "from outside", "from a file"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def test_a_cluster_is_plaintext_unless_said_otherwise(tmp_path: Path) -> None:
    plain = cluster(tmp_path)
    assert plain.security == PLAINTEXT
    assert plain.client_settings() == {
        "bootstrap.servers": "127.0.0.1:9092",
        "security.protocol": "PLAINTEXT",
    }


def test_all_of_it_becomes_settings_of_both_clients(certificates: Certificates) -> None:
    found = cluster(
        certificates.folder,
        "security_protocol: SASL_SSL",
        "ssl:",
        "  ca: ca.pem",
        "  certificate: client.pem",
        "  key: client-locked.key",
        f"  key_password: {KEY_PASSWORD}",
        "  check_hostname: false",
        f"sasl: {SASL % 'pencil'}",
    )
    tls, sasl = found.security.tls, found.security.sasl
    assert tls is not None
    assert isinstance(sasl, Sasl)
    assert (tls.ca, tls.checks_hostname) == (certificates.ca, False)
    assert (sasl.mechanism, sasl.username, sasl.password) == (
        Mechanism.SCRAM_SHA_512,
        "mirror",
        "pencil",
    )
    assert found.client_settings({"sasl.username": "app", "bootstrap.servers": "elsewhere:1"}) == {
        "bootstrap.servers": "127.0.0.1:9092",
        "security.protocol": "SASL_SSL",
        "ssl.endpoint.identification.algorithm": "none",
        "ssl.ca.location": str(certificates.ca),
        "ssl.certificate.location": str(certificates.client),
        "ssl.key.location": str(certificates.locked_key),
        "ssl.key.password": KEY_PASSWORD,
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "app",
        "sasl.password": "pencil",
    }
    assert "pencil" not in repr(found)
    assert KEY_PASSWORD not in repr(found)


def test_secrets_come_from_the_environment_and_from_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DC1_SECRET", FROM_OUTSIDE)
    protocol = "security_protocol: SASL_PLAINTEXT"
    found = cluster(tmp_path, protocol, f"sasl: {SASL % '${DC1_SECRET}'}")
    assert isinstance(found.security.sasl, Sasl)
    assert found.security.sasl.password == FROM_OUTSIDE
    (tmp_path / "secret").write_text(f"{FROM_A_FILE}\n")
    found = cluster(
        tmp_path, protocol, "sasl: {mechanism: PLAIN, username: m, password_file: secret}"
    )
    assert isinstance(found.security.sasl, Sasl)
    assert reveal(found.security.sasl.password) == FROM_A_FILE


def test_a_password_in_a_file_is_the_one_that_stands_there_now(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("old\n")
    lines = (
        "security_protocol: SASL_PLAINTEXT",
        "sasl: {mechanism: PLAIN, username: m, password_file: secret}",
    )
    found = cluster(tmp_path, *lines)
    file.write_text(f"{FROM_A_FILE}\n")
    assert found.client_settings()["sasl.password"] == FROM_A_FILE
    assert cluster(tmp_path, *lines) == found, "a reload finds no change that needs a restart"
    file.write_text("")
    assert found.client_settings()["sasl.password"] == FROM_A_FILE, "it is just being written"
    assert FROM_A_FILE not in repr(found)


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (["security_protocol: TLS"], ":4: clusters.dc1.security_protocol: 'TLS' is not one of"),
        (["security_protocol: ssl"], "'ssl' is not one of PLAINTEXT, SSL, SASL_PLAINTEXT"),
        ([f"sasl: {SASL % 'x'}"], "dc1.sasl: is of no use with security_protocol PLAINTEXT"),
        (["security_protocol: SASL_SSL"], "clusters.dc1.sasl: is missing"),
        (
            ["security_protocol: SASL_SSL", "sasl: {mechanism: GSS}"],
            ":5: clusters.dc1.sasl.mechanism: 'GSS' is not one of PLAIN, SCRAM-SHA-256",
        ),
        (
            ["security_protocol: SASL_SSL", f"sasl: {SASL % '${NOT_THERE_AT_ALL}'}"],
            "sasl.password: the environment has no variable NOT_THERE_AT_ALL",
        ),
        (
            ["security_protocol: SASL_SSL", f"sasl: {SASL % '123456'}".replace('"', "")],
            "sasl.password: must be a text: put it in quotes",
        ),
        (
            ["security_protocol: SASL_SSL", "sasl: {mechanism: PLAIN, username: m}"],
            "sasl.password: is missing",
        ),
        (["security_protocol: SSL", "ssl: {ca: nowhere.pem}"], "nowhere.pem: No such file"),
        (
            ["security_protocol: SSL", 'ssl: {ca: "a\\0b.pem"}'],
            "ssl.ca: must not hold the character NUL",
        ),
        (["security_protocol: SSL", "ssl: {ca: dc.yaml}"], "ssl.ca: cannot be used: "),
        (["security_protocol: SSL", "ssl: {key: dc.yaml}"], "ssl.key: is of no use without a"),
        (
            ["security_protocol: SSL", "ssl: {check_hostname: maybe}"],
            "ssl.check_hostname: must be true or false, not 'maybe'",
        ),
        (["security_protocol: SSL", "ssl: {cert: x}"], "ssl.cert: unknown key"),
        (
            ["security_protocol: SASL_SSL", f"sasl: {SASL % 'x'}".replace("}", ", principal: m}")],
            ":5: clusters.dc1.sasl.principal: is of no use with SCRAM-SHA-512",
        ),
    ],
)
def test_a_mistake_is_named_with_its_line_and_no_secret(
    tmp_path: Path, lines: list[str], complaint: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        cluster(tmp_path, *lines)
    assert complaint in str(caught.value)
    assert "123456" not in str(caught.value)


def test_bytes_of_the_environment_that_are_no_text_are_named_and_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environb, b"DC1_SECRET", b"gr\xfc\xdfe")
    with pytest.raises(ConfigurationError, match=r"sasl\.password: cannot be said in UTF-8$"):
        cluster(tmp_path, "security_protocol: SASL_SSL", f"sasl: {SASL % '${DC1_SECRET}'}")


def test_a_wrong_password_of_a_key_is_found_when_the_file_is_read(
    certificates: Certificates,
) -> None:
    files = "ca: ca.pem, certificate: client.pem, key: client-locked.key"
    with pytest.raises(ConfigurationError, match=r"ssl\.certificate: cannot be used: "):
        cluster(
            certificates.folder,
            "security_protocol: SSL",
            f"ssl: {{{files}, key_password: wrong}}",
        )


KERBEROS = "security_protocol: SASL_SSL"


def test_kerberos_has_kafkas_service_unless_told_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(security_section, "is_available", lambda: True)
    (tmp_path / "keytab").write_bytes(b"\x05\x02")
    lines = (KERBEROS, "sasl: {mechanism: GSSAPI, keytab_file: keytab, principal: mirror}")
    found = cluster(tmp_path, *lines)
    keytab = tmp_path / "keytab"
    key = "clusters.dc1.sasl"
    assert found.security.sasl == KerberosSasl(key=key, keytab=keytab, principal="mirror")
    assert found.client_settings()["sasl.kerberos.service.name"] == "kafka"
    assert found.client_settings()["sasl.kerberos.keytab"] == str(keytab)


def test_kerberos_takes_a_package_and_a_keytab_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(security_section, "is_available", lambda: False)
    with pytest.raises(ConfigurationError, match=r"mechanism: GSSAPI takes the Python package"):
        cluster(tmp_path, KERBEROS, "sasl: {mechanism: GSSAPI}")
    monkeypatch.setattr(security_section, "is_available", lambda: True)
    with pytest.raises(ConfigurationError, match=r"keytab_file: .*nowhere: No such file"):
        cluster(tmp_path, KERBEROS, "sasl: {mechanism: GSSAPI, keytab_file: nowhere}")


def test_whom_brokers_take_us_for_is_known_of_passwords_and_of_nobody() -> None:
    sasl = Sasl(mechanism=Mechanism.PLAIN, username="mirror", password=KEY_PASSWORD)
    assert Security(tls=Tls(), sasl=sasl).principal == "User:mirror"
    assert Security().principal == Security(tls=Tls()).principal == "User:ANONYMOUS"
    certificate = Tls(certificate=Path("us.pem"))
    assert Security(tls=certificate).principal is None
    assert Security(tls=certificate, sasl=KerberosSasl(key="clusters.dc1")).principal is None
