"""Produce as a forwarder speaks it: requests out of finished batches, answers by position.

The layout is that of v9-12, which differ only in tagged fields of the answer. Other versions, and
answers that say more than where the batches went, are left to the schema codec.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from struct import Struct
from struct import error as StructError  # noqa: N812 - it is an exception
from typing import Final, NamedTuple, TypeAlias

from wire.headers import LEAST_ANSWER_BYTES, decode_response
from wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from wire.primitives import (
    Buffer,
    MalformedMessage,
    pack_compact_string,
    pack_int32,
    pack_unsigned_varint,
    read_compact_string,
    read_unsigned_varint,
)
from wire.schema import Piece, pieces

BY_HAND: Final = range(9, 13)

Batch: TypeAlias = tuple[int, int, Sequence[Piece]]
"""A partition, the bytes of one batch in it, and the batch itself as parts."""

_START: Final = Struct(">bhi")
_NO_TRANSACTION: Final = 0
_NO_TAGS: Final = b"\x00"
_ANSWER: Final = Struct(">ihqqq3s")
_NOTHING_MORE: Final = b"\x01\x00\x00"
"""No record errors, no message, no tagged fields."""
_TOPICS_AT: Final = 5

_length = lru_cache(maxsize=4096)(pack_unsigned_varint)
_name = lru_cache(maxsize=16384)(pack_compact_string)
_index = lru_cache(maxsize=4096)(pack_int32)


class Appended(NamedTuple):
    """Where a partition's batch went, or why it did not."""

    partition: int
    error_code: int
    base_offset: int
    error_message: str | None = None
    record_errors: Sequence[BatchIndexAndErrorMessage] = ()
    """The records that the batch is refused for (KIP-467), as many as the broker names."""


_appended: Final = tuple.__new__
"""Makes one of all its fields, twice as fast as its own constructor: in C."""


class Unusual(Exception):
    """Something is there that is not read by hand."""


def request_parts(
    topics: Mapping[str, Sequence[Batch]], version: int, *, acks: int, timeout_ms: int
) -> tuple[list[Piece], int]:
    """Return the body of a request without transaction, as parts to be sent one after the other,
    and its size.

    The first part of a batch, its header, is joined to what stands before it.
    """
    if version not in BY_HAND:
        encoded = pieces(_message(topics, acks, timeout_ms), version)
        return encoded, sum(map(len, encoded))
    parts: list[Piece] = []
    total = 0
    before = _START.pack(_NO_TRANSACTION, acks, timeout_ms) + _length(len(topics) + 1)
    for name, batches in topics.items():
        before += _name(name) + _length(len(batches) + 1)
        for index, size, (first, *others) in batches:
            head = before + _index(index) + _length(size + 1)
            total += len(head) + size
            parts.append(head + first)
            parts += others
            before = _NO_TAGS
        before += _NO_TAGS
    parts.append(before + _NO_TAGS)
    return parts, total + len(parts[-1])


def least_answer_bytes(topics: Mapping[str, Collection[object]], version: int) -> int:
    """Return what the answer to a request for these partitions takes at least, with its size."""
    if version not in BY_HAND:
        return LEAST_ANSWER_BYTES
    count = sum(len(partitions) for partitions in topics.values())
    return LEAST_ANSWER_BYTES + count * _ANSWER.size


def _message(topics: Mapping[str, Sequence[Batch]], acks: int, timeout_ms: int) -> ProduceRequest:
    return ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=tuple(
            TopicProduceData(
                name=name,
                partition_data=tuple(
                    PartitionProduceData(index=index, records=tuple(batch))
                    for index, _, batch in batches
                ),
            )
            for name, batches in topics.items()
        ),
    )


def read_answer(frame: Buffer, version: int) -> list[tuple[str, list[Appended]]]:
    """Return each topic's partitions out of a whole answer, without its size but with its header.

    Raises MalformedMessage.
    """
    if version in BY_HAND:
        try:
            return _read_usual(memoryview(frame))
        except (Unusual, MalformedMessage, StructError, IndexError):
            pass  # whatever it is, the schema codec reads it or says what is wrong
    answer = decode_response(ProduceResponse, frame, version)
    return [
        (
            topic.name,
            [
                Appended(
                    one.index,
                    one.error_code,
                    one.base_offset,
                    one.error_message,
                    one.record_errors,
                )
                for one in topic.partition_responses
            ],
        )
        for topic in answer.responses
    ]


def _read_usual(frame: memoryview) -> list[tuple[str, list[Appended]]]:
    found: list[tuple[str, list[Appended]]] = []
    if frame[_TOPICS_AT - 1]:
        raise Unusual
    topics, position = read_unsigned_varint(frame, _TOPICS_AT)
    for _ in range(topics - 1):
        name, position = read_compact_string(frame, position)
        count, position = read_unsigned_varint(frame, position)
        end = position + (count - 1) * _ANSWER.size
        partitions = [
            _appended(Appended, (index, code, base, None, ()))
            for index, code, base, _, _, more in _ANSWER.iter_unpack(frame[position:end])
            if more == _NOTHING_MORE
        ]
        if len(partitions) < count - 1:
            raise Unusual
        position = end
        if frame[position] or not count:
            raise Unusual
        position += 1
        found.append((name, partitions))
    # What follows, the throttling time and tagged fields, is nothing to a forwarder; but an
    # answer that is cut off there is damaged all the same.
    if not topics or frame[position + 4]:
        raise Unusual
    return found
