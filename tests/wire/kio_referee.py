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
from typing import Any

from kio.schema.errors import ErrorCode as KioErrorCode
from kio.serial import entity_reader, entity_writer

from wire.schema.plan import top_level

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def counterpart(cls: type[Any], version: int) -> type[Any] | None:
    """Return kio's class for a message in one version; None if it has forgotten that version."""
    kind = "request" if cls.__name__.endswith("Request") else "response"
    api = cls.__name__[: -len(kind)]
    package = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", api).lower()
    try:
        module = import_module(f"kio.schema.{package}.v{version}.{kind}")
    except ModuleNotFoundError:
        return None
    found: type[Any] = getattr(module, cls.__name__)
    return found


def encode(message: Any, version: int) -> bytes:
    """Return the bytes that kio makes of the values of our message."""
    theirs = counterpart(type(message), version)
    assert theirs is not None
    buffer = BytesIO()
    entity_writer(theirs)(buffer, translated(message, theirs))
    return buffer.getvalue()


def decode(cls: type[Any], raw: bytes, version: int) -> Any:
    """Return what kio reads from our bytes; it must read all of them."""
    theirs = counterpart(cls, version)
    assert theirs is not None
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
    assert theirs is not None
    return {field.name for field in fields(theirs)}


def our_field_names(cls: type[Any], version: int) -> set[str]:
    """Return the names of the fields we have in that version, as kio would call them."""
    layout = top_level(cls, version)
    return {slot.name.removesuffix("_ms") for slot in layout.present + layout.tagged}
