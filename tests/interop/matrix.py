"""What ran on what: one row for each interop test and peer, kept in build/interop*.json."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

BUILD: Final = Path(__file__).parents[2] / "build"
RESULTS: Final = BUILD / "interop.json"
"""The rows of the last whole run."""
QUICK_RESULTS: Final = BUILD / "interop-quick.json"

PASSED: Final = "yes"
FAILED: Final = "FAILED"
NOT_RUN: Final = "not run: "
"""A peer could not be had or did not start: nothing is known."""
DIFFERS: Final = "differs: "
"""It works, but not in every point as it is meant to; the points follow."""
NOT_APPLICABLE: Final = "n/a: "
"""One of the two sides has no such feature."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A foreign program as it is named in the matrix."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One behaviour of `subject`, shown (or not) against one peer."""

    subject: str
    behaviour: str
    against: str
    outcome: str
    """PASSED, FAILED, or DIFFERS, NOT_RUN or NOT_APPLICABLE and more words."""

    @property
    def was_not_run(self) -> bool:
        return self.outcome.startswith(NOT_RUN)

    @property
    def place(self) -> tuple[str, str, str]:
        """Return what identifies the row."""
        return self.subject, self.behaviour, self.against


def merged(kept: Iterable[Row], new: Iterable[Row]) -> list[Row]:
    """Return the rows with the new ones in their places."""
    rows = {row.place: row for row in kept}
    rows |= {row.place: row for row in new}
    return list(rows.values())


def read_rows(path: Path = RESULTS) -> list[Row]:
    """Return the rows of a run; none if there was no run."""
    if not path.exists():
        return []
    return [Row(**row) for row in json.loads(path.read_text())]


def write_rows(rows: Iterable[Row], path: Path) -> None:
    """Keep the rows of a run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


def by_subject(rows: Iterable[Row]) -> Mapping[str, list[Row]]:
    """Return the rows of each subject, both in order of first appearance."""
    subjects: dict[str, list[Row]] = {}
    for row in rows:
        subjects.setdefault(row.subject, []).append(row)
    return subjects


def table(rows: list[Row]) -> list[str]:
    """Return one subject's rows as a Markdown table: behaviours down, peers across."""
    peers = list(dict.fromkeys(row.against for row in rows))
    cells = {(row.behaviour, row.against): row.outcome for row in rows}
    lines = [f"| | {' | '.join(peers)} |", f"|---|{'---|' * len(peers)}"]
    for behaviour in dict.fromkeys(row.behaviour for row in rows):
        outcomes = [cells.get((behaviour, peer), "-") for peer in peers]
        lines.append(f"| {behaviour} | {' | '.join(outcomes)} |")
    return lines
