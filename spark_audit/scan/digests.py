"""The identity of a record, and the ranges into which a log is cut to be compared.

A record is known by 16 bytes of BLAKE2b over its timestamp and its encoded key, value and headers.
Offsets are left out: they differ between two logs that hold the same records.

A range ends behind a record whose digest happens to begin with ten zero bits, so ranges are cut by
content: after a lost or a surplus record both logs fall back into step at the next cut. (The idea
is that of content-defined chunking, as in rsync and its successors.)
"""

from collections.abc import Sequence
from hashlib import blake2b
from struct import Struct, error
from typing import Final, NamedTuple

from wire.record_batch import RecordHead

DIGEST_BYTES: Final = 16
MAX_RANGE_RECORDS: Final = 16_384
"""Where content gives no cut (identical records in a row), one is made after so many records."""

_CUT_BELOW: Final = (1 << (8 * DIGEST_BYTES - 10)).to_bytes(DIGEST_BYTES, "big")
_TIMESTAMP: Final = Struct(">q")


def record_digest(head: RecordHead) -> bytes:
    """Return the identity of a record, from its time and its still encoded rest."""
    try:
        stamp = _TIMESTAMP.pack(head.timestamp_ms)
    except error:
        stamp = _TIMESTAMP.pack(java_time(head.timestamp_ms))
    return blake2b(stamp + head.tail, digest_size=DIGEST_BYTES).digest()


def record_digests(heads: Sequence[RecordHead]) -> list[bytes]:
    """Return the identity of each record, without a call for each: this is most of an audit."""
    pack, digest = _TIMESTAMP.pack, blake2b
    try:
        return [
            digest(pack(timestamp_ms) + tail, digest_size=DIGEST_BYTES).digest()
            for _, timestamp_ms, tail in heads
        ]
    except error:
        return [record_digest(head) for head in heads]


def java_time(timestamp_ms: int) -> int:
    """Return what Kafka's clients read of a time: a record's delta may lead out of its 64 bits."""
    return (timestamp_ms + (1 << 63)) % (1 << 64) - (1 << 63)


def key_digest(key: bytes) -> bytes:
    """Return the identity of a key, however long it is."""
    return blake2b(key, digest_size=DIGEST_BYTES).digest()


def range_digest(digests: Sequence[bytes]) -> bytes:
    """Return the identity of records in this order."""
    return blake2b(b"".join(digests), digest_size=DIGEST_BYTES).digest()


def is_cut(digest: bytes) -> bool:
    """Say whether a range ends behind this record."""
    return digest < _CUT_BELOW


class DigestRange(NamedTuple):
    """Records of one log in a row: `start_offset` is the first, `stop_offset` behind the last."""

    start_offset: int
    stop_offset: int
    records: int
    digest: bytes


class RangeCutter:
    """Cuts one split of a log into ranges, such that the splits of a log give each range once.

        log     |---c-----c--|--c------c-|-----------c---|     c: a cut by content
        ranges  |===|=====|=====|======|===|=========|===|
        splits  '- first -------'- second -----------'- last

    A split owns the ranges that begin in it: one that does not start the log begins behind its
    first cut, and each goes on behind its own end, up to the next cut.
    """

    def __init__(self, *, starts_log: bool, split_stop: int) -> None:
        self.is_done = False
        """No further record belongs to this split."""
        self.has_begun = starts_log
        """The first own range has begun; what lies before belongs to the split before."""
        self._split_stop = split_stop
        self._digests: list[bytes] = []
        self._start_offset = 0
        self._stop_offset = 0

    def add(self, offset: int, digest: bytes) -> DigestRange | None:
        """Take the next record and return the range that it completes, if it does."""
        ends_here = digest < _CUT_BELOW
        if not self.has_begun:
            if ends_here:
                self.has_begun = True
                self.is_done = offset >= self._split_stop
            return None
        if not self._digests:
            self._start_offset = offset
        self._digests.append(digest)
        self._stop_offset = offset + 1
        if ends_here:
            self.is_done = offset >= self._split_stop
        elif len(self._digests) < MAX_RANGE_RECORDS:
            return None
        return self._take()

    def add_all(self, offset: int, digests: Sequence[bytes]) -> bool:
        """Take records in a row from this offset on, if none of them ends or begins a range.

        Return whether they were taken; else they are to be added one by one.
        """
        if not self.has_begun or len(self._digests) + len(digests) >= MAX_RANGE_RECORDS:
            return False
        if min(digests) < _CUT_BELOW:
            return False
        if not self._digests:
            self._start_offset = offset
        self._digests += digests
        self._stop_offset = offset + len(digests)
        return True

    def is_past(self, offset: int) -> bool:
        """Return whether no range begins here that is owned, if the log goes on at this offset."""
        return not self.has_begun and offset >= self._split_stop

    def finish(self) -> DigestRange | None:
        """Return the range that the end of the log cuts off."""
        return self._take() if self._digests else None

    def _take(self) -> DigestRange:
        taken = DigestRange(
            self._start_offset, self._stop_offset, len(self._digests), range_digest(self._digests)
        )
        self._digests = []
        return taken
