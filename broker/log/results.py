"""The log's answers: closed unions of values for the expected, one exception for the disk."""

import os
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import NamedTuple, TypeAlias

from broker.log.open_file import OpenFile
from wire.errors import ErrorCode


class StorageError(Exception):
    """The disk failed at `path`; everything in that log folder is offline (KAFKA_STORAGE_ERROR)."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"

    def again(self) -> "StorageError":
        """Return the same to be raised once more."""
        return StorageError(self.path, self.reason)

    @classmethod
    def from_os(cls, path: Path, error: OSError) -> "StorageError":
        """Return the fault for what the system said of the file at `path`."""
        return cls(path, os.strerror(error.errno) if error.errno else str(error))


class FolderRefused(StorageError):
    """A log folder that is not this broker's, or a partition that is in two: it does not start.

    Not the disk's fault, so the folder is not just offline: somebody has to look at it.
    """


class AppendOrigin(Enum):
    """The writer of a batch, which decides how much is checked (Kafka's AppendOrigin)."""

    CLIENT = "a producer: exactly one batch, base offset 0, sequences checked"
    VERIFIED_CLIENT = "the same; its coordinator says that a transaction is open in this partition"
    COORDINATOR = "this broker itself: control batches allowed, sequences not checked"


class AppendResult(NamedTuple):
    """The records are in the log (and in the page cache: they survive the death of the process)."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    """-1 unless message.timestamp.type=LogAppendTime."""
    log_start_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """An idempotent producer's batch that is already there; answered as a success, not appended."""

    base_offset: int
    last_offset: int
    timestamp_ms: int
    log_start_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRefused:
    """Nothing was appended. `error` is the Kafka code to answer, `reason` a line for people."""

    error: ErrorCode
    reason: str
    record_errors: tuple[tuple[int, str], ...] = ()
    """The records that are to blame, by their number in the batch, each with a line (KIP-467)."""


Appended: TypeAlias = AppendResult | Duplicate | BatchRefused


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetOutOfRange:
    """The offset lies before the log's start or behind its end (OFFSET_OUT_OF_RANGE)."""

    log_start_offset: int
    log_end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimestampOffset:
    """A record found by time: its own timestamp and offset, and the epoch of its batch."""

    timestamp_ms: int
    offset: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class FileSlice:
    """Bytes of one segment: whole batches, for `os.sendfile(out, slice.file.fileno(), ...)`.

    The slice keeps its file open, also when the segment is deleted meanwhile; drop it soon.
    """

    file: OpenFile | None
    """None exactly when `length` is 0: there is nothing to read at that offset (yet)."""
    position: int
    length: int
    end_offset: int = 0
    """No batch in it, complete or not, reaches this offset; 0 where nothing was looked for."""

    def read(self) -> bytes:
        """Return the bytes. Raises StorageError when the disk fails."""
        if self.file is None:
            return b""
        try:
            return self.file.read(self.position, self.length)
        except OSError as error:
            raise StorageError.from_os(self.file.path, error) from error


NOTHING = FileSlice(None, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryReport:
    """The part that recovery cut off one partition after an unclean stop; one line by str()."""

    folder: Path
    segment: str
    """The segment's file name."""
    position: int
    """Byte in that file from which everything was cut."""
    cut_bytes: int
    """All bytes removed: the segment's tail and every later segment."""
    next_offset: int
    """The log's end from now on."""
    reason: str

    def __str__(self) -> str:
        return (
            f"{self.folder / self.segment}: cut {self.cut_bytes} bytes from byte {self.position} "
            f"on, the log now ends at offset {self.next_offset}: {self.reason}"
        )
