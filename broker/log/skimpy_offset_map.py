"""The newest offset of each key, in bounded memory, as compaction needs it. Pure.

Kafka's SkimpyOffsetMap spends 24 bytes a key; a Python dictionary about `ENTRY_BYTES`, so the same
`log.cleaner.dedupe.buffer.size` holds fewer keys and a large log takes more passes.
"""

from hashlib import blake2b
from typing import Final

ENTRY_BYTES: Final = 150
"""Memory of one entry, measured: the key's digest, the offset and their place in the dictionary."""
_DIGEST_BYTES: Final = 16
_SHARDS: Final = 256
"""One dictionary of a million keys stops everything for 50 ms when it grows."""
UNKNOWN: Final = -1


def slots_within(buffer_bytes: int, load_factor: float) -> int:
    """Return how many keys fit into the buffer when it may be filled to that share; at least 1."""
    return max(1, int(buffer_bytes / ENTRY_BYTES * load_factor))


class SkimpyOffsetMap:
    """Keys to their newest offsets, up to `latest_offset`.

    Long keys are held by their digest; a key shorter than any digest stands for itself.
    """

    __slots__ = ("_count", "_shards", "_slots", "latest_offset")

    def __init__(self, slots: int) -> None:
        self._shards: list[dict[bytes, int]] = [{} for _ in range(_SHARDS)]
        self._count = 0
        self._slots = slots
        self.latest_offset = -1
        """Every record up to here has been taken in."""

    def __len__(self) -> int:
        return self._count

    @property
    def is_full(self) -> bool:
        """Whether no further batch should be taken in."""
        return self._count >= self._slots

    def put(self, key: bytes, offset: int) -> None:
        """Note a later record of the key."""
        short = _short(key)
        shard = self._shards[hash(short) % _SHARDS]
        before = len(shard)
        shard[short] = offset
        self._count += len(shard) - before

    def get(self, key: bytes) -> int:
        """Return the newest offset of the key, -1 if it was not seen."""
        short = _short(key)
        return self._shards[hash(short) % _SHARDS].get(short, UNKNOWN)


def _short(key: bytes) -> bytes:
    if len(key) < _DIGEST_BYTES:
        return key
    return blake2b(key, digest_size=_DIGEST_BYTES).digest()
