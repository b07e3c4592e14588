"""Cipher suites by Java's names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.configuration.cipher_suites import (
    OF_TLS13,
    Suites,
    UnknownSuite,
    choose_suites,
    openssl_name,
)

BOTH = ("TLSv1.2", "TLSv1.3")
GCM = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"


@pytest.mark.parametrize(
    ("javas", "openssls"),
    [
        (GCM, "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384", "ECDHE-ECDSA-AES256-SHA384"),
        ("TLS_DHE_RSA_WITH_AES_256_CBC_SHA256", "DHE-RSA-AES256-SHA256"),
        ("TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"),
        ("TLS_RSA_WITH_AES_256_GCM_SHA384", "AES256-GCM-SHA384"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_CCM", "ECDHE-ECDSA-AES128-CCM"),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8", "ECDHE-ECDSA-AES128-CCM8"),
        ("TLS_DHE_RSA_WITH_AES_256_CCM_8", "DHE-RSA-AES256-CCM8"),
        ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
    ],
)
def test_a_suite_of_java_is_called_as_openssl_calls_it(javas: str, openssls: str) -> None:
    assert openssl_name(javas) == openssls
    assert choose_suites([javas], BOTH).ciphers == (openssls,)


def test_a_version_of_which_no_suite_is_named_is_not_spoken() -> None:
    assert choose_suites([GCM], BOTH) == Suites(
        protocols=("TLSv1.2",), ciphers=("ECDHE-RSA-AES128-GCM-SHA256",)
    )
    assert choose_suites(OF_TLS13, BOTH) == Suites(protocols=("TLSv1.3",), ciphers=())
    both = choose_suites([*OF_TLS13, GCM], BOTH)
    assert both == Suites(protocols=BOTH, ciphers=("ECDHE-RSA-AES128-GCM-SHA256",))


def test_suites_of_a_version_that_is_not_spoken_are_of_no_effect() -> None:
    assert choose_suites([OF_TLS13[0], GCM], ["TLSv1.2"]).protocols == ("TLSv1.2",)
    with pytest.raises(UnknownSuite, match=r"no suite is of TLSv1\.3"):
        choose_suites([GCM], ["TLSv1.3"])


@pytest.mark.parametrize("left_out", OF_TLS13)
def test_the_suites_of_the_newest_version_are_named_all_or_none(left_out: str) -> None:
    named = [name for name in OF_TLS13 if name != left_out]
    with pytest.raises(UnknownSuite, match=f"name {left_out} too, or none"):
        choose_suites([GCM, *named], BOTH)


@pytest.mark.parametrize(
    "name",
    [
        "TLS_ECDHE_RSA_WITH_ROT_13",
        "TLS_RSA_WITH_NULL_SHA256",
        "TLS_DH_anon_WITH_AES_128_CBC_SHA",
        "ADH-AES128-SHA256",
        "NULL-SHA256",
        "ECDHE-PSK-CHACHA20-POLY1305",
        "HIGH",
        "ALL",
        "DEFAULT",
        "ECDHE-RSA-AES128-GCM-SHA256:AES128-SHA",
        "!AES128-SHA",
        "@SECLEVEL=0",
        "",
    ],
)
def test_what_is_no_safe_suite_is_refused_by_name(name: str) -> None:
    with pytest.raises(UnknownSuite, match="is no suite that can be used here"):
        choose_suites([GCM, name], BOTH)


@given(st.text(max_size=40))
def test_no_text_does_anything_else_than_be_refused(name: str) -> None:
    with pytest.raises(UnknownSuite):
        choose_suites([f"X{name}"], BOTH)
