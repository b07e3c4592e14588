"""Forgets what the maps say of records that are gone on both sides."""

import logging
from collections.abc import Mapping
from typing import Final

import trio

from mirror.fault_note import FaultNote
from mirror.flow_state import FlowState
from mirror.links import Links
from mirror.map_log import MapLog, MapRecord
from mirror.positioning import Ends, read_ends, read_target_ends
from mirror.start_position import LogEnds
from offset_translation.map_records import (
    PieceStartKey,
    RunStartKey,
    TopicPartition,
    trimmed,
    withdrawal,
)
from wire.net.errors import NetworkFault

_LOG = logging.getLogger(__name__)

INTERVAL_S: Final = 600.0


class MapTrimmer:
    """Trims the maps of this worker's partitions every now and then."""

    def __init__(self, flow: FlowState, links: Links, map_log: MapLog) -> None:
        """Begin with nothing looked at."""
        self.fault = FaultNote(f"{flow.config.name}: trimming of maps")
        self._flow = flow
        self._links = links
        self._map_log = map_log

    async def run(self) -> None:
        """Trim for ever."""
        while True:
            await trio.sleep(INTERVAL_S)
            try:
                await self.look()
            except NetworkFault as fault:
                self.fault.note(str(fault))
            else:
                self.fault.clear()

    async def look(self) -> None:
        """Ask where the logs begin, and trim; raises NetworkFault."""
        places = {
            place
            for place, one in self._flow.partitions.items()
            if one.is_flowing and len(one.offset_map) > 1
        }
        if places:
            source = await read_ends(self._links.source_admin, places)
            names = self._flow.config.names
            target = await read_target_ends(self._links.target_admin, names, places)
            await self.trim(_starts(source), _starts(target))

    async def trim(
        self, source: Mapping[TopicPartition, int], target: Mapping[TopicPartition, int]
    ) -> None:
        """Forget what lies below these log starts, in the map topic and here.

        First in one record for each partition, which is all that a reader needs; then what it
        makes needless is taken back, so that compaction can remove it. Raises NetworkFault.
        """
        strokes: list[MapRecord] = []
        needless: list[MapRecord] = []
        for place in source.keys() & target.keys() & self._flow.partitions.keys():
            found = self._flow.partitions[place].offset_map.obsolete(source[place], target[place])
            if not found.pieces:
                continue
            topic, partition = place
            strokes.append(trimmed(topic, partition, found.place))
            needless += [
                withdrawal(PieceStartKey(topic=topic, partition=partition, target_start=one))
                for one in found.pieces
            ]
            needless += [
                withdrawal(RunStartKey(topic=topic, partition=partition, place=one))
                for one in found.runs
            ]
        await self._map_log.write_many([*strokes, *needless])
        if needless:
            _LOG.info("%s: %d pieces of maps forgotten", self._flow.config.name, len(needless))


def _starts(ends: Ends) -> dict[TopicPartition, int]:
    return {place: one.start for place, one in ends.items() if isinstance(one, LogEnds)}
