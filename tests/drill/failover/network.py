"""The network before both sites: each is reached through a relay, which can be slow or cut.

The relays run in a thread of their own. They tell the drill's own clients from our programs.
"""

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

import trio

from tests.drill.links import Links, relay

CLIENTS: Final = "clients"
PROGRAMS: Final = "programs"


@dataclass(frozen=True, slots=True)
class Way:
    """A relay's port, and the server behind it."""

    port: int
    server: tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The ways to both sites; its methods may be called from any thread."""

    links: Links
    token: trio.lowlevel.TrioToken

    def slow(self, site: str, delay_s: float) -> None:
        """Have everything that goes to a site, or comes from it, take so long; 0 ends that."""
        trio.from_thread.run_sync(self.links.slow, site, delay_s, trio_token=self.token)

    def cut(self, site: str) -> None:
        """Hold back what our programs send to a site and get from it; its clients reach it."""
        trio.from_thread.run_sync(self.links.cut, PROGRAMS, site, trio_token=self.token)

    def heal(self, site: str) -> None:
        """Let everything pass again; what was held back arrives now."""
        trio.from_thread.run_sync(self.links.heal, PROGRAMS, site, trio_token=self.token)
        self.slow(site, 0.0)


@contextmanager
def run_network(ways: Mapping[str, Way]) -> Iterator[Network]:
    """Run a relay before each site until the block ends."""
    begun: Future[tuple[Network, trio.CancelScope]] = Future()
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(trio.run, _run, ways, begun)
        running.add_done_callback(partial(_fail, begun))
        network, scope = begun.result()
        try:
            yield network
        finally:
            network.token.run_sync_soon(scope.cancel)
    running.result()


def _fail(begun: "Future[tuple[Network, trio.CancelScope]]", ended: "Future[None]") -> None:
    """Let nobody wait for relays that could not begin."""
    fault = ended.exception()
    if fault is not None and not begun.done():
        begun.set_exception(fault)


async def _run(ways: Mapping[str, Way], begun: "Future[tuple[Network, trio.CancelScope]]") -> None:
    links = Links(with_children=False)
    links.pids[os.getpid()] = CLIENTS
    async with trio.open_nursery() as nursery:
        for site, way in ways.items():
            stand = partial(relay, bystander=PROGRAMS, port=way.port)
            await nursery.start(stand, links, site, way.server)
        network = Network(links=links, token=trio.lowlevel.current_trio_token())
        begun.set_result((network, nursery.cancel_scope))
