"""Answers that deny a client what a fence by rights denies to all, made ones for the moment. Pure.

A fence looks to a client like a right that it lacks, and most producers end at that.

    what a fence denies      the answer that tells it             what the client hears
    WRITE on a topic         Produce, the topic                   NOT_ENOUGH_REPLICAS
    WRITE on all the topics
    that a client may write  InitProducerId                       COORDINATOR_LOAD_IN_PROGRESS
    CREATE                   Metadata that makes topics, a topic  LEADER_NOT_AVAILABLE

Nothing was done, and clients try again. Reading, groups and their positions are denied to nobody.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from wire.acls import WILDCARD, ResourceType
from wire.errors import ErrorCode
from wire.headers import decode_response, encode_response
from wire.hot.produce import read_answer
from wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from wire.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from wire.net.rights import LITERAL, PREFIXED, WRITE, Right
from wire.primitives import Buffer

DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
NO_TOPICS: Final[frozenset[str]] = frozenset()
"""Of a producer id, which is for no topic in particular."""
_PRODUCE: Final = ProduceRequest.API_KEY
_INIT_PRODUCER: Final = InitProducerIdRequest.API_KEY
_LATER: Final[Mapping[int, ErrorCode]] = MappingProxyType(
    {
        _PRODUCE: ErrorCode.NOT_ENOUGH_REPLICAS,
        _INIT_PRODUCER: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        MetadataRequest.API_KEY: ErrorCode.LEADER_NOT_AVAILABLE,
    }
)
"""By API key, what a client hears instead."""


def denied_write(frame: Buffer, version: int) -> frozenset[str] | None:
    """Return the topics that a Produce answer denies; None where it denies none."""
    found = frozenset(
        topic
        for topic, partitions in read_answer(frame, version)
        if any(partition.error_code == DENIED for partition in partitions)
    )
    return found or None


def denied_id(frame: Buffer, version: int) -> frozenset[str] | None:
    """Return NO_TOPICS where an answer to InitProducerId denies the id, and else None."""
    answer = decode_response(InitProducerIdResponse, frame, version)
    is_denied = answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return NO_TOPICS if is_denied else None


def may_be_fence(topics: Collection[str], key: int, closed: Collection[Right]) -> bool:
    """Tell whether an answer of this API may deny these topics for what a fence has `closed`."""
    if key == _INIT_PRODUCER:
        return any(right.operation == WRITE for right in closed)
    return any(_concerns(right, topic) for right in closed for topic in topics)


def for_now(frame: Buffer, key: int, version: int) -> bytes:
    """Return the whole answer whose refusals for want of a right are for the moment only.

    `frame` is without its size, and denies something.
    """
    answer: ProduceResponse | InitProducerIdResponse | MetadataResponse
    if key == _PRODUCE:
        written = decode_response(ProduceResponse, frame, version)
        answer = replace(written, responses=tuple(map(_written_later, written.responses)))
    elif key == _INIT_PRODUCER:
        given = decode_response(InitProducerIdResponse, frame, version)
        answer = replace(given, error_code=_LATER[key])
    else:
        named = decode_response(MetadataResponse, frame, version)
        answer = replace(named, topics=tuple(map(_named_later, named.topics)))
    correlation_id = int.from_bytes(frame[:4], "big", signed=True)
    return b"".join(encode_response(correlation_id, answer, version))


def _written_later(topic: TopicProduceResponse) -> TopicProduceResponse:
    def later(one: PartitionProduceResponse) -> PartitionProduceResponse:
        return replace(one, error_code=_LATER[_PRODUCE]) if one.error_code == DENIED else one

    return replace(topic, partition_responses=tuple(map(later, topic.partition_responses)))


def _named_later(topic: MetadataResponseTopic) -> MetadataResponseTopic:
    if topic.error_code != DENIED:
        return topic
    return replace(topic, error_code=_LATER[MetadataRequest.API_KEY])


def _concerns(right: Right, topic: str) -> bool:
    """Tell whether an entry is about a topic, or about making any."""
    if right.kind == ResourceType.CLUSTER:
        return True
    if right.pattern == PREFIXED:
        return topic.startswith(right.name)
    return right.pattern == LITERAL and right.name in {topic, WILDCARD}
