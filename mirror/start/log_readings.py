"""What is read of both sites' logs about partitions, before anything is decided of them."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from mirror.clusters.links import Links
from mirror.clusters.log_ends import Ends, read_ends, read_quiet_target_ends
from mirror.map.map_log import MapLog
from mirror.start.begins import Begins, is_due, read_begins
from mirror.start.doubts import Doubts
from mirror.start.foreign_records import Found, Looked, find_foreign_records
from mirror.start.last_record_check import WriterRegistries, find_rewritten
from mirror.start.start_position import Stop
from mirror.start.target_tail import read_tails
from mirror.state.live_config import LiveConfig
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from mirror.state.reverse_flow import ReverseFlow
from offset_translation.tail import Tail, TailGarbled
from offset_translation.target_scan import Mixed
from wire.net.errors import RequestRefused
from wire.topic_partition import TopicPartition
from wire.values import frozen


class Tried(NamedTuple):
    """A partition as it was when positioning began."""

    partition: MirroredPartition
    attempt: int

    @property
    def is_current(self) -> bool:
        """Whether nothing has interrupted it since."""
        return (
            self.partition.state is PartitionState.POSITIONING
            and self.partition.attempt == self.attempt
        )


class LogReadings(NamedTuple):
    """What was read of both sites' logs about the partitions to be positioned."""

    source: Ends
    target: Ends
    tails: Mapping[TopicPartition, Tail | Mixed | TailGarbled | RequestRefused]
    """The ends of targets that others write to as well, or have written to."""
    rewritten: Mapping[TopicPartition, Stop | RequestRefused]
    """Where one site's log is not what was mirrored from it or to it, or would not be read."""
    begins: Begins = MappingProxyType({})
    """The source offsets at which partitions begin that are due by the flow's `start`."""


@frozen
class BothLogs:
    """The logs, on both sites, of partitions that are to be positioned."""

    config: LiveConfig
    reverse: ReverseFlow
    links: Links
    map_log: MapLog
    doubts: Doubts

    async def read(self, tries: Sequence[Tried]) -> LogReadings:
        """Return both logs' ends, and what lies there where one of them is in doubt.

        Partitions that are interrupted meanwhile have ends alone. Raises NetworkFault.
        """
        where = {tried.partition.topic_partition for tried in tries}
        source = await read_ends(self.links.source_admin, where)
        names = self.config.current.names
        target = await read_quiet_target_ends(self.links.target_admin, names, where)
        current = [tried.partition for tried in tries if tried.is_current]
        shared = [partition for partition in current if self.doubts.is_shared(partition)]
        tails = await read_tails(self.links.target_data, shared, target, self.map_log)
        current = [tried.partition for tried in tries if tried.is_current]
        odd = [one for one in current if self.doubts.is_odd(one, source, target)]
        doubtful = [one for one in current if self.doubts.is_doubtful(one, target)]
        foreign = await self._find_foreign(odd, doubtful, source, target)
        writers = WriterRegistries(self.map_log.producer, self.reverse)
        mixed = {key: one for key, one in foreign.items() if isinstance(one, Mixed)}
        rewritten = await find_rewritten(self.links, doubtful, source, target, writers, mixed)
        due = [one.topic_partition for one in current if is_due(self.map_log.state, one)]
        begins = await read_begins(self.links.source_admin, self.config.current, due, source)
        return LogReadings(
            source=source,
            target=target,
            tails={**tails, **foreign},
            rewritten=rewritten,
            begins=begins,
        )

    async def _find_foreign(
        self,
        odd: Sequence[MirroredPartition],
        doubtful: Sequence[MirroredPartition],
        source: Ends,
        target: Ends,
    ) -> Found:
        """Return where others have written to targets that are ours alone; raises NetworkFault."""
        is_odd = {partition.topic_partition for partition in odd}
        looked = {
            partition.topic_partition: Looked(
                partition=partition,
                is_odd=partition.topic_partition in is_odd,
                was_returned=self.reverse.has_map_of(partition.topic_partition),
            )
            for partition in (*odd, *doubtful)
        }
        state = self.map_log.state
        return await find_foreign_records(self.links, looked.values(), source, target, state)
