"""The console over HTTP: pages, events, and what strangers and slow readers may do to it."""

import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial

import pytest
import trio
from prometheus_client import CollectorRegistry
from trio.testing import MockClock

from runtime.console.console import AskedPage, Console, ConsolePage
from runtime.console.frame import PagePart, PageParts
from runtime.console.watched import Watched
from runtime.pages import room
from runtime.pages.browsing import PageRequest
from runtime.pages.metrics import serve_metrics
from runtime.pages.page_door import UNGUARDED, PageDoor
from tests.runtime.pages.exchanging import exchange


class Counter:
    """A page that says how often it was made, and one that is large."""

    def __init__(self) -> None:
        self.made = 0
        self.word = "first"

    async def small(self, _: Mapping[str, str]) -> PageParts:
        self.made += 1
        await trio.lowlevel.checkpoint()
        still = PagePart("still", "<p>always the same</p>")
        return PageParts(title="Small", parts=[still, PagePart("word", f"<p>{self.word}</p>")])

    async def large(self, _: Mapping[str, str]) -> PageParts:
        self.made += 1
        await trio.lowlevel.checkpoint()
        text = f"{self.made} " * 2_000_000
        return PageParts(title="Large", parts=[PagePart("text", text)])

    async def asked(self, request: PageRequest) -> PageParts:
        self.made += 1
        await trio.lowlevel.checkpoint()
        return PageParts(title="Asked", parts=[PagePart("who", f"<p>{request.asker}</p>")])

    async def broken(self, query: Mapping[str, str]) -> PageParts:
        await trio.lowlevel.checkpoint()
        if query:
            raise ZeroDivisionError
        return PageParts(title="Broken", parts=[])


async def served(nursery: trio.Nursery, counter: Counter, door: PageDoor = UNGUARDED) -> int:
    pages: list[ConsolePage | AskedPage] = [
        ConsolePage(path="", name="Overview", make=counter.small, every_s=0.05),
        ConsolePage(path="large", name="Large", make=counter.large, every_s=0.05),
        ConsolePage(path="broken", name="Broken", make=counter.broken),
        AskedPage(path="asked", name="Asked", make=counter.asked),
    ]
    serve = partial(
        serve_metrics,
        "127.0.0.1",
        0,
        registry=CollectorRegistry(),
        door=door,
        browse=Console("tests on here", pages).browse,
    )
    port: int = await nursery.start(serve)
    return port


async def get(port: int, target: str, *headers: str) -> tuple[int, str, str]:
    """Return status, head and body."""
    lines = "".join(f"{one}\r\n" for one in headers)
    request = f"GET {target} HTTP/1.1\r\nHost: x\r\n{lines}\r\n".encode()
    head, _, body = (await exchange(port, request)).decode().partition("\r\n\r\n")
    return int(head.split()[1]), head, body


async def test_a_page_is_whole_without_a_script_and_loads_nothing_from_elsewhere(
    nursery: trio.Nursery,
) -> None:
    port = await served(nursery, Counter())
    status, head, _ = await get(port, "/")
    assert status == 303
    assert "/console" in head
    status, head, body = await get(port, "/console")
    assert status == 200
    assert "default-src 'self'" in head
    assert "frame-ancestors 'none'" in head
    assert "no-store" in head
    assert "<p>first</p>" in body
    assert 'aria-current="page">Overview' in body
    assert "http:" not in body
    assert "https:" not in body
    for asset in ("console.css", "console.js", "icon.svg"):
        status, head, content = await get(port, f"/console/assets/{asset}")
        assert status == 200
        assert "nosniff" in head
        assert content


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/console/assets/../console.py", 404),
        ("/console/assets/%2e%2e%2fconsole.py", 404),
        ("/console/assets//etc/passwd", 404),
        ("/console/assets/", 404),
        ("/console/../../etc/passwd", 404),
        ("/console/nothing", 404),
        ("/console/events?at=nothing", 404),
        ("/consolex", 404),
        ("/console?q=" + "x" * 3_000, 414),
        ("/console?" + "&".join(f"a{i}=1" for i in range(40)), 400),
        ("/console?q=%ff%fe", 400),
        ("/console/broken?q=1", 500),
    ],
)
async def test_what_is_no_page_is_refused(nursery: trio.Nursery, target: str, status: int) -> None:
    port = await served(nursery, Counter())
    assert (await get(port, target))[0] == status
    assert (await get(port, "/console"))[0] == 200


async def test_a_stranger_sees_no_page_and_no_event(nursery: trio.Nursery) -> None:
    port = await served(nursery, Counter(), PageDoor(token="t0ken"))  # noqa: S106
    for target in ("/console", "/console/events?at=", "/console/assets/console.js", "/"):
        for shown in ("", "Authorization: Bearer wrong", "Authorization: Basic dG9rZW46eA=="):
            status, head, body = await get(port, target, *([shown] if shown else []))
            assert status == 401
            assert "Basic" in head
            assert "first" not in body
    as_browser = "Authorization: Basic dG9rZW46dDBrZW4="  # token:t0ken
    assert (await get(port, "/console", as_browser))[0] == 200


async def test_an_asked_page_knows_who_asks_and_is_kept_for_nobody_else(
    nursery: trio.Nursery,
) -> None:
    counter = Counter()
    port = await served(nursery, counter, PageDoor(token="t0ken"))  # noqa: S106
    as_browser = "Authorization: Basic dG9rZW46dDBrZW4="  # token:t0ken
    for times in (1, 2):
        _, head, body = await get(port, "/console/asked", as_browser)
        assert "the holder of the token from 127.0.0.1" in body
        assert "no-store" in head
        assert 'data-events=""' in body
        assert counter.made == times
    assert (await get(port, "/console/events?at=asked", as_browser))[0] == 404


async def events(stream: trio.SocketStream) -> list[tuple[str, str]]:
    """Return the next events of a stream: the kind and the data of each."""
    text = ""
    while "\n\n" not in text:
        text += (await stream.receive_some()).decode()
    return [
        (kind.strip(), data.strip())
        for one in text.split("event: ")[1:]
        for kind, _, data in [one.partition("\ndata: ")]
    ]


async def stream_of(port: int, page: str = "") -> trio.SocketStream:
    stream = await trio.open_tcp_stream("127.0.0.1", port)
    await stream.send_all(f"GET /console/events?at={page} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return stream


async def test_only_what_has_changed_of_a_page_is_sent(nursery: trio.Nursery) -> None:
    counter = Counter()
    port = await served(nursery, counter)
    with trio.fail_after(10):
        async with await stream_of(port) as stream:
            found = await events(stream)
            kind, data = found[0]
            assert kind == "parts"
            assert [html is not None for _, html in json.loads(data.split("\n")[0])[1]] == [
                True
            ] * 2
            assert (await events(stream))[0][0] == "beat"
            counter.word = "second"
            while (changed := (await events(stream))[0])[0] == "beat":
                pass
    [[still, nothing], [word, html]] = json.loads(changed[1].split("\n")[0])[1]
    assert (still, nothing, word) == ("still", None, "word")
    assert "second" in html


async def test_fifty_browsers_share_a_page_and_health_is_answered(nursery: trio.Nursery) -> None:
    counter = Counter()
    port = await served(nursery, counter)
    async with AsyncExitStack() as browsers:
        with trio.fail_after(20):
            streams = [await browsers.enter_async_context(await stream_of(port)) for _ in range(50)]
            for stream in streams:
                assert (await events(stream))[0][0] in {"parts", "beat"}
            assert (await get(port, "/health/live"))[0] == 200
            assert (await get(port, "/console"))[0] == 200
    assert counter.made < 200, "pages are made for all who read them, not for each"


async def test_more_streams_than_there_may_be_are_refused(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "MAX_STREAMS", 3)
    port = await served(nursery, Counter())
    async with AsyncExitStack() as browsers:
        for _ in range(3):
            stream = await browsers.enter_async_context(await stream_of(port))
            await events(stream)
        assert (await get(port, "/console/events?at="))[0] == 503
        assert (await get(port, "/console"))[0] == 200
    with trio.fail_after(10):  # those that are gone have given their places back
        while True:
            stream = await stream_of(port)
            async with stream:
                if b" 200 " in await stream.receive_some():
                    return


async def test_a_browser_that_reads_nothing_loses_its_stream(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtime.pages.metrics.EVENT_TIMEOUT_S", 0.3)
    counter = Counter()
    port = await served(nursery, counter)
    with trio.fail_after(20):
        async with await stream_of(port, "large"):
            await trio.sleep(1)
            made = counter.made
            assert (await get(port, "/console"))[0] == 200
            await trio.sleep(0.5)
            assert counter.made <= made + 1


async def test_nobody_looks_where_nobody_reads(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    looks = 0

    async def look() -> int:
        nonlocal looks
        looks += 1
        await trio.sleep(0.1)
        return looks

    watched = Watched("tests", look, every_s=2.0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watched.run)
        await trio.sleep(3_600)
        assert looks == 0
        assert await watched.newest() == 1
        await trio.sleep(600)
        assert looks < 15
        seen = looks
        await trio.sleep(600)
        assert looks == seen
        assert await watched.newest() == seen + 1, "what is old says nothing of now"
        nursery.cancel_scope.cancel()


async def test_a_look_that_takes_long_holds_no_page_up(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    async def look() -> int:
        await trio.sleep(30)
        return 1

    watched = Watched("tests", look, every_s=2.0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watched.run)
        began = trio.current_time()
        assert await watched.newest() is None
        assert trio.current_time() - began < 1
        await trio.sleep(31)
        assert await watched.newest() == 1
        nursery.cancel_scope.cancel()
