"""Keeps in the map topic how far partitions are mirrored that others write to as well.

Elsewhere the target's log end tells. Runs and the place reached go in one write, so who reads them
knows where every record before that place lies.
"""

from collections.abc import Iterable
from typing import Final

import trio

from mirror.fault_note import FaultNote
from mirror.flow_state import FlowState
from mirror.map_log import MapLog, MapRecord
from mirror.partition import MirroredPartition
from offset_translation.map_records import Reached, reached, run_start
from wire.net import NetworkFault

INTERVAL_S: Final = 0.2


class ReachedKeeper:
    """Writes what is new, every interval."""

    def __init__(self, flow: FlowState, map_log: MapLog) -> None:
        """Begin with nothing to say."""
        self._flow = flow
        self._map_log = map_log
        self.fault = FaultNote(f"{flow.config.name}: places reached")

    async def run(self) -> None:
        """Keep them for ever."""
        while True:
            await trio.sleep(INTERVAL_S)
            if not self._flow.config.is_active_active:
                continue
            try:
                await self.write()
            except NetworkFault as fault:
                self.fault.note(str(fault))
            else:
                self.fault.clear()

    async def write(self) -> None:
        """Write what has changed since the last time; raises NetworkFault."""
        told: list[tuple[MirroredPartition, int]] = []

        def compose() -> list[MapRecord]:
            told.clear()
            records: list[MapRecord] = []
            for key, partition in self._flow.partitions.items():
                if key in self._map_log.state.reached and partition.is_flowing:
                    now = _reached(partition)
                    if partition.new_runs or now != self._map_log.state.reached[key]:
                        told.append((partition, len(partition.new_runs)))
                        records += place_records(partition, partition.new_runs, now)
            return records

        await self._map_log.write(compose)
        for partition, count in told:
            del partition.new_runs[:count]


def _reached(partition: MirroredPartition) -> Reached:
    """Return how far a partition is mirrored as far as has been acknowledged."""
    place = partition.offset_map.place_end
    return Reached(place=place, target_end=partition.offset_map.runs.end_of(place))


def place_records(
    partition: MirroredPartition, runs: Iterable[tuple[int, int]], now: Reached
) -> list[MapRecord]:
    """Return the records of runs, (place, target offset), and of the place reached behind them."""
    name = (partition.topic, partition.index)
    return [
        *(run_start(*name, place=place, target_start=target) for place, target in runs),
        reached(*name, now),
    ]
