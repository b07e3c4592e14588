"""One forwarded connection between a client and a broker of the test, in virtual time."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

import trio
from trio.testing import (
    MemoryReceiveStream,
    MemorySendStream,
    MockClock,
    memory_stream_pair,
    wait_all_tasks_blocked,
)

from failover.bootstrap.active_site import FollowedSite, ShownSite
from failover.bootstrap.addresses import BrokerPorts
from failover.bootstrap.byte_budget import ByteBudget
from failover.bootstrap.forwarding import (
    ForwardedConnection,
    Forwarding,
    ForwardingCounts,
)
from failover.bootstrap.group_members import GroupMembers
from failover.bootstrap.sites.broker_addresses import BrokerAddresses
from failover.bootstrap.spoken import NotCarried
from runtime.coordination.witness import ActiveSite
from wire.errors import ErrorCode
from wire.headers import RequestHeader, encode_request, encode_response
from wire.messages.fetch import FetchRequest
from wire.messages.heartbeat import HeartbeatRequest
from wire.messages.join_group import JoinGroupRequest
from wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from wire.net.rights import Right
from wire.schema import AnyRequest, ApiMessage

Stream: TypeAlias = "trio.StapledStream[MemorySendStream, MemoryReceiveStream]"
HERE = ShownSite("dc1", 1)
MOVING = ShownSite("dc1", 1, is_moving=True)
THERE = ShownSite("dc2", 2)
MIB = 1024 * 1024


def request(message: AnyRequest, version: int, number: int = 1) -> bytes:
    header = RequestHeader(
        api_key=message.API_KEY, api_version=version, correlation_id=number, client_id="me"
    )
    return b"".join(encode_request(header, message))


def answer(message: ApiMessage, version: int, number: int = 1) -> bytes:
    return b"".join(encode_response(number, message, version))


def produce(number: int = 1, acks: int = -1) -> bytes:
    return request(ProduceRequest(acks=acks, timeout_ms=1, topic_data=()), 9, number)


def fetch(number: int = 1) -> bytes:
    return request(FetchRequest(max_wait_ms=1, min_bytes=1, topics=()), 12, number)


def produced(code: ErrorCode, number: int = 1) -> bytes:
    one = PartitionProduceResponse(index=0, error_code=code, base_offset=-1)
    topic = TopicProduceResponse(name="t", partition_responses=(one,))
    return answer(ProduceResponse(responses=(topic,)), 9, number)


JOIN = request(
    JoinGroupRequest(
        group_id="g",
        session_timeout_ms=1,
        member_id="m",
        group_instance_id="i",
        protocol_type="consumer",
        protocols=(),
    ),
    9,
)
HEARTBEAT = request(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 4)


@dataclass
class Stage:
    """A connection between a client and a broker of the test."""

    client: Stream = field(init=False)
    broker: Stream = field(init=False)
    said: ActiveSite | None = field(default_factory=lambda: ActiveSite(site="dc1", epoch=1))
    """By the witness."""
    closed: frozenset[Right] | None = frozenset()
    """By a fence."""
    faults: list[Exception] = field(default_factory=list)
    most_held: int = 128 * MIB
    wants_login: bool = False

    def __post_init__(self) -> None:
        self.client, ours = memory_stream_pair()
        theirs, self.broker = memory_stream_pair()
        self.ours, self.theirs = ours, theirs
        self.followed = FollowedSite()
        self.followed.take(HERE)
        self.shared = Forwarding(
            followed=self.followed,
            ask_witness=self._ask,
            ask_fence=self._ask_fence,
            places=BrokerPorts("kafka.example", range(9100, 9110)),
            budget=ByteBudget(self.most_held),
            brokers=BrokerAddresses({}, {}),
            members=GroupMembers(),
            counts=ForwardingCounts(),
        )
        self.connection = ForwardedConnection(
            ours, theirs, self.shared, lambda: None, wants_login=self.wants_login
        )

    async def _ask(self) -> ActiveSite | None:
        await trio.lowlevel.checkpoint()
        return self.said

    async def _ask_fence(self, site: str) -> frozenset[Right] | None:
        assert site == "dc1"
        await trio.lowlevel.checkpoint()
        return self.closed

    async def run(self) -> None:
        try:
            await self.connection.carry()
        except NotCarried as fault:
            self.faults.append(fault)
        await self.ours.aclose()
        await self.theirs.aclose()


@asynccontextmanager
async def staged(clock: MockClock, **settings: int | bool) -> AsyncIterator[Stage]:
    assert clock.rate == 0, "its time is virtual"
    stage = Stage(**settings)  # type: ignore[arg-type]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stage.run)
        yield stage
        nursery.cancel_scope.cancel()


async def heard(stream: Stream) -> bytes:
    """Return what has come, until nothing more comes."""
    await wait_all_tasks_blocked()
    with trio.move_on_after(0.001):
        return bytes(await stream.receive_some())
    return b""
