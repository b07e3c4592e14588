"""Putting a compacted segment in the place of those it was made from, so that a crash does no harm.

    1  <base>.log.cleaned and its indexes are written and brought to the platter
    2  each is renamed to .swap                       up to here a crash undoes the compaction,
    3  the old segments' files are removed            from here on the next start completes it
    4  each .swap is renamed to its proper name

Names and recovery are those of Kafka's LocalLog.replaceSegments and LogLoader.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from broker.log.batch_walk import walk
from broker.log.open_file import OpenFile
from broker.log.segment import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    Segment,
    file_name,
)

CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"
_PARTS: Final = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)


def begin_cleaned(folder: Path, base_offset: int, now_ms: int) -> Segment:
    """Make the empty segment that a compaction writes to. Raises OSError."""
    for path in _files(folder, base_offset, CLEANED):
        path.unlink()
    return Segment(folder, base_offset, now_ms, suffix=CLEANED)


def swap_in(
    folder: Path, base_offset: int, old: Sequence[Segment], now_ms: int
) -> tuple[Segment, list[Path]]:
    """Replace `old` segments by the cleaned one at that offset. Raises OSError.

    Return it, and the files that are left of the others.
    """
    for path in _files(folder, base_offset, CLEANED):
        path.rename(path.with_suffix(SWAP))
    left = [segment.retire() for segment in old]
    for path in _files(folder, base_offset, SWAP):
        path.rename(path.with_suffix(""))
    segment = Segment(folder, base_offset, now_ms)
    segment.load_timestamps()
    return segment, left


def sync_cleaned(segment: Segment, modified_ns: int) -> None:
    """Bring a cleaned segment to the platter, as old as what it was made from. Raises OSError."""
    os.utime(segment.path, ns=(modified_ns, modified_ns))
    for path in _files(segment.path.parent, segment.base_offset, CLEANED):
        _sync(OpenFile(path, os.O_RDWR))


def sync_folder(folder: Path) -> None:
    """Bring a folder's names to the platter. Raises OSError."""
    _sync(OpenFile(folder, os.O_RDONLY | os.O_DIRECTORY))


def _sync(file: OpenFile) -> None:
    os.fsync(file.fileno())


def finish_swaps(folder: Path, names: Sequence[str]) -> bool:
    """Undo or complete what a crash interrupted; `names` are all in the folder.

    Returns whether there was anything. Raises OSError, and StorageError for a swapped segment that
    cannot be read.
    """
    names = [name for name in names if name.partition(".")[0].isdecimal()]
    cleaned = [name for name in names if name.endswith(CLEANED)]
    swapped = [name for name in names if name.endswith(SWAP)]
    # Not all of a segment's files have got their second name: none of them counts.
    first_cleaned = min(map(_offset, cleaned), default=None)
    if first_cleaned is not None:
        cleaned += [name for name in swapped if _offset(name) >= first_cleaned]
    for name in cleaned:
        (folder / name).unlink()
    whole = sorted({_offset(name) for name in set(swapped) - set(cleaned)})
    for base_offset in whole:
        _complete(folder, base_offset, names)
    return bool(cleaned or whole)


def _complete(folder: Path, base_offset: int, names: Sequence[str]) -> None:
    log = folder / file_name(base_offset, LOG_SUFFIX + SWAP)
    if log.exists():
        end = _end(log, base_offset)
        for name in names:
            of_segment = any(name.endswith(part) for part in _PARTS)
            if of_segment and base_offset <= _offset(name) < end:
                (folder / name).unlink(missing_ok=True)
    # The log is the first to get its proper name; where it has it, the old files are gone.
    for path in _files(folder, base_offset, SWAP):
        path.rename(path.with_suffix(""))


def _end(log: Path, base_offset: int) -> int:
    file = OpenFile(log)
    size = os.fstat(file.fileno()).st_size
    end = base_offset
    for placed in walk(file, 0, size):
        end = placed.header.next_offset
    return end


def _files(folder: Path, base_offset: int, suffix: str) -> Iterator[Path]:
    """Yield those of a segment's files that are there under that suffix; the log is the first."""
    paths = (folder / file_name(base_offset, part + suffix) for part in _PARTS)
    return (path for path in paths if path.exists())


def _offset(name: str) -> int:
    return int(name.partition(".")[0])
