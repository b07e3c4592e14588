"""Relays: transparent until a link is cut, and then nothing passes until it is healed."""

import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from os import fstat, getpid
from pathlib import Path
from socket import socket

import pytest
import trio

from tests.drill import links as links_module
from tests.drill.links import Links, _holds, relay


@asynccontextmanager
async def echo_behind_relay(links: Links) -> AsyncIterator[int]:
    async def echo(stream: trio.SocketStream) -> None:
        async for chunk in stream:
            await stream.send_all(chunk)

    async with trio.open_nursery() as nursery:
        serve = partial(trio.serve_tcp, echo, 0, host="127.0.0.1")
        [listener] = await nursery.start(serve)
        address = ("127.0.0.1", int(listener.socket.getsockname()[1]))
        yield int(await nursery.start(partial(relay, links, "echo", address, bystander="us")))
        nursery.cancel_scope.cancel()


async def ask(stream: trio.SocketStream, said: bytes) -> bytes:
    await stream.send_all(said)
    return bytes(await stream.receive_some())


async def test_a_cut_link_holds_back_what_is_sent_until_it_is_healed() -> None:
    links = Links()
    async with (
        echo_behind_relay(links) as port,
        await trio.open_tcp_stream("127.0.0.1", port) as stream,
    ):
        assert await ask(stream, b"before") == b"before"
        links.cut("us", "echo")
        with trio.move_on_after(0.2) as silence:
            await ask(stream, b"during")
        assert silence.cancelled_caught
        links.heal("us", "echo")
        assert await stream.receive_some() == b"during"


async def test_a_slow_server_is_late_both_ways_until_it_is_quick_again() -> None:
    links = Links()
    async with (
        echo_behind_relay(links) as port,
        await trio.open_tcp_stream("127.0.0.1", port) as stream,
    ):
        links.slow("echo", 0.1)
        began_s = trio.current_time()
        assert await ask(stream, b"late") == b"late"
        assert trio.current_time() - began_s >= 0.2
        links.slow("echo", 0.0)
        assert await ask(stream, b"soon") == b"soon"


async def test_a_link_of_others_that_is_cut_changes_nothing() -> None:
    links = Links()
    links.cut("them", "echo")
    async with (
        echo_behind_relay(links) as port,
        await trio.open_tcp_stream("127.0.0.1", port) as stream,
    ):
        assert await ask(stream, b"hello") == b"hello"


async def test_nobody_asks_who_has_made_a_connection_to_a_server_that_all_may_reach(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a machine of many sockets the answer takes seconds, in which nothing passes."""
    asked: list[int] = []

    def answer(local_port: int, _: int) -> None:
        asked.append(local_port)

    monkeypatch.setattr(links_module, "_inode_of", answer)
    links = Links()
    links.cut("us", "another")
    async with (
        echo_behind_relay(links) as port,
        await trio.open_tcp_stream("127.0.0.1", port) as stream,
    ):
        assert await ask(stream, b"hello") == b"hello"
        assert asked == []
        links.cut("them", "echo")
        assert await ask(stream, b"hello") == b"hello"
        assert await ask(stream, b"again") == b"again"
    assert len(asked) == 1, "it is asked once"


@pytest.fixture
def stranger() -> Iterator[int]:
    """A process that has none of our sockets, nor have its children."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        yield process.pid


async def test_a_process_is_known_by_its_socket(stranger: int) -> None:
    """This process has a name now, and only its links are cut."""
    links = Links()
    links.pids |= {stranger: "stranger", getpid(): "me"}
    links.cut("me", "echo")
    async with (
        echo_behind_relay(links) as port,
        await trio.open_tcp_stream("127.0.0.1", port) as stream,
    ):
        with trio.move_on_after(0.2) as silence:
            await ask(stream, b"hello")
        assert silence.cancelled_caught


def test_a_file_that_is_closed_while_it_is_looked_for_hides_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket() as ours:
        closed = Path(f"/proc/{getpid()}/fd/{2**30}")
        found = [closed, *closed.parent.iterdir()]
        monkeypatch.setattr(Path, "iterdir", lambda _: iter(found))
        assert _holds(getpid(), f"socket:[{fstat(ours.fileno()).st_ino}]")


async def test_a_reset_ends_the_connections_there_are() -> None:
    links = Links()
    async with (
        echo_behind_relay(links) as port,
        await trio.open_tcp_stream("127.0.0.1", port) as stream,
    ):
        assert await ask(stream, b"hello") == b"hello"
        links.reset("us", "echo")
        with trio.fail_after(60):
            assert await _is_over(stream)
        async with await trio.open_tcp_stream("127.0.0.1", port) as again:
            assert await ask(again, b"again") == b"again"


async def _is_over(stream: trio.SocketStream) -> bool:
    try:
        return await stream.receive_some() == b""
    except trio.BrokenResourceError:
        return True
