"""One folder of log.dirs: its lock, its owner, its marks and checkpoints, and whether it failed."""

import contextlib
import errno
import fcntl
import logging
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from broker.log import checkpoints
from broker.log.checkpoints import LogsBefore, MetaProperties
from broker.log.results import FolderRefused, StorageError
from wire.topic_partition import TopicPartition

LOG: Final = logging.getLogger(__name__)

DELETED: Final = "-delete"
STRAY: Final = "-stray"
_LOCK: Final = ".lock"
_PROBE: Final = ".probe"
_PROBE_BYTES: Final = 4096
_NAME_LIMIT: Final = 255


class LogDirectory:
    """A log folder held by this process.

    was_clean   whether the broker that had it last was stopped cleanly
    failure     set once, when the disk failed: everything in it is offline until a restart
    """

    def __init__(self, path: Path, owner: MetaProperties) -> None:
        """Lock and check the folder, made if it is not there; one whose disk fails is offline.

        Raises FolderRefused for one that is somebody else's.
        """
        self.path = path
        self.failure: StorageError | None = None
        self.recovery_points: dict[TopicPartition, int] = {}
        self.log_starts: dict[TopicPartition, int] = {}
        self.cleaned: dict[TopicPartition, int] = {}
        self.retired: list[Path] = []
        """Files that no log needs any more, to be removed by who may wait for the disk."""
        self.logs_before = LogsBefore()
        """What the broker held when the folder was made."""
        self.was_clean = False
        self._lock = -1
        try:
            self._take(owner)
        except FolderRefused:
            self.unlock()
            raise
        except StorageError as failure:
            self.unlock()
            self.blame(failure)

    def _take(self, owner: MetaProperties) -> None:
        self._lock = _lock(self.path)
        self._claim(owner)
        self.logs_before = checkpoints.read_logs_before(self.path / checkpoints.LOGS_BEFORE)
        self.recovery_points = _read_offsets(self.path / checkpoints.RECOVERY_POINTS)
        self.log_starts = _read_offsets(self.path / checkpoints.LOG_STARTS)
        self.cleaned = _read_offsets(self.path / checkpoints.CLEANER_OFFSETS)
        self.was_clean = self._consume_mark()

    def _claim(self, owner: MetaProperties) -> None:
        file = self.path / checkpoints.META_PROPERTIES
        found = checkpoints.read_meta_properties(file)
        if found is not None and found != owner:
            raise FolderRefused(
                file,
                f"belongs to broker {found.broker_id} of cluster {found.cluster_id}, "
                f"not to broker {owner.broker_id} of cluster {owner.cluster_id}",
            )
        with _naming(self.path):
            _probe(self.path / _PROBE)
        if found is None:
            with _naming(file):
                checkpoints.write_meta_properties(file, owner)

    def _consume_mark(self) -> bool:
        mark = self.path / checkpoints.CLEAN_SHUTDOWN
        with _naming(mark):
            was_clean = mark.exists()
            mark.unlink(missing_ok=True)
        return was_clean

    def partitions(self) -> dict[TopicPartition, Path]:
        """Return the partition folders in it."""
        with _naming(self.path):
            folders = [entry for entry in self.path.iterdir() if entry.is_dir()]
        named = ((parse_folder_name(folder.name), folder) for folder in folders)
        return {name: folder for name, folder in named if name is not None}

    def doomed(self) -> list[Path]:
        """Return the folders of deleted partitions that wait for their removal."""
        with _naming(self.path):
            return [entry for entry in self.path.iterdir() if entry.name.endswith(DELETED)]

    @contextlib.contextmanager
    def guard(self, path: Path) -> Iterator[None]:
        """Refuse to go on in a failed folder; an OSError within fails it. Raises StorageError."""
        self.refuse_if_offline()
        try:
            yield
        except OSError as error:
            raise self.fail(path, error) from error

    def refuse_if_offline(self) -> None:
        """Raise the StorageError that took the folder offline, if one did.

        A new one each time: raised again and again, one exception would collect every traceback.
        """
        if self.failure is not None:
            raise self.failure.again()

    def fail(self, path: Path, error: OSError) -> StorageError:
        """Take the folder offline; return the reason, which is the first one for good."""
        return self.blame(StorageError.from_os(path, error))

    def blame(self, failure: StorageError) -> StorageError:
        """Take the folder offline because of `failure`, unless another was first; return that."""
        self.failure = self.failure or failure.again()
        return self.failure.again()

    def write_checkpoints(self, *, sync: bool) -> None:
        """Save recovery points and log starts. Raises OSError."""
        checkpoints.write_offsets(
            self.path / checkpoints.RECOVERY_POINTS, self.recovery_points, sync=sync
        )
        checkpoints.write_offsets(self.path / checkpoints.LOG_STARTS, self.log_starts, sync=sync)

    def note_cleaned(self, name: TopicPartition, offset: int) -> None:
        """Save up to where a log is compacted. Raises OSError."""
        self.cleaned[name] = offset
        checkpoints.write_offsets(self.path / checkpoints.CLEANER_OFFSETS, self.cleaned)

    def lower(self, name: TopicPartition, offset: int) -> None:
        """See to it that no saved offset of a log lies above `offset`. Raises OSError.

        A recovery point above a truncation would let a later recovery pass over unflushed records,
        a log start above the end would make it delete the log, and a cleaner's offset above it
        would leave later records uncompacted.
        """
        if self.cleaned.get(name, 0) > offset:
            self.note_cleaned(name, offset)
        saved = (self.recovery_points, self.log_starts)
        if all(offsets.get(name, 0) <= offset for offsets in saved):
            return
        for offsets in saved:
            if name in offsets:
                offsets[name] = min(offsets[name], offset)
        self.write_checkpoints(sync=True)

    def forget(self, names: Iterable[TopicPartition]) -> None:
        """Save nothing any more of logs that are gone. Raises OSError."""
        known_cleaned = len(self.cleaned)
        for name in names:
            for offsets in (self.cleaned, self.recovery_points, self.log_starts):
                offsets.pop(name, None)
        if len(self.cleaned) != known_cleaned:
            checkpoints.write_offsets(self.path / checkpoints.CLEANER_OFFSETS, self.cleaned)
        self.write_checkpoints(sync=True)

    def mark_clean(self) -> None:
        """Leave the mark that lets the next start trust what it finds. Raises OSError."""
        checkpoints.write_clean_shutdown(self.path / checkpoints.CLEAN_SHUTDOWN)

    def unlock(self) -> None:
        """Let another process have the folder."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def folder_name(topic: str, partition: int) -> str:
    """Return a partition's folder name. Raises ValueError for a topic name that is none."""
    if not is_topic_name(topic):
        raise ValueError(f"{topic!r} is not a topic name")
    return str(TopicPartition(topic, partition))


def is_topic_name(name: str) -> bool:
    """Say whether Kafka allows the name: 1 to 249 of `a-z A-Z 0-9 . _ -`, not `.` nor `..`."""
    if not 0 < len(name) <= 249 or name in (".", ".."):
        return False
    return all(char.isascii() and (char.isalnum() or char in "._-") for char in name)


def parse_folder_name(name: str) -> TopicPartition | None:
    """Return whose folder this is, None if it is no partition's."""
    topic, dash, partition = name.rpartition("-")
    if not dash or not partition.isdecimal() or not is_topic_name(topic):
        return None
    return TopicPartition(topic, int(partition))


def name_aside(name: str, kind: str) -> str:
    """Return a new name for a partition's folder that is none any more: `<name>.<id>-delete`."""
    suffix = f".{secrets.token_hex(16)}{kind}"
    return name[: _NAME_LIMIT - len(suffix)] + suffix


def _read_offsets(path: Path) -> dict[TopicPartition, int]:
    """Return a checkpoint; a damaged one counts as none, which costs a longer recovery."""
    try:
        return checkpoints.read_offsets(path)
    except StorageError as fault:
        LOG.warning("%s; it is passed over", fault)
        return {}


def _lock(path: Path) -> int:
    if path.exists() and not path.is_dir():
        raise StorageError(path, os.strerror(errno.ENOTDIR))
    with _naming(path):
        path.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Java locks this file the other way; the two kinds do not see each other.
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        os.close(descriptor)
        raise FolderRefused(path, "is in use by another broker process") from None
    except OSError as error:
        os.close(descriptor)
        raise StorageError.from_os(path, error) from error
    return descriptor


def _probe(path: Path) -> None:
    """Write and remove a file, to find a folder that is read-only or full at the start."""
    try:
        with path.open("wb") as file:
            file.write(bytes(_PROBE_BYTES))
    finally:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turn an OSError into a StorageError that names the path."""
    try:
        yield
    except OSError as error:
        raise StorageError.from_os(path, error) from error
