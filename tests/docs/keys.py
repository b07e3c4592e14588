"""Keys of the configuration that pages name: whether the parser asks for them."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from broker.config import ACCEPTED_WITHOUT_EFFECT, SETTINGS
from runtime.configuration.schema.every_key import all_keys
from tests.docs.pages import SPAN, blocks, prose

SECTIONS: Final = ("clusters", "flows", "coordination", "failover", "audit", "metrics")
PARTS: Final = ("throttle", "topic_settings", "mirrormaker", "topics", "groups", "ssl", "sasl")
KEY: Final = re.compile(rf"^(?:{'|'.join((*SECTIONS, *PARTS))})(?:\[\])?(?:\.[\w<>]+)+$")
OTHERS: Final = frozenset({"failover.client", "audit.prom", *SETTINGS})
"""A package, a file, and what bundled brokers read: they look like keys."""

NAMED: Final = {"clusters", "failover.automatic.voters", "failover.sets"}
"""Sections whose keys people choose."""


def unknown_keys(page: Path) -> Iterator[str]:
    """Yield a line for each key of the configuration that a page names and nobody reads."""
    known = _known_keys()
    text = page.read_text()
    for number, line in enumerate(prose(text).splitlines(), start=1):
        for span in SPAN.finditer(line):
            key = span["code"]
            if KEY.match(key) and key not in known and key not in OTHERS:
                yield f"{page}:{number}: {key}"
    for block in blocks(text):
        if block.language == "yaml":
            for key in _keys_of(yaml.safe_load("\n".join(block.lines)), ""):
                if key not in known:
                    yield f"{page}:{block.first_line}: {key}"


@cache
def _known_keys() -> frozenset[str]:
    """Return the keys that the parser asks for, and their parts, as pages write them."""
    return frozenset(part for key in all_keys() for part in _endings(key))


def _endings(key: str) -> Iterator[str]:
    """Yield a key and its sections, whole and without what stands before them."""
    parts = key.split(".")
    for first in range(len(parts)):
        for last in range(first + 1, len(parts) + 1):
            yield ".".join(parts[first:last])


def _keys_of(document: Any, path: str) -> Iterator[str]:
    if isinstance(document, dict):
        for name, value in document.items():
            inner = "<name>" if path in NAMED else name
            if path == "flows[].throttle.topics":
                inner = "<pattern>"
            if path == "log.levels":
                inner = "<logger>"
            yield from _keys_of(value, f"{path}.{inner}".lstrip("."))
    elif isinstance(document, list) and document and isinstance(document[0], dict):
        for item in document:
            yield from _keys_of(item, f"{path}[]")
    else:
        yield path


def unknown_broker_settings(page: Path) -> Iterator[str]:
    """Yield a line for each setting in a block of properties that no broker takes."""
    for block in blocks(page.read_text()):
        if block.language != "properties":
            continue
        for place, line in enumerate(block.lines):
            name, equals, _ = line.partition("=")
            own = re.sub(r"^listener\.name\.[^.]+\.(?:(?:plain|scram-sha-\d+)\.)?", "", name)
            if line[:1].isspace() or not equals:
                continue
            if own not in SETTINGS and own not in ACCEPTED_WITHOUT_EFFECT:
                yield f"{page}:{block.first_line + place}: {name}"
