"""The words a message is written in: annotations for types, field specifiers for versions.

    @message
    class HeartbeatRequest:
        group_id: string
        generation_id: int32
        group_instance_id: nullable_string = since(3, default=None)
        API_KEY: ClassVar = 12 ...

Fields are written in the order in which they travel. An array is `tuple[X, ...]`, a structure is
another such dataclass, and `| None` makes either nullable. A field without a specifier is part of
all versions.
"""

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Final, Protocol, TypeAlias, TypeVar
from uuid import UUID

from wire.primitives import Buffer
from wire.values import frozen


class PrimitiveKind(Enum):
    """The primitive types of the protocol, without their compact and nullable forms."""

    BOOLEAN = "boolean"
    INT8 = "int8"
    INT16 = "int16"
    UINT16 = "uint16"
    INT32 = "int32"
    UINT32 = "uint32"
    INT64 = "int64"
    FLOAT64 = "float64"
    UUID = "uuid"
    STRING = "string"
    BYTES = "bytes"
    RECORDS = "records"


RecordsValue: TypeAlias = Buffer | tuple[Buffer, ...] | list[Buffer] | None

boolean: TypeAlias = Annotated[bool, PrimitiveKind.BOOLEAN]
int8: TypeAlias = Annotated[int, PrimitiveKind.INT8]
int16: TypeAlias = Annotated[int, PrimitiveKind.INT16]
uint16: TypeAlias = Annotated[int, PrimitiveKind.UINT16]
int32: TypeAlias = Annotated[int, PrimitiveKind.INT32]
uint32: TypeAlias = Annotated[int, PrimitiveKind.UINT32]
int64: TypeAlias = Annotated[int, PrimitiveKind.INT64]
float64: TypeAlias = Annotated[float, PrimitiveKind.FLOAT64]
uuid: TypeAlias = Annotated[UUID, PrimitiveKind.UUID]
string: TypeAlias = Annotated[str, PrimitiveKind.STRING]
nullable_string: TypeAlias = Annotated[str | None, PrimitiveKind.STRING]
bytes_: TypeAlias = Annotated[bytes, PrimitiveKind.BYTES]
nullable_bytes: TypeAlias = Annotated[bytes | None, PrimitiveKind.BYTES]
records_: TypeAlias = Annotated[RecordsValue, PrimitiveKind.RECORDS]
"""Record batches, never copied: decoded as a view, encoded from one bytes-like object or several
that follow one another. Null is None."""

NEVER_FLEXIBLE: Final = 2**15
"""FLEXIBLE_SINCE of a message that has no compact form."""


class Message(Protocol):
    """The part of a top-level class that the codec uses."""

    VERSIONS: ClassVar[range]
    FLEXIBLE_SINCE: ClassVar[int]


class ApiMessage(Message, Protocol):
    """A request or a response."""

    API_KEY: ClassVar[int]


class AnyRequest(ApiMessage, Protocol):
    """A request whose class is chosen at run time."""

    RESPONSE: ClassVar[type[Any]]


Response_co = TypeVar("Response_co", covariant=True)


class Request(Protocol[Response_co]):
    """A request, by the class of its answer: `def ask(message: Request[R]) -> R`."""

    API_KEY: ClassVar[int]
    VERSIONS: ClassVar[range]
    FLEXIBLE_SINCE: ClassVar[int]

    @property
    def RESPONSE(self) -> type[Response_co]:  # noqa: N802 - a class constant, seen from outside
        """The class of the answer."""
        ...


@frozen
class Presence:
    """In which versions a field is there, and how. Versions are inclusive on both ends."""

    since: int = 0
    until: int = NEVER_FLEXIBLE
    nullable_since: int = 0
    tag: int | None = None
    ignorable: bool = False

    def covers(self, version: int) -> bool:
        """Whether the field is part of `version`."""
        return self.since <= version <= self.until


ALWAYS: Final = Presence()
_KEY: Final = "wire"


def _field(default: object, presence: Presence) -> Any:  # noqa: ANN401 - stands for any field
    return field(default=default, metadata={_KEY: presence})


def presence_of(metadata: Mapping[str, Any] | MappingProxyType[Any, Any]) -> Presence:
    """Return what the specifiers below stored with a dataclass field."""
    presence: Presence = metadata.get(_KEY, ALWAYS)
    return presence


def since(
    version: int,
    *,
    default: object,
    until: int = NEVER_FLEXIBLE,
    nullable_since: int = 0,
    ignorable: bool = False,
) -> Any:  # noqa: ANN401
    """Say that a field exists from `version` on, up to and including `until`.

    In other versions it decodes as `default`, and must hold it when encoded unless it is
    `ignorable`, which means that it may silently be left out.
    """
    return _field(
        default,
        Presence(since=version, until=until, nullable_since=nullable_since, ignorable=ignorable),
    )


def until(
    version: int, *, default: object, nullable_since: int = 0, ignorable: bool = False
) -> Any:  # noqa: ANN401
    """Say that a field exists up to and including `version`; otherwise as `since`."""
    return _field(
        default, Presence(until=version, nullable_since=nullable_since, ignorable=ignorable)
    )


def nullable_since(version: int, *, default: object) -> Any:  # noqa: ANN401
    """Say that a field exists always but may be null from `version` on only."""
    return _field(default, Presence(nullable_since=version))


def tagged(tag: int, *, since: int, default: object, ignorable: bool = False) -> Any:  # noqa: ANN401
    """Say that a field travels as tagged field `tag` from `since` on, unless it is `default`."""
    return _field(default, Presence(since=since, tag=tag, ignorable=ignorable))
