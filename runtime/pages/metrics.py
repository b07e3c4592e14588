"""The HTTP endpoint of every program: /metrics, /health/live, /health/ready and its own routes."""

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Final

import h11
import trio
from prometheus_client import CollectorRegistry
from prometheus_client.registry import REGISTRY

from runtime.pages.exposition import Body, Many, exposition, nothing_many
from runtime.pages.page_door import UNGUARDED, PageDoor
from wire.net.tls_context import RenewedContext

_LOG = logging.getLogger(__name__)

REQUEST_TIMEOUT_S: Final = 10
MAX_CONNECTIONS: Final = 64
UNAUTHORIZED: Final = 401
FORBIDDEN: Final = 403
OPEN_TO_ALL: Final = frozenset({"/health/live", "/health/ready"})
"""What asks whether a program lives has no credentials: the kubelet, a load balancer."""

Route = Callable[[], Awaitable[tuple[str, bytes]]]
"""Answers GET of one path with (content type, body); in the trio loop, which it must not block."""
NO_ROUTES: Final[Mapping[str, Route]] = MappingProxyType({})


class AddressInUse(OSError):
    """The endpoint cannot listen; the message names address and reason."""


async def serve_metrics(  # noqa: PLR0913 - the last is of trio
    host: str,
    port: int,
    *,
    ready: Callable[[], bool] = lambda: True,
    routes: Mapping[str, Route] = NO_ROUTES,
    registry: CollectorRegistry = REGISTRY,
    many: Many = nothing_many,
    door: PageDoor = UNGUARDED,
    task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until cancelled; reports the port it listens on. Port 0 takes a free one.

    ``registry`` is from `program_registry`; what there may be ten thousand of comes from ``many``.
    Raises AddressInUse, and OSError where the door's files cannot be read.
    """

    async def alive() -> tuple[str, bytes]:
        return "text/plain", b"alive\n"

    answers: dict[str, Route] = {
        "/health/live": alive,
        **routes,
    }
    try:
        listeners = await trio.open_tcp_listeners(port, host=host, backlog=MAX_CONNECTIONS)
    except (OSError, UnicodeError) as error:  # also of a host whose name no host can have
        reason = getattr(error, "strerror", None) or str(error)
        raise AddressInUse(f"metrics: cannot listen on {host}:{port}: {reason}") from error
    room = _Room()
    keys = None if door.tls is None else door.tls.keys(lets_all_shake_hands=True)
    task_status.started(int(listeners[0].socket.getsockname()[1]))
    await trio.serve_listeners(
        partial(
            _serve_connection,
            _Pages(partial(exposition, registry, many), answers, ready, door),
            keys,
            room,
        ),
        [_BoundedListener(one, room) for one in listeners],
    )


class _Room:
    """Places for MAX_CONNECTIONS connections, of which one is always being made free.

    A connection that has sent no request gives its place up first, the oldest before all others.
    So the next request is read, whoever holds connections open and says nothing.
    """

    def __init__(self) -> None:
        self._free = trio.Semaphore(MAX_CONNECTIONS)
        self._silent: dict[trio.CancelScope, None] = {}
        self._answered: dict[trio.CancelScope, None] = {}

    async def wait_free(self) -> None:
        """Take a place, from the oldest silent connection if there is none."""
        if not self._free.value:
            oldest = next(iter(self._silent or self._answered), None)
            if oldest is not None:
                oldest.cancel()
        await self._free.acquire()

    def free(self) -> None:
        """Give a place back that no connection uses."""
        self._free.release()

    @contextmanager
    def hold(self) -> Iterator[Callable[[], None]]:
        """Limit a connection's time; what is given notes that its request has arrived."""
        with trio.move_on_after(REQUEST_TIMEOUT_S) as scope:
            self._silent[scope] = None

            def note_request() -> None:
                self._answered[scope] = self._silent.pop(scope)

            try:
                yield note_request
            finally:
                self._silent.pop(scope, None)
                self._answered.pop(scope, None)


@dataclass(frozen=True, slots=True)
class _BoundedListener(trio.abc.Listener[trio.SocketStream]):
    """Accepts a connection only when there is room: each one takes a file of the process."""

    listener: trio.SocketListener
    room: _Room

    async def accept(self) -> trio.SocketStream:
        """Return the next connection, which holds a place in the room."""
        await self.room.wait_free()
        try:
            return await self.listener.accept()
        except BaseException:
            self.room.free()
            raise

    async def aclose(self) -> None:
        """Stop to listen."""
        await self.listener.aclose()


@dataclass(frozen=True, slots=True)
class _Pages:
    """What is served, and to whom."""

    metrics: Callable[[str], Awaitable[tuple[str, Body]]]
    """Answers by the header Accept."""
    answers: Mapping[str, Route]
    ready: Callable[[], bool]
    door: PageDoor


async def _serve_connection(
    pages: _Pages, keys: RenewedContext | None, room: _Room, socket_stream: trio.SocketStream
) -> None:
    """Answer one request and close: scrapers come rarely, and closing keeps this simple."""
    stream: trio.abc.Stream = socket_stream
    if keys is not None:
        stream = trio.SSLStream(
            socket_stream, keys.current(), server_side=True, https_compatible=True
        )
    try:
        async with stream:
            with room.hold() as note_request:
                await _answer(pages, stream, note_request)
    except (trio.BrokenResourceError, h11.ProtocolError) as error:
        _LOG.debug("metrics request dropped: %s", error)
    finally:
        room.free()


async def _answer(pages: _Pages, stream: trio.abc.Stream, note_request: Callable[[], None]) -> None:
    connection = h11.Connection(h11.SERVER)
    request = await _receive_request(connection, stream)
    if request is None:
        return
    note_request()
    has_certificate = isinstance(stream, trio.SSLStream) and bool(stream.getpeercert())
    answer = await _guarded_respond(pages, request, has_certificate=has_certificate)
    status, content_type, body = answer
    head = h11.Response(
        status_code=status,
        headers=[
            ("Content-Type", content_type),
            ("Content-Length", str(sum(map(len, body)))),
            ("Connection", "close"),
            *(pages.door.challenges() if status == UNAUTHORIZED else ()),
        ],
    )
    # h11 raises for a body that HEAD asks for, as `curl -I` does.
    data = [] if request.method == b"HEAD" else [h11.Data(data=part) for part in body]
    for event in (head, *data, h11.EndOfMessage()):
        if part := connection.send(event):
            await stream.send_all(part)


async def _receive_request(
    connection: h11.Connection, stream: trio.abc.Stream
) -> h11.Request | None:
    while True:
        event = connection.next_event()
        if isinstance(event, h11.Request):
            return event
        if event is not h11.NEED_DATA:
            return None
        connection.receive_data(bytes(await stream.receive_some()))


async def _guarded_respond(
    pages: _Pages, request: h11.Request, *, has_certificate: bool
) -> tuple[int, str, Body]:
    """Answer 500 for a mistake of ours: being watched must not end what is watched."""
    try:
        return await _respond(pages, request, has_certificate=has_certificate)
    except Exception:  # noqa: BLE001
        _LOG.exception("GET %s failed: our mistake", request.target.decode("ascii", "replace"))
        return 500, "text/plain", [b"this page failed; the program's log says why\n"]


async def _respond(
    pages: _Pages, request: h11.Request, *, has_certificate: bool
) -> tuple[int, str, Body]:
    path = request.target.decode("ascii", "replace").partition("?")[0]
    if request.method not in (b"GET", b"HEAD"):
        return 405, "text/plain", [b"only GET is answered here\n"]
    if path == "/health/ready":
        status, text = (200, b"ready\n") if pages.ready() else (503, b"not ready\n")
        return status, "text/plain", [text]
    if path not in OPEN_TO_ALL:
        refusal = _refusal(pages.door, request, has_certificate=has_certificate)
        if refusal is not None:
            return refusal
    if path == "/metrics":
        return 200, *await pages.metrics(_header(request, b"accept").decode("ascii", "replace"))
    route = pages.answers.get(path)
    if route is None:
        known = ", ".join(["/metrics", *pages.answers, "/health/ready"])
        return 404, "text/plain", [f"nothing here; there is {known}\n".encode()]
    content_type, page = await route()
    return 200, content_type, [page]


def _refusal(
    door: PageDoor, request: h11.Request, *, has_certificate: bool
) -> tuple[int, str, Body] | None:
    """Return what a reader is told that shows too little; None where it may read on."""
    if door.asks_certificate and not has_certificate:
        return FORBIDDEN, "text/plain", [b"show a certificate of metrics.tls.client_ca\n"]
    if not door.admits(_header(request, b"authorization")):
        asks = b"show what metrics.token or metrics.username asks for\n"
        return UNAUTHORIZED, "text/plain", [asks]
    return None


def _header(request: h11.Request, name: bytes) -> bytes:
    """Return the header of this name in lower case, empty for none; of several the first."""
    return next((value for known, value in request.headers if known == name), b"")
