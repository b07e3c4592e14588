"""Answer what browsers ask of the console: pages, their changes as events, style and script.

    /console                  the overview
    /console/<page>           another page; `?q=`, `?sort=` and `?page=` of a list
    /console/events?at=<page> the same page's changes, as server-sent events
    /console/assets/<file>    style, script and icon, which are read at the start

An asked page is made for each who asks for it, kept for nobody, and not live. Any other page is
made once for all who read it at the same time. Keeping pages live takes a fifth of the program's
time at most, however many browsers there are.
"""

import json
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Final, TypeAlias
from urllib.parse import urlencode

import trio

from runtime.console.frame import ROOT, Frame, PagePart, PageParts, section_of
from runtime.pages.browsing import (
    EVENTS,
    GUARDS,
    UNCACHED,
    BadTarget,
    PageAnswer,
    PageRequest,
    Send,
    said,
)
from runtime.pages.page_style import STYLE
from runtime.process.clock import wall_ms
from wire.values import frozen

AT: Final = "at"
"""The field of the events' query that names the page."""
MOST_KEPT: Final = 64
"""So many pages are kept for who asks for the same one; as many as there may be streams."""
REST: Final = 4.0
"""Between pages that are made anew for events, so many times as long as the last one took."""
TYPES: Final[Mapping[str, str]] = {
    "console.css": "text/css; charset=utf-8",
    "console.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}

Make: TypeAlias = Callable[[Mapping[str, str]], Awaitable[PageParts]]
"""Makes a page of the fields of its query; raises BadTarget for what these cannot be."""


@frozen
class ConsolePage:
    """One page: its address below ROOT (empty for the overview), its name, and what makes it."""

    path: str
    name: str
    make: Make
    every_s: float = 2.0
    """So often a page that somebody reads is made anew."""


@frozen
class AskedPage:
    """A page that is made anew for each who asks: what it shows is read for them alone."""

    path: str
    name: str
    make: Callable[[PageRequest], Awaitable[PageParts]]
    """Raises BadTarget for what the query cannot be."""


class Console:
    """All pages of one program."""

    def __init__(self, program: str, pages: Sequence[ConsolePage | AskedPage]) -> None:
        """Read style and script; `program` is what readers see that they are looking at."""
        self._pages = {page.path: page for page in pages if isinstance(page, ConsolePage)}
        self._asked = {page.path: page for page in pages if isinstance(page, AskedPage)}
        self._assets = _read_assets()
        version = sha256(b"".join(self._assets.values())).hexdigest()[:12]
        ways = [(page.path, page.name) for page in pages]
        self._frame = Frame(program=program, ways=ways, version=version)
        self._kept: OrderedDict[tuple[str, str], tuple[float, PageParts]] = OrderedDict()
        """By page and query: when it was made last, and what was made."""
        self._turn = trio.Lock()

    async def browse(self, request: PageRequest) -> PageAnswer | None:
        """Answer a request; None for what is none of the console's."""
        if request.path == "/":
            return PageAnswer(status=303, headers=(*GUARDS, ("Location", ROOT)))
        root, _, path = request.path.removeprefix("/").partition("/")
        if f"/{root}" != ROOT:
            return None
        if path.startswith("assets/"):
            return self._asset(path.removeprefix("assets/"))
        try:
            if path in self._asked:
                made = await self._asked[path].make(request)
                return PageAnswer(body=self._frame.page(made, path, None, wall_ms()))
            return await self._page(path, dict(request.query))
        except BadTarget as bad:
            return said(bad.status, str(bad))

    async def _page(self, path: str, query: dict[str, str]) -> PageAnswer:
        """Return a page or its events; raises BadTarget."""
        is_live = path == "events"
        if is_live:
            path = query.pop(AT, "")
        page = self._pages.get(path)
        if page is None:
            known = ", ".join(f"{ROOT}/{one}" for one in (*self._pages, *self._asked) if one)
            raise BadTarget(404, f"no such page; there is {ROOT}, {known}")
        made = await self._made(page, query)
        if is_live:
            return PageAnswer(
                content_type=EVENTS,
                headers=(*GUARDS, UNCACHED),
                events=lambda send: self._follow(page, query, send),
            )
        events = f"{ROOT}/events?{urlencode({AT: path, **query})}"
        return PageAnswer(body=self._frame.page(made, path, events, wall_ms()))

    def _asset(self, name: str) -> PageAnswer:
        if name not in self._assets:
            return said(404, "no such file of the console")
        kept = (("Cache-Control", "max-age=86400"), *GUARDS)
        return PageAnswer(content_type=TYPES[name], body=self._assets[name], headers=kept)

    async def _made(self, page: ConsolePage, query: Mapping[str, str]) -> PageParts:
        """Return a page that is at most as old as it may be; raises BadTarget."""
        kept = self._fresh(page, query)
        if kept is None:
            kept = await page.make(query)
            self._kept[_key(page, query)] = (trio.current_time(), kept)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return kept

    def _fresh(self, page: ConsolePage, query: Mapping[str, str]) -> PageParts | None:
        """Return a page that was made just now for somebody."""
        key = _key(page, query)
        if key not in self._kept:
            return None
        self._kept.move_to_end(key)
        made_at, parts = self._kept[key]
        return parts if trio.current_time() - made_at < page.every_s / 2 else None

    async def _made_in_turn(self, page: ConsolePage, query: Mapping[str, str]) -> PageParts:
        """Return a page for who has an older one: one is made at a time, and a rest follows."""
        async with self._turn:
            began = time.thread_time()
            parts = await self._made(page, query)
            await trio.sleep(REST * (time.thread_time() - began))
            return parts

    async def _follow(self, page: ConsolePage, query: Mapping[str, str], send: Send) -> None:
        """Send what changes of a page, and else that nothing does, until cancelled."""
        sent: Sequence[PagePart] = ()
        while True:
            made = self._fresh(page, query) or await self._made_in_turn(page, query)
            await send(_event(sent, made.parts, wall_ms()))
            sent = made.parts
            await trio.sleep(page.every_s)


def _key(page: ConsolePage, query: Mapping[str, str]) -> tuple[str, str]:
    return page.path, json.dumps(query, sort_keys=True)


def _event(sent: Sequence[PagePart], parts: Sequence[PagePart], now_ms: int) -> bytes:
    """Return an event: the time, each piece in order, and the HTML of those that have changed."""
    if list(sent) == list(parts):
        return f"event: beat\ndata: {now_ms}\n\n".encode()
    before = {one.id: one.html for one in sent}
    changes = [
        [one.id, None if before.get(one.id) == one.html else section_of(one)] for one in parts
    ]
    return f"event: parts\ndata: {json.dumps([now_ms, changes])}\n\n".encode()


def _read_assets() -> Mapping[str, bytes]:
    folder = files("runtime.console") / "assets"
    found = {name: (folder / name).read_bytes() for name in TYPES}
    return {**found, "console.css": STYLE.encode() + found["console.css"]}
