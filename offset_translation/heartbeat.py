"""MirrorMaker 2's heartbeat record (org.apache.kafka.connect.mirror.Heartbeat).

Topic ``heartbeats`` on the source, one partition, compacted; ``<source>.heartbeats`` on the target.
key: string source, string target.
value: int16 version (0), int64 milliseconds since 1970.
"""

import struct
from typing import Final

from offset_translation.binary import MalformedRecord, RecordCursor, put_string
from wire.values import frozen

VERSION: Final = 0


@frozen
class Heartbeat:
    """The mirror from ``source`` to ``target`` could write to its source at ``time_ms``."""

    source: str
    target: str
    time_ms: int


def encode(heartbeat: Heartbeat) -> tuple[bytes, bytes]:
    """Return key and value."""
    key = put_string(heartbeat.source) + put_string(heartbeat.target)
    return key, struct.pack(">hq", VERSION, heartbeat.time_ms)


def decode(key: bytes, value: bytes) -> Heartbeat:
    """Decode a record; raises MalformedRecord."""
    in_key, in_value = RecordCursor(key), RecordCursor(value)
    version = in_value.integer(2)
    if version != VERSION:
        raise MalformedRecord(f"unknown version {version} of a heartbeat")
    heartbeat = Heartbeat(
        source=in_key.string(), target=in_key.string(), time_ms=in_value.integer(8)
    )
    in_key.finish()
    in_value.finish()
    return heartbeat
