"""The page about the YAML file: its keys as the parser asks for them, their meanings beside it."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from docs.generate.markdown import code, literal, page, section, table
from runtime.configuration.config import MEANINGS
from runtime.configuration.reading.section import NO_DEFAULT, REQUIRED, Key
from runtime.configuration.schema.every_key import EXAMPLE, all_keys

GROUPS: Final = (
    "clusters",
    "flows[]",
    "coordination",
    "failover",
    "audit",
    "metrics",
    "console",
    "log",
)
"""The sections of the file, as people write them."""

INTRODUCTION: Final = """
Every program reads the same YAML file, validates all of it, and names all mistakes at once, each by
file, line and key. The file's name is `dc.yaml` in these pages. Patterns are regular expressions
that have to match a whole name.

A secret need not stand in the file: `${NAME}` takes it from the environment, and the key with
`_file` behind it names a file that holds it. Certificates and keys are PEM files,
those of a cluster also PKCS12 (`client`).

`mirror config validate` reads the file and asks nobody, `mirror config example` prints one to
begin with, and `mirror config schema` prints a JSON Schema, by which editors complete and check it.

What several sections have alike is written once: an anchor (`&name`), and `<<: *name` where it is
taken over. A key that stands in the section itself goes before one that is taken over. No program
reads a section of the file that is called `x-...`, which is a place for anchors. The folder
`deploy/configuration` of the source has files to start from.
"""

_LARGE: Final = re.compile(r"`?\b(?P<digits>\d{7,})\b`?")


def configuration_page() -> str:
    """Return the page."""
    keys = all_keys()
    groups = sorted({key.partition(".")[0] for key in keys}, key=GROUPS.index)
    parts = [section(literal(group), _table(keys, group)) for group in groups]
    return page("Configuration", INTRODUCTION, code(EXAMPLE, "yaml"), *parts)


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
