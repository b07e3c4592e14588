"""Looks at what others write to internal topics: it is shown, and takes nothing of them away."""

import logging
from collections.abc import Mapping
from typing import Final, Protocol

import trio

from mirror.map.map_log import MapLog
from mirror.map.reverse_map import ReverseMapReader
from runtime.configuration.config import FlowConfig
from runtime.coordination.map_writers import UnbelievedRecords
from runtime.process.fault_note import FaultNote
from runtime.set_option import set_option
from wire.net import NetworkFault

_LOG = logging.getLogger(__name__)

INTERVAL_S: Final = 3.0


class Checkpoints(Protocol):
    """The flow's checkpoint topic, as `mirror.groups` has it."""

    @property
    def topic(self) -> str:
        """Return its name."""

    @property
    def unbelieved_records(self) -> UnbelievedRecords:
        """Return the records that are not believed."""

    async def catch_up(self) -> None:
        """Read what is new; raises NetworkFault."""


class UnbelievedRecordsWatch:
    """Reads the topics again and again while this worker leads, although nobody else writes."""

    def __init__(
        self,
        flow: FlowConfig,
        map_log: MapLog,
        reverse_map: ReverseMapReader,
        checkpoints: Checkpoints,
    ) -> None:
        """Know the map of the flow, that of the other direction, and the flow's checkpoints."""
        self.fault = FaultNote(f"{flow.name}: writers of internal topics")
        self._checkpoints = checkpoints
        self._flow = flow.name
        self._topic_set = flow.topic_set
        self._map_log = map_log
        self._reverse_map = reverse_map
        self._logged = 0

    @property
    def unbelieved_records(self) -> Mapping[str, UnbelievedRecords]:
        """The records that are not believed, by topic."""
        return {
            self._map_log.topic: self._map_log.unbelieved_records,
            self._reverse_map.topic: self._reverse_map.unbelieved_records,
            self._checkpoints.topic: self._checkpoints.unbelieved_records,
        }

    async def run(self) -> None:
        """Look for ever."""
        while True:
            await self.look_again()
            await trio.sleep(INTERVAL_S)

    async def look_again(self) -> None:
        """Read what is new, and write again what the cleaner could remove by another's record."""
        try:
            await self._map_log.catch_up()
            await self._map_log.restore_overwritten()
            await self._checkpoints.catch_up()
        except NetworkFault as fault:
            self.fault.note(str(fault))
        else:
            self.fault.clear()
        count = sum(one.count for one in self.unbelieved_records.values())
        if count != self._logged:
            self._logged = count
            for line in told_unbelieved(self.unbelieved_records, self._topic_set):
                _LOG.warning("%s: %s", self._flow, line)


def told_unbelieved(
    unbelieved: Mapping[str, UnbelievedRecords], topic_set: str | None
) -> list[str]:
    """Return a line about each topic to which others have written, and what to do."""
    return [
        f"{topic}: not believed, as their producers are not registered ({one.count} records):"
        f" {'; '.join(one.describe())}. `mirror check{set_option(topic_set)}` says who may write"
        " there; if they are the mirror's own, the witness is an old copy:"
        f" `failover recover --believe-maps --write{set_option(topic_set)}` has them believed once"
        " `mirror run` is started again"
        for topic, one in sorted(unbelieved.items())
        if one.count
    ]
