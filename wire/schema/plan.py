"""From an annotated dataclass to what one version of it consists of; the codecs are built on it.

Annotations are read once per class and version, never while a message is coded.
"""

from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, TypeAlias, Union, get_args, get_origin

from wire.schema.vocabulary import Presence, PrimitiveKind, presence_of
from wire.values import frozen


class UnsupportedVersion(ValueError):
    """A message was to be coded in a version that its class does not speak."""


@frozen(kw_only=False)
class Primitive:
    """One value of a primitive type."""

    kind: PrimitiveKind
    nullable: bool


@frozen(kw_only=False)
class Structure:
    """Another dataclass, inline."""

    cls: type[Any]
    nullable: bool


@frozen(kw_only=False)
class Array:
    """Any number of elements of one type."""

    element: "Shape"
    nullable: bool


Shape: TypeAlias = Primitive | Structure | Array


@frozen(kw_only=False)
class Slot:
    """One field of a class: its shape in a given version, and where it is at home."""

    owner: str
    name: str
    shape: Shape
    default: Any
    presence: Presence

    @property
    def place(self) -> str:
        """The name that faults carry."""
        return f"{self.owner}.{self.name}"


@frozen(kw_only=False)
class FieldPlan:
    """The fields of one class in one version, in the order in which they travel."""

    cls: type[Any]
    version: int
    flexible: bool
    present: tuple[Slot, ...]
    tagged: tuple[Slot, ...]
    absent: tuple[Slot, ...]


def top_level(cls: type[Any], version: int) -> FieldPlan:
    """Return the plan of a message; raises UnsupportedVersion outside its `VERSIONS`."""
    if version not in cls.VERSIONS:
        raise UnsupportedVersion(
            f"{cls.__name__} has no version {version}, only"
            f" {cls.VERSIONS.start} to {cls.VERSIONS.stop - 1}"
        )
    return plan(cls, version, flexible=version >= cls.FLEXIBLE_SINCE)


def plan(cls: type[Any], version: int, *, flexible: bool) -> FieldPlan:
    """Return the plan of a structure inside a message of that version."""
    slots = tuple(_slots(cls, version))
    here = [slot for slot in slots if slot.presence.covers(version)]
    return FieldPlan(
        cls=cls,
        version=version,
        flexible=flexible,
        present=tuple(slot for slot in here if slot.presence.tag is None),
        tagged=tuple(
            sorted(
                (slot for slot in here if slot.presence.tag is not None),
                key=lambda slot: slot.presence.tag or 0,
            )
        ),
        absent=tuple(slot for slot in slots if not slot.presence.covers(version)),
    )


def _slots(cls: type[Any], version: int) -> Iterator[Slot]:
    for declared in fields(cls):
        presence = presence_of(declared.metadata)
        place = f"{cls.__name__}.{declared.name}"
        shape = _shape(declared.type, place, null_allowed=version >= presence.nullable_since)
        default = None if declared.default is MISSING else declared.default
        yield Slot(cls.__name__, declared.name, shape, default, presence)


def _shape(annotation: Any, place: str, *, null_allowed: bool) -> Shape:  # noqa: ANN401
    nullable = False
    kind: PrimitiveKind | None = None
    if get_origin(annotation) is Annotated:
        kind = next(word for word in annotation.__metadata__ if isinstance(word, PrimitiveKind))
        annotation = annotation.__origin__
    if get_origin(annotation) in (Union, UnionType):
        nullable = null_allowed and NoneType in get_args(annotation)
        rest = [option for option in get_args(annotation) if option is not NoneType]
        annotation = rest[0]
    if kind is not None:
        return Primitive(kind, nullable)
    if get_origin(annotation) is tuple:
        return Array(_shape(get_args(annotation)[0], place, null_allowed=True), nullable)
    assert is_dataclass(annotation), f"{place} is annotated with {annotation!r}"
    assert isinstance(annotation, type)
    return Structure(annotation, nullable)
