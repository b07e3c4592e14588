"""Runs of plain Produce requests: read together where they lie, one behind the other in a buffer.

    | size | request | size | request | size | another API ...
    start                             end of the run

A request is plain if it says what nearly all say: v9-12, one topic, no transaction, no tagged
fields, and each of its batches is sound, with offsets from 0 on, and neither control batch nor
stamped. A run ends before the first frame that is none, that is not whole, or whose client id,
acks, timeout or topic are others. Whatever ends it is read by the general way, which says what is
wrong with it. `wire.kernel` has `read_run` in C, which does the same.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from struct import Struct
from struct import error as StructError  # noqa: N812 - it is an exception
from typing import Final, NamedTuple

from wire.headers import START
from wire.hot.produce import BY_HAND, Unusual
from wire.messages.produce import ProduceRequest
from wire.primitives import (
    MalformedMessage,
    pack_compact_string,
    pack_unsigned_varint,
    read_compact_string,
    read_nullable_string,
    read_unsigned_varint,
)
from wire.record_batch.header import (
    COMPRESSION_MASK,
    HEADER_BYTES,
    MAGIC,
    CorruptBatch,
    crc_is_valid,
    parse_header,
)

MOST_REQUESTS: Final = 256
MOST_BATCHES: Final = 100
"""Of one request; more are read by the schema codec, which counts what one may hold."""
_SIZE: Final = Struct(">i")
_START: Final = Struct(">bhi")
_ONE: Final = 1
_HEAD: Final = Struct(">iib")
_ANSWER: Final = Struct(">ihqqq3s")
_NOTHING_MORE: Final = b"\x01\x00\x00"
"""No record errors, no message, no tagged fields."""
_END: Final = b"\x00" + bytes(4) + b"\x00"
"""No tagged fields of the topic; no throttling; none of the answer."""


class PlainBatch(NamedTuple):
    """A sound batch without a place in a log: where it lies, and what a log notes of it."""

    partition: int
    start: int
    """Its first byte in the buffer."""
    size: int
    record_count: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int

    @property
    def last_offset_delta(self) -> int:
        return self.record_count - 1

    @property
    def is_control(self) -> bool:
        return False

    @property
    def is_transactional(self) -> bool:
        return False


class PlainRequest(NamedTuple):
    """One request of a run, with its batches in the order in which they are answered."""

    correlation_id: int
    batches: Sequence[PlainBatch]


class ProduceRun(NamedTuple):
    """Requests that have all but their batches in common; `end` is where the next frame begins."""

    end: int
    version: int
    client_id: str | None
    acks: int
    timeout_ms: int
    topic: str
    requests: Sequence[PlainRequest]

    def batches(self) -> Iterator[PlainBatch]:
        """Yield all batches in the order in which they came."""
        for request in self.requests:
            yield from request.batches


class _Common(NamedTuple):
    version: int
    client_id: str | None
    acks: int
    timeout_ms: int
    topic: str


def read_run(
    view: memoryview, start: int, end: int, largest_frame: int, most_requests: int
) -> ProduceRun | None:
    """Return the run of at most so many requests that begins at `start`; None if there is none.

    `end` is where what has been received ends. A frame beyond `largest_frame` is not plain.
    """
    common: _Common | None = None
    requests: list[PlainRequest] = []
    while len(requests) < most_requests and end - start >= _SIZE.size:
        (size,) = _SIZE.unpack_from(view, start)
        first = start + _SIZE.size
        if not 0 <= size <= min(largest_frame, end - first):
            break
        try:
            found, request = _read_plain(view[: first + size], first)
        except (Unusual, MalformedMessage, CorruptBatch, StructError, IndexError):
            break
        if common is not None and found != common:
            break
        common = found
        requests.append(request)
        start = first + size
    return None if common is None else ProduceRun(start, *common, requests)


def _read_plain(view: memoryview, position: int) -> tuple[_Common, PlainRequest]:
    """Read a request that ends where the view does."""
    api_key, version, correlation_id = START.unpack_from(view, position)
    if api_key != ProduceRequest.API_KEY or version not in BY_HAND:
        raise Unusual
    client_id, position = read_nullable_string(view, position + START.size)
    if view[position]:
        raise Unusual
    transactional, acks, timeout_ms = _START.unpack_from(view, position + 1)
    topics, position = read_unsigned_varint(view, position + 1 + _START.size)
    if transactional or topics != _ONE + 1:
        raise Unusual
    topic, position = read_compact_string(view, position)
    count, position = read_unsigned_varint(view, position)
    if not 1 < count <= MOST_BATCHES + 1:
        raise Unusual
    batches: list[PlainBatch] = []
    for _ in range(count - 1):
        (partition,) = _SIZE.unpack_from(view, position)
        length, position = read_unsigned_varint(view, position + _SIZE.size)
        batches.append(_plain(view, partition, position, length - 1))
        position += length - 1
        if view[position]:
            raise Unusual
        position += 1
    if view[position] or view[position + 1] or position + 2 != len(view):
        raise Unusual
    common = _Common(version, client_id, acks, timeout_ms, topic)
    return common, PlainRequest(correlation_id, batches)


def _plain(view: memoryview, partition: int, start: int, size: int) -> PlainBatch:
    if not HEADER_BYTES <= size <= len(view) - start:
        raise Unusual
    batch = view[start : start + size]
    header = parse_header(batch)
    is_plain = (
        header.batch_bytes == size
        and header.base_offset == 0
        and header.magic == MAGIC
        and not header.attributes & ~COMPRESSION_MASK
        and 0 < header.record_count == header.last_offset_delta + 1
        and (header.producer_id < 0 or header.base_sequence >= 0)
    )
    if not is_plain or not crc_is_valid(batch):
        raise Unusual
    return PlainBatch(
        partition,
        start,
        size,
        header.record_count,
        header.base_timestamp,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
    )


def answer_frames(run: ProduceRun, offsets: Iterator[tuple[int, int]]) -> list[bytes]:
    """Return the answers to a run whose batches all were appended, whole frames in order.

    `offsets` yields each batch's base offset and its log's start, in the order of the batches.
    """
    frames: list[bytes] = []
    for request in run.requests:
        answers = b""
        for one in request.batches:
            base_offset, log_start = next(offsets)
            answers += _ANSWER.pack(one.partition, 0, base_offset, -1, log_start, _NOTHING_MORE)
        before = _before(run.topic, len(request.batches))
        size = _HEAD.size - _SIZE.size + len(before) + len(answers) + len(_END)
        frames.append(_HEAD.pack(size, request.correlation_id, 0) + before + answers + _END)
    return frames


@lru_cache(maxsize=16384)
def _before(topic: str, batches: int) -> bytes:
    return b"\x02" + pack_compact_string(topic) + pack_unsigned_varint(batches + 1)
