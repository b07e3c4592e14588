"""TLS under Kafka's own names: what both clients get of it, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from runtime.configuration.cipher_suites import OF_TLS13
from runtime.configuration.config import ConfigurationError
from runtime.configuration.security_section import NONE_OF_TLS12
from tests.doubles.key_stores import PASSWORD, Family, jks_truststore, truststore
from tests.runtime.cluster_section import cluster
from wire.net.security import Tls
from wire.net.tls_context import make_context

SSL = "security_protocol: SSL"
STORES = (
    "client:",
    "  ssl.keystore.location: client.p12",
    "  ssl.keystore.password_file: secret",
    "  ssl.keystore.type: PKCS12",
    "  ssl.truststore.location: authorities.p12",
    f"  ssl.truststore.password: {PASSWORD}",
)
GCM = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"


@pytest.fixture(scope="module")
def family() -> Family:
    return Family()


@pytest.fixture
def folder(tmp_path: Path, family: Family) -> Path:
    """Give a folder with stores, a PEM file and a password."""
    (tmp_path / "client.p12").write_bytes(family.keystore())
    (tmp_path / "authorities.p12").write_bytes(truststore([family.root]))
    (tmp_path / "client.jks").write_bytes(family.jks())
    (tmp_path / "authorities.jks").write_bytes(jks_truststore([family.root]))
    (tmp_path / "client.jceks").write_bytes(b"\xce\xce\xce\xce\0\0\0\2")
    (tmp_path / "ca.pem").write_text(family.root.pem())
    (tmp_path / "secret").write_text(PASSWORD)
    for file in tmp_path.iterdir():
        file.chmod(0o600)
    return tmp_path


def tls_of(folder: Path, *lines: str) -> Tls:
    tls = cluster(folder, SSL, *lines).security.tls
    assert tls is not None
    return tls


def test_stores_are_told_to_both_clients(folder: Path, family: Family) -> None:
    found = cluster(folder, SSL, *STORES)
    tls = found.security.tls
    assert tls is not None
    assert tls.keystore is not None
    assert tls.truststore is not None
    assert tls.store_files == (
        folder / "client.p12",
        folder / "secret",
        folder / "authorities.p12",
    )
    key = "clusters.dc1.client.ssl.keystore.location"
    assert tls.shown == f"shown is {key}: {folder / 'client.p12'}", "where a broker refuses it"
    settings = found.client_settings({"log_level": 0})
    assert settings["ssl.ca.pem"] == tls.truststore.pem().certificates == family.root.pem()
    assert settings["ssl.certificate.pem"].startswith(family.client.pem())
    assert settings["ssl.key.pem"] == tls.keystore.pem().private_key == family.client.key_pem()
    Producer(settings)
    assert PASSWORD not in repr(found)
    assert "PRIVATE KEY" not in repr(found)


@pytest.mark.parametrize("value", ["", '""', "none", "NONE"])
def test_no_endpoint_identification_is_kafkas_way_to_check_no_name(
    folder: Path, value: str
) -> None:
    found = cluster(folder, SSL, "client:", f"  ssl.endpoint.identification.algorithm: {value}")
    assert found.security.tls is not None
    assert not found.security.tls.checks_hostname
    assert found.client_settings()["ssl.endpoint.identification.algorithm"] == "none"


def test_names_are_checked_only_where_neither_setting_says_otherwise(folder: Path) -> None:
    https = "client: {ssl.endpoint.identification.algorithm: HTTPS}"
    assert tls_of(folder, https).checks_hostname
    assert not tls_of(folder, "ssl: {check_hostname: false}", https).checks_hostname


@pytest.mark.parametrize(
    ("line", "protocols", "ciphers", "librdkafkas"),
    [
        ("ssl.enabled.protocols: [TLSv1.3]", ("TLSv1.3",), (), NONE_OF_TLS12),
        ('ssl.enabled.protocols: "TLSv1.3, TLSv1.2"', ("TLSv1.2", "TLSv1.3"), (), None),
        (
            f"ssl.cipher.suites: [{GCM}, ECDHE-RSA-AES256-GCM-SHA384]",
            ("TLSv1.2",),
            ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-GCM-SHA384"),
            "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-AES256-GCM-SHA384",
        ),
        (f"ssl.cipher.suites: [{', '.join(OF_TLS13)}]", ("TLSv1.3",), (), NONE_OF_TLS12),
    ],
)
def test_versions_and_suites_are_told_to_both_clients(
    folder: Path,
    line: str,
    protocols: tuple[str, ...],
    ciphers: tuple[str, ...],
    librdkafkas: str | None,
) -> None:
    found = cluster(folder, SSL, f"client: {{{line}}}")
    tls = found.security.tls
    assert tls is not None
    assert (tls.protocols, tls.ciphers) == (protocols, ciphers)
    settings = found.client_settings({"log_level": 0})
    assert settings.get("ssl.cipher.suites") == librdkafkas
    Producer(settings)


@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_javas_older_form_is_told_to_both_clients_alike(folder: Path, kind: str) -> None:
    """The file says which form it has, whatever the setting says, as to Java."""

    def settings(ending: str, kind: str) -> dict[str, Any]:
        lines = (line.replace(".p12", ending).replace("PKCS12", kind) for line in STORES)
        found = cluster(folder, SSL, *lines)
        assert found.security.tls is not None
        make_context(found.security.tls)
        return found.client_settings({"log_level": 0})

    assert settings(".jks", kind) == settings(".p12", "PKCS12")


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (
            ["client: {ssl.keystore.location: client.p12, ssl.keystore.password: wrong}"],
            ":5: clusters.dc1.client.ssl.keystore.location: {}/client.p12: the password is wrong",
        ),
        (
            ["client: {ssl.keystore.location: client.p12}"],
            "ssl.keystore.location: {}/client.p12: it needs a password",
        ),
        (
            ["client: {ssl.truststore.location: nowhere.p12}"],
            "ssl.truststore.location: {}/nowhere.p12: No such file",
        ),
        (
            [
                "client:",
                "  ssl.keystore.location: authorities.p12",
                "  ssl.keystore.password_file: secret",
            ],
            "ssl.keystore.location: {}/authorities.p12: holds no private key",
        ),
        (
            ["client: {ssl.keystore.location: client.jks, ssl.keystore.password: wrong}"],
            "ssl.keystore.location: {}/client.jks: the password is wrong, or the store is damaged",
        ),
        (
            ["client: {ssl.keystore.location: client.jks, ssl.keystore.type: JKS}"],
            "ssl.keystore.location: {}/client.jks: it needs a password",
        ),
        (
            ["client: {ssl.keystore.location: client.jceks, ssl.keystore.password: x}"],
            "-srckeystore {0}/client.jceks -destkeystore {0}/client.p12 -deststoretype PKCS12`",
        ),
        (
            ["client: {ssl.keystore.location: client.jks, ssl.keystore.type: BCFKS}"],
            "ssl.keystore.type: 'BCFKS' is not read, but PKCS12 and JKS: `keytool -importkeystore",
        ),
        (
            ["ssl: {ca: ca.pem}", "client: {ssl.truststore.location: authorities.p12}"],
            "ssl.truststore.location: stands beside a PEM file of `ssl`",
        ),
        (
            ["client: {ssl.keystore.password: x}"],
            "ssl.keystore.password: is of no use without ssl.keystore.location",
        ),
        (["client: {ssl.key.password: x}"], "ssl.key.password: is not taken here: the key in a"),
        (
            ["client: {ssl.enabled.protocols: [TLSv1.1, TLSv1.2]}"],
            "ssl.enabled.protocols: 'TLSv1.1' is not one of TLSv1.2, TLSv1.3",
        ),
        (["client: {ssl.enabled.protocols: []}"], "ssl.enabled.protocols: names nothing"),
        (
            ["client: {ssl.cipher.suites: [RC4-MD5]}"],
            "ssl.cipher.suites: 'RC4-MD5' is no suite that can be used here",
        ),
        (
            ["client: {ssl.endpoint.identification.algorithm: ldaps}"],
            "ssl.endpoint.identification.algorithm: 'ldaps' is not one of https, none",
        ),
    ],
)
def test_what_cannot_be_is_named_by_key_and_file(
    folder: Path, lines: list[str], complaint: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        cluster(folder, SSL, *lines)
    assert complaint.format(folder) in str(caught.value)
    assert "wrong}" not in str(caught.value)


def test_without_tls_its_settings_are_of_no_use(folder: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        cluster(folder, "client: {ssl.cipher.suites: x, ssl.truststore.location: y}")
    assert str(caught.value).count("is of no use with a security_protocol without SSL") == 2


def test_all_that_is_wrong_is_named_at_once(folder: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        cluster(
            folder,
            SSL,
            "client:",
            "  ssl.keystore.location: ca.pem",
            "  ssl.truststore.location: nowhere.p12",
            "  ssl.cipher.suites: WRONG",
            "  ssl.enabled.protocols: SSLv3",
            "  request.timeout.ms: 1",
        )
    places = {line.partition(": ")[0] for line in str(caught.value).splitlines()}
    assert places == {f"{folder / 'dc.yaml'}:{number}" for number in range(6, 11)}


def test_a_keystore_that_every_user_may_read_is_taken_and_the_log_names_it(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "authorities.p12").chmod(0o644)
    for mode, expected in ((0o640, 0), (0o644, 1)):
        (folder / "client.p12").chmod(mode)
        tls_of(folder, *STORES)
        assert len(caplog.messages) == expected
    assert "ssl.keystore.location: " in caplog.text
    assert "client.p12: every user of this machine may read it" in caplog.text
