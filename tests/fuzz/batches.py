"""Record batches, sound and lying: wrong counts, offsets and lengths under a right checksum."""

import random
from struct import Struct
from typing import Final

from wire.compression import Compression
from wire.record_batch import HEADER_BYTES, Record, build_batch
from wire.record_batch.checksum import crc32c

NOW_MS: Final = 1_700_000_000_000

FIELDS: Final = (
    *((0, "q"), (8, "i"), (12, "i"), (16, "b"), (21, "h"), (23, "i"), (27, "q"), (35, "q")),
    *((43, "q"), (51, "h"), (53, "i"), (57, "i")),
)
"""Place and kind of the header's fields, the checksum left out."""
_CRC: Final = Struct(">I")
_CRC_AT: Final = 17
_CRC_FROM: Final = 21


def any_batch(luck: random.Random) -> bytes:
    """Return a batch that a producer could have built, or one that none could."""
    if luck.random() < 0.5:
        return sound_batch(luck)
    return luck.choice((lying_batch, garbled_batch, several_batches))(luck)


def sound_batch(luck: random.Random) -> bytes:
    """Return a batch of a few records, of any compression, sometimes of an idempotent producer."""
    records = [
        Record(offset=index, timestamp_ms=NOW_MS, key=None, value=luck.randbytes(30), headers=())
        for index in range(luck.randint(1, 4))
    ]
    compression = luck.choice(list(Compression))
    if luck.random() < 0.5:
        return build_batch(records, compression=compression)
    return build_batch(
        records,
        compression=compression,
        producer_id=luck.randrange(4),
        producer_epoch=luck.randrange(2),
        base_sequence=luck.choice((-1, 0, 1, 2**31 - 1)),
        is_transactional=luck.random() < 0.1,
        is_control=luck.random() < 0.1,
    )


def lying_batch(luck: random.Random) -> bytes:
    """Return a batch whose header says something else than its records, its checksum right."""
    batch = bytearray(sound_batch(luck))
    for _ in range(luck.randint(1, 3)):
        at, kind = luck.choice(FIELDS)
        layout = Struct(">" + kind)
        bits = layout.size * 8
        value = luck.choice((-1, 0, 1, 2, 60, 2 ** (bits - 1) - 1, -(2 ** (bits - 1))))
        layout.pack_into(batch, at, max(-(2 ** (bits - 1)), min(value, 2 ** (bits - 1) - 1)))
    return sealed(batch)


def garbled_batch(luck: random.Random) -> bytes:
    """Return a batch cut off, lengthened or with bytes changed, its checksum mostly wrong."""
    batch = bytearray(sound_batch(luck))
    for _ in range(luck.randint(1, 4)):
        batch[luck.randrange(len(batch))] = luck.randrange(256)
    cut = luck.choice((len(batch), len(batch), luck.randrange(len(batch)), 0, 1))
    changed = batch[:cut] + luck.randbytes(luck.choice((0, 0, 1, 70)))
    return sealed(changed) if luck.random() < 0.5 else bytes(changed)


def several_batches(luck: random.Random) -> bytes:
    """Return more than the one batch that a produce request may hold."""
    return sound_batch(luck) + sound_batch(luck)


def sealed(batch: bytearray) -> bytes:
    """Return the batch with the checksum that belongs to its bytes."""
    if len(batch) >= HEADER_BYTES:
        _CRC.pack_into(batch, _CRC_AT, crc32c(memoryview(batch)[_CRC_FROM:]))
    return bytes(batch)
