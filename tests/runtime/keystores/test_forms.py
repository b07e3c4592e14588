"""What is read of stores, as bytes."""

from datetime import timedelta
from pathlib import Path

import pytest

from runtime.keystores.bad_store import BadStore
from runtime.keystores.forms import read_store
from tests.doubles.key_stores import BEGAN, DAY, FAR, PASSWORD, Family, signed, truststore

FILE = Path("/etc/kafka/client.jks")


@pytest.fixture(scope="module")
def family() -> Family:
    return Family()


def test_a_chain_begins_with_the_own_certificate_however_the_store_has_it(family: Family) -> None:
    stranger = signed("stranger", is_authority=True)
    store = family.keystore(family.client, stranger, family.root, family.between)
    found = read_store(store, PASSWORD, FILE).keystore()
    assert found.certificates == family.client.pem() + family.between.pem() + family.root.pem()
    assert found.private_key == family.client.key_pem()
    assert found.private_key not in repr(found)


def test_of_two_authorities_with_one_name_the_one_that_has_signed_is_in_the_chain(
    family: Family,
) -> None:
    renewed = signed("between", family.root, is_authority=True)
    store = family.keystore(family.client, renewed, family.between)
    found = read_store(store, PASSWORD, FILE).keystore()
    assert found.certificates == family.client.pem() + family.between.pem()


def test_a_truststore_has_authorities_and_no_key(family: Family) -> None:
    other = signed("other", is_authority=True)
    found = read_store(truststore([family.root, other]), PASSWORD, FILE)
    assert found.truststore().certificates == family.root.pem() + other.pem()
    assert not found.truststore().private_key
    with pytest.raises(BadStore, match="holds no private key"):
        found.keystore()


def test_a_keystore_in_place_of_a_truststore_gives_all_its_certificates(family: Family) -> None:
    found = read_store(family.keystore(), PASSWORD, FILE).truststore()
    assert found.certificates.count("BEGIN CERTIFICATE") == 3
    assert not found.private_key


@pytest.mark.parametrize(
    ("content", "password", "complaint"),
    [
        (b"\xfe\xed\xfe\xed\0\0\0\2", PASSWORD, "password is wrong, or the store is damaged"),
        (b"\xce\xce\xce\xce\0\0\0\2", PASSWORD, "is JCEKS, which is not read: `keytool -importk"),
        (b"\xce\xce\xce\xce\0\0\0\2", PASSWORD, "client.jks -destkeystore /etc/kafka/client.p12 "),
        (b"-----BEGIN CERTIFICATE-----", PASSWORD, "is PEM: name it as `ssl.certificate`"),
        (b"", PASSWORD, "the password is wrong, or it is no PKCS12 store"),
        (b"\x30\x82\xff\xff", None, "it needs a password, or it is no PKCS12 store"),
    ],
)
def test_what_is_no_store_is_named(content: bytes, password: str | None, complaint: str) -> None:
    with pytest.raises(BadStore) as caught:
        read_store(content, password, FILE)
    assert complaint in str(caught.value)


@pytest.mark.parametrize("password", ["wrong", None, ""])
def test_a_wrong_password_is_named_and_not_shown(family: Family, password: str | None) -> None:
    with pytest.raises(BadStore, match="password") as caught:
        read_store(family.keystore(), password, FILE)
    assert "wrong'" not in str(caught.value)


def test_every_part_of_a_store_is_refused_in_words(family: Family) -> None:
    store = family.keystore()
    for size in range(0, len(store), 97):
        with pytest.raises(BadStore):
            read_store(store[:size], PASSWORD, FILE)


def test_the_time_of_the_own_certificate_is_looked_at(family: Family) -> None:
    found = read_store(family.keystore(), PASSWORD, FILE)
    assert found.complaint_of_time(FAR - DAY) is None
    expired = found.complaint_of_time(FAR + timedelta(seconds=1))
    assert expired == "its certificate has expired: it ended at 2099-01-01 00:00:00+00:00"
    early = found.complaint_of_time(BEGAN - DAY)
    assert early == "its certificate is not valid before 2020-01-01 00:00:00+00:00"
