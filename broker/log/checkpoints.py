"""The small text files beside the logs, in Kafka's formats, each replaced atomically.

recovery-point-offset-checkpoint    per log folder: below it everything is on the platter
log-start-offset-checkpoint         per log folder: log starts that DeleteRecords has moved
replication-offset-checkpoint       per log folder: high watermarks, of the replica layer
cleaner-offset-checkpoint           per log folder: up to where compacted logs are compacted
leader-epoch-checkpoint             per partition: where each leader epoch began
partition.metadata                  per partition: the topic's id
meta.properties                     per log folder: whose it is
logs-before-checkpoint              per log folder, ours: what the broker held before it was made
.kafka_cleanshutdown                per log folder: the last stop was a clean one
"""

import base64
import contextlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from broker.log.results import FolderRefused, StorageError
from wire.topic_partition import TopicPartition

RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
CLEANER_OFFSETS: Final = "cleaner-offset-checkpoint"
LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"
META_PROPERTIES: Final = "meta.properties"
LOGS_BEFORE: Final = "logs-before-checkpoint"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"

_VERSION: Final = "0"
_ANY_PARTITION: Final = "*"


class LogBefore(NamedTuple):
    """A partition that a broker held before a log folder was made: its log may have been lost."""

    topic_id: bytes
    partition: int


@dataclass(frozen=True, slots=True)
class LogsBefore:
    """What a broker held, or for all that was known may have held, before a folder was made.

    topics   those whose assignment could not be read then: any partition of them may be meant
    """

    logs: frozenset[LogBefore] = frozenset()
    topics: frozenset[str] = frozenset()

    def may_have(self, name: TopicPartition, topic_id: bytes) -> bool:
        """Say whether the log of a partition may have been lost."""
        return name.topic in self.topics or LogBefore(topic_id, name.partition) in self.logs


class MetaProperties(NamedTuple):
    """The owner of a log folder. Version 0 is a broker of a cluster with ZooKeeper."""

    broker_id: int
    cluster_id: str


def write_atomically(path: Path, data: bytes, *, sync: bool) -> None:
    """Replace the file at `path`, so that a reader sees the old or the new content, whole.

    `sync` also makes it survive the machine's death; the process's death it survives anyway.
    Raises OSError, the old content then being untouched.
    """
    temporary = path.with_name(path.name + ".tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def read_optional(path: Path) -> str | None:
    """Return the file's text, None if there is no such file. Raises StorageError otherwise."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError.from_os(path, error) from error
    except UnicodeDecodeError as error:
        raise StorageError(path, "not a text file") from error


def read_offsets(path: Path) -> dict[TopicPartition, int]:
    """Return `topic partition offset` per line; nothing if there is no such file.

    Raises StorageError for a file that is damaged.
    """
    offsets: dict[TopicPartition, int] = {}
    for topic, partition, offset in _read_entries(path, 3):
        offsets[TopicPartition(topic, _number(path, partition))] = _number(path, offset)
    return offsets


def write_offsets(path: Path, offsets: Mapping[TopicPartition, int], *, sync: bool = False) -> None:
    """Replace an offset checkpoint. Raises OSError."""
    lines = (f"{key.topic} {key.partition} {offset}" for key, offset in sorted(offsets.items()))
    write_atomically(path, _entries(lines), sync=sync)


def read_epochs(path: Path) -> tuple[tuple[int, int], ...]:
    """Return (epoch, start offset) pairs. Raises StorageError for a file that is damaged."""
    return tuple(
        (_number(path, epoch), _number(path, start)) for epoch, start in _read_entries(path, 2)
    )


def write_epochs(path: Path, epochs: Iterable[tuple[int, int]], *, sync: bool = False) -> None:
    """Replace a leader-epoch checkpoint. Raises OSError."""
    write_atomically(path, _entries(f"{epoch} {start}" for epoch, start in epochs), sync=sync)


def read_topic_id(path: Path) -> bytes | None:
    """Return the 16 bytes of the topic's id in partition.metadata, None if there is none yet.

    Raises StorageError for a file that says something else.
    """
    text = read_optional(path)
    if not text:
        return None
    fields = _fields(text, ":")
    try:
        return base64.urlsafe_b64decode(fields["topic_id"] + "==")
    except (KeyError, ValueError) as error:
        raise StorageError(path, "no topic_id in it") from error


def write_topic_id(path: Path, topic_id: bytes) -> None:
    """Write partition.metadata. Raises OSError."""
    text = base64.urlsafe_b64encode(topic_id).decode().rstrip("=")
    write_atomically(path, f"version: {_VERSION}\ntopic_id: {text}".encode(), sync=False)


def read_logs_before(path: Path) -> LogsBefore:
    """Return what was noted when the folder was made. Raises StorageError for a damaged file."""
    logs, topics = set[LogBefore](), set[str]()
    for topic, partition in _read_entries(path, 2):
        if partition == _ANY_PARTITION:
            topics.add(unquote(topic))
            continue
        try:
            logs.add(LogBefore(bytes.fromhex(topic), _number(path, partition)))
        except ValueError:
            raise StorageError(path, f"{topic!r} is no topic id") from None
    return LogsBefore(frozenset(logs), frozenset(topics))


def write_logs_before(path: Path, before: LogsBefore) -> None:
    """Note what the broker held before the folder was made. Raises OSError."""
    logs = (f"{one.topic_id.hex()} {one.partition}" for one in sorted(before.logs))
    topics = (f"{quote(name, safe='')} {_ANY_PARTITION}" for name in sorted(before.topics))
    write_atomically(path, _entries([*logs, *topics]), sync=True)


def read_meta_properties(path: Path) -> MetaProperties | None:
    """Return whose the log folder is, None for one never used. Raises StorageError."""
    text = read_optional(path)
    if text is None:
        return None
    fields = _fields(text, "=")
    try:
        version = fields["version"]
        owner = MetaProperties(int(fields["broker.id"]), fields["cluster.id"])
    except (KeyError, ValueError) as error:
        raise StorageError(path, "version, broker.id or cluster.id is missing or wrong") from error
    if version != _VERSION:
        raise FolderRefused(path, f"version={version} is not of a broker with ZooKeeper (0)")
    return owner


def write_meta_properties(path: Path, owner: MetaProperties) -> None:
    """Write meta.properties. Raises OSError."""
    text = f"#\nbroker.id={owner.broker_id}\ncluster.id={owner.cluster_id}\nversion={_VERSION}\n"
    write_atomically(path, text.encode(), sync=True)


def write_clean_shutdown(path: Path) -> None:
    """Leave the mark of a clean stop. Raises OSError."""
    content = json.dumps({"version": 0, "brokerEpoch": -1}, separators=(",", ":"))
    write_atomically(path, content.encode(), sync=True)


def _entries(lines: Iterable[str]) -> bytes:
    body = list(lines)
    return "".join(f"{line}\n" for line in (_VERSION, len(body), *body)).encode()


def _read_entries(path: Path, columns: int) -> list[list[str]]:
    text = read_optional(path)
    if not text:  # Kafka makes the file before it has anything to write
        return []
    lines = text.splitlines()
    if len(lines) < 2 or lines[0].strip() != _VERSION:
        raise StorageError(path, "not a checkpoint of version 0")
    count = _number(path, lines[1])
    entries = [line.split() for line in lines[2:] if line.strip()]
    if len(entries) != count or any(len(entry) != columns for entry in entries):
        raise StorageError(path, f"expected {count} lines of {columns} columns")
    return entries


def _fields(text: str, separator: str) -> dict[str, str]:
    pairs = (line.partition(separator) for line in text.splitlines() if not line.startswith("#"))
    return {key.strip(): value.strip() for key, _, value in pairs}


def _number(path: Path, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise StorageError(path, f"{text!r} is not a number") from None
