"""Opening one partition folder: from files, clean or not, to segments, producers and epochs.

clean stop          indexes are looked over, producers come from the last snapshot
unclean stop        the same up to the recovery point; from its segment on every batch is
                    checked, the log is cut at the first bad one
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from broker.log import checkpoints
from broker.log.batch_walk import Placed
from broker.log.config import LogConfig
from broker.log.leader_epochs import LeaderEpochs
from broker.log.markers import AbortedTransaction
from broker.log.producer_snapshot import Snapshots, recall
from broker.log.producer_state import NO_PRODUCER_ID, ProducerTable
from broker.log.recovery import Damage, SegmentCheck, index_fault, rebuild, segment_bases
from broker.log.results import RecoveryReport, StorageError
from broker.log.segment import RETIRED, Segment
from broker.log.segments import SegmentList, new_segment
from broker.log.swapping import finish_swaps
from wire.record_batch import BatchHeader

LOG: Final = logging.getLogger(__name__)

_RECALLED_BYTES: Final = 4 * 1024 * 1024
"""How much of the log's end is looked through for what producers wrote before their last batch."""
_REMNANTS: Final = (RETIRED, ".cleaned", ".tmp")
_OF_A_SEGMENT: Final = (".index", ".timeindex", ".txnindex")


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The facts about a log that are known before it is opened."""

    config: LogConfig
    is_clean: bool
    """Whether the broker that wrote it last was stopped cleanly."""
    recovery_point: int = 0
    log_start_offset: int = 0
    now_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedLog:
    """A log as found, repaired where it had to be."""

    segments: SegmentList
    log_start_offset: int
    log_end_offset: int
    producers: ProducerTable
    snapshots: Snapshots
    epochs: LeaderEpochs
    topic_id: bytes | None
    reports: tuple[RecoveryReport, ...]
    """What was cut; more than one only if indexes of sealed segments were broken, too."""


def load(folder: Path, opening: Opening) -> LoadedLog:
    """Open the log in a folder, which must be there; an empty one makes an empty log.

    Raises StorageError for what cannot be repaired, OSError where the disk does.
    """
    try:
        return _Loader(folder, opening).load()
    except StorageError as fault:
        if not opening.is_clean:
            raise
        LOG.warning("%s: recovered in spite of a clean stop: %s", folder, fault)
        return _Loader(folder, replace(opening, is_clean=False, recovery_point=0)).load()


class _Loader:
    def __init__(self, folder: Path, opening: Opening) -> None:
        self._folder = folder
        self._opening = opening
        self._snapshots = Snapshots(folder)
        self._epochs = _read_epochs(folder / checkpoints.LEADER_EPOCHS)
        self._producers = ProducerTable()
        self._segments: list[Segment] = []
        self._reports: list[RecoveryReport] = []

    def load(self) -> LoadedLog:
        self._remove_remnants()
        bases = segment_bases(self._folder)
        start = max(self._opening.log_start_offset, bases[0] if bases else 0)
        first = bases[0] if bases else start
        self._producers = self._snapshots.load(first, self._trusted_up_to(bases), self._now_ms)
        for slot, base in enumerate(bases):
            following = bases[slot + 1] if slot + 1 < len(bases) else None
            is_whole = self._open_segment(base, following)
            self._segments[-1].close()
            if not is_whole:
                self._delete_from(slot + 1, bases)
                break
        end = self._end_offset(start)
        segments = SegmentList(self._folder, self._segments)
        self._snapshots.delete_above(end)
        self._bound_epochs(segments, start, end)
        self._catch_up(segments, end)
        recall_earlier(self._producers, segments)
        for segment in segments:
            segment.close()  # a broker has more of them than it may have files open
        return LoadedLog(
            segments=segments,
            log_start_offset=start,
            log_end_offset=end,
            producers=self._producers,
            snapshots=self._snapshots,
            epochs=self._epochs,
            topic_id=checkpoints.read_topic_id(self._folder / checkpoints.PARTITION_METADATA),
            reports=tuple(self._reports),
        )

    @property
    def _now_ms(self) -> int:
        return self._opening.now_ms

    def _remove_remnants(self) -> None:
        """Delete what an interrupted deletion left, and indexes without a log; finish swaps."""
        finish_swaps(self._folder, [path.name for path in self._folder.iterdir()])
        for path in sorted(self._folder.iterdir()):
            orphaned = path.suffix in _OF_A_SEGMENT and not path.with_suffix(".log").exists()
            if path.suffix in _REMNANTS or orphaned:
                path.unlink()

    def _trusted_up_to(self, bases: list[int]) -> int:
        """Return up to where a snapshot surely describes what is in the log."""
        if self._opening.is_clean or not bases:
            return 2**63 - 1
        return self._first_unflushed(bases)

    def _first_unflushed(self, bases: list[int]) -> int:
        below = [base for base in bases if base <= self._opening.recovery_point]
        return below[-1] if below else bases[0]

    def _open_segment(self, base: int, following: int | None) -> bool:
        """Open a segment, check and repair it as needed; False if what follows must go."""
        segment = Segment(self._folder, base, self._now_ms)
        self._segments.append(segment)
        unflushed = not self._opening.is_clean and (
            following is None or following > self._opening.recovery_point
        )
        if not unflushed:
            fault = index_fault(segment)
            if fault is None:
                segment.load_timestamps()
                return True
            LOG.warning("%s: indexes are built anew: %s", segment.path, fault)
        damage = self._rebuild(segment, following)
        return damage is None or not unflushed

    def _rebuild(self, segment: Segment, following: int | None) -> Damage | None:
        size = segment.size
        check = SegmentCheck(
            segment.file,
            segment.base_offset,
            next_base=following,
            trusts_holes=self._opening.config.compacts,
        )
        sound = rebuild(segment, check, interval_bytes=self._opening.config.index_interval_bytes)
        self._take_in(segment, sound)
        if check.damage is not None:
            self._reports.append(
                RecoveryReport(
                    folder=self._folder,
                    segment=segment.path.name,
                    position=check.damage.position,
                    cut_bytes=size - segment.size,
                    next_offset=segment.next_offset(),
                    reason=check.damage.reason,
                )
            )
        return check.damage

    def _take_in(self, segment: Segment, batches: Iterable[Placed]) -> None:
        """Run the check to its end; epochs and producers follow it, and tell what was aborted.

        A snapshot may already be further on: the index of aborted transactions then needs the
        producers as they were where the segment begins.
        """
        producers = self._producers
        if producers.end_offset > segment.base_offset:
            first = self._segments[0].base_offset
            producers = self._snapshots.load(first, segment.base_offset, self._now_ms)
        self._replay_up_to(segment, producers)
        aborted: list[AbortedTransaction] = []
        for placed in batches:
            self._assign_epoch(placed.header)
            if placed.header.base_offset >= producers.end_offset:
                ended = producers.replay(placed.header, self._now_ms, placed.marker)
                aborted += [] if ended is None else [ended]
        segment.transactions.append(aborted)

    def _replay_up_to(self, segment: Segment, producers: ProducerTable) -> None:
        earlier = self._segments[:-1]
        if earlier and producers.end_offset < segment.base_offset:
            self._replay(SegmentList(self._folder, earlier), producers)
            producers.end_offset = segment.base_offset

    def _replay(self, segments: SegmentList, producers: ProducerTable) -> None:
        for placed in segments.walk_from(producers.end_offset):
            if placed.header.base_offset >= producers.end_offset:
                producers.replay(placed.header, self._now_ms, placed.marker)

    def _bound_epochs(self, segments: SegmentList, start: int, end: int) -> None:
        """Keep the epochs between the log's ends; a lost checkpoint is made again from headers."""
        if not self._epochs.entries:
            for placed in segments.walk_from(start):
                self._assign_epoch(placed.header)
        self._epochs.truncate_from(end)
        self._epochs.truncate_before(start)

    def _assign_epoch(self, header: BatchHeader) -> None:
        if header.partition_leader_epoch >= 0:
            self._epochs.assign(header.partition_leader_epoch, header.base_offset)

    def _catch_up(self, segments: SegmentList, end: int) -> None:
        """Bring the producers up to the log's end, from the last snapshot or the log's start."""
        if self._producers.end_offset > end:
            first = segments.first.base_offset
            self._producers = self._snapshots.load(first, end, self._now_ms)
        if self._producers.end_offset < end:
            self._replay(segments, self._producers)
        self._producers.end_offset = end

    def _delete_from(self, slot: int, bases: list[int]) -> None:
        """Delete the segments behind a cut, the last one first."""
        cut = self._reports[-1].cut_bytes
        for base in reversed(bases[slot:]):
            segment = Segment(self._folder, base, self._now_ms)
            cut += segment.size
            segment.delete()
        self._reports[-1] = replace(self._reports[-1], cut_bytes=cut)

    def _end_offset(self, start: int) -> int:
        """Return the log's end; a log that ends before its start is begun anew there, as Kafka."""
        end = self._segments[-1].next_offset() if self._segments else -1
        if end >= start:
            return end
        while self._segments:
            self._segments.pop().delete()
        self._snapshots.keep(())
        self._producers = ProducerTable(end_offset=start)
        self._segments.append(new_segment(self._folder, start, self._now_ms))
        return start


def recall_earlier(producers: ProducerTable, segments: SegmentList) -> None:
    """Remember what producers wrote before their last batch, if the log's end is readable.

    A snapshot holds their last batches only. The table ends where the log does.
    """
    if len(producers):
        recall(producers, tail_of(segments))


def tail_of(segments: SegmentList) -> list[BatchHeader]:
    """Return the batches at a log's end, none where they cannot be read."""
    try:
        return [placed.header for placed in segments.tail(_RECALLED_BYTES)]
    except StorageError as fault:
        LOG.warning("%s; older batches of producers are not remembered", fault)
        return []


def writers_from(segments: SegmentList, offset: int) -> frozenset[int] | None:
    """Return the producers of the batches that end at or behind `offset`.

    None where one belongs to a transaction, or cannot be read.
    """
    found: set[int] = set()
    try:
        for placed in segments.walk_from(offset):
            if placed.header.is_transactional or placed.header.is_control:
                return None
            found.add(placed.header.producer_id)
    except StorageError:
        return None
    return frozenset(found - {NO_PRODUCER_ID})


def _read_epochs(path: Path) -> LeaderEpochs:
    try:
        return LeaderEpochs(path)
    except StorageError as fault:
        LOG.warning("%s; it is made again from the log", fault)
        path.unlink()
        return LeaderEpochs(path)
