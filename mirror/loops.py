"""Which batches of the source were written by a mirror: known by producer id, from its own map.

The reverse flow keeps its producer ids in ``<target>.offset-map.internal`` on our source. What
carries one came from our target and is not sent back.
"""

import logging
from typing import Final

import trio

from mirror.flow_state import FlowState
from mirror.links import Links
from offset_translation.map_records import MapState, map_topic_name
from runtime.clock import now_ms
from wire.errors import ErrorCode
from wire.net.errors import NetworkFault
from wire.net.operations import list_offsets, read_partition
from wire.record_batch import iterate_records

_LOG = logging.getLogger(__name__)

INTERVAL_S: Final = 3.0


class LoopWatch:
    """Keeps ``FlowState.loop_ids`` in step with the reverse flow's map."""

    def __init__(self, flow: FlowState, links: Links) -> None:
        """Begin with no mirror known."""
        self._flow = flow
        self._links = links
        self._topic = map_topic_name(flow.config.target)
        self._state = MapState()
        self._read_to = 0
        self._complained_ms = 0

    async def run(self) -> None:
        """Look again every interval."""
        while True:
            await trio.sleep(INTERVAL_S)
            try:
                await self.look()
            except NetworkFault as fault:
                if now_ms() - self._complained_ms > 60_000:
                    self._complained_ms = now_ms()
                    _LOG.warning("%s: reading %s: %s", self._flow.config.name, self._topic, fault)

    async def look(self) -> None:
        """Read what is new; raises NetworkFault."""
        view = await self._links.source_admin.metadata([self._topic], refresh=True)
        found = view.topics.get(self._topic)
        if found is None or found.error_code != ErrorCode.NONE or not found.partitions:
            return
        where = (self._topic, 0)
        start = (await list_offsets(self._links.source_admin, [where], -2))[where]
        end = (await list_offsets(self._links.source_admin, [where], -1))[where]
        if isinstance(start, ErrorCode) or isinstance(end, ErrorCode):
            return
        first = max(start, self._read_to)
        async for header, batch in read_partition(
            self._links.source_admin, self._topic, 0, first, end
        ):
            for record in iterate_records(batch):
                self._state.replay(record.key, record.value)
            self._read_to = max(self._read_to, header.next_offset)
        self._flow.loop_ids = frozenset(self._state.producer_ids)
