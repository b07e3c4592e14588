"""What a user sets of the connections to a cluster, and what of it takes effect where."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import astuple, fields

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from tests.doubles.fake_cluster import FakeBroker, FakeCluster
from tests.doubles.memory_transport import memory_transport
from wire.errors import ErrorCode
from wire.headers import RequestHeader
from wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from wire.messages.metadata import MetadataRequest
from wire.net import BrokerUnreachable, Cluster, RequestRefused, RequestTimedOut, open_cluster
from wire.net.client_settings import UNSET, ClientSettings, Growing, SocketSettings
from wire.net.operations import fetch_group_offsets
from wire.net.security import Security, Tls
from wire.net.tls import TlsDial
from wire.net.transport import Address, Transport, connect_socket, dial_tcp

SMALL = 64 * 1024


def settings_of_users() -> st.SearchStrategy[ClientSettings]:
    waits = st.none() | st.integers(1, 10_000_000)
    names = [field.name for field in fields(ClientSettings) if field.name.endswith("_ms")]
    return st.builds(ClientSettings, **dict.fromkeys(names, waits))


@asynccontextmanager
async def cluster_in_memory(
    client: ClientSettings, request_timeout_ms: int = 30_000
) -> AsyncIterator[tuple[FakeBroker, Cluster]]:
    """Give a broker and a client of it that share no socket, so that time is virtual."""
    fake = FakeCluster()
    broker = fake.brokers[0] = FakeBroker(fake, 0)
    broker.address = ("memory", 1)
    async with trio.open_nursery() as nursery:

        async def dial(_: Address) -> Transport:
            transport, far_end = memory_transport()
            nursery.start_soon(broker.serve, far_end)
            return transport

        async with open_cluster(
            [broker.address],
            client_id="test",
            request_timeout_ms=request_timeout_ms,
            security=Security(client=client),
            dial=dial,
        ) as cluster:
            yield broker, cluster
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def silent_listener(*, takes_connections: bool) -> AsyncIterator[Address]:
    """Give a port where nothing is said; without `takes_connections` none comes about either."""
    backlog = 100 if takes_connections else 0
    with socket.create_server(("127.0.0.1", 0), backlog=backlog) as listener:
        address: Address = listener.getsockname()
        fillers = [socket.socket() for _ in range(0 if takes_connections else 3)]
        for filler in fillers:
            filler.setblocking(False)
            with suppress(BlockingIOError):
                filler.connect(address)
        yield address
        for filler in fillers:
            filler.close()


@pytest.mark.parametrize(
    ("failures", "seconds"), [(1, 0.05), (2, 0.1), (3, 0.2), (4, 0.4), (5, 0.4), (1_000_000, 0.4)]
)
def test_a_pause_doubles_up_to_its_longest(failures: int, seconds: float) -> None:
    assert Growing(first_ms=50, longest_ms=400).after_s(failures) == seconds


def test_what_nobody_sets_is_as_it_was() -> None:
    assert UNSET.reconnect == Growing(first_ms=50, longest_ms=1_000)
    assert UNSET.retry == Growing(first_ms=100, longest_ms=100)
    assert UNSET.sockets(7) == SocketSettings(connect_timeout_ms=10_000, undelivered_ms=7)


def test_a_first_pause_above_the_usual_longest_is_the_longest_too() -> None:
    settings = ClientSettings(reconnect_backoff_ms=5_000, retry_backoff_ms=700)
    assert settings.reconnect == Growing(first_ms=5_000, longest_ms=5_000)
    assert settings.retry == Growing(first_ms=700, longest_ms=700)


@given(settings_of_users())
def test_a_program_with_deadlines_waits_for_nothing_longer_than_without_the_settings(
    users: ClientSettings,
) -> None:
    found = users.no_slower(5_000)
    usual = UNSET.no_slower(5_000)
    for ours, longest in zip(astuple(found)[:6], astuple(usual)[:6], strict=True):
        assert ours <= longest
    assert found.request_timeout_ms == min(users.request_timeout_ms or 5_000, 5_000)


def test_a_program_with_deadlines_has_the_buffers_that_are_set() -> None:
    settings = ClientSettings(send_bytes=SMALL, receive_bytes=-1).no_slower(5_000)
    assert (settings.send_bytes, settings.receive_bytes) == (SMALL, -1)


@pytest.mark.parametrize(("users", "expected_s"), [(None, 30), (2_000, 2), (60_000, 60)])
async def test_an_answer_is_waited_for_as_long_as_the_user_says(
    users: int | None,
    expected_s: int,
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    async with cluster_in_memory(ClientSettings(request_timeout_ms=users)) as (broker, cluster):

        async def never(_: RequestHeader, __: object) -> None:
            await trio.sleep_forever()

        broker.scripts[MetadataRequest.API_KEY] = never
        began = trio.current_time()
        with pytest.raises(RequestTimedOut):
            await cluster.request(MetadataRequest(topics=()))
        assert trio.current_time() - began == pytest.approx(expected_s)


async def test_a_coordinator_that_is_not_ready_is_asked_again_after_the_pauses_that_are_set(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    settings = ClientSettings(retry_backoff_ms=1_000, retry_backoff_max_ms=3_000)
    async with cluster_in_memory(settings) as (broker, cluster):
        asked_at: list[float] = []

        async def none_yet(_: RequestHeader, __: object) -> FindCoordinatorResponse:
            asked_at.append(trio.current_time())
            return FindCoordinatorResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE.value)

        broker.cluster.versions[FindCoordinatorRequest.API_KEY] = range(3)
        broker.scripts[FindCoordinatorRequest.API_KEY] = none_yet
        with pytest.raises(RequestRefused, match="COORDINATOR_NOT_AVAILABLE"):
            await fetch_group_offsets(cluster, "orders-app")
        assert [later - asked_at[0] for later in asked_at] == pytest.approx([0, 1, 3, 6, 9, 12])


async def test_a_host_that_does_not_answer_is_given_up_after_the_time_that_is_set(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    async with silent_listener(takes_connections=False) as address:
        began = trio.current_time()
        with pytest.raises(BrokerUnreachable, match="no connection within 90 s"):
            await dial_tcp(address, ClientSettings(connect_timeout_ms=90_000).sockets())
        assert trio.current_time() - began == pytest.approx(90)


async def test_a_handshake_without_an_answer_is_given_up_after_the_time_that_is_set(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    async with silent_listener(takes_connections=True) as address:
        began = trio.current_time()
        dial = TlsDial(Tls(), ClientSettings(connect_timeout_ms=2_500).sockets())
        with pytest.raises(BrokerUnreachable, match=r"no answer within 2\.5 s: does it speak TLS"):
            await dial(address)
        assert trio.current_time() - began == pytest.approx(2.5)


async def test_a_socket_has_the_buffers_that_are_set() -> None:
    async with silent_listener(takes_connections=True) as address:
        settings = ClientSettings(send_bytes=SMALL, receive_bytes=SMALL).sockets()
        with await connect_socket(address, settings) as connected:
            for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                # socket(7): the kernel doubles it.
                assert connected.getsockopt(socket.SOL_SOCKET, option) == 2 * SMALL


async def test_the_systems_own_buffers_are_left_to_it() -> None:
    async with silent_listener(takes_connections=True) as address:
        settings = ClientSettings(send_bytes=-1, receive_bytes=-1).sockets()
        with await connect_socket(address, settings) as ours, socket.socket() as plain:
            plain.connect(address)
            for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                size = ours.getsockopt(socket.SOL_SOCKET, option)
                assert size == plain.getsockopt(socket.SOL_SOCKET, option)
