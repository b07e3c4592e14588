"""Producer snapshots: `%020d.snapshot`, Kafka's ProducerSnapshot version 1.

The name is the offset up to which the producers are described. One is written when a segment is
rolled and at a clean stop. Kafka's format holds only the last batch of each producer, so `recall`
looks for the ones before it in the log.

    int16 version  uint32 crc32c of the rest  int32 count
    int64 id  int16 epoch  int32 last sequence  int64 last offset  int32 offset delta
    int64 timestamp  int32 coordinator epoch  int64 first offset of the open transaction
"""

from collections.abc import Iterable
from pathlib import Path
from struct import Struct, error
from typing import Final

from broker.log.checkpoints import write_atomically
from broker.log.producer_state import (
    NO_OFFSET,
    REMEMBERED_BATCHES,
    SEQUENCES,
    BatchMetadata,
    ProducerEntry,
    ProducerTable,
    describe,
)
from broker.log.segment import file_name
from wire.record_batch import BatchHeader
from wire.record_batch.checksum import crc32c

SNAPSHOT_SUFFIX: Final = ".snapshot"

_VERSION: Final = 1
_PREFIX: Final = Struct(">hI")
_COUNT: Final = Struct(">i")
_ENTRY: Final = Struct(">qhiqiqiq")


class CorruptSnapshot(ValueError):
    """A snapshot that cannot be read; an older one, or the log itself, serves instead."""


def encode(entries: Iterable[ProducerEntry]) -> bytes:
    """Return a snapshot's bytes."""
    body = [_encode_entry(entry) for entry in entries]
    checked = b"".join((_COUNT.pack(len(body)), *body))
    return _PREFIX.pack(_VERSION, crc32c(checked)) + checked


def decode(data: bytes, now_ms: int) -> list[ProducerEntry]:
    """Return the producers in a snapshot, as if seen just now. Raises CorruptSnapshot."""
    try:
        version, crc = _PREFIX.unpack_from(data)
        checked = data[_PREFIX.size :]
        (count,) = _COUNT.unpack_from(checked)
    except error:
        raise CorruptSnapshot(f"{len(data)} bytes are too few") from None
    if version != _VERSION:
        raise CorruptSnapshot(f"version {version}")
    if crc32c(checked) != crc:
        raise CorruptSnapshot("the checksum does not hold")
    if len(checked) != _COUNT.size + count * _ENTRY.size:
        raise CorruptSnapshot(f"{count} producers do not fit")
    return [_decode_entry(fields, now_ms) for fields in _ENTRY.iter_unpack(checked[_COUNT.size :])]


def _encode_entry(entry: ProducerEntry) -> bytes:
    last = entry.batches[-1] if entry.batches else BatchMetadata(-1, NO_OFFSET, 0, -1)
    return _ENTRY.pack(
        entry.producer_id,
        entry.epoch,
        last.last_sequence,
        last.last_offset,
        last.offset_delta,
        entry.last_timestamp_ms,
        entry.coordinator_epoch,
        entry.transaction_first_offset,
    )


def _decode_entry(fields: tuple[int, ...], now_ms: int) -> ProducerEntry:
    producer_id, epoch, sequence, offset, delta, timestamp, coordinator, transaction = fields
    batches = (BatchMetadata(sequence, offset, delta, timestamp),) if offset >= 0 else ()
    return ProducerEntry(
        producer_id=producer_id,
        epoch=epoch,
        batches=batches,
        coordinator_epoch=coordinator,
        last_timestamp_ms=timestamp,
        transaction_first_offset=transaction,
        seen_ms=now_ms,
    )


class Snapshots:
    """The snapshot files of one folder. Raises OSError where the disk does."""

    __slots__ = ("_folder", "offsets")

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.offsets = sorted(
            int(path.stem) for path in folder.glob(f"*{SNAPSHOT_SUFFIX}") if path.stem.isdecimal()
        )

    def write(self, table: ProducerTable) -> None:
        """Write what the table knows, under its end offset."""
        write_atomically(self._path(table.end_offset), encode(table), sync=False)
        if table.end_offset not in self.offsets:
            self.offsets = sorted([*self.offsets, table.end_offset])

    def load(self, log_start: int, up_to: int, now_ms: int) -> ProducerTable:
        """Return the producers as of the last readable snapshot in that range.

        A damaged one is deleted. Without any, the table is empty and begins at the log's start.
        """
        for offset in reversed(self.offsets):
            if not log_start <= offset <= up_to:
                continue
            try:
                entries = decode(self._path(offset).read_bytes(), now_ms)
            except CorruptSnapshot:
                self._delete(offset)
                continue
            return ProducerTable(entries, end_offset=offset)
        return ProducerTable(end_offset=log_start)

    def delete_above(self, offset: int) -> None:
        """Delete snapshots of a future that has been truncated away."""
        for known in [known for known in self.offsets if known > offset]:
            self._delete(known)

    def keep(self, offsets: Iterable[int]) -> None:
        """Delete every snapshot that is not of one of `offsets`."""
        for known in set(self.offsets) - set(offsets):
            self._delete(known)

    def _delete(self, offset: int) -> None:
        self._path(offset).unlink(missing_ok=True)
        self.offsets = [known for known in self.offsets if known != offset]

    def _path(self, offset: int) -> Path:
        return self._folder / file_name(offset, SNAPSHOT_SUFFIX)


def recall(table: ProducerTable, headers: Iterable[BatchHeader]) -> None:
    """Fill in the batches before the last one of each producer from the log's tail.

    `headers` are batches of the log, oldest first, up to the table's end. Without this a producer
    whose last five acknowledgements were lost in a clean restart would be told, for all but the
    last, that it is out of order.
    """
    found: dict[int, list[BatchHeader]] = {}
    for header in headers:
        entry = table.get(header.producer_id)
        if entry is None or header.is_control or header.producer_epoch != entry.epoch:
            continue
        found.setdefault(header.producer_id, []).append(header)
    for producer_id, batches in found.items():
        entry = table.get(producer_id)
        assert entry is not None
        table.put(_with_earlier(entry, batches))


def _with_earlier(entry: ProducerEntry, headers: list[BatchHeader]) -> ProducerEntry:
    if not entry.batches or headers[-1].last_offset != entry.batches[-1].last_offset:
        return entry
    chain = [describe(headers[-1], headers[-1].base_offset)]
    for header in reversed(headers[:-1]):
        earlier = describe(header, header.base_offset)
        follows = (earlier.last_sequence + 1) % SEQUENCES == chain[0].first_sequence
        if not follows or len(chain) == REMEMBERED_BATCHES:
            break
        chain.insert(0, earlier)
    # A replay of the log from an older snapshot may have seen more than its last few megabytes.
    return entry if len(chain) < len(entry.batches) else entry._replace(batches=tuple(chain))
