"""Kafka's record batches, magic 2: the header that travels rewritten and the records behind it.

`header` works on the 61 bytes at fixed positions and never touches records; `reading` takes
records apart when somebody asks for them; `building` makes new batches. Import from here.
"""

from wire.record_batch.building import BatchFields, build_batch, build_batch_from_heads
from wire.record_batch.header import (
    HEADER_BYTES,
    MAX_BATCH_BYTES,
    BatchHeader,
    Buffer,
    CorruptBatch,
    UnsupportedMagic,
    assign_offsets,
    claims_transaction,
    crc_is_valid,
    iterate_batches,
    parse_header,
    rewrite,
    stamp_append_time,
)
from wire.record_batch.reading import (
    MAX_RECORDS_BYTES,
    Record,
    RecordHead,
    is_same_record,
    iterate_record_heads,
    iterate_records,
    records_payload,
    times_and_tails,
)

__all__ = [
    "HEADER_BYTES",
    "MAX_BATCH_BYTES",
    "MAX_RECORDS_BYTES",
    "BatchFields",
    "BatchHeader",
    "Buffer",
    "CorruptBatch",
    "Record",
    "RecordHead",
    "UnsupportedMagic",
    "assign_offsets",
    "build_batch",
    "build_batch_from_heads",
    "claims_transaction",
    "crc_is_valid",
    "is_same_record",
    "iterate_batches",
    "iterate_record_heads",
    "iterate_records",
    "parse_header",
    "records_payload",
    "rewrite",
    "stamp_append_time",
    "times_and_tails",
]
