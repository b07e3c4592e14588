"""What a browser asks for, and what it gets: a page, or a stream of events. Pure.

A request's size is bounded here, before anything looks at what it says.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from typing import Final, TypeAlias
from urllib.parse import parse_qsl

from wire.values import frozen

MOST_TARGET: Final = 2_000
"""So many bytes path and query have at most."""
MOST_FIELDS: Final = 20
HTML: Final = "text/html; charset=utf-8"
TEXT: Final = "text/plain; charset=utf-8"
EVENTS: Final = "text/event-stream"
_OWN_ALONE: Final = (
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
GUARDS: Final = (
    ("Content-Security-Policy", _OWN_ALONE),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
)
"""Headers of each page for people: nothing is loaded from elsewhere, and nobody frames it."""
UNCACHED: Final = ("Cache-Control", "no-store")

Send: TypeAlias = Callable[[bytes], Awaitable[None]]
EventSource: TypeAlias = Callable[[Send], Awaitable[None]]
"""Sends events until it is cancelled, which it is when the browser is gone or too slow."""


class BadTarget(ValueError):
    """A request asks for what no page can be; `status` is HTTP's."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


@frozen(kw_only=False)
class PageRequest:
    """A path, and the first value of each field of its query."""

    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    asker: str = "somebody"
    """Who asks, as far as they had to say so, and from where: for the log."""


@frozen
class PageAnswer:
    """A page; with `events` its head alone, and then whatever these send."""

    status: int = 200
    content_type: str = HTML
    body: bytes = b""
    parts: Sequence[bytes] = ()
    """The body in parts, where it is long."""
    headers: tuple[tuple[str, str], ...] = (*GUARDS, UNCACHED)
    events: EventSource | None = None


Browse: TypeAlias = Callable[[PageRequest], Awaitable[PageAnswer | None]]
"""Answers GET of any path, with None where there is no such page; it must not block the loop."""


def page_request(target: bytes) -> PageRequest:
    """Return what a request's target asks for; raises BadTarget."""
    if len(target) > MOST_TARGET:
        raise BadTarget(414, f"path and query have {len(target)} bytes, more than {MOST_TARGET}")
    path, _, query = target.decode("ascii", "replace").partition("?")
    try:
        fields = parse_qsl(
            query, keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict"
        )
    except ValueError:
        raise BadTarget(400, f"the query is no list of up to {MOST_FIELDS} fields") from None
    return PageRequest(path, dict(reversed(fields)))


def said(status: int, why: str) -> PageAnswer:
    """Return a line of text as an answer."""
    return PageAnswer(status=status, content_type=TEXT, body=f"{why}\n".encode())
