"""The fetchers of one flow: at each source broker that a partition is to be fetched from."""

from typing import Final

import trio

from mirror.clusters.links import Links
from mirror.forward.flow_parts import FetchParts
from mirror.forward.source import RecordWay, fetch_from
from runtime.process.clock import now_ms

LOOK_S: Final = 1.0
"""Whatever moves a partition's leader wakes us before."""


class SourceFetchers:
    """Follows the partitions' leaders on the source."""

    def __init__(self, parts: FetchParts, links: Links, way: RecordWay) -> None:
        """Begin with no fetcher; what they fetch goes this way."""
        self._parts = parts
        self._links = links
        self._way = way
        self._nodes: set[int] = set()

    async def run(self) -> None:
        """Have a fetcher for every broker that a source partition is fetched from, for ever."""
        self._nodes.clear()
        async with trio.open_nursery() as nursery:
            while True:
                for node in self._new_nodes():
                    self._nodes.add(node)
                    nursery.start_soon(fetch_from, node, self._parts, self._links, self._way)
                await self._parts.wakeups.position_more.wait(LOOK_S)

    def _new_nodes(self) -> set[int]:
        now = now_ms()
        nodes: set[int] = set()
        for partition in self._parts.partitions.own.values():
            if partition.leaders.ask_leader_again(now):
                self._parts.wakeups.fetch_anew()
            nodes.add(partition.leaders.fetched_from)
        return {node for node in nodes if node >= 0} - self._nodes
