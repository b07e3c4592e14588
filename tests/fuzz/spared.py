"""Frames that are not thrown: the broker would rightly do what they say, at great cost."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.fuzz.answers import SIZE, header_of
from wire.messages.alter_client_quotas import AlterClientQuotasRequest
from wire.messages.controlled_shutdown import ControlledShutdownRequest
from wire.messages.create_partitions import CreatePartitionsRequest
from wire.messages.create_topics import CreateTopicsRequest
from wire.messages.delete_topics import DeleteTopicsRequest
from wire.messages.leader_and_isr import LeaderAndIsrRequest
from wire.messages.stop_replica import StopReplicaRequest
from wire.messages.table import APIS
from wire.messages.update_metadata import UpdateMetadataRequest
from wire.primitives import MalformedMessage
from wire.request_headers import decode_request_header
from wire.schema import UnsupportedVersion, decode_prefix

OBEYED: Final = frozenset(
    api.API_KEY
    for api in (
        LeaderAndIsrRequest,
        StopReplicaRequest,
        UpdateMetadataRequest,
        ControlledShutdownRequest,
    )
)
"""A broker does what these say, if brokers say it; whoever throws here counts as one."""
MOST_PARTITIONS: Final = 20
"""More are legal, and take their time."""
LEAST_RATE: Final = 2**40
"""A quota below makes whoever throws wait, as it should."""
TARGETS: Final = frozenset({"thrown", "__consumer_offsets"})
"""Without them most requests would meet nothing but UNKNOWN_TOPIC_OR_PARTITION."""


def is_order(frame: bytes) -> bool:
    """Return whether only a controller sends such a frame."""
    header = header_of(frame)
    return header is not None and header.api_key in OBEYED


def is_costly(frame: bytes) -> bool:
    """Return whether the frame rightly makes very many partitions, slows us or ends our aims."""
    header = header_of(frame)
    if header is None or header.api_key not in _COSTLY:
        return False
    try:
        body = memoryview(frame)[SIZE.size :]
        position = decode_request_header(body)[1]
        request, _ = decode_prefix(APIS[header.api_key], body, header.api_version, position)
    except (MalformedMessage, UnsupportedVersion):
        return False
    return _COSTLY[header.api_key](request)


def _creates_many(request: CreateTopicsRequest) -> bool:
    return any(
        max(topic.num_partitions, len(topic.assignments)) > MOST_PARTITIONS
        for topic in request.topics
    )


def _grows_far(request: CreatePartitionsRequest) -> bool:
    return any(topic.count > MOST_PARTITIONS for topic in request.topics)


def _deletes_target(request: DeleteTopicsRequest) -> bool:
    names = {*request.topic_names, *(topic.name for topic in request.topics)}
    return bool(names & TARGETS) or any(topic.topic_id.int > 2**32 for topic in request.topics)


def _slows_down(request: AlterClientQuotasRequest) -> bool:
    return not request.validate_only and any(
        not one.remove and one.value < LEAST_RATE for entry in request.entries for one in entry.ops
    )


_COSTLY: Final[Mapping[int, Callable[[Any], bool]]] = {
    AlterClientQuotasRequest.API_KEY: _slows_down,
    CreateTopicsRequest.API_KEY: _creates_many,
    CreatePartitionsRequest.API_KEY: _grows_far,
    DeleteTopicsRequest.API_KEY: _deletes_target,
}
