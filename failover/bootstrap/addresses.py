"""Brokers as clients of a forwarding endpoint see them: a port or a name for each. Pure.

An answer is that of one broker, so the brokers in it are of one site. One that has no port is left
out, so that clients go on with all others. Leader epochs are taken out
of it: both sites count their own, and a client that has seen a higher one elsewhere would hold
what the active site says for outdated.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from failover.bootstrap.denials import DENIED, NO_TOPICS
from failover.bootstrap.spoken import limited
from runtime.configuration.bootstrap_section import BROKER
from wire.errors import ErrorCode
from wire.headers import decode_response, encode_response
from wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from wire.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from wire.net.transport import Address
from wire.primitives import Buffer
from wire.values import frozen

NO_EPOCH: Final = -1
NO_NODE: Final = -1
NO_BROKERS: Final[Mapping[int, Address]] = MappingProxyType({})

WithAddresses: TypeAlias = (
    ApiVersionsResponse | DescribeClusterResponse | FindCoordinatorResponse | MetadataResponse
)
CHANGED: Final[Mapping[int, type[WithAddresses]]] = MappingProxyType(
    {
        request.API_KEY: request.RESPONSE
        for request in (
            ApiVersionsRequest,
            DescribeClusterRequest,
            FindCoordinatorRequest,
            MetadataRequest,
        )
    }
)
"""By API key, the answers that are not passed on as they are."""


class ShownAddresses(Protocol):
    """Where clients reach each broker."""

    def of(self, node_id: int) -> Address:
        """Return the address that clients are told. Raises NoPort."""


class NoPort(ValueError):
    """A broker whose id is beyond the ports that there are; the message names the key to change."""


@frozen(kw_only=False)
class BrokerPorts:
    """Where clients reach each broker: broker n at the n-th port, counted from 0."""

    host: str
    ports: range

    def of(self, node_id: int) -> Address:
        """Return the address that clients are told. Raises NoPort."""
        if not 0 <= node_id < len(self.ports):
            raise NoPort(
                f"broker {node_id} has no port: failover.bootstrap.forward.ports has "
                f"{len(self.ports)}, for brokers 0 to {len(self.ports) - 1}"
            )
        return self.host, self.ports[node_id]


@frozen(kw_only=False)
class BrokerNames:
    """Where clients reach each broker: by a name for each, all at one port."""

    pattern: str
    """With BROKER in it."""
    port: int

    def of(self, node_id: int) -> Address:
        """Return the address that clients are told."""
        return self.pattern.replace(BROKER, str(node_id)), self.port

    def node_of(self, name: str | None) -> int | None:
        """Return the broker of this name, None where it is that of none in particular."""
        head, _, tail = self.pattern.lower().partition(BROKER)
        found = re.fullmatch(
            f"{re.escape(head)}(0|[1-9][0-9]{{0,8}}){re.escape(tail)}", (name or "").lower()
        )
        return None if found is None else int(found[1])


class ShownAnswer(NamedTuple):
    """An answer as clients get it."""

    frame: bytes
    """All of it, its size first."""
    brokers: Mapping[int, Address]
    """Those that the broker's own answer named."""
    left_out: tuple[str, ...]
    """Why a broker of those is not shown, for each."""
    denied: frozenset[str]
    """Topics that the client is denied, by Metadata."""


class _Placing:
    """The places of brokers, and why some have none."""

    def __init__(self, places: ShownAddresses) -> None:
        self._places = places
        self.left_out: dict[int, str] = {}

    def of(self, node_id: int) -> Address | None:
        try:
            return self._places.of(node_id)
        except NoPort as why:
            self.left_out[node_id] = str(why)
            return None


def shown(frame: Buffer, key: int, version: int, places: ShownAddresses) -> ShownAnswer:
    """Return an answer as clients get it.

    `frame` is the broker's answer without its size. Raises MalformedMessage.
    """
    placing = _Placing(places)
    answer = decode_response(CHANGED[key], frame, version)
    brokers, denied = NO_BROKERS, NO_TOPICS
    match answer:
        case ApiVersionsResponse():
            version = 0 if answer.error_code == ErrorCode.UNSUPPORTED_VERSION else version
            answer = limited(answer)
        case MetadataResponse():
            brokers = {each.node_id: (each.host, each.port) for each in answer.brokers}
            denied = frozenset(
                str(each.name) for each in answer.topics if each.error_code == DENIED
            )
            answer = _metadata(answer, placing)
        case DescribeClusterResponse():
            brokers = {each.broker_id: (each.host, each.port) for each in answer.brokers}
            answer = _described(answer, placing)
        case FindCoordinatorResponse():
            answer = _coordinators(answer, placing)
    correlation_id = int.from_bytes(frame[:4], "big", signed=True)
    whole = b"".join(encode_response(correlation_id, answer, version))
    return ShownAnswer(whole, brokers, tuple(placing.left_out.values()), denied)


def _metadata(answer: MetadataResponse, places: _Placing) -> MetadataResponse:
    return replace(
        answer,
        brokers=tuple(
            replace(each, host=place[0], port=place[1])
            for each in answer.brokers
            if (place := places.of(each.node_id)) is not None
        ),
        topics=tuple(map(_without_epochs, answer.topics)),
    )


def _without_epochs(topic: MetadataResponseTopic) -> MetadataResponseTopic:
    partitions = tuple(replace(each, leader_epoch=NO_EPOCH) for each in topic.partitions)
    return replace(topic, partitions=partitions)


def _described(answer: DescribeClusterResponse, places: _Placing) -> DescribeClusterResponse:
    return replace(
        answer,
        brokers=tuple(
            replace(each, host=place[0], port=place[1])
            for each in answer.brokers
            if (place := places.of(each.broker_id)) is not None
        ),
    )


def _coordinators(answer: FindCoordinatorResponse, places: _Placing) -> FindCoordinatorResponse:
    """Show each coordinator; where there is none, the broker's answer has no address."""
    if answer.host:
        answer = replace(answer, **_coordinator(answer.node_id, places))
    return replace(
        answer,
        coordinators=tuple(
            replace(each, **_coordinator(each.node_id, places)) if each.host else each
            for each in answer.coordinators
        ),
    )


def _coordinator(node_id: int, places: _Placing) -> Mapping[str, Any]:
    """Return where a coordinator is; one without a port is none for the moment."""
    place = places.of(node_id)
    if place is None:
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        return {"error_code": code, "node_id": NO_NODE, "host": "", "port": NO_NODE}
    return {"host": place[0], "port": place[1]}
