"""The partition of a record, chosen once, as Kafka's own clients choose it. Pure.

The choice is made here and not left to librdkafka, because a record that is sent again to another
site must go to the partition that it had, where it may already lie.
"""

from functools import lru_cache
from typing import Final

_SEED: Final = 0x9747B28C
_MULTIPLIER: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF

# Records without key stay on one partition for so many records, so that batches fill.
STICKY_RECORDS: Final = 256


@lru_cache(maxsize=65_536)
def murmur2(key: bytes) -> int:
    """Return the 32-bit hash that Java's default partitioner uses, unsigned."""
    value = (_SEED ^ len(key)) & _MASK
    whole = len(key) & ~3
    for position in range(0, whole, 4):
        word = int.from_bytes(key[position : position + 4], "little")
        word = (word * _MULTIPLIER) & _MASK
        word ^= word >> 24
        word = (word * _MULTIPLIER) & _MASK
        value = ((value * _MULTIPLIER) & _MASK) ^ word
    if whole < len(key):
        value ^= int.from_bytes(key[whole:], "little")
        value = (value * _MULTIPLIER) & _MASK
    value ^= value >> 13
    value = (value * _MULTIPLIER) & _MASK
    return value ^ (value >> 15)


def partition_of(key: bytes | None, partition_count: int, record_number: int) -> int:
    """Return the partition of a record; the same for equal keys, in turn for records without."""
    if key is None:
        return record_number // STICKY_RECORDS % partition_count
    return (murmur2(key) & 0x7FFFFFFF) % partition_count
