"""The records of a map topic that our own programs have written; the others are counted."""

from collections.abc import AsyncIterator

from mirror.clusters.tail_reader import TailReader
from runtime.coordination.map_writers import ForeignRecords, Reading, Writers
from wire.record_batch import Record


async def believed(
    reader: TailReader, writers: Writers, foreign: ForeignRecords
) -> AsyncIterator[Record]:
    """Yield the new records that are believed, and note the others; raises NetworkFault."""
    reading = Reading()
    async for header, record in reader.read_new():
        if await writers.believes(header.producer_id, header.base_offset, reading):
            yield record
        else:
            foreign.note(header.producer_id, record.offset)
