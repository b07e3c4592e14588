"""Messages to bytes: one closure per class and version, compiled on first use.

A structure is written by a few emitters, each of which appends pieces to a list; the pieces are
joined once at the end. Fields of type records are appended as views and never copied, so that a
batch travels from the page cache, or from another connection, without being touched.
"""

from collections.abc import Callable, Iterator
from functools import cache
from itertools import groupby
from operator import attrgetter
from struct import Struct, pack
from struct import error as StructError  # noqa: N812 - it is an exception
from typing import Any, TypeAlias

from wire.primitives import (
    Pack,
    pack_compact_length,
    pack_int8,
    pack_int32,
    pack_unsigned_varint,
)
from wire.schema import kinds
from wire.schema.plan import Array, FieldPlan, Primitive, Shape, Slot, Structure, plan, top_level
from wire.schema.vocabulary import Message, PrimitiveKind

Piece: TypeAlias = bytes | memoryview
Append: TypeAlias = Callable[[Piece], None]
Emit: TypeAlias = Callable[[Any, Append], None]
"""Appends the pieces of a value, or those of one or more fields of a structure."""


class Unencodable(ValueError):
    """A message cannot be said in the version asked for, or holds a value of the wrong type."""


def encode(message: Message, version: int) -> bytes:
    """Return the message as one bytes object; raises Unencodable and UnsupportedVersion."""
    return b"".join(pieces(message, version))


def encode_parts(message: Message, version: int) -> list[Piece]:
    """Return the message as bytes, with a view for every records field in between."""
    return merge(pieces(message, version))


def pieces(message: Message, version: int) -> list[Piece]:
    """Return the message as many small pieces, for `merge`; what is a view belongs to records."""
    parts: list[Piece] = []
    _message_emitter(type(message), version)(message, parts.append)
    return parts


def merge(parts: list[Piece]) -> list[Piece]:
    """Join neighbouring bytes and leave views alone; empty parts vanish."""
    merged: list[Piece] = []
    run: list[bytes] = []
    for part in parts:
        if isinstance(part, bytes):
            run.append(part)
        elif part.nbytes:
            merged.append(b"".join(run))
            merged.append(part)
            run = []
    merged.append(b"".join(run))
    return [part for part in merged if part]


@cache
def _message_emitter(cls: type[Any], version: int) -> Emit:
    return _structure(top_level(cls, version))


def _structure(layout: FieldPlan) -> Emit:
    emitters = (*_absent_checks(layout), *_emitters(layout))
    if layout.flexible:
        emitters = (*emitters, _tagged_section(layout))

    def emit(message: Any, append: Append) -> None:  # noqa: ANN401
        for emit_part in emitters:
            emit_part(message, append)

    return emit


def _absent_checks(layout: FieldPlan) -> Iterator[Emit]:
    """Refuse to lose a value for which the version has no field, if it matters to the peer."""
    required = tuple(
        (slot.name, slot.default) for slot in layout.absent if not slot.presence.ignorable
    )
    owner, version = layout.cls.__name__, layout.version

    def check(message: Any, append: Append) -> None:  # noqa: ANN401, ARG001
        for name, default in required:
            value = getattr(message, name)
            if value != default:
                raise Unencodable(
                    f"{owner}.{name}: version {version} has no such field for {value!r}"
                )

    if required:
        yield check


def _emitters(layout: FieldPlan) -> Iterator[Emit]:
    def is_fixed(slot: Slot) -> bool:
        return isinstance(slot.shape, Primitive) and slot.shape.kind in kinds.LAYOUTS

    for fixed, run in groupby(layout.present, key=is_fixed):
        if fixed:
            yield _fixed_run(tuple(run))
        else:
            yield from (_single(slot, layout) for slot in run)


def _fixed_run(slots: tuple[Slot, ...]) -> Emit:
    names = [slot.name for slot in slots]
    letters = "".join(
        kinds.LAYOUTS[slot.shape.kind] for slot in slots if isinstance(slot.shape, Primitive)
    )
    pack_run = Struct(">" + letters).pack
    get = attrgetter(*names)

    def emit_one(message: Any, append: Append) -> None:  # noqa: ANN401
        try:
            append(pack_run(get(message)))
        except StructError as fault:
            raise _wrong_run(slots, message, fault) from None

    def emit_several(message: Any, append: Append) -> None:  # noqa: ANN401
        try:
            append(pack_run(*get(message)))
        except StructError as fault:
            raise _wrong_run(slots, message, fault) from None

    return emit_one if len(slots) == 1 else emit_several


def _wrong_run(slots: tuple[Slot, ...], message: Any, fault: StructError) -> Unencodable:  # noqa: ANN401
    held = ", ".join(f"{slot.name}={getattr(message, slot.name)!r}" for slot in slots)
    return Unencodable(f"{slots[0].owner}: {held}: {fault}")


def _single(slot: Slot, layout: FieldPlan) -> Emit:
    get = attrgetter(slot.name)
    emit_value = _emitter(slot.shape, layout)

    def emit(message: Any, append: Append) -> None:  # noqa: ANN401
        value = get(message)
        try:
            emit_value(value, append)
        except Unencodable:
            raise
        except (AttributeError, TypeError, ValueError, StructError) as fault:
            raise Unencodable(f"{slot.place}: {value!r}: {fault}") from None

    return emit


def _emitter(shape: Shape, layout: FieldPlan) -> Emit:
    match shape:
        case Primitive(kind=PrimitiveKind.RECORDS):
            return _records(shape, layout)
        case Primitive():
            return _packed(kinds.packer(shape, flexible=layout.flexible))
        case Structure():
            inner = _structure(plan(shape.cls, layout.version, flexible=layout.flexible))
            return _nullable_structure(inner) if shape.nullable else inner
        case Array():
            return _array(shape, layout)


def _packed(pack_value: Pack[Any]) -> Emit:
    def emit(value: Any, append: Append) -> None:  # noqa: ANN401
        append(pack_value(value))

    return emit


def _nullable_structure(inner: Emit) -> Emit:
    # In a tagged field the mark is an unsigned varint, whose 1 is the same byte; a null is left
    # out there, because it is the default of every such field.
    def emit(value: Any, append: Append) -> None:  # noqa: ANN401
        if value is None:
            append(pack_int8(-1))
        else:
            append(pack_int8(1))
            inner(value, append)

    return emit


def _records(shape: Primitive, layout: FieldPlan) -> Emit:
    pack_length = pack_compact_length if layout.flexible else pack_int32

    def emit(value: Any, append: Append) -> None:  # noqa: ANN401
        if value is None:
            if not shape.nullable:
                raise TypeError("null is not allowed")
            append(pack_length(-1))
            return
        parts = value if isinstance(value, tuple | list) else (value,)
        views = [memoryview(part) for part in parts]
        append(pack_length(sum(view.nbytes for view in views)))
        for view in views:
            append(view)

    return emit


def _array(shape: Array, layout: FieldPlan) -> Emit:
    pack_count = pack_compact_length if layout.flexible else pack_int32
    element = shape.element
    if isinstance(element, Primitive) and element.kind in kinds.LAYOUTS:
        emit_items = _fixed_items(kinds.LAYOUTS[element.kind])
    else:
        emit_items = _items(_emitter(element, layout))

    def emit(value: Any, append: Append) -> None:  # noqa: ANN401
        if value is None:
            if not shape.nullable:
                raise TypeError("null is not allowed")
            append(pack_count(-1))
            return
        append(pack_count(len(value)))
        emit_items(value, append)

    return emit


def _fixed_items(letter: str) -> Emit:
    def emit_items(value: Any, append: Append) -> None:  # noqa: ANN401
        append(pack(f">{len(value)}{letter}", *value))

    return emit_items


def _items(emit_item: Emit) -> Emit:
    def emit_items(value: Any, append: Append) -> None:  # noqa: ANN401
        for item in value:
            emit_item(item, append)

    return emit_items


def _tagged_section(layout: FieldPlan) -> Emit:
    """Return the emitter of the tagged fields whose value is not the default."""
    known = tuple(
        (slot, attrgetter(slot.name), _single(slot, layout), pack_unsigned_varint(tag))
        for slot in layout.tagged
        if (tag := slot.presence.tag) is not None
    )
    if not known:
        return _nothing_tagged

    def emit(message: Any, append: Append) -> None:  # noqa: ANN401
        sent: list[bytes] = []
        for slot, get, emit_field, packed_tag in known:
            if get(message) != slot.default:
                body: list[Piece] = []
                emit_field(message, body.append)
                raw = b"".join(body)
                sent.append(packed_tag + pack_unsigned_varint(len(raw)) + raw)
        append(pack_unsigned_varint(len(sent)) + b"".join(sent))

    return emit


def _nothing_tagged(message: Any, append: Append) -> None:  # noqa: ANN401, ARG001
    append(b"\x00")
