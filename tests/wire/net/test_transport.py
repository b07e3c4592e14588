"""Plain TCP, over real sockets."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio
import trio.testing

from wire.net.errors import BrokerUnreachable
from wire.net.transport import SEND_BYTES, SocketTransport, connect_socket


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[SocketTransport, trio.SocketStream]]:
    """Open a transport and what is at its other end."""
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listener:
        transport = SocketTransport(await connect_socket(listener.socket.getsockname()))
        async with await listener.accept() as peer:
            yield transport, peer
            transport.close()


async def test_a_reader_sleeps_until_there_is_as_much_as_it_asked_for() -> None:
    async with connected() as (transport, peer):
        sizes: list[int] = []

        async def receive(least: int) -> None:
            sizes.append(await transport.receive_into(memoryview(bytearray(1000)), least))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(receive, 300)
            for _ in range(3):
                await peer.send_all(bytes(100))
                await trio.testing.wait_all_tasks_blocked()
        assert sizes == [300]


async def test_less_is_waited_for_again_after_much_was() -> None:
    async with connected() as (transport, peer):
        buffer = memoryview(bytearray(1000))
        await peer.send_all(bytes(500))
        assert await transport.receive_into(buffer, 500) == 500
        await peer.send_all(b"x")
        assert await transport.receive_into(buffer) == 1


async def test_the_end_of_the_stream_ends_the_wait_for_more() -> None:
    async with connected() as (transport, peer):
        buffer = memoryview(bytearray(1000))
        await peer.send_all(bytes(20))
        await peer.send_eof()
        assert await transport.receive_into(buffer, 300) == 20
        assert await transport.receive_into(buffer, 300) == 0


async def test_how_much_may_wait_unsent_is_left_to_the_system() -> None:
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listener:
        with await connect_socket(listener.socket.getsockname()) as connected_socket:
            option = (socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT)
            with socket.socket() as untouched:
                assert connected_socket.getsockopt(*option) == untouched.getsockopt(*option)


async def test_more_may_wait_to_be_sent_where_the_system_lets_that_be_set() -> None:
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    most = int(await trio.Path("/proc/sys/net/core/wmem_max").read_text())
    async with listener:
        with await connect_socket(listener.socket.getsockname()) as connected_socket:
            room = connected_socket.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
    if most >= SEND_BYTES:
        assert room == 2 * SEND_BYTES  # socket(7): the kernel doubles it
    else:
        assert room > 2 * most  # the system's own: it grows beyond what may be set


@pytest.mark.parametrize("host", ["kafka1..dc1", "x" * 64, ".", "\uffff", "\u0663"])
async def test_a_name_that_no_host_can_have_is_out_of_reach(host: str) -> None:
    """Brokers advertise what they were told to: nothing of that may end a client."""
    with pytest.raises(BrokerUnreachable, match="no host can have that name"):
        await connect_socket((host, 9092))


async def test_closing_takes_back_what_was_not_delivered_yet() -> None:
    near, far = socket_pair()
    transport = SocketTransport(near)
    sent = 0
    while taken := transport.send_now([bytes(1 << 16)]):
        sent += taken
    transport.close()
    got: list[int] = []
    with pytest.raises(ConnectionResetError):
        got.extend(map(len, iter(partial(far.recv, 1 << 16), b"")))
    far.close()
    assert sum(got) < sent


async def test_closing_after_everything_was_delivered_ends_the_stream_in_order() -> None:
    near, far = socket_pair()
    transport = SocketTransport(near)
    assert transport.send_now([b"all"]) == 3
    assert far.recv(10) == b"all"
    transport.close()
    assert far.recv(10) == b""
    far.close()


def socket_pair() -> tuple[socket.socket, socket.socket]:
    """Return both ends of a TCP connection; the far one blocks."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname())
        far, _ = server.accept()
    far.settimeout(10)
    return near, far
