"""The settings of MirrorMaker's clients of one cluster, said in our configuration's words. Pure."""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from runtime.configuration.cipher_suites import UnknownSuite, choose_suites
from runtime.configuration.client_section import BOUNDS, LEAST_BUFFER, OF_THE_SYSTEM
from runtime.configuration.client_tls_section import FORMS
from runtime.configuration.properties import Property
from runtime.keystores.bad_store import how_to_convert
from wire.net.client_settings import RECONNECT_BACKOFF_MS, RETRY_BACKOFF_MS
from wire.net.tls_context import VERSIONS
from wire.values import frozen

Words: TypeAlias = dict[str, Any]
Find: TypeAlias = Callable[[str], Property | None]
Note: TypeAlias = Callable[[Property, str], None]
Secret: TypeAlias = Callable[[str], str]

CLIENTS: Final = ("consumer", "producer", "admin")
FIRST_PAUSES: Final = {
    "reconnect.backoff": RECONNECT_BACKOFF_MS,
    "retry.backoff": RETRY_BACKOFF_MS,
}
"""Kafka's defaults, which are ours."""


def client_words(find: Find, note: Note) -> Words:
    """Return the keys of `client`; `note` hears of each value that is another one here.

    Raises ConfigurationError for what MirrorMaker itself could not use.
    """
    found = {key: one for key in BOUNDS if (one := find(key)) is not None}
    words = {key: _number(key, one, note) for key, one in found.items()}
    for name, usual in FIRST_PAUSES.items():
        first, longest = f"{name}.ms", f"{name}.max.ms"
        if longest in words and first in words and words[longest] < words[first]:
            note(found[longest], f"is below {first}, so that is taken here")
            words[longest] = words[first]
        elif longest in words and first not in words:
            # A first pause above the longest is as long as that in Kafka, and refused here.
            words |= {first: words[longest]} if words[longest] < usual else {}
    return words


@frozen
class TlsWords:
    """What is said of TLS."""

    ssl: Words
    """The keys of `ssl`."""
    client: Words
    """The keys of `client`."""


def tls_words(find: Find, note: Note, secret: Secret) -> TlsWords:
    """Return MirrorMaker's settings of TLS; `secret` returns a reference to a named secret."""
    words = TlsWords(ssl={}, client={})
    for store, keys in (("truststore", ("ca",)), ("keystore", ("certificate", "key"))):
        location, kind = find(f"ssl.{store}.location"), find(f"ssl.{store}.type")
        password = find(f"ssl.{store}.password")
        if location is None:
            continue
        if kind is not None and kind.value == "PEM":
            words.ssl.update(dict.fromkeys(keys, location.value))
            continue
        if kind is not None and kind.value.upper() not in FORMS:
            note(kind, f"is not read: {how_to_convert(location.value)}")
        words.client[f"ssl.{store}.location"] = location.value
        if password is not None:
            words.client[f"ssl.{store}.password"] = secret(f"{store}_PASSWORD".upper())
    key_password = find("ssl.key.password")
    if key_password is not None and "certificate" in words.ssl:
        words.ssl["key_password"] = secret("KEY_PASSWORD")
    elif key_password is not None:
        note(key_password, "has no counterpart here: a store and its key have one password")
    checked = find("ssl.endpoint.identification.algorithm")
    if checked is not None and not checked.value:
        words.ssl["check_hostname"] = False
    words.client.update(_spoken(find, note))
    return words


def _spoken(find: Find, note: Note) -> Words:
    """Return the versions of TLS and the suites, without those that are refused here."""
    words: Words = {}
    versions = tuple(VERSIONS)
    protocols, suites = find("ssl.enabled.protocols"), find("ssl.cipher.suites")
    if protocols is not None:
        named = _parts(protocols)
        versions = tuple(name for name in versions if name in named)
        for name in named:
            if name not in versions:
                note(protocols, f"{name} is not spoken here")
        if versions:
            words["ssl.enabled.protocols"] = list(versions)
    if suites is not None and _parts(suites):
        try:
            choose_suites(_parts(suites), versions or tuple(VERSIONS))
        except UnknownSuite as unknown:
            note(suites, f"is left out: {unknown}")
        else:
            words["ssl.cipher.suites"] = _parts(suites)
    return words


def _parts(one: Property) -> list[str]:
    return [part.strip() for part in one.value.split(",") if part.strip()]


def of_one_client(key: str) -> str | None:
    """Return the setting of `client` that a key of one client alone is about, None for others."""
    for client in CLIENTS:
        before, dot, setting = key.partition(f"{client}.")
        if dot and setting in BOUNDS and (not before or before.endswith(".")):
            return setting
    return None


def _number(key: str, one: Property, note: Note) -> int:
    least, most = BOUNDS[key]
    try:
        number = int(one.value)
    except ValueError:
        raise one.wrong(f"{one.value!r} is not a whole number") from None
    taken = min(max(number, least), most)
    if key.endswith(".bytes") and OF_THE_SYSTEM < taken < LEAST_BUFFER:
        taken = LEAST_BUFFER
    if taken != number:
        note(one, f"{number} is taken as {taken} here")
    return taken
