"""The PyPI package kio as an independent opinion on how messages travel.

It has one class per message and version. Fields correspond by name, except that it drops `_ms`,
holds times as timedelta and datetime and error codes as members of an enum; and it refuses
buffers that can be written to.
"""

import re
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

import kio.schema
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.serial import entity_reader, entity_writer

from wire.schema.plan import top_level

_SCHEMA = Path(kio.schema.__path__[0])
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def is_known(cls: type[Any], version: int) -> bool:
    """Return whether kio has a message in one version; importing none of its 700 modules."""
    package, kind = _names(cls)
    return (_SCHEMA / package / f"v{version}" / f"{kind}.py").exists()


def counterpart(cls: type[Any], version: int) -> type[Any]:
    """Return kio's class for a message that it knows in one version."""
    package, kind = _names(cls)
    module = import_module(f"kio.schema.{package}.v{version}.{kind}")
    found: type[Any] = getattr(module, cls.__name__)
    return found


def _names(cls: type[Any]) -> tuple[str, str]:
    kind = "request" if cls.__name__.endswith("Request") else "response"
    api = cls.__name__[: -len(kind)]
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", api).lower(), kind


def encode(message: Any, version: int) -> bytes:
    """Return the bytes that kio makes of the values of our message."""
    theirs = counterpart(type(message), version)
    buffer = BytesIO()
    entity_writer(theirs)(buffer, translated(message, theirs))
    return buffer.getvalue()


def decode(cls: type[Any], raw: bytes, version: int) -> Any:
    """Return what kio reads from our bytes; it must read all of them."""
    theirs = counterpart(cls, version)
    entity, size = entity_reader(theirs)(raw, 0)
    assert size == len(raw)
    return entity


def translated(ours: Any, theirs: type[Any]) -> Any:
    """Return kio's object with the values of ours; fails where ours lacks a field."""
    return theirs(
        **{
            field.name: _value(
                getattr(ours, field.name if hasattr(ours, field.name) else f"{field.name}_ms"),
                field,
            )
            for field in fields(theirs)
        }
    )


def _value(value: Any, field: Any) -> Any:
    match field.metadata.get("kafka_type"):
        case "error_code":
            return KioErrorCode(value)
        case "timedelta_i32" | "timedelta_i64":
            return timedelta(milliseconds=value)
        case "datetime_i64":
            return None if value == -1 else _EPOCH + timedelta(milliseconds=value)
        case None if isinstance(value, tuple):
            element = _classes(field.type)[0]
            return tuple(translated(item, element) for item in value)
        case None if value is not None:
            return translated(value, _classes(field.type)[0])
        case _:
            return value


def _classes(annotation: Any) -> list[type[Any]]:
    if is_dataclass(annotation):
        assert isinstance(annotation, type)
        return [annotation]
    return [cls for inner in getattr(annotation, "__args__", ()) for cls in _classes(inner)]


def their_field_names(cls: type[Any], version: int) -> set[str]:
    """Return the names of kio's fields."""
    theirs = counterpart(cls, version)
    return {field.name for field in fields(theirs)}


def our_field_names(cls: type[Any], version: int) -> set[str]:
    """Return the names of the fields we have in that version, as kio would call them."""
    layout = top_level(cls, version)
    return {slot.name.removesuffix("_ms") for slot in layout.present + layout.tagged}
