"""From a property's text to its value, within Kafka's limits. Faults name file, line and key."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import unquote, urlsplit

from broker.connection_limits import parse_overrides
from broker.listeners import parse_listeners, parse_protocol_map
from broker.security.principal_mapping import PrincipalRules, parse_rules
from broker.security.settings import JaasLogin, Secret, parse_jaas
from broker.zookeeper.address import check_address
from runtime.configuration.properties import Property
from wire.net.secret_file import BadSecretFile, FileSecret, LastLook, exposure_of, read_secret
from wire.net.security import WITH_PASSWORDS, Mechanism

_LOG = logging.getLogger(__name__)

SERVED: Final = {one.value: one for one in (*WITH_PASSWORDS, Mechanism.OAUTHBEARER)}
"""The SASL mechanisms by which clients come in, by name."""

_ASSIGNORS: Final = "org.apache.kafka.coordinator.group.assignor."
CLASSES: Final = {f"{_ASSIGNORS}UniformAssignor": "uniform", f"{_ASSIGNORS}RangeAssignor": "range"}


def _parse_int(entry: Property, limits: Mapping[str, Any]) -> int:
    try:
        value = int(entry.value)
    except ValueError as error:
        raise entry.wrong(f"{entry.value!r} is not a whole number") from error
    return _within(entry, value, limits)


def _parse_float(entry: Property, limits: Mapping[str, Any]) -> float:
    try:
        value = float(entry.value)
    except ValueError as error:
        raise entry.wrong(f"{entry.value!r} is not a number") from error
    return _within(entry, value, limits)


_N = TypeVar("_N", int, float)


def _within(entry: Property, value: _N, limits: Mapping[str, Any]) -> _N:
    if not limits["minimum"] <= value <= limits["maximum"]:
        raise entry.wrong(f"{value} is not within {limits['minimum']} and {limits['maximum']}")
    return value


def _parse_bool(entry: Property, _: Mapping[str, Any]) -> bool:
    if entry.value.lower() not in {"true", "false"}:
        raise entry.wrong(f"{entry.value!r} is neither true nor false")
    return entry.value.lower() == "true"


def _parse_text(entry: Property, limits: Mapping[str, Any]) -> str:
    if "choices" in limits and entry.value not in limits["choices"]:
        raise entry.wrong(f"{entry.value!r} is none of {', '.join(limits['choices'])}")
    if "pattern" in limits and limits["pattern"].fullmatch(entry.value) is None:
        raise entry.wrong(f"{entry.value!r} is not of the form {limits['form']}")
    return entry.value


def _parse_folders(entry: Property, _: Mapping[str, Any]) -> tuple[Path, ...]:
    folders = tuple(Path(part.strip()) for part in entry.value.split(",") if part.strip())
    if not folders:
        raise entry.wrong("names no folder")
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise entry.wrong("names a folder twice")
    return folders


def _parse_path(entry: Property, _: Mapping[str, Any]) -> Path:
    if not entry.value:
        raise entry.wrong("names no file")
    return Path(entry.value)


def _parse_secret(entry: Property, _: Mapping[str, Any]) -> Secret:
    return Secret(entry.value)


def _parse_secret_file(entry: Property, _: Mapping[str, Any]) -> FileSecret:
    file = _parse_path(entry, {})
    try:
        exposure, secret = exposure_of(file), read_secret(file)
    except BadSecretFile as reason:
        raise entry.wrong(f"{file}: {reason}") from reason
    if exposure is not None:
        _LOG.warning("%s", entry.wrong(f"{file}: {exposure}"))
    look = LastLook(exposure)
    return FileSecret(file=file, last_known=secret, key=entry.key, last_look=look)


def _parse_login(entry: Property, _: Mapping[str, Any]) -> JaasLogin:
    try:
        return parse_jaas(entry.value)
    except ValueError as reason:
        raise entry.wrong(str(reason)) from reason


def _parse_mechanisms(entry: Property, _: Mapping[str, Any]) -> tuple[Mechanism, ...]:
    names = [part.strip().upper() for part in entry.value.split(",") if part.strip()]
    try:
        return tuple(dict.fromkeys(map(SERVED.__getitem__, names)))
    except KeyError as error:
        served = ", ".join(SERVED)
        raise entry.wrong(f"{entry.value!r}: only {served} are served") from error


def _parse_principals(entry: Property, _: Mapping[str, Any]) -> tuple[str, ...]:
    """Read Kafka's `User:alice;User:bob`: names may hold commas."""
    principals = tuple(part.strip() for part in entry.value.split(";") if part.strip())
    for principal in principals:
        kind, colon, name = principal.partition(":")
        if kind + colon != "User:" or not name:
            raise entry.wrong(f"{principal!r} is not of the form User:NAME")
    return principals


def _parse_principal_rules(entry: Property, _: Mapping[str, Any]) -> PrincipalRules:
    try:
        return parse_rules(entry.value)
    except ValueError as reason:
        raise entry.wrong(str(reason)) from reason


def _parse_some(entry: Property, limits: Mapping[str, Any]) -> tuple[str, ...]:
    """Read a list out of choices; Kafka 3.9 names assignors by class, which stands for the name."""
    named = [part.strip() for part in entry.value.split(",") if part.strip()]
    chosen = [CLASSES.get(name, name) for name in named]
    for name in chosen:
        if name not in limits["choices"]:
            raise entry.wrong(f"{name!r} is none of {', '.join(limits['choices'])}")
    if not chosen:
        raise entry.wrong(f"names none of {', '.join(limits['choices'])}")
    return tuple(dict.fromkeys(chosen))


def _parse_texts(entry: Property, _: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(part.strip() for part in entry.value.split(",") if part.strip())


def _parse_file_url(entry: Property, _: Mapping[str, Any]) -> Path:
    """Read `file:///path`. Kafka takes an address of the issuer as well; a broker asks nobody."""
    parts = urlsplit(entry.value)
    if parts.scheme != "file" or parts.netloc not in {"", "localhost"} or not parts.path:
        raise entry.wrong(f"{entry.value!r:.200} is not of the form file:///path")
    return Path(unquote(parts.path))


def _parse_lower(entry: Property, limits: Mapping[str, Any]) -> str:
    return _parse_text(replace(entry, value=entry.value.lower()), limits)


def _parse_overrides(entry: Property, _: Mapping[str, Any]) -> Mapping[str, int]:
    try:
        return parse_overrides(entry.value)
    except ValueError as reason:
        raise entry.wrong(str(reason)) from reason


def _parse_name(entry: Property, _: Mapping[str, Any]) -> str:
    return entry.value.upper()


def _parse_zookeeper(entry: Property, limits: Mapping[str, Any]) -> str:
    text = _parse_text(entry, limits)
    try:
        check_address(text)
    except ValueError as error:
        raise entry.wrong(str(error)) from None
    return text


Parser = Callable[[Property, Mapping[str, Any]], object]
_BY_TYPE: Final[Mapping[Any, Parser]] = {
    int: _parse_int,
    float: _parse_float,
    bool: _parse_bool,
    str: _parse_text,
    str | None: _parse_text,
    Path | None: _parse_path,
    Secret | None: _parse_secret,
    FileSecret | None: _parse_secret_file,
    JaasLogin | None: _parse_login,
}
_PARSERS: Final[Mapping[str, Parser]] = {
    "listeners": parse_listeners,
    "advertised.listeners": parse_listeners,
    "listener.security.protocol.map": parse_protocol_map,
    "inter.broker.listener.name": _parse_name,
    "sasl.enabled.mechanisms": _parse_mechanisms,
    "sasl.oauthbearer.jwks.endpoint.url": _parse_file_url,
    "sasl.oauthbearer.expected.audience": _parse_texts,
    "super.users": _parse_principals,
    "max.connections.per.ip.overrides": _parse_overrides,
    "ssl.principal.mapping.rules": _parse_principal_rules,
    "log.dirs": _parse_folders,
    "group.coordinator.rebalance.protocols": _parse_some,
    "group.consumer.assignors": _parse_some,
    "group.consumer.migration.policy": _parse_lower,
    "zookeeper.connect": _parse_zookeeper,
}


def parser_of(name: str, kind: Any) -> Parser:  # noqa: ANN401 - a dataclass field's type
    """Return what reads the text of a setting."""
    return _PARSERS[name] if name in _PARSERS else _BY_TYPE[kind]
