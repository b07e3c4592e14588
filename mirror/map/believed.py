"""The records of a map topic that our own programs have written; the others are counted."""

from collections.abc import AsyncIterator

from mirror.clusters.tail_reader import TailReader
from offset_translation.map_records import partition_of
from runtime.coordination.map_writers import MapReading, UnbelievedRecords, Writers, note_unbelieved
from wire.record_batch import BatchHeader, Record


async def told_apart(
    reader: TailReader, writers: Writers, unbelieved: UnbelievedRecords
) -> AsyncIterator[tuple[BatchHeader, Record, bool]]:
    """Yield the new records and whether each is believed; note the others. Raises NetworkFault."""
    reading = MapReading()
    async for header, record in reader.read_new():
        reading.begin(reader.topic_id, reader.log_end)
        is_believed = await writers.believes(header.producer_id, header.base_offset, reading)
        if not is_believed:
            about = partition_of(record.key)
            await note_unbelieved(writers, unbelieved, header.producer_id, record, about)
        yield header, record, is_believed


async def believed(
    reader: TailReader, writers: Writers, unbelieved: UnbelievedRecords
) -> AsyncIterator[Record]:
    """Yield the new records that are believed, and note the others; raises NetworkFault."""
    async for _, record, is_believed in told_apart(reader, writers, unbelieved):
        if is_believed:
            yield record
