"""Bytes to messages: one closure per class and version, compiled on first use.

A structure is read by a few steps. A step appends the values of one field, or of a run of fields
of fixed size (they take a single `struct` call), and returns the position behind them. Counts and
lengths are compared with the bytes left before anything is allocated for them, and counts with
what the caller allows: an element of two bytes takes microseconds to read.
"""

import math
import threading
from collections.abc import Callable, Iterator
from functools import cache
from itertools import groupby
from struct import Struct, unpack_from
from struct import error as StructError  # noqa: N812 - it is an exception
from typing import Any, Final, TypeAlias, TypeVar

from wire.primitives import (
    Buffer,
    MalformedMessage,
    Read,
    read_compact_length,
    read_int8,
    read_int32_length,
    read_tagged_count,
    read_unsigned_varint,
    read_view,
    truncated,
)
from wire.schema import kinds
from wire.schema.plan import Array, FieldPlan, Primitive, Shape, Slot, Structure, plan, top_level
from wire.schema.vocabulary import Message

M = TypeVar("M", bound=Message)
Step: TypeAlias = Callable[[memoryview, int, list[Any]], int]
Assign: TypeAlias = Callable[[Any, Any], None]

FEW: Final = 8
"""Arrays of fewer numbers, such as replicas, are read by layouts made once."""
NUMBERS_PER_ELEMENT: Final = 16
"""So many numbers, read by one call, take less time than one element of any other type."""


class TooManyElements(ValueError):
    """A message holds more elements, over all of its arrays, than are taken in at once."""


class _Allowance(threading.local):
    """What the message that this thread is decoding may still hold."""

    elements: float = math.inf

    def spend(self, count: int) -> None:
        self.elements -= count
        if self.elements < 0:
            raise TooManyElements


_ALLOWANCE: Final = _Allowance()


def decode(cls: type[M], buffer: Buffer, version: int) -> M:
    """Return the message in `buffer`; fields of type records are views into it.

    Bytes behind the message are ignored, as Apache Kafka does. Raises MalformedMessage naming
    class, field and position, and UnsupportedVersion outside `cls.VERSIONS`.
    """
    return decode_prefix(cls, buffer, version)[0]


def decode_prefix(
    cls: type[M],
    buffer: Buffer,
    version: int,
    position: int = 0,
    *,
    most_elements: float = math.inf,
) -> tuple[M, int]:
    """Return the message that starts at `position`, and the position behind it.

    Raises TooManyElements, before it reads them, where all arrays and sections of tagged fields
    together hold more than `most_elements`. The first of each array goes with what it is in, so
    that partitions count the same in whatever topics; and 16 plain numbers count as one.
    """
    view = buffer if isinstance(buffer, memoryview) else memoryview(buffer)
    _ALLOWANCE.elements = most_elements
    try:
        message, end = _message_reader(cls, version)(view, position)
    except TooManyElements:
        raise TooManyElements(
            f"{cls.__name__}: more elements than the limit of {most_elements}"
        ) from None
    return message, end


@cache
def _message_reader(cls: type[Any], version: int) -> Read[Any]:
    return _structure(top_level(cls, version))


def _structure(layout: FieldPlan) -> Read[Any]:
    """Return the reader of a structure.

    Slots are filled through their descriptors: the `__init__` of a frozen dataclass takes three
    times as long, and there is nothing in it but assignments.
    """
    cls = layout.cls
    steps = tuple(_steps(layout))
    assigns = tuple(_assign(cls, slot) for slot in layout.present)
    presets = tuple((_assign(cls, slot), slot.default) for slot in layout.absent + layout.tagged)
    read_tagged = _tagged_section(layout) if layout.flexible else None
    new = object.__new__

    def read(buffer: memoryview, position: int) -> tuple[Any, int]:
        values: list[Any] = []
        for step in steps:
            position = step(buffer, position, values)
        message = new(cls)
        for assign, value in zip(assigns, values, strict=True):
            assign(message, value)
        for assign, value in presets:
            assign(message, value)
        if read_tagged is not None:
            if position < len(buffer) and not buffer[position]:
                position += 1  # hardly any structure has tagged fields
            else:
                position = read_tagged(buffer, position, message)
        return message, position

    return read


def _assign(cls: type[Any], slot: Slot) -> Assign:
    assign: Assign = getattr(cls, slot.name).__set__
    return assign


def _steps(layout: FieldPlan) -> Iterator[Step]:
    def is_fixed(slot: Slot) -> bool:
        return isinstance(slot.shape, Primitive) and slot.shape.kind in kinds.LAYOUTS

    for fixed, run in groupby(layout.present, key=is_fixed):
        if fixed:
            yield _fixed_run(tuple(run))
        else:
            yield from (_single(slot, layout) for slot in run)


def _fixed_run(slots: tuple[Slot, ...]) -> Step:
    letters = [_letter(slot.shape) for slot in slots]
    layout = Struct(">" + "".join(letters))
    unpack, size = layout.unpack_from, layout.size

    def step(buffer: memoryview, position: int, values: list[Any]) -> int:
        try:
            values += unpack(buffer, position)
        except StructError:
            raise _cut_run(slots, buffer, position) from None
        return position + size

    return step


def _cut_run(slots: tuple[Slot, ...], buffer: memoryview, position: int) -> MalformedMessage:
    for slot in slots:
        size = Struct(">" + _letter(slot.shape)).size
        if position + size > len(buffer):
            return _located(truncated(size, buffer, position), slot)
        position += size
    raise AssertionError("a run that was cut off fits after all")


def _letter(shape: Shape) -> str:
    assert isinstance(shape, Primitive)
    return kinds.LAYOUTS[shape.kind]


def _located(fault: MalformedMessage, slot: Slot) -> MalformedMessage:
    """Name the field in a fault, unless a field further inside is already named."""
    if fault.where:
        return fault
    return MalformedMessage(fault.reason, position=fault.position, where=slot.place)


def _single(slot: Slot, layout: FieldPlan) -> Step:
    read_value = _reader(slot.shape, layout)

    def step(buffer: memoryview, position: int, values: list[Any]) -> int:
        try:
            value, end = read_value(buffer, position)
        except MalformedMessage as fault:
            raise _located(fault, slot) from None
        values.append(value)
        return end

    return step


def _reader(shape: Shape, layout: FieldPlan) -> Read[Any]:
    match shape:
        case Primitive():
            return kinds.reader(shape, flexible=layout.flexible)
        case Structure():
            inner = _structure(plan(shape.cls, layout.version, flexible=layout.flexible))
            return _nullable_structure(inner) if shape.nullable else inner
        case Array():
            return _array(shape, layout)


def _nullable_structure(inner: Read[Any]) -> Read[Any]:
    # An int8 in front: -1 for null, 1 for a structure; Kafka takes any other value for the latter.
    def read(buffer: memoryview, position: int) -> tuple[Any, int]:
        mark, position = read_int8(buffer, position)
        return (None, position) if mark < 0 else inner(buffer, position)

    return read


def _tagged_reader(shape: Shape, layout: FieldPlan) -> Read[Any]:
    """Return what reads a tagged field: there the mark of a nullable structure is another one.

    An unsigned varint: 0 for null, 1 for a structure. Kafka sends a null too.
    """
    if not isinstance(shape, Structure) or not shape.nullable:
        return _reader(shape, layout)
    inner = _structure(plan(shape.cls, layout.version, flexible=layout.flexible))

    def read(buffer: memoryview, position: int) -> tuple[Any, int]:
        mark, position = read_unsigned_varint(buffer, position)
        return inner(buffer, position) if mark else (None, position)

    return read


def _array(shape: Array, layout: FieldPlan) -> Read[Any]:
    read_length = read_compact_length if layout.flexible else read_int32_length
    element = shape.element
    least = _smallest(element, layout)
    assert least > 0, f"an array of nothing in {layout.cls.__name__}"
    if isinstance(element, Primitive) and element.kind in kinds.LAYOUTS:
        read_items = _fixed_items(kinds.LAYOUTS[element.kind], least)
        counted_as_one = NUMBERS_PER_ELEMENT
    else:
        read_items = _items(_reader(element, layout))
        counted_as_one = 1

    def read(buffer: memoryview, position: int) -> tuple[Any, int]:
        count, start = read_length(buffer, position)
        if count * least > len(buffer) - start:
            raise MalformedMessage(
                f"{count} elements in {len(buffer) - start} bytes", position=position
            )
        if count < 0:
            if not shape.nullable:
                raise MalformedMessage("null where null is not allowed", position=position)
            return None, start
        if count > counted_as_one:
            _ALLOWANCE.spend((count - 1) // counted_as_one)
        return read_items(buffer, start, count)

    return read


ReadItems: TypeAlias = Callable[[memoryview, int, int], tuple[tuple[Any, ...], int]]


def _fixed_items(letter: str, size: int) -> ReadItems:
    few = [Struct(f">{count}{letter}").unpack_from for count in range(FEW)]

    def read_items(buffer: memoryview, position: int, count: int) -> tuple[tuple[Any, ...], int]:
        end = position + count * size
        if count < FEW:
            return few[count](buffer, position), end
        return unpack_from(f">{count}{letter}", buffer, position), end

    return read_items


def _items(read_item: Read[Any]) -> ReadItems:
    def read_items(buffer: memoryview, position: int, count: int) -> tuple[tuple[Any, ...], int]:
        items = []
        for _ in range(count):
            item, position = read_item(buffer, position)
            items.append(item)
        return tuple(items), position

    return read_items


def _smallest(shape: Shape, layout: FieldPlan) -> int:
    """Return how many bytes a value takes at least, which bounds the count of an array."""
    match shape:
        case Primitive():
            return kinds.smallest(shape, flexible=layout.flexible)
        case Array():
            return 1 if layout.flexible else 4
        case Structure(nullable=True):
            return 1
        case Structure():
            inner = plan(shape.cls, layout.version, flexible=layout.flexible)
            tags = 1 if layout.flexible else 0
            return tags + sum(_smallest(slot.shape, inner) for slot in inner.present)


def _tagged_section(layout: FieldPlan) -> Step:
    """Return the step that fills in the tagged fields sent; unknown ones are stepped over."""
    known = {
        slot.presence.tag: (slot, _assign(layout.cls, slot), _tagged_reader(slot.shape, layout))
        for slot in layout.tagged
    }
    place = f"{layout.cls.__name__} tagged fields"

    def read_field(buffer: memoryview, position: int, message: Any) -> int:  # noqa: ANN401
        tag, position = read_unsigned_varint(buffer, position)
        size, position = read_unsigned_varint(buffer, position)
        body, end = read_view(buffer, position, size)
        if tag in known:
            slot, assign, read_value = known[tag]
            try:
                value, read_up_to = read_value(buffer[:end], position)
            except MalformedMessage as fault:
                raise _located(fault, slot) from None
            if read_up_to != end:
                raise MalformedMessage(
                    f"{len(body)} bytes hold a value of {read_up_to - position}",
                    position=position,
                    where=slot.place,
                )
            assign(message, value)
        return end

    def read(buffer: memoryview, position: int, message: Any) -> int:  # noqa: ANN401
        try:
            count, position = read_tagged_count(buffer, position)
            if count:
                _ALLOWANCE.spend(count)
            for _ in range(count):
                position = read_field(buffer, position, message)
        except MalformedMessage as fault:
            if fault.where:
                raise
            raise MalformedMessage(fault.reason, position=fault.position, where=place) from None
        return position

    return read
