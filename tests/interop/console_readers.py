"""A process of its own that has many pages of a console open, as browsers do.

    python -m tests.interop.console_readers PORT NUMBER

Says `open` in a line once all are live, and reads their events until its standard input ends. Then
it says in a line, as JSON, how many are live still, and how many events and bytes came.
"""

import json
import sys
from dataclasses import dataclass, field
from typing import Final

import trio

PAGES: Final = ("", "flows", "partitions", "groups")
PATIENCE_S: Final = 60.0


@dataclass(slots=True)
class ReadSoFar:
    """What all pages have got."""

    wanted: int
    live: int = 0
    events: int = 0
    bytes: int = 0
    all_live: trio.Event = field(default_factory=trio.Event, repr=False)

    def note_live(self) -> None:
        """Note one more page that is live."""
        self.live += 1
        if self.live == self.wanted:
            self.all_live.set()


async def read_page(port: int, page: str, so_far: ReadSoFar) -> None:
    """Read one page's events until cancelled, or until the server ends them."""
    stream = await trio.open_tcp_stream("127.0.0.1", port)
    request = f"GET /console/events?at={page} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    async with stream:
        await stream.send_all(request.encode())
        is_live = False
        async for chunk in stream:
            so_far.bytes += len(chunk)
            so_far.events += chunk.count(b"event: ")
            if not is_live and b"event: " in chunk:
                is_live = True
                so_far.note_live()
    so_far.live -= int(is_live)


async def read_pages(port: int, number: int) -> None:
    """Have so many pages open until nobody writes to standard input any more."""
    so_far = ReadSoFar(wanted=number)
    async with trio.open_nursery() as nursery:
        for each in range(number):
            nursery.start_soon(read_page, port, PAGES[each % len(PAGES)], so_far)
        with trio.fail_after(PATIENCE_S):
            await so_far.all_live.wait()
        print("open", flush=True)
        await trio.to_thread.run_sync(sys.stdin.read)
        came = {"live": so_far.live, "events": so_far.events, "bytes": so_far.bytes}
        print(json.dumps(came), flush=True)
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(read_pages, int(sys.argv[1]), int(sys.argv[2]))
