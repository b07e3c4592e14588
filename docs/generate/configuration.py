"""The page about the YAML file: its keys as the parser asks for them, their meanings beside it."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from docs.generate.markdown import code, literal, page, section, table
from runtime.configuration.config import MEANINGS, asked_keys
from runtime.configuration.yaml_section import NO_DEFAULT, REQUIRED, Key

EVERY_SECTION: Final = """
clusters:
  dc1: {bootstrap: ["k:9092"], security_protocol: SASL_SSL, sasl: {mechanism: PLAIN, username: u, password: p}}
  dc2: {bootstrap: ["k:9092"], security_protocol: SASL_SSL, sasl: {mechanism: OAUTHBEARER, token_command: [c]}}
flows:
  - {source: dc1, target: dc2, throttle: {topics: {"pattern": 1048576}}}
coordination: {zookeeper: "w:2181", auth: {username: u, password: p}, tls: {check_hostname: true}}
"""  # noqa: E501 - a file for the parser, not for people
"""A file that has the parser ask for all keys that there are."""

EXAMPLE: Final = """
clusters:
  dc1: {bootstrap: [kafka1.dc1:9092, kafka2.dc1:9092]}
  dc2: {bootstrap: [kafka1.dc2:9092, kafka2.dc2:9092]}
flows:
  - source: dc1
    target: dc2
    topics: {include: ["orders.*"], exclude: [".*-scratch"]}
    groups: {include: [".*"]}
coordination:
  zookeeper: witness1:2181,witness2:2181,witness3:2181
  auth: {username: kafka-dr, password_file: /etc/kafka-dr/witness.secret}
failover:
  initial_active: dc1
  drain_timeout_ms: 60000
audit:
  output: /var/lib/kafka-dr/audit
metrics:
  mirror_port: 9401
""".strip()

INTRODUCTION: Final = """
Every program reads the same YAML file, validates all of it, and names a mistake by file, line and
key. The file's name is `dc.yaml` in these pages. Patterns are regular expressions that have to
match a whole name.

A secret need not stand in the file: `${NAME}` takes it from the environment, and the key with
`_file` behind it names a file that holds it. Certificates and keys are PEM files.
"""

_LARGE: Final = re.compile(r"`?\b(?P<digits>\d{7,})\b`?")

PLACES: Final = (
    (re.compile(r"\[\d+\]"), "[]"),
    (re.compile(r"^clusters\.\w+\."), "clusters.<name>."),
    (re.compile(r"^audit\.evidence\.\w+$"), "audit.evidence.<name>"),
    (re.compile(r"\.throttle\.topics\.\w+$"), ".throttle.topics.<pattern>"),
)
"""What stands for a number or name of the file in the name of a key."""


def configuration_page() -> str:
    """Return the page."""
    keys = all_keys()
    groups = dict.fromkeys(key.partition(".")[0] for key in keys)
    parts = [section(literal(group), _table(keys, group)) for group in groups]
    return page("Configuration", INTRODUCTION, code(EXAMPLE, "yaml"), *parts)


def all_keys() -> Mapping[str, Key]:
    """Return how each key is read, by its name in the documentation."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "dc.yaml"
        file.write_text(EVERY_SECTION)
        return {_named(key): how for key, how in asked_keys(file).items()}


def _named(key: str) -> str:
    for pattern, name in PLACES:
        key = pattern.sub(name, key)
    return key


def _table(keys: Mapping[str, Key], group: str) -> str:
    return table(("key", "value", "default", "meaning"), _rows(keys, group))


def _rows(keys: Mapping[str, Key], group: str) -> Iterator[tuple[str, str, str, str]]:
    for name, how in keys.items():
        if name.partition(".")[0] == group:
            row = literal(name), how.kind, _default(how.default), MEANINGS[name]
            yield _with_mebibytes(row) if name.endswith("_bytes") else row


def _default(default: str) -> str:
    if default.startswith(REQUIRED) or default == NO_DEFAULT:
        return default
    return ", ".join(literal(part) for part in default.split(" "))


def _with_mebibytes(row: tuple[str, str, str, str]) -> tuple[str, str, str, str]:
    """Return a row that also says what its large numbers are in MiB."""
    key, kind, default, meaning = row
    return key, _LARGE.sub(_mebibytes, kind), _LARGE.sub(_mebibytes, default), meaning


def _mebibytes(number: re.Match[str]) -> str:
    return f"{number[0]} ({int(number['digits']) >> 20} MiB)"
