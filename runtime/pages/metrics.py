"""The HTTP endpoint of every program: /metrics, /health/live, /health/ready and its own routes."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import h11
import trio
from prometheus_client import CollectorRegistry
from prometheus_client.registry import REGISTRY

from runtime.pages import room as places
from runtime.pages.browsing import (
    BadTarget,
    Browse,
    EventSource,
    PageAnswer,
    PageRequest,
    page_request,
    said,
)
from runtime.pages.exposition import Body, Many, exposition, nothing_many
from runtime.pages.page_door import UNGUARDED, PageDoor
from runtime.pages.room import ConnectionPlaces, HeldPlace
from runtime.process.tasks import background_tasks
from wire.net.tls_context import RenewedContext
from wire.values import frozen

_LOG = logging.getLogger(__name__)

EVENT_TIMEOUT_S: Final = 10
"""A browser that takes no event for so long loses its stream."""
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
    browse: Browse | None = None,
    task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until cancelled; reports the port it listens on. Port 0 takes a free one.

    ``registry`` is from `program_registry`; what there may be ten thousand of comes from ``many``.
    `browse` answers what no route has.
    Raises AddressInUse, and OSError where the door's files cannot be read.
    """

    async def alive() -> tuple[str, bytes]:
        return "text/plain", b"alive\n"

    answers: dict[str, Route] = {
        "/health/live": alive,
        **routes,
    }
    try:
        listeners = await trio.open_tcp_listeners(port, host=host, backlog=places.MAX_CONNECTIONS)
    except (OSError, UnicodeError) as error:  # also of a host whose name no host can have
        reason = getattr(error, "strerror", None) or str(error)
        raise AddressInUse(f"metrics: cannot listen on {host}:{port}: {reason}") from error
    room = ConnectionPlaces()
    keys = None if door.tls is None else door.tls.keys(lets_all_shake_hands=True)
    task_status.started(int(listeners[0].socket.getsockname()[1]))
    await trio.serve_listeners(
        partial(
            _serve_connection,
            _Pages(
                partial(exposition, registry, many), answers, ready, door, browse or _no_console
            ),
            keys,
            room,
        ),
        [_BoundedListener(one, room) for one in listeners],
    )


@frozen(kw_only=False)
class _BoundedListener(trio.abc.Listener[trio.SocketStream]):
    """Accepts a connection only when there is room: each one takes a file of the process."""

    listener: trio.SocketListener
    room: ConnectionPlaces

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


@frozen(kw_only=False)
class _Pages:
    """What is served, and to whom."""

    metrics: Callable[[str], Awaitable[tuple[str, Body]]]
    """Answers by the header Accept."""
    answers: Mapping[str, Route]
    ready: Callable[[], bool]
    door: PageDoor
    browse: Browse


@frozen
class _Visitor:
    """Who is at the other end of a connection, before anything is asked."""

    address: str
    certificate: str | None = None
    """The subject of the certificate that was shown and believed."""

    def named(self, name: str | None) -> str:
        """Return who asks, for the log; `name` is what the credentials say."""
        shown = [] if self.certificate is None else [f"certificate {self.certificate!r}"]
        names = [*([] if name is None else [name]), *shown]
        return f"{', '.join(names) or 'somebody'} from {self.address}"


def _subject_of(certificate: Mapping[str, Any]) -> str:
    """Return the subject as `CN=ops, O=example`; what the ssl module knows of a certificate."""
    parts = [pair for several in certificate.get("subject", ()) for pair in several]
    short = {"commonName": "CN", "organizationName": "O", "organizationalUnitName": "OU"}
    return ", ".join(f"{short.get(name, name)}={value}" for name, value in reversed(parts))


async def _no_console(_: PageRequest) -> PageAnswer | None:
    return None


async def _serve_connection(
    pages: _Pages,
    keys: RenewedContext | None,
    room: ConnectionPlaces,
    socket_stream: trio.SocketStream,
) -> None:
    """Answer one request and close: scrapers come rarely, and closing keeps this simple."""
    stream: trio.abc.Stream = socket_stream
    if keys is not None:
        stream = trio.SSLStream(
            socket_stream, keys.current(), server_side=True, https_compatible=True
        )
    try:
        async with stream:
            with room.hold() as held:
                await _answer(pages, stream, held, _address_of(socket_stream))
    except (trio.BrokenResourceError, h11.ProtocolError) as error:
        _LOG.debug("metrics request dropped: %s", error)
    finally:
        room.free()


def _address_of(stream: trio.SocketStream) -> str:
    try:
        return str(stream.socket.getpeername()[0])
    except OSError:
        return "an address that is gone"


async def _answer(pages: _Pages, stream: trio.abc.Stream, held: HeldPlace, address: str) -> None:
    connection = h11.Connection(h11.SERVER)
    try:
        request = await _receive_request(connection, stream)
    except h11.RemoteProtocolError as error:
        status = error.error_status_hint
        await _send_page(connection, stream, said(status, f"this is no request: {error}"))
        return
    if request is None:
        return
    held.note_request()
    visitor = _Visitor(address=address)
    if isinstance(stream, trio.SSLStream) and (shown := stream.getpeercert()):
        visitor = _Visitor(address=address, certificate=_subject_of(shown))
    answer = await _guarded_respond(pages, request, visitor)
    if answer.status == UNAUTHORIZED:
        answer = replace(answer, headers=(*answer.headers, *pages.door.challenges()))
    if answer.events is None or request.method == b"HEAD":
        await _send_page(connection, stream, answer, has_body=request.method != b"HEAD")
    elif held.may_stream():
        await _send_events(connection, stream, answer, answer.events)
    else:
        full = said(503, f"{places.MAX_STREAMS} pages are live already; this one is not")
        await _send_page(connection, stream, full)


async def _send_page(
    connection: h11.Connection,
    stream: trio.abc.Stream,
    answer: PageAnswer,
    *,
    has_body: bool = True,
) -> None:
    """Send all of it; no body to HEAD, as `curl -I` asks for it: h11 raises there."""
    whole = answer.parts or (answer.body,)
    headers = [
        ("Content-Type", answer.content_type),
        ("Content-Length", str(sum(map(len, whole)))),
        ("Connection", "close"),
        *answer.headers,
    ]
    head = h11.Response(status_code=answer.status, headers=headers)
    data = [h11.Data(data=part) for part in whole] if has_body else []
    for event in (head, *data, h11.EndOfMessage()):
        if part := connection.send(event):
            await stream.send_all(part)


async def _send_events(
    connection: h11.Connection, stream: trio.abc.Stream, answer: PageAnswer, events: EventSource
) -> None:
    """Send events until the browser is gone, takes none any more, or its time is over."""

    async def send(data: bytes) -> None:
        with trio.move_on_after(EVENT_TIMEOUT_S) as limit:
            await stream.send_all(connection.send(h11.Data(data=data)) or b"")
        if limit.cancelled_caught:
            raise trio.BrokenResourceError("the browser takes no events")

    headers = [("Content-Type", answer.content_type), ("Connection", "close"), *answer.headers]
    await stream.send_all(
        connection.send(h11.Response(status_code=answer.status, headers=headers)) or b""
    )
    async with background_tasks() as tasks:
        tasks.start_soon(_end_when_gone, stream, tasks.cancel_scope)
        try:
            await events(send)
        except (trio.BrokenResourceError, h11.LocalProtocolError):
            raise
        except Exception:  # noqa: BLE001 - being watched must not end what is watched
            _LOG.exception("a live page failed: our mistake")


async def _end_when_gone(stream: trio.abc.Stream, scope: trio.CancelScope) -> None:
    """End a stream as soon as its browser has closed it, or says anything more."""
    try:
        await stream.receive_some()
    except trio.BrokenResourceError:
        _LOG.debug("a browser has broken off its stream")
    scope.cancel()


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


async def _guarded_respond(pages: _Pages, request: h11.Request, visitor: _Visitor) -> PageAnswer:
    """Answer 500 for a mistake of ours: being watched must not end what is watched."""
    try:
        return await _respond(pages, request, visitor)
    except Exception:  # noqa: BLE001
        _LOG.exception("GET %s failed: our mistake", request.target.decode("ascii", "replace"))
        return said(500, "this page failed; the program's log says why")


async def _respond(pages: _Pages, request: h11.Request, visitor: _Visitor) -> PageAnswer:
    if request.method not in (b"GET", b"HEAD"):
        return said(405, "only GET is answered here")
    try:
        asked = page_request(request.target)
    except BadTarget as bad:
        return said(bad.status, str(bad))
    if asked.path == "/health/ready":
        return said(200, "ready") if pages.ready() else said(503, "not ready")
    if asked.path not in OPEN_TO_ALL:
        has_certificate = visitor.certificate is not None
        refusal = _refusal(pages.door, request, has_certificate=has_certificate)
        if refusal is not None:
            return refusal
    name = pages.door.name_of(_header(request, b"authorization"))
    asked = replace(asked, asker=visitor.named(name))
    return await _page(pages, request, asked)


async def _page(pages: _Pages, request: h11.Request, asked: PageRequest) -> PageAnswer:
    """Return what a reader gets who may read it."""
    if asked.path == "/metrics":
        accept = _header(request, b"accept").decode("ascii", "replace")
        content_type, parts = await pages.metrics(accept)
        return PageAnswer(content_type=content_type, parts=parts)
    route = pages.answers.get(asked.path)
    if route is not None:
        content_type, body = await route()
        return PageAnswer(content_type=content_type, body=body)
    known = ", ".join(["/metrics", *pages.answers, "/health/ready"])
    return await pages.browse(asked) or said(404, f"nothing here; there is {known}")


def _refusal(door: PageDoor, request: h11.Request, *, has_certificate: bool) -> PageAnswer | None:
    """Return what a stranger is told; None for whom the door lets in."""
    if door.asks_certificate and not has_certificate:
        return said(FORBIDDEN, "show a certificate of metrics.tls.client_ca")
    if not door.admits(_header(request, b"authorization")):
        return said(UNAUTHORIZED, "show what metrics.token or metrics.username asks for")
    return None


def _header(request: h11.Request, name: bytes) -> bytes:
    """Return the header of this name in lower case, empty for none; of several the first."""
    return next((value for known, value in request.headers if known == name), b"")
