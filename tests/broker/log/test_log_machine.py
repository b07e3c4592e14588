"""The partition log against a list: whatever happens to it, it holds what the list holds."""

import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from broker.log.results import AppendOrigin, AppendResult, BatchRefused, Duplicate, OffsetOutOfRange
from tests.broker.log.logs import NOW_MS, SMALL, batch, batches_of, opened, partition_of, recovered
from tests.properties import examples
from wire.errors import ErrorCode
from wire.record_batch import iterate_batches

CONFIG = replace(SMALL, retention_bytes=1500, retention_ms=-1)


@dataclass(frozen=True, slots=True)
class Held:
    """A batch that the log should hold: its place, and all its bytes behind offset and epoch."""

    base_offset: int
    next_offset: int
    sent: bytes
    epoch: int

    @property
    def content(self) -> bytes:
        return self.sent[16:]


class LogMachine(RuleBasedStateMachine):
    """Appends, reads, shrinks, closes, kills and cuts one log."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.manager = opened(self.folder, CONFIG)
        self.log = partition_of(self.manager, CONFIG)
        self.held: list[Held] = []
        self.sequences = [(0, 0)]
        """(offset, next sequence) after each batch of the producer; retention forgets none."""
        self.now_ms = NOW_MS
        self.end = 0
        self.start = 0
        self.saved_start = 0
        self.saved_recovery_point = 0
        self.epoch = 0
        self.sequence = 0
        self.last_produced: Held | None = None
        self.count = 0

    def teardown(self) -> None:
        self.manager.abandon()
        shutil.rmtree(self.folder)

    # -- growing

    def _content(self, records: int, size: int) -> list[bytes]:
        self.count += 1
        return [b"%d" % self.count * size for _ in range(records)]

    def _hold(self, sent: bytes, records: int) -> Held:
        held = Held(self.end, self.end + records, sent, self.epoch)
        self.held.append(held)
        self.end += records
        return held

    @rule(records=st.integers(1, 3), size=st.integers(0, 60))
    def append(self, records: int, size: int) -> None:
        sent = batch(self._content(records, size))
        done = self.log.append(sent, leader_epoch=self.epoch, now_ms=NOW_MS)
        assert isinstance(done, AppendResult)
        assert (done.base_offset, done.last_offset) == (self.end, self.end + records - 1)
        self._hold(sent, records)

    @rule(records=st.integers(1, 3))
    def append_idempotent(self, records: int) -> None:
        sent = batch(self._content(records, 5), producer=(7, 0, self.sequence))
        done = self.log.append(sent, leader_epoch=self.epoch, now_ms=NOW_MS)
        assert isinstance(done, AppendResult)
        self.sequence += records
        self.last_produced = self._hold(sent, records)
        self.sequences.append((self.end, self.sequence))

    @precondition(lambda self: self.last_produced is not None)
    @rule()
    def append_again(self) -> None:
        assert self.last_produced is not None
        done = self.log.append(self.last_produced.sent, leader_epoch=self.epoch, now_ms=NOW_MS)
        assert isinstance(done, Duplicate)
        assert done.base_offset == self.last_produced.base_offset
        assert done.last_offset == self.last_produced.next_offset - 1

    @rule(counts=st.lists(st.integers(1, 2), min_size=2, max_size=5))
    def append_several_of_its_own(self, counts: list[int]) -> None:
        sent = [batch(self._content(count, 10)) for count in counts]
        done = self.log.append(
            b"".join(sent), leader_epoch=self.epoch, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
        )
        assert isinstance(done, AppendResult)
        for one, count in zip(sent, counts, strict=True):
            self._hold(one, count)
        assert done.last_offset == self.end - 1

    @rule(position=st.integers(16, 80), flip=st.integers(1, 255))
    def append_damaged(self, position: int, flip: int) -> None:
        damaged = bytearray(batch(self._content(2, 10)))
        damaged[position] ^= flip
        refused = self.log.append(damaged, leader_epoch=self.epoch, now_ms=NOW_MS)
        assert isinstance(refused, BatchRefused)
        assert refused.error is ErrorCode.CORRUPT_MESSAGE or position == 16

    @rule()
    def new_leader(self) -> None:
        self.epoch += 1
        self.log.assign_leader_epoch(self.epoch)

    @rule()
    def roll(self) -> None:
        self.log.roll(NOW_MS)

    # -- reading

    @rule(data=st.data())
    def read_a_part(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.start, self.end))
        stop = data.draw(st.integers(self.start, self.end))
        max_bytes = data.draw(st.integers(0, 2000))
        read = self.log.read(offset, max_bytes, stop_offset=stop)
        assert not isinstance(read, OffsetOutOfRange)
        wanted = [h for h in self.held if h.next_offset > offset and h.next_offset <= stop]
        got = [bytes(view)[16:] for _, view in iterate_batches(read)]
        assert sum(len(one) + 16 for one in got) == len(read)
        assert got == [held.content for held in wanted[: len(got)]]
        assert len(read) <= max_bytes or len(got) == 1
        if offset < stop and wanted:
            assert got

    @rule(distance=st.integers(1, 5))
    def read_outside(self, distance: int) -> None:
        assert isinstance(self.log.read(self.end + distance, 100), OffsetOutOfRange)
        assert isinstance(self.log.read(self.start - distance, 100), OffsetOutOfRange)

    # -- shrinking

    def _forget_from(self, end: int) -> None:
        self.held = [held for held in self.held if held.next_offset <= end]
        self.end = end
        self.saved_recovery_point = min(self.saved_recovery_point, end)
        self.saved_start = min(self.saved_start, end)
        self.sequences = [known for known in self.sequences if known[0] <= end]
        self.sequence = self.sequences[-1][1]
        self.last_produced = None

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.start, self.end))
        self.log.truncate_to(offset, now_ms=NOW_MS)
        kept = [held for held in self.held if held.next_offset <= offset]
        first = self.log.segment_bases[0]
        end = kept[-1].next_offset if kept else first
        if offset < self.end:
            self._forget_from(end)
            self.start = min(self.start, end)

    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        self.start = data.draw(st.integers(self.start, self.end))
        self.log.advance_log_start(self.start)

    @rule(data=st.data())
    def retain(self, data: st.DataObject) -> None:
        stop = data.draw(st.integers(self.start, self.end))
        before = self.log.segment_bases
        deleted = self.log.apply_retention(NOW_MS, stop_offset=stop)
        first = self.log.segment_bases[0]
        assert (first > before[0]) == (deleted > 0)
        assert first <= stop or not deleted
        self.held = [held for held in self.held if held.base_offset >= first]
        self.start = max(self.start, first)

    # -- stopping and starting

    def _save(self) -> None:
        self.saved_start = self.start
        self.saved_recovery_point = self.log.recovery_point

    def _reopen(self) -> None:
        self.manager = opened(self.folder, CONFIG)
        self.log = partition_of(self.manager, CONFIG)

    @rule()
    def flush(self) -> None:
        self.log.flush()

    @rule()
    def save_checkpoints(self) -> None:
        self.manager.tick(self.now_ms)
        self.now_ms += 60_000
        self.manager.tick(self.now_ms)
        # The same tick may delete what retention allows.
        first = self.log.segment_bases[0]
        self.held = [held for held in self.held if held.base_offset >= first]
        self.start = max(self.start, first)
        self._save()

    @rule()
    def close_and_open(self) -> None:
        self.manager.close()
        self._save()
        self.saved_recovery_point = self.end
        self._reopen()
        assert not recovered(self.manager)

    @rule()
    def kill_and_open(self) -> None:
        self.manager.abandon()
        self._reopen()
        assert not recovered(self.manager)
        self.start = max(self.saved_start, self.log.segment_bases[0])
        self._open_epoch()

    def _open_epoch(self) -> None:
        """An epoch in which nothing was written may be forgotten by a crash; it is told again."""
        self.log.assign_leader_epoch(self.epoch)

    @rule(data=st.data())
    def kill_and_cut(self, data: st.DataObject) -> None:
        """Lose an unflushed tail, as when the machine dies: any byte may be the last."""
        bases = self.log.segment_bases
        ends = [*bases[1:], None]
        unflushed = [
            base
            for base, end in zip(bases, ends, strict=True)
            if end is None or end > self.saved_recovery_point
        ]
        base = data.draw(st.sampled_from(unflushed))
        self.manager.abandon()
        path = self.folder / "topic-0" / f"{base:020d}.log"
        cut = data.draw(st.integers(0, path.stat().st_size))
        with path.open("r+b") as file:
            file.truncate(cut)
        for later in [later for later in bases if later > base]:
            path.with_name(f"{later:020d}.log").unlink()
        self._reopen()
        position, end = 0, base
        for held in self.held:
            if held.base_offset >= base:
                position += len(held.sent)
                if position > cut:
                    break
                end = held.next_offset
        if end < self.saved_start:
            end = self.saved_start
            self.held = []
            self.sequences = [(0, 0)]
        self._forget_from(end)
        self.start = max(self.saved_start, self.log.segment_bases[0])
        self._open_epoch()

    # -- always

    @invariant()
    def holds_the_same(self) -> None:
        assert (self.log.log_start_offset, self.log.log_end_offset) == (self.start, self.end)
        wanted = [held for held in self.held if held.next_offset > self.start]
        found = batches_of(self.log)
        assert [(h.base_offset, data[16:]) for h, data in found] == [
            (held.base_offset, held.content) for held in wanted
        ]
        assert [h.partition_leader_epoch for h, _ in found] == [held.epoch for held in wanted]

    @invariant()
    def has_segments_in_order(self) -> None:
        bases = self.log.segment_bases
        assert list(bases) == sorted(set(bases))
        assert self.log.size_bytes == sum(len(held.sent) for held in self.held)


LogMachine.TestCase.settings = settings(
    stateful_step_count=40, max_examples=examples(15), deadline=None
)
TestLogMachine = LogMachine.TestCase
