"""The identity of a record, and the ranges into which a log is cut to be compared.

A record is known by the 16 bytes of XXH3-128 over its encoded key, value and headers, seeded with
its timestamp. Offsets are left out, and nothing of batches goes in: both differ between two logs
that hold the same records. The hash finds accidents, at a fifth of what a cryptographic one costs;
it is no seal against somebody who writes records for the sake of their digests.

A range ends behind a record whose digest happens to begin with ten zero bits, so ranges are cut by
content: after a lost or a surplus record both logs fall back into step at the next cut. (The idea
is that of content-defined chunking, as in rsync and its successors.)
"""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from struct import Struct
from typing import Final, NamedTuple

from xxhash import xxh3_128_digest

from wire.record_batch import RecordHead

DIGEST_BYTES: Final = 16
MAX_RANGE_RECORDS: Final = 16_384
"""Where content gives no cut (identical records in a row), one is made after so many records."""

_SECTION: Final = Struct(">hiq?q")
_NO_TIME: Final = 0
_CUT_BELOW: Final = (1 << (8 * DIGEST_BYTES - 10)).to_bytes(DIGEST_BYTES, "big")


def record_digest(head: RecordHead) -> bytes:
    """Return the identity of a record, from its time and its still encoded rest."""
    return xxh3_128_digest(head.tail, head.timestamp_ms)


def record_digests(times_ms: Iterable[int], tails: Iterable[bytes]) -> list[bytes]:
    """Return the identity of each record, without a call for each: this is most of an audit.

    Of a time that leads out of its 64 bits XXH3 takes what `java_time` makes of it.
    """
    return list(map(xxh3_128_digest, tails, times_ms))


def section_digest(
    section: memoryview,
    *,
    codec: int,
    records: int,
    base_timestamp_ms: int,
    append_ms: int | None,
) -> bytes:
    """Return the identity of a batch's section of records, as it is, and of what makes them of it.

    With equal digests the records are equal; equal records may lie in sections of other digests.
    """
    append = _NO_TIME if append_ms is None else append_ms
    fields = _SECTION.pack(codec, records, base_timestamp_ms, append_ms is not None, append)
    return xxh3_128_digest(fields + xxh3_128_digest(section))


def java_time(timestamp_ms: int) -> int:
    """Return what Kafka's clients read of a time: a record's delta may lead out of its 64 bits."""
    return (timestamp_ms + (1 << 63)) % (1 << 64) - (1 << 63)


def key_digest(key: bytes) -> bytes:
    """Return the identity of a key, however long it is."""
    return blake2b(key, digest_size=DIGEST_BYTES).digest()


def range_digest(digests: Sequence[bytes]) -> bytes:
    """Return the identity of records in this order."""
    return xxh3_128_digest(b"".join(digests))


def is_cut(digest: bytes) -> bool:
    """Say whether a range ends behind this record."""
    return digest < _CUT_BELOW


def _is_section_cut(digest: bytes, records: int) -> bool:
    """Say whether a range ends behind a section: as often as behind one of so many records."""
    return int.from_bytes(digest[:4], "big") < records << 22


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
        self._records = 0
        """How many records the digests are of; a section's is of several."""
        self._start_offset = 0
        self._stop_offset = 0

    def add(
        self, offset: int, digests: Sequence[bytes]
    ) -> Iterator[tuple[int, int, DigestRange | None]]:
        """Take records one behind the other, from this offset on.

        Yield the stretches [start, stop) of them, by number, that belong to a range of this split,
        each with the range that it completes, or None.
        """
        cuts = [number for number, digest in enumerate(digests) if digest < _CUT_BELOW]
        start, count = 0, len(digests)
        if not self.has_begun:
            if not cuts:
                return
            start = self._begin(offset, cuts)
        while start < count and not self.is_done:
            most = start + max(1, MAX_RANGE_RECORDS - self._records)
            while cuts and cuts[0] < start:
                del cuts[0]
            is_cut_off = bool(cuts) and cuts[0] < most
            stop = cuts[0] + 1 if is_cut_off else min(most, count)
            if not self._digests:
                self._start_offset = offset + start
            self._digests += digests[start:stop]
            self._records += stop - start
            self._stop_offset = offset + stop
            if is_cut_off:
                self.is_done = offset + cuts[0] >= self._split_stop
            is_whole = is_cut_off or stop == most
            yield start, stop, self._take() if is_whole else None
            start = stop

    def add_section(
        self, offset: int, records: int, digest: bytes
    ) -> tuple[bool, DigestRange | None]:
        """Take the section that is next; it is never divided.

        Return whether it belongs to a range of this split, and the range that it completes.
        """
        ends_here = _is_section_cut(digest, records)
        if ends_here:
            self.is_done = offset + records > self._split_stop
        if not self.has_begun:
            self.has_begun = ends_here
            return False, None
        if not self._digests:
            self._start_offset = offset
        self._digests.append(digest)
        self._records += records
        self._stop_offset = offset + records
        is_whole = ends_here or self._records >= MAX_RANGE_RECORDS
        return True, self._take() if is_whole else None

    def _begin(self, offset: int, cuts: Sequence[int]) -> int:
        """Begin behind the first cut and return its number."""
        self.has_begun = True
        self.is_done = offset + cuts[0] >= self._split_stop
        return cuts[0] + 1

    def is_past(self, offset: int) -> bool:
        """Return whether no range begins here that is owned, if the log goes on at this offset."""
        return not self.has_begun and offset >= self._split_stop

    def finish(self) -> DigestRange | None:
        """Return the range that the end of the log cuts off."""
        return self._take() if self._digests else None

    def _take(self) -> DigestRange:
        taken = DigestRange(
            self._start_offset, self._stop_offset, self._records, range_digest(self._digests)
        )
        self._digests, self._records = [], 0
        return taken
