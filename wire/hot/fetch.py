"""Fetch as a forwarder speaks it: requests for many partitions, answers as views of their batches.

The layout is that of v12-17. Other versions are left to the schema codec. Tagged fields of an
answer (who leads now, where logs diverge) are stepped over: callers that need them ask otherwise.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from struct import Struct
from struct import error as StructError  # noqa: N812 - it is an exception
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from wire.headers import decode_response
from wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)
from wire.primitives import (
    Buffer,
    MalformedMessage,
    pack_compact_string,
    pack_int32,
    pack_unsigned_varint,
    read_compact_string,
    read_unsigned_varint,
    read_uuid,
    skip_tagged_fields,
)
from wire.schema import encode

BY_HAND: Final = range(12, 18)
TOPIC_IDS_SINCE: Final = 13
REPLICA_ID_UNTIL: Final = 14

TopicKey: TypeAlias = tuple[str, UUID]
"""A topic's name and id; which of them travels is the version's business."""

_NO_TAGS: Final = b"\x00"
_REPLICA_ID: Final = pack_int32(-1)
_LIMITS: Final = Struct(">iiibii")
_WANTED: Final = Struct(">iiqiqib")
_ANSWER: Final = Struct(">ihi")
_ANSWER_AT: Final = 5
_FOUND: Final = Struct(">ihqqq")
_ABORTED: Final = Struct(">qqb")
_REPLICA: Final = Struct(">i")

_length = lru_cache(maxsize=4096)(pack_unsigned_varint)
_name = lru_cache(maxsize=16384)(pack_compact_string)


class Wanted(NamedTuple):
    """A partition, from which offset on, and how many bytes at most."""

    partition: int
    fetch_offset: int
    max_bytes: int
    leader_epoch: int = -1
    """A broker that knows of another one refuses (KIP-320); -1 for any."""


class Session(NamedTuple):
    """A fetch session (KIP-227): epoch 0 opens one, -1 closes it or goes without."""

    session_id: int = 0
    epoch: int = -1


class FetchLimits(NamedTuple):
    """The limits of one answer as a whole."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int


class FetchedPartition(NamedTuple):
    """The part of an answer about one partition."""

    partition: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: Sequence[tuple[int, int]]
    """(producer id, first offset) of transactions that lie in the records and were aborted."""
    preferred_read_replica: int
    records: memoryview | None


class Fetched(NamedTuple):
    """A whole answer; its topics by name up to v12, by id since."""

    throttle_time_ms: int
    error_code: int
    session_id: int
    topics: Sequence[tuple[str | UUID, Sequence[FetchedPartition]]]


def version_for(version: int, topic_ids: Iterable[UUID]) -> int:
    """Return the version to ask for topics in: without an id, they can be asked for by name alone.

    So it is while brokers of today obey the inter.broker.protocol.version of before 2.8.
    """
    has_ids = version < TOPIC_IDS_SINCE or all(topic_id.int for topic_id in topic_ids)
    return version if has_ids else TOPIC_IDS_SINCE - 1


def request_body(
    version: int,
    limits: FetchLimits,
    session: Session,
    wanted: Mapping[TopicKey, Sequence[Wanted]],
    forgotten: Mapping[TopicKey, Sequence[int]],
    rack_id: str,
) -> bytes:
    """Return the body of a consumer's request."""
    if version not in BY_HAND:
        return encode(_message(version, limits, session, wanted, forgotten, rack_id), version)
    parts = [] if version > REPLICA_ID_UNTIL else [_REPLICA_ID]
    parts += [_LIMITS.pack(*limits, *session), _length(len(wanted) + 1)]
    pack = _WANTED.pack
    for key, partitions in wanted.items():
        parts += [_topic(key, version), _length(len(partitions) + 1)]
        parts += [
            pack(partition, epoch, offset, -1, -1, size, 0)
            for partition, offset, size, epoch in partitions
        ]
        parts.append(_NO_TAGS)
    parts.append(_length(len(forgotten) + 1))
    for key, indexes in forgotten.items():
        parts += [_topic(key, version), _length(len(indexes) + 1), *map(pack_int32, indexes)]
        parts.append(_NO_TAGS)
    parts += [_name(rack_id), _NO_TAGS]
    return b"".join(parts)


def _topic(key: TopicKey, version: int) -> bytes:
    name, topic_id = key
    return topic_id.bytes if version >= TOPIC_IDS_SINCE else _name(name)


def _message(
    version: int,
    limits: FetchLimits,
    session: Session,
    wanted: Mapping[TopicKey, Sequence[Wanted]],
    forgotten: Mapping[TopicKey, Sequence[int]],
    rack_id: str,
) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=limits.max_wait_ms,
        min_bytes=limits.min_bytes,
        max_bytes=limits.max_bytes,
        isolation_level=limits.isolation_level,
        session_id=session.session_id,
        session_epoch=session.epoch,
        topics=tuple(
            FetchTopic(
                topic=name,
                topic_id=topic_id,
                partitions=tuple(
                    FetchPartition(
                        partition=one.partition,
                        current_leader_epoch=one.leader_epoch,
                        fetch_offset=one.fetch_offset,
                        partition_max_bytes=one.max_bytes,
                    )
                    for one in partitions
                ),
            )
            for (name, topic_id), partitions in wanted.items()
        ),
        forgotten_topics_data=tuple(
            ForgottenTopic(topic=name, topic_id=topic_id, partitions=tuple(indexes))
            for (name, topic_id), indexes in forgotten.items()
        ),
        rack_id=rack_id if version in FetchRequest.VERSIONS else "",
    )


def read_answer(frame: Buffer, version: int) -> Fetched:
    """Return what a whole answer says, without its size but with its header; records are views.

    Raises MalformedMessage.
    """
    if version in BY_HAND:
        try:
            return _read(memoryview(frame), version)
        except (MalformedMessage, StructError, IndexError):
            pass  # the schema codec says what is wrong, and where
    answer = decode_response(FetchResponse, frame, version)
    return Fetched(
        answer.throttle_time_ms,
        answer.error_code,
        answer.session_id,
        [
            (
                topic.topic_id if version >= TOPIC_IDS_SINCE else topic.topic,
                [
                    FetchedPartition(
                        one.partition_index,
                        one.error_code,
                        one.high_watermark,
                        one.last_stable_offset,
                        one.log_start_offset,
                        [
                            (aborted.producer_id, aborted.first_offset)
                            for aborted in one.aborted_transactions or ()
                        ],
                        one.preferred_read_replica,
                        _view(one.records),
                    )
                    for one in topic.partitions
                ],
            )
            for topic in answer.responses
        ],
    )


def _view(records: object) -> memoryview | None:
    assert records is None or isinstance(records, memoryview), "decoded records are one view"
    return records


def _read(frame: memoryview, version: int) -> Fetched:
    _, position = skip_tagged_fields(frame, _ANSWER_AT - 1)
    throttle_time_ms, error_code, session_id = _ANSWER.unpack_from(frame, position)
    count, position = read_unsigned_varint(frame, position + _ANSWER.size)
    topics: list[tuple[str | UUID, Sequence[FetchedPartition]]] = []
    for _ in range(_not_null(count, position)):
        key: str | UUID
        if version >= TOPIC_IDS_SINCE:
            key, position = read_uuid(frame, position)
        else:
            key, position = read_compact_string(frame, position)
        count, position = read_unsigned_varint(frame, position)
        found: list[FetchedPartition] = []
        for _ in range(_not_null(count, position)):
            one, position = _read_partition(frame, position)
            found.append(one)
        _, position = skip_tagged_fields(frame, position)
        topics.append((key, found))
    skip_tagged_fields(frame, position)
    return Fetched(throttle_time_ms, error_code, session_id, topics)


def _not_null(count: int, position: int) -> int:
    """Return how many elements follow; of a null array the schema codec says what is wrong."""
    if count == 0:
        raise MalformedMessage("null where null is not allowed", position=position)
    return count - 1


def _read_partition(frame: memoryview, position: int) -> tuple[FetchedPartition, int]:
    partition, code, high_watermark, stable, start = _FOUND.unpack_from(frame, position)
    position += _FOUND.size
    aborted: list[tuple[int, int]] = []
    count = frame[position]
    if count <= 1:
        position += 1
    else:
        count, position = read_unsigned_varint(frame, position)
        for _ in range(count - 1):
            producer_id, first_offset, tags = _ABORTED.unpack_from(frame, position)
            if tags:
                raise MalformedMessage("tagged fields, which nobody knows", position=position)
            aborted.append((producer_id, first_offset))
            position += _ABORTED.size
    (replica,) = _REPLICA.unpack_from(frame, position)
    size, position = read_unsigned_varint(frame, position + _REPLICA.size)
    records = None
    if size:
        end = position + size - 1
        records = frame[position:end]
        position = end
    if frame[position]:
        _, position = skip_tagged_fields(frame, position)
    else:
        position += 1
    found = FetchedPartition(
        partition, code, high_watermark, stable, start, aborted, replica, records
    )
    return found, position
