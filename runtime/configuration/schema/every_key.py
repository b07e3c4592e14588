"""All keys that the file can have, as the reader asks for them: for docs and the schema."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from runtime.configuration.config import asked_keys
from runtime.configuration.reading.section import Key

EVERY_SECTION: Final = """
clusters:
  dc1: {bootstrap: ["k:9092"], security_protocol: SASL_SSL, sasl: {mechanism: PLAIN, username: u, password: p}}
  dc2: {bootstrap: ["k:9092"], security_protocol: SASL_SSL, sasl: {mechanism: OAUTHBEARER, token_command: [c]}}
flows:
  - {source: dc1, target: dc2, throttle: {topics: {"pattern": 1048576}}, rename: {topic: given}}
coordination: {zookeeper: "w:2181", auth: {username: u, password: p}, tls: {check_hostname: true}}
failover:
  initial_active: dc1
  loss_budget: {records: 0}
  automatic: {voters: {a: dc1, b: dc2, c: office}}
  hooks: [{name: h, before: fence, command: [c]}, {name: g, after: switch, command: [c]}]
log: {levels: {mirror: debug}}
"""  # noqa: E501 - a file for the parser, not for people
"""A file that has the parser ask for all keys that there are, but for those of sets."""

WITH_SETS: Final = """
clusters: {dc1: {bootstrap: "a:1"}, dc2: {bootstrap: "b:1"}}
flows: [{source: dc1, target: dc2}]
coordination: {zookeeper: "w:1"}
failover: {sets: {payments: {topics: payments.*}}}
"""
"""Sets cannot be beside all other sections."""
SETS: Final = "failover.sets."

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
"""A file to begin with."""

PLACES: Final = (
    (re.compile(r"\[\d+\]"), "[]"),
    (re.compile(r"^clusters\.\w+(?=\.|$)"), "clusters.<name>"),
    (re.compile(r"^failover\.automatic\.voters\.\w+$"), "failover.automatic.voters.<name>"),
    (re.compile(r"^failover\.sets\.\w+(?=\.|$)"), "failover.sets.<name>"),
    (re.compile(r"^audit\.evidence\.\w+$"), "audit.evidence.<name>"),
    (re.compile(r"^log\.levels\.\w+$"), "log.levels.<logger>"),
    (re.compile(r"\.throttle\.topics\.\w+$"), ".throttle.topics.<pattern>"),
    (re.compile(r"\.rename\.\w+$"), ".rename.<topic>"),
)
"""What stands for a number or name of the file in the name of a key."""


def all_keys() -> Mapping[str, Key]:
    """Return how each key is read, by its name in the documentation."""
    return {name: key for name, _, key in every_key()}


def every_key() -> Iterator[tuple[str, str, Key]]:
    """Yield each key: its name in the documentation, that of its section, and how it is read.

    A key comes once for each section of EVERY_SECTION that has it. What counts of a key that is
    read in several ways is the last.
    """
    with TemporaryDirectory() as folder:
        file = Path(folder) / "dc.yaml"
        for text in (EVERY_SECTION, WITH_SETS):
            file.write_text(text)
            for name, key in asked_keys(file).items():
                if text is EVERY_SECTION or name.startswith(SETS):
                    yield named(name), named(key.section), key


def named(key: str) -> str:
    """Return a key's name without the numbers and names of one file."""
    for pattern, name in PLACES:
        key = pattern.sub(name, key)
    return key
