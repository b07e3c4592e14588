"""The source's group positions by asking, where its offsets topic cannot be read.

Polling is slower and coarser than the stream: a position is known an interval late, and a commit
between two questions is not seen. Managed clusters often let nobody read `__consumer_offsets`.
"""

from collections.abc import Callable
from typing import Final

import trio

from mirror.clusters.links import Links
from mirror.groups.source_groups import SourceGroups
from runtime.configuration.config import FlowConfig
from runtime.process.fault_note import FaultNote
from wire.net.errors import NetworkFault, RequestRefused
from wire.net.operations import fetch_offsets_of, list_groups

LOOK_S: Final = 1.0
WITHOUT_POSITIONS: Final = frozenset({"share"})
"""Group types (KIP-848's ListGroups v5) that keep their progress elsewhere (KIP-932)."""


class GroupPoller:
    """Asks all brokers for their groups and each group for its positions, again and again."""

    def __init__(self, config: FlowConfig, links: Links, groups: SourceGroups) -> None:
        self._config = config
        self._links = links
        self._groups = groups
        self.fault = FaultNote(f"{config.name}: polling group positions")

    async def run(self, is_wanted: Callable[[], bool]) -> None:
        """Ask for ever, while it is wanted."""
        interval_s = self._config.group_poll_interval_ms / 1000
        while True:
            if not is_wanted():
                await trio.sleep(LOOK_S)
                continue
            try:
                await self._poll(is_wanted)
            except NetworkFault as fault:
                self.fault.note(str(fault))
            else:
                self.fault.clear()
            self._groups.news.wake()
            await trio.sleep(interval_s)

    async def _poll(self, is_wanted: Callable[[], bool]) -> None:
        cluster = self._links.source_groups
        matches = self._config.groups.matches
        there = {
            group
            for group, listed in (await list_groups(cluster)).items()
            if matches(group) and listed.group_type.casefold() not in WITHOUT_POSITIONS
        }
        fault: NetworkFault | None = None
        found = await fetch_offsets_of(cluster, there)
        if not is_wanted():
            return  # what has been read in the meantime is newer
        for group, positions in found.items():
            if isinstance(positions, RequestRefused):
                # One group that is not told must not hold up the others; what is known stays.
                self.fault.note(str(positions), group)
            elif isinstance(positions, NetworkFault):
                fault = positions
            else:
                self.fault.clear(group)
                self._groups.take(group, positions)
        for group in self._groups.positions.keys() - there:
            self.fault.clear(group)
            self._groups.take(group, {})
        if fault is not None:
            raise fault
