"""A record in few bytes: its identity, what people want to read of it, and its fields' digests."""

from hashlib import blake2b
from typing import Final, NamedTuple

from spark_audit.scan.digests import java_time, key_digest, record_digest
from wire.record_batch import RecordHead
from wire.record_batch.varints import read_varint

KEY_BYTES: Final = 64
"""So much of a key is kept for people to read. Whether two records have the same key is asked of
the digest of the whole one."""
_FIELD_BYTES: Final = 8


class Entry(NamedTuple):
    """One record that is looked at by itself."""

    offset: int
    digest: bytes
    timestamp_ms: int
    key: bytes | None
    producer_id: int
    key_digest: bytes | None = None
    is_tombstone: bool = False
    value_digest: bytes = b""
    headers_digest: bytes = b""


def entry_of(head: RecordHead, producer_id: int, digest: bytes | None = None) -> Entry:
    """Return what is kept of a record; of bytes that are no record's there is no key.

    A broker need not look into what producers send.
    """
    key, value, headers = _fields(head.tail)
    return Entry(
        head.offset,
        record_digest(head) if digest is None else digest,
        java_time(head.timestamp_ms),
        None if key is None else key[:KEY_BYTES],
        producer_id,
        None if key is None else key_digest(key),
        value is None,
        b"" if value is None else _short_digest(value),
        _short_digest(headers),
    )


def key_of(tail: bytes) -> tuple[bytes | None, bool]:
    """Return a record's key, and whether it has no value."""
    key, value, _ = _fields(tail)
    return key, value is None


def key_and_value(tail: bytes) -> tuple[bytes | None, bytes | None]:
    """Return a record's key and value, as far as it has them."""
    key, value, _ = _fields(tail)
    return key, value


def _fields(tail: bytes) -> tuple[bytes | None, bytes | None, bytes]:
    """Return key, value and what lies behind them; all is value where the bytes are no record."""
    try:
        length, position = read_varint(tail, 0)
        behind_key = position + max(0, length)
        value_length, value_start = read_varint(tail, behind_key)
    except (IndexError, ValueError):
        return None, tail, b""
    behind = value_start + max(0, value_length)
    return (
        None if length < 0 else tail[position:behind_key],
        None if value_length < 0 else tail[value_start:behind],
        tail[behind:],
    )


def _short_digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=_FIELD_BYTES).digest()
