"""The end of a batch whose checksum is wrong, where records go on. Pure.

`mirror.forward.source` fetches such a batch three times. Then it stops the partition as
SOURCE_CORRUPT with that end, behind which a policy or `mirror restart --skip` lets it go on.
"""

from typing import Final

from wire.record_batch import HEADER_BYTES, CorruptBatch, crc_is_valid, parse_header
from wire.record_batch.header import Buffer

FRAME_BYTES: Final = 12
"""Base offset and length, before what the length counts."""
MAGIC_AT: Final = 16
LAST_DELTA: Final = slice(23, 27)


def behind_damage(records: Buffer, source: int, readable_end: int) -> int | None:
    """Return the source offset behind the damaged batch at ``source``, None if nothing tells it.

    ``records`` are as they were fetched, and ``readable_end`` is how far the source may be read.
    The batch's own numbers may be the damage. So it ends where the next whole batch begins; the
    last batch of a log ends where the log ends, if its own numbers agree.
    """
    view = memoryview(records)
    position = 0
    claimed_end: int | None = None
    while len(view) - position >= HEADER_BYTES:
        length = int.from_bytes(view[position + 8 : position + FRAME_BYTES], signed=True)
        batch = view[position : position + FRAME_BYTES + length]
        if len(batch) < HEADER_BYTES or len(batch) < FRAME_BYTES + length:
            return None
        base_offset = int.from_bytes(batch[:8], signed=True)
        if batch[MAGIC_AT] != 2:
            return None  # messages of before 0.11: they are not told apart by this
        if not _is_whole(batch):
            claimed_end = base_offset + int.from_bytes(batch[LAST_DELTA], signed=True) + 1
            if _begins_inside(batch, claimed_end):
                return claimed_end
        elif claimed_end is not None and base_offset > source:
            return base_offset
        position += len(batch)
    return claimed_end if position == len(view) and claimed_end == readable_end else None


def _begins_inside(damaged: memoryview, offset: int) -> bool:
    """Whether a whole batch with this base offset lies in it: then its length is what is damaged.

    What is missed here would be left out with the damaged one.
    """
    if offset < 0:
        return False
    data, sought = bytes(damaged), offset.to_bytes(8)
    place = data.find(sought, HEADER_BYTES)
    while place >= 0:
        length = int.from_bytes(data[place + 8 : place + FRAME_BYTES], signed=True)
        inside = damaged[place : place + FRAME_BYTES + length]
        if length > 0 and len(inside) >= HEADER_BYTES and _is_whole(inside):
            return True
        place = data.find(sought, place + 1)
    return False


def _is_whole(batch: memoryview) -> bool:
    try:
        parse_header(batch)
    except CorruptBatch:
        return False
    return crc_is_valid(batch)
