"""The HTTP endpoint of every program: /metrics, /health/live, /health/ready and its own routes."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

import h11
import trio
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.registry import REGISTRY

_LOG = logging.getLogger(__name__)

REQUEST_TIMEOUT_S: Final = 10
MAX_CONNECTIONS: Final = 64
METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

Route = Callable[[], Awaitable[tuple[str, bytes]]]
"""Answers GET of one path with (content type, body); in the trio loop, which it must not block."""
NO_ROUTES: Final[Mapping[str, Route]] = MappingProxyType({})


class AddressInUse(OSError):
    """The endpoint cannot listen; the message names address and reason."""


async def serve_metrics(
    host: str,
    port: int,
    *,
    ready: Callable[[], bool] = lambda: True,
    routes: Mapping[str, Route] = NO_ROUTES,
    registry: CollectorRegistry = REGISTRY,
    task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until cancelled; reports the port it listens on. Port 0 takes a free one.

    A route of one's own may stand in the place of /metrics. Raises AddressInUse.
    """

    async def metrics() -> tuple[str, bytes]:
        return METRICS_TYPE, generate_latest(registry)

    async def alive() -> tuple[str, bytes]:
        return "text/plain", b"alive\n"

    answers: dict[str, Route] = {
        "/metrics": metrics,
        "/health/live": alive,
        **routes,
    }
    try:
        listeners = await trio.open_tcp_listeners(port, host=host, backlog=MAX_CONNECTIONS)
    except (OSError, UnicodeError) as error:  # also of a host whose name no host can have
        reason = getattr(error, "strerror", None) or str(error)
        raise AddressInUse(f"metrics: cannot listen on {host}:{port}: {reason}") from error
    limit = trio.CapacityLimiter(MAX_CONNECTIONS)
    task_status.started(int(listeners[0].socket.getsockname()[1]))
    await trio.serve_listeners(partial(_serve_connection, answers, ready, limit), listeners)


async def _serve_connection(
    answers: Mapping[str, Route],
    ready: Callable[[], bool],
    limit: trio.CapacityLimiter,
    stream: trio.SocketStream,
) -> None:
    """Answer one request and close: scrapers come rarely, and closing keeps this simple."""
    async with stream, limit:
        try:
            with trio.move_on_after(REQUEST_TIMEOUT_S):
                await _answer(answers, ready, stream)
        except (trio.BrokenResourceError, h11.ProtocolError) as error:
            _LOG.debug("metrics request dropped: %s", error)


async def _answer(
    answers: Mapping[str, Route], ready: Callable[[], bool], stream: trio.SocketStream
) -> None:
    connection = h11.Connection(h11.SERVER)
    request = await _receive_request(connection, stream)
    if request is None:
        return
    status, content_type, body = await _guarded_respond(answers, ready, request)
    head = h11.Response(
        status_code=status,
        headers=[
            ("Content-Type", content_type),
            ("Content-Length", str(len(body))),
            ("Connection", "close"),
        ],
    )
    parts = [connection.send(head)]
    if request.method != b"HEAD":  # h11 raises for a body there, as `curl -I` asks for it
        parts.append(connection.send(h11.Data(data=body)))
    parts.append(connection.send(h11.EndOfMessage()))
    await stream.send_all(b"".join(part for part in parts if part))


async def _receive_request(
    connection: h11.Connection, stream: trio.SocketStream
) -> h11.Request | None:
    while True:
        event = connection.next_event()
        if isinstance(event, h11.Request):
            return event
        if event is not h11.NEED_DATA:
            return None
        connection.receive_data(await stream.receive_some())


async def _guarded_respond(
    answers: Mapping[str, Route], ready: Callable[[], bool], request: h11.Request
) -> tuple[int, str, bytes]:
    """Answer 500 for a mistake of ours: being watched must not end what is watched."""
    try:
        return await _respond(answers, ready, request)
    except Exception:  # noqa: BLE001
        _LOG.exception("GET %s failed: our mistake", request.target.decode("ascii", "replace"))
        return 500, "text/plain", b"this page failed; the program's log says why\n"


async def _respond(
    answers: Mapping[str, Route], ready: Callable[[], bool], request: h11.Request
) -> tuple[int, str, bytes]:
    path = request.target.decode("ascii", "replace").partition("?")[0]
    if request.method not in (b"GET", b"HEAD"):
        return 405, "text/plain", b"only GET is answered here\n"
    if path == "/health/ready":
        return (200, "text/plain", b"ready\n") if ready() else (503, "text/plain", b"not ready\n")
    route = answers.get(path)
    if route is None:
        known = ", ".join([*answers, "/health/ready"])
        return 404, "text/plain", f"nothing here; there is {known}\n".encode()
    content_type, body = await route()
    return 200, content_type, body
