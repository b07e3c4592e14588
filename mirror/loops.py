"""What the reverse flow has written into our source, from its own map.

It keeps its producer ids and its pieces in ``<target>.offset-map.internal`` on our source. What
carries one of the ids came from our target and is not sent back.
"""

from typing import Final

import trio

from mirror.fault_note import FaultNote
from mirror.flow_state import FlowState
from mirror.links import Links
from mirror.tail_reader import TailReader, topic_exists
from offset_translation.map_records import map_topic_name
from wire.net import NetworkFault

INTERVAL_S: Final = 3.0


class LoopWatch:
    """Keeps ``FlowState.arrived`` and its ``loop_ids`` in step with the reverse flow's map."""

    def __init__(self, flow: FlowState, links: Links) -> None:
        """Begin with no mirror known."""
        self._flow = flow
        self._links = links
        self._reader = TailReader(links.source_admin, map_topic_name(flow.config.target))
        self.fault = FaultNote(f"{flow.config.name}: loops")

    async def run(self) -> None:
        """Look again every interval."""
        while True:
            await trio.sleep(INTERVAL_S)
            try:
                await self.look()
            except NetworkFault as fault:
                self.fault.note(str(fault))
            else:
                self.fault.clear()

    async def look(self) -> None:
        """Read what is new; raises NetworkFault."""
        if await topic_exists(self._links.source_admin, self._reader.topic):
            async for _, record in self._reader.read_new():
                self._flow.arrived.replay(record.key, record.value)
            self._flow.loop_ids = frozenset(self._flow.arrived.producer_ids)
