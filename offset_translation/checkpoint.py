"""MirrorMaker 2's checkpoint record, so that its readers (RemoteClusterUtils) understand ours.

Topic ``<source>.checkpoints.internal`` on the target, one partition, compacted.
key: string group, string topic, int32 partition.
value: int16 version (0), int64 upstream offset, int64 downstream offset, string metadata.
"""

import struct
from functools import lru_cache
from typing import Final, NamedTuple

from offset_translation.binary import MalformedRecord, RecordCursor, put_string

VERSION: Final = 0
_OFFSETS: Final = struct.Struct(">hqq")
_PARTITION: Final = struct.Struct(">i")
_NO_METADATA: Final = put_string("")

_name = lru_cache(maxsize=16384)(put_string)
"""Groups and topics: the same come again and again."""


def checkpoint_topic_name(source: str) -> str:
    """Return the name of the checkpoint topic for groups of ``source``."""
    return f"{source}.checkpoints.internal"


class Checkpoint(NamedTuple):
    """A group's position on both sides: everything before it is there."""

    group: str
    topic: str
    partition: int
    upstream_offset: int
    downstream_offset: int
    metadata: str = ""


def encode(checkpoint: Checkpoint) -> tuple[bytes, bytes]:
    """Return key and value."""
    group, topic, partition, upstream, downstream, metadata = checkpoint
    key = _name(group) + _name(topic) + _PARTITION.pack(partition)
    offsets = _OFFSETS.pack(VERSION, upstream, downstream)
    return key, offsets + (put_string(metadata) if metadata else _NO_METADATA)


def decode(key: bytes, value: bytes) -> Checkpoint:
    """Decode a record; raises MalformedRecord."""
    in_key, in_value = RecordCursor(key), RecordCursor(value)
    version = in_value.integer(2)
    if version != VERSION:
        raise MalformedRecord(f"unknown version {version} of a checkpoint")
    checkpoint = Checkpoint(
        group=in_key.string(),
        topic=in_key.string(),
        partition=in_key.integer(4),
        upstream_offset=in_value.integer(8),
        downstream_offset=in_value.integer(8),
        metadata=in_value.string(),
    )
    in_key.finish()
    in_value.finish()
    return checkpoint
