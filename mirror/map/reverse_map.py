"""The reverse flow's map, which tells the batches that it has written into our source.

The reverse flow keeps its producer ids and its pieces in ``<target>.offset-map.internal`` on our
source. A batch with one of these ids came from our target and is not sent back. Topics have the
target's names there: what is read is given our source's, and what is written the target's.
"""

import logging
from collections.abc import AsyncIterator, Callable
from typing import Final

import trio

from mirror.clusters.links import Links
from mirror.clusters.tail_reader import TailReader, topic_exists, topic_is_shown
from mirror.map.believed import told_apart
from mirror.state.reverse_flow import NO_PRODUCER_ID, ReverseFlow, UnbelievedArrivals
from offset_translation.map_records import map_topic_name, partition_of
from offset_translation.map_state import MapState
from offset_translation.renamed_keys import renamed
from runtime.configuration.config import FlowConfig
from runtime.coordination.map_writers import UnbelievedRecords, Writers
from runtime.process.fault_note import FaultNote
from runtime.set_option import set_option
from wire.net import NetworkFault

_LOG = logging.getLogger(__name__)

INTERVAL_S: Final = 3.0
BOTH_WAYS_INTERVAL_S: Final = 0.2


class ReverseMapReader:
    """Keeps a ``ReverseFlow`` in step with the reverse flow's map."""

    def __init__(
        self,
        config: FlowConfig,
        reverse: ReverseFlow,
        links: Links,
        writers: Writers,
        concerned: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """Know where the map is; ``writers`` are those of the other direction's flow.

        Unbelieved records count that speak of topics that the flow is ``concerned`` with.
        """
        self._way_home = home = config.names.way_home
        self.unbelieved_records: Final = UnbelievedRecords(
            concerned if home is None else lambda topic: _is_ours(home(topic), concerned)
        )
        """The records of its map that none of our programs has written."""
        self._config = config
        self._registry = writers
        self._reverse = reverse
        self._links = links
        self._reader = TailReader(links.source_admin, map_topic_name(config.target), is_map=True)
        self._looking = trio.Lock()
        self._is_there = False
        self.fault = FaultNote(f"{config.name}: the map of the other direction")

    @property
    def topic(self) -> str:
        """The other direction's map topic, on our source."""
        return self._reader.topic

    def told_doubt(self, producer_id: int) -> str:
        """Return why nothing of a producer is sent on of which it is not known what it is."""
        config = self._config
        return (
            f"the next batch is of producer id {producer_id}, which records of {self.topic} call a"
            f" mirror's, and they are not believed, as the witness does not know their writers: it"
            f" may have come from {config.target}, and would be there twice;"
            f" `failover recover --believe-maps{set_option(config.topic_set)}` shows whose these"
            " records are"
        )

    async def run(self) -> None:
        """Catch up every interval."""
        while True:
            await trio.sleep(BOTH_WAYS_INTERVAL_S if self._config.is_active_active else INTERVAL_S)
            try:
                await self.catch_up()
            except NetworkFault as fault:
                self.fault.note(str(fault))
            else:
                self.fault.clear()

    async def catch_up(self) -> None:
        """Read what is new, and tell mirrors from other producers by it; raises NetworkFault.

        A mirror's id is in the map before its first batch is in a log. So a producer that was met
        before this, and is not in the map after it, is no mirror.
        """
        async with self._looking:
            met = frozenset(self._reverse.unknown_producers)
            await self._read()
            self._reverse.know_natives(met)

    async def _read(self) -> None:
        if not self._is_there:
            look = topic_exists if self._config.has_way_back else topic_is_shown
            self._is_there = await look(self._links.source_admin, self._reader.topic)
            if self._is_there and not self._config.has_way_back:
                source, target = self._config.source, self._config.target
                _LOG.warning(
                    "%s: %s is on %s and is not read: no flow %s->%s is configured here. Add it to "
                    "the file if it runs elsewhere: what it mirrors would be sent back",
                    *(self._config.name, self._reader.topic, source, target, source),
                )
        if not self._is_there and self._config.has_way_back:
            await self._registry.require_unwritten(is_there=False)
        if self._is_there and self._config.has_way_back:
            async for key, value in self._new_records(self._reader, self._reverse.unbelieved):
                self._reverse.replay(key, value)
            if self._reader.is_another:
                await self._read_anew()
            if not self._reader.log_end:
                await self._registry.require_unwritten(is_there=True)
            self._reverse.know_mirrors()

    async def _read_anew(self) -> None:
        """Take over a map that was begun anew: its beginning lies before where we have read to."""
        reader, state = self._anew(), MapState()
        unbelieved = UnbelievedArrivals()
        async for key, value in self._new_records(reader, unbelieved):
            state.replay(key, value)
        self._reader = reader
        self._reverse.take_anew(state, unbelieved)
        _LOG.warning("%s: %s was made again: read anew", self._config.name, reader.topic)

    def _anew(self) -> TailReader:
        return TailReader(self._links.source_admin, self._reader.topic, is_map=True)

    async def _new_records(
        self, reader: TailReader, unbelieved: UnbelievedArrivals
    ) -> AsyncIterator[tuple[bytes | None, bytes | None]]:
        """Yield key and value of what is believed, and note the rest."""
        home = self._way_home
        async for header, record, is_believed in told_apart(
            reader, self._registry, self.unbelieved_records
        ):
            key = record.key if home is None else renamed(record.key, home)
            if key is None and record.key is not None:
                self._reverse.note_former(one.topic for one in partition_of(record.key))
                continue  # of a topic that no flow brings back into one of ours
            if is_believed:
                yield key, record.value
            elif header.producer_id != NO_PRODUCER_ID:
                unbelieved.note(key)


def _is_ours(topic: str | None, concerned: Callable[[str], bool]) -> bool:
    """Tell whether the flow is concerned with a source topic; None is no topic."""
    return topic is not None and concerned(topic)
