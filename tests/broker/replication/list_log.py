"""A partition's log as a list, for state machines; its leader epochs are the real ones."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from broker.log.config import LogConfig
from broker.log.leader_epochs import LeaderEpochs
from broker.log.results import AppendOrigin, AppendResult, Duplicate
from broker.log.validation import KeyCheck
from wire.record_batch import BatchHeader
from wire.topic_partition import TopicPartition


class Entry(NamedTuple):
    """One record, alone in its batch."""

    leader_epoch: int
    batch: bytes


class UnsavedEpochs(LeaderEpochs):
    """Leader epochs without their file."""

    def __init__(self) -> None:
        self._entries = []

    def _save(self) -> None:
        """Stay in memory: a crash of the process loses no file."""


class ListLog:
    """What `Partition` uses of a PartitionLog; survives what it calls a crash."""

    def __init__(self, config: LogConfig, partition: int = 0) -> None:
        self.name = TopicPartition("t", partition)
        self.folder = Path(str(self.name))
        self.config = config
        self.log_start_offset = 0
        self.entries: list[Entry] = []
        self.epochs = UnsavedEpochs()

    @property
    def log_end_offset(self) -> int:
        return len(self.entries)

    @property
    def latest_leader_epoch(self) -> int:
        return self.epochs.latest

    def last_stable_offset(self, high_watermark: int) -> int:
        return high_watermark

    def find_duplicate(self, header: BatchHeader) -> Duplicate | None:
        assert header.producer_id < 0
        return None

    def append(
        self,
        batch: bytes,
        *,
        leader_epoch: int,
        now_ms: int,
        wall_ms: int,
        origin: AppendOrigin,
        check_keys: KeyCheck | None,
    ) -> AppendResult:
        assert min(now_ms, wall_ms) >= 0
        assert check_keys is None or callable(check_keys)
        assert origin is AppendOrigin.CLIENT
        self.entries.append(Entry(leader_epoch, batch))
        return self._result()

    def append_as_follower(self, batches: Sequence[Entry], *, now_ms: int) -> AppendResult:
        assert now_ms >= 0
        for entry in batches:
            self.epochs.assign(entry.leader_epoch, len(self.entries))
            self.entries.append(entry)
        return self._result()

    def _result(self) -> AppendResult:
        end = len(self.entries)
        return AppendResult(
            base_offset=end - 1, last_offset=end - 1, log_append_time_ms=-1, log_start_offset=0
        )

    def assign_leader_epoch(self, epoch: int) -> None:
        self.epochs.assign(epoch, len(self.entries))

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        return self.epochs.end_offset(epoch, len(self.entries))

    def truncate_to(self, offset: int, *, now_ms: int) -> None:
        assert now_ms >= 0
        del self.entries[offset:]
        self.epochs.truncate_from(len(self.entries))
