"""A store in a file: renewed, half written, gone, and what the log says of it."""

from pathlib import Path

import pytest

from runtime.keystores.bad_store import BadStore
from runtime.keystores.store import Store, open_store
from tests.doubles.key_stores import BEGAN, DAY, PASSWORD, Family, signed, truststore
from wire.net.secret_file import BadSecretFile, FileSecret

KEY = "clusters.dc1.client.ssl.keystore.location"


@pytest.fixture(scope="module")
def family() -> Family:
    return Family()


def opened(file: Path, password: str | FileSecret = PASSWORD) -> Store:
    return open_store(file, password, has_own_key=True, key=KEY)


def test_what_stands_there_now_is_told(tmp_path: Path, family: Family) -> None:
    file = tmp_path / "client.p12"
    file.write_bytes(family.keystore())
    store = opened(file)
    renewed = signed("client", family.between)
    file.write_bytes(family.keystore(renewed))
    assert store.pem().certificates.startswith(renewed.pem())
    assert opened(file) == store, "a reload finds no change that needs a restart"


def test_what_a_renewed_file_held_is_used_where_it_is_gone_later(
    tmp_path: Path, family: Family
) -> None:
    file = tmp_path / "client.p12"
    file.write_bytes(family.keystore())
    store = opened(file)
    renewed = signed("client", family.between)
    file.write_bytes(family.keystore(renewed))
    store.pem()
    file.unlink()
    assert store.pem().certificates.startswith(renewed.pem())


def test_of_a_file_that_cannot_be_used_the_last_content_holds_and_the_log_says_so_once(
    tmp_path: Path, family: Family, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "client.p12"
    file.write_bytes(family.keystore())
    store = opened(file)
    for break_it in (lambda: file.write_bytes(family.keystore()[:500]), file.unlink):
        break_it()
        for _ in range(2):
            assert store.pem().certificates.startswith(family.client.pem())
    assert [message.partition("client.p12: ")[2] for message in caplog.messages] == [
        "the password is wrong, or it is no PKCS12 store; what it held last is used",
        "No such file or directory; what it held last is used",
    ]
    assert all(message.startswith(f"{KEY}: {file}") for message in caplog.messages)


def test_a_password_that_is_renewed_after_its_store_is_used(tmp_path: Path, family: Family) -> None:
    file, secret = tmp_path / "client.p12", tmp_path / "secret"
    secret.write_text(PASSWORD)
    file.write_bytes(family.keystore())
    store = opened(file, FileSecret(file=secret, last_known=PASSWORD))
    assert store.files == (file, secret)
    renewed = signed("client", family.between)
    file.write_bytes(family.keystore(renewed, password="another"))  # noqa: S106 - of a test
    assert store.pem().certificates.startswith(family.client.pem())
    secret.write_text("another")
    assert store.pem().certificates.startswith(renewed.pem())


def test_a_certificate_that_has_expired_is_named_and_taken(
    tmp_path: Path, family: Family, caplog: pytest.LogCaptureFixture
) -> None:
    """Its own site refuses it. A promotion to the other one is not to be kept from its file."""
    file = tmp_path / "client.p12"
    file.write_bytes(family.keystore(signed("client", family.between, ends=BEGAN + DAY)))
    assert opened(file).pem().private_key
    expired = "its certificate has expired: it ended at 2020-01-02 00:00:00+00:00"
    assert caplog.messages[0] == f"{KEY}: {file}: {expired}"


def test_a_store_that_cannot_be_used_at_first_is_refused(tmp_path: Path, family: Family) -> None:
    file = tmp_path / "client.p12"
    with pytest.raises(BadSecretFile, match="No such file"):
        opened(file)
    file.write_bytes(truststore([family.root]))
    with pytest.raises(BadStore, match="holds no private key"):
        opened(file)
    file.write_bytes(bytes(5 << 20))
    with pytest.raises(BadSecretFile, match="is larger than 4194304 bytes"):
        opened(file)
