"""The newest offset of each key, in bounded memory, as compaction needs it. Pure.

Kafka's SkimpyOffsetMap spends 24 bytes a key; a Python dictionary about `ENTRY_BYTES`, so the same
`log.cleaner.dedupe.buffer.size` holds fewer keys and a large log takes more passes.
"""

from hashlib import blake2b
from typing import Final

ENTRY_BYTES: Final = 160
"""Memory of one entry, measured: the key's digest, the offset and their place in the dictionary."""
_DIGEST_BYTES: Final = 16
UNKNOWN: Final = -1


def slots_within(buffer_bytes: int, load_factor: float) -> int:
    """Return how many keys fit into the buffer when it may be filled to that share; at least 1."""
    return max(1, int(buffer_bytes / ENTRY_BYTES * load_factor))


class OffsetMap:
    """Keys to their newest offsets, up to `latest_offset`.

    Long keys are held by their digest; a key shorter than any digest stands for itself.
    """

    __slots__ = ("_newest", "_slots", "latest_offset")

    def __init__(self, slots: int) -> None:
        self._newest: dict[bytes, int] = {}
        self._slots = slots
        self.latest_offset = -1
        """Every record up to here has been taken in."""

    def __len__(self) -> int:
        return len(self._newest)

    @property
    def is_full(self) -> bool:
        """Whether no further batch should be taken in."""
        return len(self._newest) >= self._slots

    def put(self, key: bytes, offset: int) -> None:
        """Note a later record of the key."""
        self._newest[_short(key)] = offset

    def get(self, key: bytes) -> int:
        """Return the newest offset of the key, -1 if it was not seen."""
        return self._newest.get(_short(key), UNKNOWN)


def _short(key: bytes) -> bytes:
    if len(key) < _DIGEST_BYTES:
        return key
    return blake2b(key, digest_size=_DIGEST_BYTES).digest()
