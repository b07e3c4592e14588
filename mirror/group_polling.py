"""The source's group positions by asking, where its offsets topic cannot be read.

Slower and coarser than the stream: a position is known an interval late, and a commit between two
questions is not seen. Managed clusters often let nobody read `__consumer_offsets`.
"""

from collections.abc import Callable

import trio

from mirror.fault_note import FaultNote
from mirror.flow_state import FlowState
from mirror.group_offsets import SourceGroups
from mirror.links import Links
from runtime.clock import now_ms
from wire.net.errors import NetworkFault
from wire.net.operations import fetch_group_offsets, list_groups

GROUPS_AT_ONCE = 8
LOOK_S = 0.2


class GroupPoller:
    """Asks all brokers for their groups and each group for its positions, again and again."""

    def __init__(self, flow: FlowState, links: Links, groups: SourceGroups) -> None:
        """Begin with nothing asked."""
        self._flow = flow
        self._links = links
        self._groups = groups
        self.fault = FaultNote(f"{flow.config.name}: polling group positions")
        self.is_loaded = False
        """Whether every group has been asked once."""

    async def run(self, is_wanted: Callable[[], bool]) -> None:
        """Ask for ever, while it is wanted."""
        interval_s = self._flow.config.group_poll_interval_ms / 1000
        while True:
            if not is_wanted():
                self.is_loaded = False
                await trio.sleep(LOOK_S)
                continue
            try:
                await self._poll()
            except NetworkFault as fault:
                self.fault.note(str(fault))
            else:
                self.fault.clear()
                self.is_loaded = True
                self._groups.news.wake()
            await trio.sleep(interval_s)

    async def _poll(self) -> None:
        cluster = self._links.source_groups
        matches = self._flow.config.groups.matches
        there = {group for group in await list_groups(cluster) if matches(group)}
        limit = trio.CapacityLimiter(GROUPS_AT_ONCE)
        faults: list[NetworkFault] = []

        async def ask(group: str) -> None:
            async with limit:
                try:
                    positions = await fetch_group_offsets(cluster, group)
                except NetworkFault as fault:
                    faults.append(fault)
                else:
                    self._groups.take(group, positions, now_ms())

        async with trio.open_nursery() as nursery:
            for group in there:
                nursery.start_soon(ask, group)
        for group in self._groups.positions.keys() - there:
            self._groups.take(group, {}, now_ms())
        if faults:
            raise faults[0]
