"""MirrorMaker 2's checkpoint record, so that its readers (RemoteClusterUtils) understand ours.

Topic ``<source>.checkpoints.internal`` on the target, one partition, compacted.
key: string group, string topic, int32 partition.
value: int16 version (0), int64 upstream offset, int64 downstream offset, string metadata.
"""

import struct
from dataclasses import dataclass
from typing import Final

from offset_translation.binary import Cursor, MalformedRecord, put_string

VERSION: Final = 0


def checkpoint_topic_name(source: str) -> str:
    """Return the name of the checkpoint topic for groups of ``source``."""
    return f"{source}.checkpoints.internal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A group's position on both sides: everything before it is there."""

    group: str
    topic: str
    partition: int
    upstream_offset: int
    downstream_offset: int
    metadata: str = ""


def encode(checkpoint: Checkpoint) -> tuple[bytes, bytes]:
    """Return key and value."""
    key = (
        put_string(checkpoint.group)
        + put_string(checkpoint.topic)
        + struct.pack(">i", checkpoint.partition)
    )
    offsets = struct.pack(">hqq", VERSION, checkpoint.upstream_offset, checkpoint.downstream_offset)
    return key, offsets + put_string(checkpoint.metadata)


def decode(key: bytes, value: bytes) -> Checkpoint:
    """Decode a record; raises MalformedRecord."""
    in_key, in_value = Cursor(key), Cursor(value)
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
