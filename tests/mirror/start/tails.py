"""Batches at the end of a target."""

from offset_translation.map_records import MirrorProducer
from wire.record_batch import Record, assign_offsets, build_batch


def a_batch(producer: MirrorProducer, offset: int) -> bytes:
    """Return two records."""
    batch = bytearray(
        build_batch(
            [Record(at, 0, None, b"v") for at in range(2)],
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            base_sequence=offset,
        )
    )
    assign_offsets(batch, offset, 0)
    return bytes(batch)
