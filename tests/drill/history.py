"""What happened in a drill, as lines of JSON: who was told what, who saw what, and what was done.

Times are seconds of the machine's monotonic clock, which all processes share.
"""

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, TypeAlias

UNTOLD: Final = -1
GARBLED: Final = "garbled "
"""Begins the content of a record that is not what any producer built."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acked:
    """A producer was told that its record number `number` lies at this offset, safe for ever.

    The offset is UNTOLD where librdkafka concluded from the answer to a later batch that this one
    is there as well: the answer that had its offset was lost on the way.
    """

    at_s: float
    who: str
    log: str
    offset: int
    content: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A producer was told that its record may not have been written."""

    at_s: float
    who: str
    log: str
    number: int
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Aborted:
    """A producer gave this record up with its transaction: nobody may read it as committed."""

    at_s: float
    who: str
    log: str
    content: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A consumer was given this record.

    `is_final` when it read the whole log after everything, `in_group` when it shared the logs with
    the other members of the group.
    """

    at_s: float
    who: str
    log: str
    offset: int
    content: str
    is_final: bool = False
    in_group: bool = False
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """A member of the group was given a log, and has not asked yet where to begin."""

    at_s: float
    who: str
    log: str
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """A member was told that the group's position in a log is `offset` from now on."""

    at_s: float
    who: str
    log: str
    offset: int
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Somebody asked at `asked_s` for the group's position in a log, and was told `offset`."""

    asked_s: float
    at_s: float
    who: str
    log: str
    offset: int
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something was done to the drilled from `at_s` until `ended_s`."""

    at_s: float
    ended_s: float
    what: str


Event: TypeAlias = Acked | Refused | Aborted | Read | Took | Committed | Position | Fault
_KINDS: Final[Mapping[str, type[Any]]] = {
    kind.__name__: kind
    for kind in (Acked, Refused, Aborted, Read, Took, Committed, Position, Fault)
}


def line_of(event: Event) -> str:
    """Return the event as one line."""
    return json.dumps({"kind": type(event).__name__, **asdict(event)}) + "\n"


def event_of(line: str | bytes) -> Event:
    """Return the event of a whole line."""
    fields = json.loads(line)
    event: Event = _KINDS[fields.pop("kind")](**fields)
    return event


def read_events(files: Iterable[Path]) -> Iterator[Event]:
    """Return the events of all files; a line cut off by its writer's death is left out."""
    for file in files:
        for line in file.read_text().splitlines(keepends=True):
            if line.endswith("\n"):
                yield event_of(line)


def value_of(who: str, number: int, size: int) -> bytes:
    """Return a record's value: like no other, and telling by itself whether it is whole."""
    name = f"{who} {number} ".encode()
    body = name + (b"%08x" % zlib.crc32(name)) * (size // 8)
    return b"%08x " % zlib.crc32(body) + body


def keyed(content: str, key: bytes | None) -> str:
    """Return what identifies a record with a key: its content, then that."""
    return content if key is None else f"{content} {key.decode(errors='replace')}"


def content_of(value: bytes | None) -> str:
    """Return what identifies a record's value."""
    value = value or b""
    digest = blake2b(value, digest_size=8).hexdigest()
    told, _, body = value.partition(b" ")
    return digest if told == b"%08x" % zlib.crc32(body) else GARBLED + digest
