"""Acknowledgements of the target, taken over many answers at a time.

One wake-up brings the answers of dozens of requests, each with a batch of the same partitions. How
far a partition has come shows in its last batch, so each is looked at once, not once a batch.
"""

from collections import Counter, defaultdict
from collections.abc import Callable
from operator import itemgetter
from typing import Final

from mirror.state.batches import Forward
from mirror.state.measurements import FlowMeasurements, Slowest
from mirror.state.mirrored_progress import MirroredProgress
from mirror.state.partition import MirroredPartition


def _field(name: str) -> Callable[[Forward], int]:
    return itemgetter(Forward._fields.index(name))


_RECORDS: Final = _field("record_count")
_ARRIVED_MS: Final = _field("arrived_ms")
_NEWEST_MS: Final = _field("max_timestamp")


class Acknowledgements:
    """Batches known to be on the target, of which no partition has been told yet.

    Until they are taken over they count as under way, so a partition is not positioned meanwhile.
    """

    __slots__ = ("_measurements", "_progress", "batches", "failed")

    def __init__(self, measurements: FlowMeasurements, progress: MirroredProgress) -> None:
        self._measurements = measurements
        self._progress = progress
        self.batches: defaultdict[MirroredPartition, list[Forward]] = defaultdict(list)
        """Of each partition those of its present attempt, in the order of its log."""
        self.failed: list[tuple[MirroredPartition, Exception]] = []
        """Partitions that could not take over theirs, by errors that nobody has foreseen."""

    def take_over(self, now_ms: int) -> list[MirroredPartition]:
        """Tell the partitions and the counters; return those that had nothing there before."""
        if not self.batches:
            return []
        begun = []
        arrivals, newest = Counter[int](), Counter[int]()
        records = size = 0
        slowest: Slowest | None = None
        for partition, forwards in self.batches.items():
            if not partition.in_flight.is_taken:
                begun.append(partition)
            try:
                size += partition.acknowledge(forwards, now_ms)
            except Exception as fault:  # noqa: BLE001 - an error of ours stops this partition alone
                self.failed.append((partition, fault))
                continue
            records += sum(map(_RECORDS, forwards))
            arrived_ms = forwards[0].arrived_ms
            if slowest is None or arrived_ms < slowest.arrived_ms:
                slowest = Slowest(arrived_ms, partition.topic, partition.index)
            arrivals.update(map(_ARRIVED_MS, forwards))
            newest.update(map(_NEWEST_MS, forwards))
        self._progress.tell(self.batches)
        self.batches.clear()
        self._measurements.note_acknowledged(
            now_ms, arrivals, newest, records=records, size_bytes=size, slowest=slowest
        )
        return begun
