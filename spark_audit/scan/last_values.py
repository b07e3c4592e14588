"""The last value of each key in a part of a log, in bounded memory. Pure."""

from collections.abc import Collection, Iterator
from hashlib import blake2b
from struct import Struct
from typing import Final, NamedTuple

from spark_audit.scan.committed import CommittedBatch, Content
from spark_audit.scan.digests import java_time, key_digest
from spark_audit.scan.entries import KEY_BYTES, key_and_value

_SLICED_BITS: Final = 16
"""So many bits of a key's digest can tell slices apart."""
_VALUE_BYTES: Final = 8
_TOMBSTONE: Final = bytes(_VALUE_BYTES)
_PACKED: Final = Struct("<qq8s")
"""Offset, time and the value's digest. Packed, a key takes about 200 bytes."""


class Slice(NamedTuple):
    """The keys whose digest begins with `bits` bits that make the number `prefix`."""

    bits: int = 0
    prefix: int = 0

    def has(self, digest: bytes) -> bool:
        """Return whether a key belongs to it, by its digest."""
        return int.from_bytes(digest[:2], "big") >> (_SLICED_BITS - self.bits) == self.prefix

    def halves(self) -> "tuple[Slice, Slice]":
        """Return two slices that have its keys between them."""
        assert self.bits < _SLICED_BITS, "a slice of all bits has no halves"
        return Slice(self.bits + 1, 2 * self.prefix), Slice(self.bits + 1, 2 * self.prefix + 1)


EVERY_KEY: Final = Slice()


class Last(NamedTuple):
    """The last record of a key; `value` is a digest of 8 bytes."""

    offset: int
    timestamp_ms: int
    value: bytes

    @property
    def is_tombstone(self) -> bool:
        """Return whether the key ends without a value."""
        return self.value == _TOMBSTONE

    @property
    def words(self) -> str:
        """Return its value as words for people."""
        return "a tombstone" if self.is_tombstone else f"a value of digest {self.value.hex()}"


class LastSink:
    """Keeps the last record of each key of a slice, up to `limit` keys; see `sinks.Sink`.

    Given `wanted` digests it keeps those keys alone, and their names: KEY_BYTES of each.
    """

    def __init__(
        self, limit: int, part: Slice = EVERY_KEY, wanted: Collection[bytes] | None = None
    ) -> None:
        self.names: dict[bytes, bytes] = {}
        self.is_over = False
        """There are more keys than the limit."""
        self._limit = limit
        self._slice = part
        self._wanted = wanted
        self._lasts: dict[bytes, bytes] = {}

    def take(self, content: Content) -> bool:
        """See Sink; nothing is wanted beyond the limit."""
        if not isinstance(content, CommittedBatch):
            return True
        for head in content.heads():
            key, value = key_and_value(head.tail)
            if key is None:
                continue
            digest = key_digest(key)
            if not self._takes(digest, key):
                continue
            if len(self._lasts) == self._limit and digest not in self._lasts:
                self.is_over = True
                return False
            self._lasts[digest] = _PACKED.pack(
                head.offset, java_time(head.timestamp_ms), value_digest(value)
            )
        return True

    def _takes(self, digest: bytes, key: bytes) -> bool:
        if self._wanted is None:
            return self._slice.has(digest)
        if digest not in self._wanted:
            return False
        self.names.setdefault(digest, bytes(key[:KEY_BYTES]))
        return True

    def is_past(self, offset: int) -> bool:
        """See Sink; never."""
        del offset
        return False

    def digests(self) -> Iterator[bytes]:
        """Yield the digests of the keys."""
        yield from self._lasts

    def last(self, digest: bytes) -> Last | None:
        """Return the last record of a key, None if there is none."""
        packed = self._lasts.get(digest)
        return None if packed is None else Last._make(_PACKED.unpack(packed))


def value_digest(value: bytes | None) -> bytes:
    """Return the digest of a record's value, 8 bytes; zeros if it is a tombstone."""
    return _TOMBSTONE if value is None else blake2b(value, digest_size=_VALUE_BYTES).digest()


def latest(*lasts: Last | None) -> Last | None:
    """Return the last of these, by offset."""
    return max((last for last in lasts if last is not None), default=None)
