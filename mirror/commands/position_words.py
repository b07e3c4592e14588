"""The words behind `mirror offsets` and `mirror translate`, and the files they exchange. Pure.

Positions travel as the lines that Kafka's own kafka-consumer-groups exports and resets from:
`group,topic,partition,offset`, quoted as CSV.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from wire.values import frozen

COLUMNS: Final = ("group", "topic", "partition", "offset")
FILE_LIMIT_BYTES: Final = 64 * 1024 * 1024
MAX_OFFSET: Final = 2**63 - 1
MAX_PARTITION: Final = 2**31 - 1


class PositionsUnreadable(ValueError):
    """A command line or a file of positions that makes no sense; the message says where."""


@frozen(kw_only=False)
class Show:
    """Show a group's positions on both sides."""

    group: str


@frozen(kw_only=False)
class Export:
    """Write the translated positions of these groups, of all if none is named."""

    groups: tuple[str, ...]


@frozen(kw_only=False)
class Import:
    """Commit the positions of a file on the target."""

    file: Path


@frozen(kw_only=False)
class GroupName:
    """Translate all positions of a group."""

    group: str


@frozen(kw_only=False)
class PartitionOffset:
    """Translate one offset."""

    topic: str
    partition: int
    offset: int


@frozen(kw_only=False)
class Line:
    """One position of a file, and where it stands there."""

    group: str
    topic: str
    partition: int
    offset: int
    number: int


OffsetsWords: TypeAlias = Show | Export | Import


def parse_offsets(words: Sequence[str]) -> OffsetsWords:
    """Return the request in the words behind `mirror offsets`; raises PositionsUnreadable."""
    match words:
        case ["export", *groups]:
            return Export(tuple(groups))
        case ["import", file]:
            return Import(Path(file))
        case ["import", *_]:
            raise PositionsUnreadable("offsets import wants one file of positions")
        case ["show", group] | [group]:
            return Show(group)
        case _:
            raise PositionsUnreadable(
                "offsets wants one group, or export [GROUP ...], or import POSITIONS"
            )


def parse_what(what: str) -> GroupName | PartitionOffset:
    """Return TOPIC:PARTITION:OFFSET as a place; anything else names a group.

    No topic has a colon in its name; a group may, and `mirror translate --group` takes it as such.
    """
    topic, _, rest = what.partition(":")
    partition, colon, offset = rest.partition(":")
    if not (topic and colon and partition.isdecimal() and offset.isdecimal()):
        return GroupName(what)
    position = PartitionOffset(topic, int(partition), int(offset))
    if position.partition > MAX_PARTITION or position.offset > MAX_OFFSET:
        raise PositionsUnreadable(f"{what}: there is no such partition or offset")
    return position


def write_lines(positions: Iterable[tuple[str, str, int, int]]) -> str:
    """Return (group, topic, partition, offset) as the lines of a file."""
    return "".join(
        f"{_quoted(group)},{topic},{partition},{offset}\n"
        for group, topic, partition, offset in positions
    )


def _quoted(name: str) -> str:
    """Return a name as a CSV field; in quotes unless all of it is plainly part of a name."""
    if name and name.isprintable() and name == name.strip() and not set(name) & {",", '"'}:
        return name
    return '"' + name.replace('"', '""') + '"'


def read_lines(name: str, text: str) -> list[Line]:
    """Return the positions of a file; raises PositionsUnreadable naming file, line and column."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    found: dict[tuple[str, str, int], Line] = {}
    try:
        for fields in reader:
            if not fields or (reader.line_num == 1 and tuple(fields) == COLUMNS):
                continue
            line = _line(f"{name}:{reader.line_num}", reader.line_num, fields)
            key = (line.group, line.topic, line.partition)
            if key in found:
                raise PositionsUnreadable(
                    f"{name}:{line.number}: {line.topic}-{line.partition} of group {line.group} "
                    f"stands on line {found[key].number} already"
                )
            found[key] = line
    except csv.Error as error:
        raise PositionsUnreadable(f"{name}:{reader.line_num}: {error}") from error
    return list(found.values())


def _line(where: str, number: int, fields: Sequence[str]) -> Line:
    if len(fields) != len(COLUMNS):
        raise PositionsUnreadable(
            f"{where}: {len(fields)} columns, not {len(COLUMNS)}: {', '.join(COLUMNS)}"
        )
    group = fields[0]  # blanks at its ends are part of a group's name
    topic, partition, offset = (field.strip() for field in fields[1:])
    if not topic:
        raise PositionsUnreadable(f"{where}: topic: is empty")
    for column, word, limit in (
        ("partition", partition, MAX_PARTITION),
        ("offset", offset, MAX_OFFSET),
    ):
        if not (word.isascii() and word.isdecimal()) or int(word) > limit:
            raise PositionsUnreadable(
                f"{where}: {column}: {word!r} is not a number from 0 to {limit}"
            )
    return Line(group, topic, int(partition), int(offset), number)
