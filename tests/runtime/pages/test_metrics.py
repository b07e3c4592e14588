"""The HTTP endpoint that every program serves."""

import socket
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path

import pytest
import trio
from prometheus_client import CollectorRegistry, Counter

from runtime.pages import room
from runtime.pages.metrics import AddressInUse, serve_metrics
from runtime.pages.room import MAX_CONNECTIONS
from tests.runtime.pages.exchanging import exchange


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def nothing() -> tuple[str, bytes]:
    return "application/json", b"{}"


async def broken() -> tuple[str, bytes]:
    return "text/plain", f"{1 // 0}".encode()


async def test_metrics_health_and_own_routes_are_served(nursery: trio.Nursery) -> None:
    registry = CollectorRegistry()
    Counter("things", "Things.", registry=registry).inc(3)
    is_ready = False
    serve = partial(
        serve_metrics,
        "127.0.0.1",
        0,
        ready=lambda: is_ready,
        routes={"/status": nothing},
        registry=registry,
    )
    port: int = await nursery.start(serve)
    assert b"things_total 3.0" in await exchange(port, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (await exchange(port, b"GET /status?x HTTP/1.1\r\nHost: x\r\n\r\n")).endswith(b"{}")
    not_ready = await exchange(port, b"GET /health/ready HTTP/1.1\r\nHost: x\r\n\r\n")
    assert not_ready.startswith(b"HTTP/1.1 503")
    is_ready = True
    ready = await exchange(port, b"GET /health/ready HTTP/1.1\r\nHost: x\r\n\r\n")
    assert ready.startswith(b"HTTP/1.1 200")
    missing = await exchange(port, b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n")
    assert missing.startswith(b"HTTP/1.1 404")
    posted = await exchange(port, b"POST /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    assert posted.startswith(b"HTTP/1.1 405")


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x00\x01\x02\r\n\r\n",
        b"GET /metrics HTTP/9.9\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\n\r\n",  # no Host
        b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"x" * 100_000 + b"\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n12",
        b"CONNECT a:1 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /broken HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
async def test_a_bad_request_and_a_broken_page_disturb_nothing(
    nursery: trio.Nursery, request_bytes: bytes
) -> None:
    routes = {"/broken": broken}
    serve = partial(serve_metrics, "127.0.0.1", 0, registry=CollectorRegistry(), routes=routes)
    port: int = await nursery.start(serve)
    with suppress(trio.BrokenResourceError):  # closed before all of it was read
        await exchange(port, request_bytes)
    alive = await exchange(port, b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n")
    assert alive.endswith(b"alive\n")


async def test_silent_connections_take_few_files_and_health_is_answered(
    nursery: trio.Nursery,
) -> None:
    serve = partial(serve_metrics, "127.0.0.1", 0, registry=CollectorRegistry())
    port: int = await nursery.start(serve)
    before = open_files()
    async with AsyncExitStack() as silent:
        with trio.fail_after(5):
            for _ in range(4 * MAX_CONNECTIONS):
                stream = await trio.open_tcp_stream("127.0.0.1", port)
                await silent.enter_async_context(stream)
            alive = await exchange(port, b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n")
        assert alive.endswith(b"alive\n")
        assert open_files() - before <= 4 * MAX_CONNECTIONS + MAX_CONNECTIONS


async def test_clients_that_ask_and_do_not_read_do_not_shut_others_out(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "MAX_CONNECTIONS", 4)

    async def large() -> tuple[str, bytes]:
        return "text/plain", b"x" * 20_000_000

    serve = partial(
        serve_metrics, "127.0.0.1", 0, registry=CollectorRegistry(), routes={"/large": large}
    )
    port: int = await nursery.start(serve)
    async with AsyncExitStack() as stuck:
        for _ in range(4):
            stream = await trio.open_tcp_stream("127.0.0.1", port)
            await stuck.enter_async_context(stream)
            await stream.send_all(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        with trio.fail_after(5):
            alive = await exchange(port, b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n")
        assert alive.endswith(b"alive\n")


async def test_head_is_answered_without_the_page(nursery: trio.Nursery) -> None:
    serve = partial(serve_metrics, "127.0.0.1", 0, registry=CollectorRegistry())
    port: int = await nursery.start(serve)
    answer = await exchange(port, b"HEAD /health/live HTTP/1.1\r\nHost: x\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"Content-Length: 6\r\n" in answer.replace(b"content-length", b"Content-Length")
    assert answer.endswith(b"\r\n\r\n")


async def test_a_port_in_use_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(AddressInUse, match=f"cannot listen on 127.0.0.1:{port}"):
            await serve_metrics("127.0.0.1", port)


@pytest.mark.parametrize("host", ["no..host", "no-such-host.invalid"])
async def test_a_host_that_is_none_is_named(host: str) -> None:
    with pytest.raises(AddressInUse, match=f"cannot listen on {host}:9401"):
        await serve_metrics(host, 9401)
