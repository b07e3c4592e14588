"""Trims the maps: forgets pieces and runs of records that are gone on both sides."""

import logging
from collections.abc import Container, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

import trio

from mirror.clusters.links import Links
from mirror.clusters.log_ends import Ends, LogEnds, read_ends, read_target_ends
from mirror.map.map_log import RECORDS_A_WRITE, MapLog, MapRecord
from mirror.state.partition import MirroredPartition
from offset_translation.map_records import PieceStartKey, RunStartKey, trimmed, withdrawal
from runtime.configuration.config import FlowConfig
from runtime.process.fault_note import FaultNote
from wire.net.errors import NetworkFault
from wire.topic_partition import TopicPartition

_LOG = logging.getLogger(__name__)

INTERVAL_S: Final = 600.0


class _Change(NamedTuple):
    """A record about a partition, as long as nothing has interrupted that."""

    partition: MirroredPartition
    attempt: int
    record: MapRecord


class MapTrimmer:
    """Trims the maps of this worker's partitions every now and then."""

    def __init__(
        self,
        config: FlowConfig,
        partitions: Mapping[TopicPartition, MirroredPartition],
        links: Links,
        map_log: MapLog,
    ) -> None:
        self.fault = FaultNote(f"{config.name}: trimming of maps")
        self._config = config
        self._partitions = partitions
        self._links = links
        self._map_log = map_log

    async def run(self) -> None:
        """Trim for ever."""
        while True:
            await trio.sleep(INTERVAL_S)
            try:
                await self.trim_all()
            except NetworkFault as fault:
                self.fault.note(str(fault))
            else:
                self.fault.clear()

    async def trim_all(self) -> None:
        """Ask where the logs begin, and trim; raises NetworkFault."""
        asked = {
            topic_partition: (one, one.attempt)
            for topic_partition, one in self._partitions.items()
            if one.is_flowing and len(one.offset_map) > 1
        }
        if asked:
            source = await read_ends(self._links.source_admin, asked)
            names = self._config.names
            target = await read_target_ends(self._links.target_admin, names, asked)
            # The logs of what was interrupted meanwhile may be others by now.
            same = {
                topic_partition
                for topic_partition, (one, attempt) in asked.items()
                if one.attempt == attempt
            }
            await self.trim(_starts(source, same), _starts(target, same))

    async def trim(
        self, source: Mapping[TopicPartition, int], target: Mapping[TopicPartition, int]
    ) -> None:
        """Forget the pieces below these log starts, in the map topic and here.

        One record for each partition comes first, which is all that a reader needs: to replay a
        withdrawal for each of many pieces moves the whole map each time. Then the records that it
        makes needless are taken back, so that compaction can remove them. A partition that was
        interrupted before its turn is left out: its topic may be begun anew, with pieces of the
        same keys. Raises NetworkFault.
        """
        strokes: list[_Change] = []
        needless: list[_Change] = []
        for topic_partition in source.keys() & target.keys() & self._partitions.keys():
            one = self._partitions[topic_partition]
            found = one.offset_map.obsolete(source[topic_partition], target[topic_partition])
            if not found.pieces:
                continue
            topic, partition = topic_partition
            strokes.append(_Change(one, one.attempt, trimmed(topic, partition, found.place)))
            for at in found.pieces:
                piece = PieceStartKey(topic=topic, partition=partition, place=at)
                needless.append(_Change(one, one.attempt, withdrawal(piece)))
            for at in found.runs:
                run = RunStartKey(topic=topic, partition=partition, place=at)
                needless.append(_Change(one, one.attempt, withdrawal(run)))
        changes = [*strokes, *needless]
        for first in range(0, len(changes), RECORDS_A_WRITE):
            some = changes[first : first + RECORDS_A_WRITE]
            await self._map_log.write(partial(_still_true, some))
        if needless:
            _LOG.info("%s: %d pieces of maps forgotten", self._config.name, len(needless))


def _still_true(changes: Sequence[_Change]) -> list[MapRecord]:
    return [one.record for one in changes if one.partition.attempt == one.attempt]


def _starts(ends: Ends, topic_partitions: Container[TopicPartition]) -> dict[TopicPartition, int]:
    return {
        topic_partition: one.start
        for topic_partition, one in ends.items()
        if topic_partition in topic_partitions and isinstance(one, LogEnds)
    }
