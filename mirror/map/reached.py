"""Keeps in the map topic how far partitions are mirrored that others write to as well.

Of other partitions the target's log end tells it. Runs and the place reached go in one write, so a
reader knows where every record before that place lies. While nothing comes from the source, the
target's log moves on all the same, and retention takes what lies behind that place. So the place is
written again with a later end.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

import trio

from mirror.map.map_log import RECORDS_A_WRITE, MapLog, MapRecord
from mirror.state.flow_partitions import FlowPartitions
from mirror.state.live_config import LiveConfig
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from mirror.state.reverse_flow import ReverseFlow
from offset_translation.map_records import Reached, reached, run_start
from offset_translation.runs import Place
from runtime.process.fault_note import FaultNote
from wire.net import NetworkFault
from wire.topic_partition import TopicPartition

INTERVAL_S: Final = 0.2
AT_REST_S: Final = 10.0
"""So often it is told up to where the target holds nothing more of the mirror's."""
PARTITIONS_A_WRITE: Final = 1_000


class ReachedKeeper:
    """Writes what is new, every interval."""

    def __init__(
        self,
        config: LiveConfig,
        partitions: FlowPartitions,
        reverse: ReverseFlow,
        map_log: MapLog,
    ) -> None:
        self._config = config
        self._partitions = partitions
        self._reverse = reverse
        self._map_log = map_log
        self._looked_s = float("-inf")
        self.fault = FaultNote(f"{config.current.name}: places reached")

    async def run(self) -> None:
        """Keep them for ever, where others write."""
        while self._config.current.is_active_active:
            await trio.sleep(INTERVAL_S)
            try:
                await self.write()
            except NetworkFault as fault:
                self.fault.note(str(fault))
            else:
                self.fault.clear()

    async def write(self) -> None:
        """Write what has changed since the last time; raises NetworkFault."""
        topic_partitions = list(self._partitions.own)
        looks_behind = trio.current_time() - self._looked_s >= AT_REST_S
        if looks_behind:
            self._looked_s = trio.current_time()
        for first in range(0, len(topic_partitions), PARTITIONS_A_WRITE):
            some = topic_partitions[first : first + PARTITIONS_A_WRITE]
            await self._write_of(some, looks_behind=looks_behind)

    async def _write_of(
        self, topic_partitions: Sequence[TopicPartition], *, looks_behind: bool
    ) -> None:
        written: list[tuple[MirroredPartition, int]] = []
        known = self._map_log.state.reached

        def compose() -> list[MapRecord]:
            written.clear()
            records: list[MapRecord] = []
            for topic_partition in topic_partitions:
                partition = self._partitions.own.get(topic_partition)
                if partition is None or topic_partition not in known or not partition.is_flowing:
                    continue
                now = _reached(partition, known[topic_partition])
                if (
                    looks_behind
                    and now.place == known[topic_partition].place
                    and _is_quiet(partition)
                ):
                    now = replace(now, target_end=max(now.target_end, self._taken_until(partition)))
                room = RECORDS_A_WRITE - len(records)
                if room > 0 and (partition.target.untold_runs or now != known[topic_partition]):
                    # What is cut off, the place reached among it, comes with the next look.
                    records += place_records(partition, partition.target.untold_runs, now)[:room]
                    written.append((partition, min(room, len(partition.target.untold_runs))))
            return records

        await self._map_log.write(compose)
        for partition, count in written:
            partition.target.tell_runs(count)

    def _taken_until(self, partition: MirroredPartition) -> int:
        """Return the target offset before which the other direction has read all, 0 if unknown."""
        backward = self._reverse.backward(partition)
        return 0 if backward is None else backward.mirrored_source_end or 0


def _is_quiet(partition: MirroredPartition) -> bool:
    """Whether no batch is under way, nor one whose answer was lost: the source has none for it."""
    return partition.in_flight.is_settled and partition.state is PartitionState.STREAMING


def _reached(partition: MirroredPartition, known: Reached) -> Reached:
    """Return how far a partition is mirrored as far as has been acknowledged."""
    place = partition.offset_map.place_end
    end = partition.offset_map.runs.end_of(place)
    if place == known.place:
        end = max(end, known.target_end)
    return Reached(place=place, target_end=end)


def place_records(
    partition: MirroredPartition, runs: Iterable[tuple[Place, int]], now: Reached
) -> list[MapRecord]:
    """Return the records of runs, (place, target offset), and of the place reached behind them."""
    name = (partition.topic, partition.index)
    return [
        *(run_start(*name, place=place, target_start=target) for place, target in runs),
        reached(*name, now),
    ]
