"""The folder a result lies in: findings and summary as Parquet, verdict.json, audit.prom.

    DIR/findings/*.parquet    DIR/summary/*.parquet    DIR/verdict.json    DIR/audit.prom
    DIR/earlier.json    DIR/history/NIGHT.json

One folder holds one result. A new one replaces it whole when it is complete, so that a reader never
sees the numbers of one run beside the findings of another; other files are left alone. The memory
of earlier audits (`earlier`) stays until an audit that could tell renews it, and a night's verdict
(`history`) for HISTORY_NIGHTS nights. Of two audits at once the second is refused: it would mix its
files with the other's.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from spark_audit.compare.summary import ARROW_FINDINGS
from spark_audit.result import history
from spark_audit.result.history import KeptVerdict, UnreadableNight
from spark_audit.result.verdict import Verdict

FINDINGS: Final = "findings"
SUMMARY: Final = "summary"
VERDICT: Final = "verdict.json"
PROMETHEUS: Final = "audit.prom"
EARLIER: Final = "earlier.json"
HISTORY: Final = "history"
HISTORY_NIGHTS: Final = 400
_PARTS: Final = (FINDINGS, SUMMARY, PROMETHEUS, VERDICT)
_UNFINISHED: Final = ".new-"


class ResultUnusable(Exception):
    """A result cannot be written or read; one line that names the file."""


class Result:
    """A result folder, complete or still being written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def append(
        self, findings: Sequence[Mapping[str, Any]], summary: Sequence[Mapping[str, Any]]
    ) -> None:
        """Add one flow's rows, each kind as a file of its own."""
        tables = {
            FINDINGS: pa.Table.from_pylist(list(findings), schema=ARROW_FINDINGS),
            SUMMARY: pa.Table.from_pylist(list(summary)),
        }
        for name, table in tables.items():
            folder = self.folder / name
            folder.mkdir(exist_ok=True)
            pq.write_table(table, folder / f"part-{len(list(folder.iterdir())):05}.parquet")

    def findings(self, kind: str | None = None) -> Sequence[Mapping[str, Any]]:
        """Return the findings, of one kind or all, each flow's in order.

        Raises ResultUnusable for files that are damaged.
        """
        return self._rows(FINDINGS, None if kind is None else [("kind", "=", kind)])

    def require_findings(self) -> None:
        """Raise ResultUnusable if the folder of the findings is gone: none are listed then."""
        if not (self.folder / FINDINGS).is_dir():
            raise ResultUnusable(f"{self.folder / FINDINGS} is gone: run the audit again")

    def verdict_text(self) -> str:
        """Return verdict.json; raises ResultUnusable if there is none."""
        path = self.folder / VERDICT
        try:
            return path.read_text()
        except OSError as error:
            raise ResultUnusable(f"{path}: {error.strerror}") from error

    def nights(self) -> list[str]:
        """Return the nights that are kept, in order."""
        return sorted(path.stem for path in (self.folder / HISTORY).glob("*.json"))

    def night(self, name: str) -> KeptVerdict:
        """Return the verdict of a night; raises ResultUnusable if there is none."""
        path = self.folder / HISTORY / f"{name}.json"
        if name not in self.nights():
            raise ResultUnusable(f"{self.folder}: no night {name!r}; see `spark-audit history`")
        try:
            return history.decode(name, path.read_text())
        except (OSError, ValueError) as error:
            raise ResultUnusable(f"{path}: {error}") from error

    def newest_nights(self, most: int) -> list[KeptVerdict | UnreadableNight]:
        """Return so many nights at most, the newest last, and which of them cannot be read."""
        found: list[KeptVerdict | UnreadableNight] = []
        for name in self.nights()[-most:]:
            try:
                found.append(self.night(name))
            except ResultUnusable as why:
                found.append(UnreadableNight(name, str(why)))
        return found

    def keep_night(self, verdict: Verdict) -> None:
        """Keep what this night found."""
        one = history.kept(verdict, self.findings())
        (self.folder / HISTORY).mkdir(exist_ok=True)
        self.write_text(f"{HISTORY}/{one.night}.json", history.encode(one))

    def write_text(self, name: str, text: str) -> None:
        """Write one of the small files."""
        (self.folder / name).write_text(text)

    def _rows(self, name: str, filters: list[tuple[str, str, str]] | None) -> list[dict[str, Any]]:
        if not (self.folder / name).is_dir():
            return []
        try:
            table = pq.read_table(self.folder / name, filters=filters)
        except (pa.ArrowException, OSError) as error:
            raise ResultUnusable(f"{self.folder / name}: {error}") from error
        rows: list[dict[str, Any]] = table.to_pylist()
        return rows


@contextmanager
def replace_result(folder: Path) -> Iterator[Result]:
    """Give a result to write; what is complete at the end of the block takes the folder over.

    Raises ResultUnusable if the folder cannot be made or written, or if another audit is about to.
    When the block fails, what was there stays.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _held(folder), TemporaryDirectory(prefix=_UNFINISHED, dir=folder) as made:
            yield Result(Path(made))
            # First, and the new one comes last: what is cut short here is no result at all.
            (folder / VERDICT).unlink(missing_ok=True)
            if (remembered := Path(made) / EARLIER).exists():
                remembered.replace(folder / EARLIER)
            _add_nights(Path(made) / HISTORY, folder / HISTORY)
            for part in _PARTS:
                _replace(Path(made) / part, folder / part)
    except OSError as error:
        raise ResultUnusable(f"{error.filename or folder}: {error.strerror}") from error


def _add_nights(new: Path, kept: Path) -> None:
    """Move tonight's file to the others, and remove the oldest of too many."""
    for night in sorted(new.glob("*.json")):
        kept.mkdir(exist_ok=True)
        night.replace(kept / night.name)
    for old in sorted(kept.glob("*.json"))[:-HISTORY_NIGHTS]:
        old.unlink()


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Keep the folder from other audits for the block, and remove what killed ones left in it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        if _locked(descriptor, folder):
            for left in folder.glob(f"{_UNFINISHED}*"):
                shutil.rmtree(left, ignore_errors=True)
        yield
    finally:
        os.close(descriptor)


def _locked(descriptor: int, folder: Path) -> bool:
    """Lock the folder; False where the file system has no locks for folders, as NFS."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise ResultUnusable(f"{folder}: another audit is writing its result there") from error
    except OSError:
        return False
    return True


def _replace(new: Path, old: Path) -> None:
    if old.is_dir():
        shutil.rmtree(old)
    else:
        old.unlink(missing_ok=True)
    if new.exists():
        new.rename(old)
