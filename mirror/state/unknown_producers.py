"""Batches of unknown producers, which may be mirrors. Pure.

While both directions run, the other mirror may begin to write into our source at any moment. Its id
is in its map before its first batch is in a log, but we have read that map some time before.
"""

from collections.abc import Container
from typing import Final, NamedTuple

from wire.record_batch import CorruptBatch
from wire.record_batch.header import HEADER, HEADER_BYTES, MAGIC, batch_size

WRITER: Final = 9
"""The index of the producer id among the header's fields."""
MAGIC_AT: Final = 3


class Known(NamedTuple):
    """The part of a chunk whose writers are all known, and the unknown producer behind it."""

    records: memoryview
    unknown: int | None


def before_unknown(records: memoryview, *sets: Container[int]) -> Known:
    """Return the records before the first batch of a producer that none of the sets has.

    Bytes that are no batch are left to the check behind this.
    """
    position = 0
    while len(records) - position >= HEADER_BYTES:
        fields = HEADER.unpack_from(records, position)
        writer = fields[WRITER]
        if fields[MAGIC_AT] == MAGIC and not any(writer in known for known in sets):
            return Known(records[:position], writer)
        try:
            size = batch_size(records, position)
        except CorruptBatch:
            break  # routing comes to it, and says so
        if size is None:
            break
        position += size
    return Known(records, None)
