"""What is read of Java's older form: as keytool reads it, and nothing of what is damaged.

`tests/golden/java_stores.json` was made by keytool; the other stores are written by a double.
"""

import base64
import json
from contextlib import suppress
from pathlib import Path
from time import process_time
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.keystores.bad_store import BadStore
from runtime.keystores.contents import Contents
from runtime.keystores.jks import read_jks
from tests.doubles.key_stores import (
    PASSWORD,
    Family,
    jks_truststore,
    protect_jks_key,
    sealed_jks,
    signed,
)

GOLDEN: Final = json.loads(
    (Path(__file__).parents[2] / "golden" / "java_stores.json").read_text(encoding="utf-8")
)
FILE: Final = Path("/etc/kafka/client.jks")
FAMILY: Final = Family()
STORE: Final = FAMILY.jks()
ONE_KEY: Final = bytes((0, 0, 0, 1)) + bytes(2) + bytes(8)
"""How the entry of a key begins that has no name."""
MAGIC: Final = b"\xfe\xed\xfe\xed"


def golden(name: str) -> bytes:
    return base64.b64decode(GOLDEN[name])


def read(content: bytes, password: str | None = PASSWORD) -> Contents:
    return read_jks(content, password, FILE)


def test_a_store_of_keytool_is_what_keytool_makes_of_it() -> None:
    found = read(golden("client.jks"), GOLDEN["password"]).keystore()
    assert found.certificates == GOLDEN["chain"]
    assert found.private_key == GOLDEN["private_key"]


@pytest.mark.parametrize("password", [GOLDEN["password"], None])
def test_authorities_are_read_with_their_password_and_without(password: str | None) -> None:
    found = read(golden("trust.jks"), password)
    assert found.truststore().certificates == GOLDEN["authority"]
    with pytest.raises(BadStore, match="holds no private key"):
        found.keystore()


def test_a_key_with_another_password_than_its_store_is_named_with_what_to_do() -> None:
    with pytest.raises(BadStore, match="another password than the store: `keytool -importkeyst"):
        read(golden("client_with_another_key_password.jks"), GOLDEN["password"])


def test_without_a_password_there_is_no_key() -> None:
    with pytest.raises(BadStore, match="it needs a password"):
        read(STORE, None).keystore()
    assert read(STORE, None).truststore().certificates.count("BEGIN") == 3


@pytest.mark.parametrize("password", ["wrong", "", "w\ud800"])
def test_a_wrong_password_is_named_and_not_shown(password: str) -> None:
    with pytest.raises(BadStore, match="the password is ") as caught:
        read(STORE, password)
    assert "wrong'" not in str(caught.value)


def test_of_several_keys_the_first_one_counts() -> None:
    other = signed("other", FAMILY.between)
    one, two = FAMILY.jks(), FAMILY.jks(other)
    both = sealed_jks([store[12:-20] for store in (one, two)])
    assert read(both).keystore() == read(one).keystore()
    assert read(both).keystore().private_key == FAMILY.client.key_pem()


@given(st.lists(st.integers(0, 3), max_size=6))
def test_authorities_come_in_their_order(chosen: list[int]) -> None:
    known = (FAMILY.root, FAMILY.between, FAMILY.client, FAMILY.broker)
    authorities = [known[number] for number in chosen]
    found = read(jks_truststore(authorities))
    assert list(found.others) == [one.certificate for one in authorities]


@given(st.integers(0, len(STORE) - 1), st.integers(1, 255))
def test_a_changed_byte_is_found(place: int, change: int) -> None:
    damaged = bytearray(STORE)
    damaged[place] ^= change
    with pytest.raises(BadStore):
        read(bytes(damaged))


@given(st.integers(0, len(STORE) - 1))
def test_a_part_of_a_store_is_refused(size: int) -> None:
    for password in (PASSWORD, None):
        with pytest.raises(BadStore):
            read(MAGIC + STORE[4:size], password)


@given(st.binary(max_size=200), st.binary(max_size=60))
def test_whatever_has_the_right_digest_is_a_store_or_refused(entries: bytes, key: bytes) -> None:
    """Who can write the file and knows the password does no harm but to be refused."""
    counted = len(key).to_bytes(4) + key
    for entry in (entries, ONE_KEY + counted + entries):
        store = sealed_jks([entry])
        for password in (PASSWORD, None):
            with suppress(BadStore):
                read(store, password)


@given(st.integers(0, len(protect_jks_key(FAMILY.client)) - 1), st.integers(1, 255))
def test_a_damaged_key_is_refused_or_the_same(place: int, change: int) -> None:
    protected = bytearray(protect_jks_key(FAMILY.client))
    protected[place] ^= change
    certificate = STORE[STORE.index(b"X.509") - 2 :]
    entry = ONE_KEY + len(protected).to_bytes(4) + protected
    store = sealed_jks([entry + (1).to_bytes(4) + certificate[:-20]])
    with suppress(BadStore):
        assert read(store).key == FAMILY.client.key_pem().encode()


def test_a_store_of_four_megabytes_of_entries_takes_no_time() -> None:
    """What was read is not copied for each entry."""
    nameless = ONE_KEY + bytes(8)
    started = process_time()
    with pytest.raises(BadStore, match="ends in the middle"):
        read(sealed_jks([nameless * 190_000])[:8] + (10**9).to_bytes(4) + nameless * 190_000, None)
    assert process_time() - started < 3
