"""The HTTP endpoint that every program serves."""

import socket
from functools import partial

import pytest
import trio
from prometheus_client import CollectorRegistry, Counter

from runtime.metrics import AddressInUse, serve_metrics


async def exchange(port: int, request: bytes) -> bytes:
    stream = await trio.open_tcp_stream("127.0.0.1", port)
    async with stream:
        await stream.send_all(request)
        answer = b""
        async for chunk in stream:
            answer += chunk
        return answer


async def test_metrics_health_and_own_routes_are_served(nursery: trio.Nursery) -> None:
    registry = CollectorRegistry()
    Counter("things", "Things.", registry=registry).inc(3)
    is_ready = False
    serve = partial(
        serve_metrics,
        "127.0.0.1",
        0,
        ready=lambda: is_ready,
        routes={"/status": lambda: ("application/json", b"{}")},
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


async def test_garbage_closes_the_connection_and_nothing_else(nursery: trio.Nursery) -> None:
    serve = partial(serve_metrics, "127.0.0.1", 0, registry=CollectorRegistry())
    port: int = await nursery.start(serve)
    assert await exchange(port, b"\x00\x01\x02\r\n\r\n") == b""
    alive = await exchange(port, b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n")
    assert alive.endswith(b"alive\n")


async def test_a_port_in_use_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(AddressInUse, match=f"cannot listen on 127.0.0.1:{port}"):
            await serve_metrics("127.0.0.1", port)
