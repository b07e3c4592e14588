"""Produce as a broker speaks it: requests of few batches read, and plain answers written, by hand.

The layout is that of v9-12, as in `wire.hot.produce`. What is unusual or malformed is left to the
schema codec, which reads it or says what is wrong: both functions then return None.
"""

from functools import lru_cache
from struct import Struct
from struct import error as StructError  # noqa: N812 - it is an exception
from typing import Final

from wire.hot.produce import BY_HAND, Unusual
from wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceLeaderIdAndEpoch,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from wire.primitives import (
    MalformedMessage,
    pack_compact_string,
    pack_unsigned_varint,
    read_compact_string,
    read_unsigned_varint,
)

MOST_BATCHES: Final = 100
"""More are read by the schema codec, which counts what one request may hold."""
_START: Final = Struct(">bhi")
_NO_TRANSACTION: Final = 0
_INDEX: Final = Struct(">i")
_HEAD: Final = Struct(">iib")
_ANSWER: Final = Struct(">ihqqq3s")
_NOTHING_MORE: Final = b"\x01\x00\x00"
"""No record errors, no message, no tagged fields."""
_END: Final = Struct(">ib")
_SIZE_BYTES: Final = 4
_NO_LEADER: Final[ProduceLeaderIdAndEpoch] = PartitionProduceResponse(
    index=0, error_code=0, base_offset=0
).current_leader
"""The default, which all answers that name no leader share."""

_length = lru_cache(maxsize=4096)(pack_unsigned_varint)
_name = lru_cache(maxsize=16384)(pack_compact_string)


def read_request(frame: memoryview, version: int, position: int) -> ProduceRequest | None:
    """Return the request whose body begins at `position`, its records as views into `frame`."""
    if version not in BY_HAND:
        return None
    try:
        return _read_usual(frame, position)
    except (Unusual, MalformedMessage, StructError, IndexError):
        return None


def _read_usual(frame: memoryview, position: int) -> ProduceRequest:
    transactional, acks, timeout_ms = _START.unpack_from(frame, position)
    if transactional != _NO_TRANSACTION:
        raise Unusual
    count, position = read_unsigned_varint(frame, position + _START.size)
    left = MOST_BATCHES
    topics: list[TopicProduceData] = []
    for _ in range(_counted(count, left)):
        name, position = read_compact_string(frame, position)
        count, position = read_unsigned_varint(frame, position)
        left -= _counted(count, left)
        batches: list[PartitionProduceData] = []
        for _ in range(count - 1):
            (index,) = _INDEX.unpack_from(frame, position)
            length, position = read_unsigned_varint(frame, position + _INDEX.size)
            end = position + length - 1
            if not length or frame[end]:  # no records at all, or tagged fields
                raise Unusual
            batches.append(PartitionProduceData(index=index, records=frame[position:end]))
            position = end + 1
        if frame[position]:
            raise Unusual
        position += 1
        topics.append(TopicProduceData(name=name, partition_data=tuple(batches)))
    if frame[position]:
        raise Unusual
    return ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=tuple(topics))


def _counted(length: int, most: int) -> int:
    """Return the elements of an array; raises Unusual for null, and for more than `most`."""
    if not 0 < length <= most + 1:
        raise Unusual
    return length - 1


def answer_frame(correlation_id: int, answer: ProduceResponse, version: int) -> bytes | None:
    """Return the whole answer with its size and header, None for one that says more than where
    the batches went."""
    if version not in BY_HAND or answer.node_endpoints:
        return None
    try:
        return _usual_frame(correlation_id, answer)
    except (Unusual, StructError):
        return None


def _usual_frame(correlation_id: int, answer: ProduceResponse) -> bytes:
    parts = [_length(len(answer.responses) + 1)]
    for topic in answer.responses:
        parts.append(_name(topic.name) + _length(len(topic.partition_responses) + 1))
        for one in topic.partition_responses:
            if (
                one.record_errors
                or one.error_message is not None
                or one.current_leader is not _NO_LEADER
            ):
                raise Unusual
            parts.append(
                _ANSWER.pack(
                    one.index,
                    one.error_code,
                    one.base_offset,
                    one.log_append_time_ms,
                    one.log_start_offset,
                    _NOTHING_MORE,
                )
            )
        parts.append(b"\x00")
    body = b"".join(parts)
    size = _HEAD.size - _SIZE_BYTES + len(body) + _END.size
    return _HEAD.pack(size, correlation_id, 0) + body + _END.pack(answer.throttle_time_ms, 0)
