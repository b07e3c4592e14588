"""Versions that kio has forgotten, against stored bytes.

`tests/golden/messages.json` was made by an interpreter of Apache Kafka 3.9's message definitions
that shares no code with the codec: random values for every field of a version, and their bytes.
UUIDs and bytes are in hexadecimal there.
"""

import json
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.wire import kio_referee
from tests.wire.message_strategies import MESSAGE_CLASSES, VERSIONED_CLASSES
from wire.schema import decode_prefix, encode

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "messages.json").read_text())
CLASSES = {cls.__name__: cls for cls in MESSAGE_CLASSES}


def as_json(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: as_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [as_json(item) for item in value]
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    return value.hex if isinstance(value, UUID) else value


def only_fields_of(expected: Any, decoded: Any) -> Any:
    """Leave out the fields that the version does not have."""
    if isinstance(expected, dict):
        return {name: only_fields_of(value, decoded[name]) for name, value in expected.items()}
    if isinstance(expected, list):
        return [only_fields_of(*pair) for pair in zip(expected, decoded, strict=True)]
    return decoded


@pytest.mark.parametrize(
    "golden", GOLDEN, ids=lambda golden: f"{golden['message']}-v{golden['version']}"
)
def test_an_old_version_has_the_bytes_kafka_defines(golden: dict[str, Any]) -> None:
    cls, version, raw = (
        CLASSES[golden["message"]],
        golden["version"],
        bytes.fromhex(golden["bytes"]),
    )

    message, end = decode_prefix(cls, raw, version)

    assert end == len(raw)
    assert only_fields_of(golden["fields"], as_json(message)) == golden["fields"]
    assert encode(message, version) == raw


def test_every_message_has_a_referee_in_every_version() -> None:
    golden = {(CLASSES[entry["message"]], entry["version"]) for entry in GOLDEN}

    unchecked = [
        case for case in VERSIONED_CLASSES if not kio_referee.is_known(*case) and case not in golden
    ]

    assert unchecked == []
