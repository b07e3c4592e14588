"""MirrorMaker 2's offset sync (org.apache.kafka.connect.mirror.OffsetSync), and when one is due.

Topic ``mm2-offset-syncs.<other>.internal``, one partition, compacted: on the source, named for the
target, or the other way round.
key: string topic (the source's name), int32 partition. value: int64 upstream, int64 downstream; no
version.
"""

import struct

from offset_translation.binary import RecordCursor, put_string
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from wire.values import frozen


@frozen
class OffsetSync:
    """The record at ``upstream_offset`` of the source is at ``downstream_offset`` of the target."""

    topic: str
    partition: int
    upstream_offset: int
    downstream_offset: int


def encode(sync: OffsetSync) -> tuple[bytes, bytes]:
    """Return key and value."""
    key = put_string(sync.topic) + struct.pack(">i", sync.partition)
    return key, struct.pack(">qq", sync.upstream_offset, sync.downstream_offset)


def decode(key: bytes, value: bytes) -> OffsetSync:
    """Decode a record; raises MalformedRecord."""
    in_key, in_value = RecordCursor(key), RecordCursor(value)
    sync = OffsetSync(
        topic=in_key.string(),
        partition=in_key.integer(4),
        upstream_offset=in_value.integer(8),
        downstream_offset=in_value.integer(8),
    )
    in_key.finish()
    in_value.finish()
    return sync


def syncs_since(
    topic: str, partition: int, offset_map: OffsetMap, told_target_end: int | None
) -> list[OffsetSync]:
    """Return what to tell: the last mirrored record if it is news, the first one at the beginning.

    ``told_target_end`` is the mirrored target end when syncs were told last, None before.
    """
    end = offset_map.mirrored_target_end
    if end is None or end == told_target_end:
        return []
    pieces = (
        [piece for piece in offset_map.pieces() if piece.count] if told_target_end is None else []
    )
    last = Place(offset_map.place_end - 1)
    pairs = [(piece.source_start, piece.target_start) for piece in pieces[:1]]
    source_offset = offset_map.source_of_place(last)
    if source_offset is not None and last >= offset_map.first_place:
        pairs.append((source_offset, offset_map.runs.start_of(last)))
    return [
        OffsetSync(
            topic=topic, partition=partition, upstream_offset=source, downstream_offset=target
        )
        for source, target in dict.fromkeys(pairs)
    ]
