"""A real Chromium beside a console with example data, for tests.

Debian's `chromium-headless-shell` or `chromium` is needed (`apt-get install`).
"""

import re
import shutil
from collections.abc import Callable
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import trio
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

from tests.failover.serve.console.shown import ShownConsole
from tests.interop.peers import PeerUnavailable

DESK: Final[dict[str, int]] = {"width": 1280, "height": 900}

T = TypeVar("T")


def executable() -> str:
    """Return the browser of this machine."""
    for name in ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name)
        if found is not None:
            return found
    raise PeerUnavailable("no Chromium is installed: `apt-get install chromium-headless-shell`")


class Served:
    """A console at work; its methods are for the thread of the browser."""

    def __init__(self, console: ShownConsole, port: int, scope: trio.CancelScope) -> None:
        self.console = console
        self.address = f"http://127.0.0.1:{port}/console"
        self._scope = scope

    def stop(self) -> None:
        """End the console."""
        trio.from_thread.run_sync(self._scope.cancel)


async def in_browser(act: Callable[[Browser, Served], T]) -> T:
    """Do something with a browser beside a console of 5,000 partitions and 10,000 groups."""
    found, console, scope = executable(), ShownConsole(5_000, 10_000), trio.CancelScope()

    def browse(served: Served) -> T:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
            try:
                return act(browser, served)
            finally:
                browser.close()

    async def serve(*, task_status: trio.TaskStatus[int]) -> None:
        with scope:
            await console.serve(task_status=task_status)

    async with trio.open_nursery() as nursery:
        port = await nursery.start(serve)
        found_out = await trio.to_thread.run_sync(browse, Served(console, port, scope))
        nursery.cancel_scope.cancel()
    return found_out


def wait_live(page: Page) -> None:
    """Wait until the page says that it is live."""
    page.locator("#live").filter(has_text=re.compile("^Live$")).wait_for(timeout=60_000)


def is_live(path: str) -> bool:
    """Tell whether a page of this address changes by itself."""
    return "/peek" not in path


def opened(browser: Browser, address: str, **settings: Any) -> Page:
    """Return a page, live where it can be, whose requests to elsewhere and errors fail the test."""
    page = browser.new_context(**{"viewport": DESK, **settings}).new_page()
    wrong: list[str] = []
    home = urlsplit(address).netloc

    def note_request(one: Request) -> None:
        if urlsplit(one.url).netloc != home:
            wrong.append(one.url)

    def note_line(one: ConsoleMessage) -> None:
        if one.type == "error":
            wrong.append(one.text)

    page.on("request", note_request)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", note_line)
    page.goto(address)
    if is_live(address):
        wait_live(page)
    assert wrong == [], wrong
    return page
