"""A compacted log against a dictionary, with crashes that cut files anywhere behind the last fsync.

What was flushed, or survived the cut as a whole batch, and was not taken by compaction, retention,
DeleteRecords or truncation, is there at its offset with its bytes; indexes agree with a search
through the batches; producers are what a replay of the batches makes of them.
"""

import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from broker.log.batch_walk import walk
from broker.log.producer_state import ProducerTable
from broker.log.results import AppendResult, Duplicate
from tests.broker.log.cleaning import COMPACTED, batches_left, clean
from tests.broker.log.logs import NOW_MS, batch, opened, partition_of, record_at, recovered
from tests.properties import examples
from wire.compression import Compression
from wire.record_batch import Record, iterate_batches, iterate_records

CONFIG = replace(COMPACTED, cleanup_policy=frozenset({"compact", "delete"}), retention_bytes=2500)
KEYS = [b"a", b"b", b"c", b"d"]
Content = tuple[int, bytes | None, bytes | None]


class DurabilityMachine(RuleBasedStateMachine):
    """`records` is what the log should hold, by offset; the flushed ones survive everything."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.patched = pytest.MonkeyPatch()
        for slow in ("fsync", "fdatasync"):  # the crashes here are the test's own cuts
            self.patched.setattr(os, slow, lambda _: None)
        self.manager = opened(self.folder, CONFIG)
        self.log = partition_of(self.manager, CONFIG)
        self.records: dict[int, tuple[bytes | None, bytes | None]] = {}
        self.next_sequence: dict[int, int] = {}
        self.last_sent: dict[int, tuple[bytes, int]] = {}
        self.start = self.end = 0
        self.saved_start = self.flushed = self.saved_flushed = 0
        self.checkpoint = 0
        self.count = 0

    def teardown(self) -> None:
        if hasattr(self, "manager"):
            self.manager.abandon()
            self.patched.undo()
            shutil.rmtree(self.folder)

    @property
    def partition(self) -> Path:
        return self.folder / "topic-0"

    # -- growing

    @rule(
        keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=4),
        size=st.integers(0, 40),
        producer_id=st.sampled_from([-1, 1, 2, 3]),
        codec=st.sampled_from([Compression.NONE, Compression.ZSTD]),
    )
    def append(self, keys: list[bytes], size: int, producer_id: int, codec: Compression) -> None:
        self.count += 1
        sequence = self.next_sequence.get(producer_id, 0)
        values = [b"%d" % self.count * size for _ in keys]
        producer = (producer_id, 0, sequence) if producer_id > 0 else (-1, -1, -1)
        sent = batch(
            values,
            keys=keys,
            producer=producer,
            compression=codec,
            timestamp_ms=NOW_MS + 10 * self.count,
        )
        done = self.log.append(sent, leader_epoch=0, now_ms=NOW_MS)
        assert isinstance(done, AppendResult)
        assert done.base_offset == self.end
        for key, value in zip(keys, values, strict=True):
            self.records[self.end] = (key, value)
            self.end += 1
        if producer_id > 0:
            self.next_sequence[producer_id] = sequence + len(keys)
            self.last_sent[producer_id] = (sent, done.base_offset)

    @precondition(lambda self: self.last_sent)
    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        sent, base_offset = self.last_sent[data.draw(st.sampled_from(sorted(self.last_sent)))]
        done = self.log.append(sent, leader_epoch=0, now_ms=NOW_MS)
        assert isinstance(done, Duplicate)
        assert done.base_offset == base_offset

    @rule()
    def roll(self) -> None:
        self.log.roll(NOW_MS)

    @rule()
    def flush(self) -> None:
        self.log.flush()
        self.flushed = self.end

    # -- shrinking

    @rule(slots=st.sampled_from([2, 1000]))
    def compact(self, slots: int) -> None:
        report = clean(self.log, slots=slots, checkpoint=self.checkpoint)
        self.checkpoint = max(self.checkpoint, report.next_dirty)
        newest = {
            key: offset for offset, (key, _) in self.records.items() if offset < report.next_dirty
        }
        stay = set(newest.values())
        self.records = {
            offset: content
            for offset, content in self.records.items()
            if offset >= report.next_dirty or offset in stay
        }

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.start, self.end))
        self.log.truncate_to(offset, now_ms=NOW_MS)
        assert self.log.log_end_offset <= offset or offset == self.end
        self._forget_from(self.log.log_end_offset)
        self.start = min(self.start, self.end)

    def _forget_from(self, end: int) -> None:
        self.end = end
        self.flushed, self.saved_flushed = min(self.flushed, end), min(self.saved_flushed, end)
        self.saved_start = min(self.saved_start, end)
        self.checkpoint = min(self.checkpoint, end)
        self.records = {o: content for o, content in self.records.items() if o < end}
        known = {entry.producer_id: entry for entry in self.log._producers}
        for producer_id in list(self.next_sequence):
            last = known[producer_id].batches[-1:] if producer_id in known else ()
            self.next_sequence[producer_id] = last[0].last_sequence + 1 if last else 0
        self.last_sent.clear()

    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        self.start = data.draw(st.integers(self.start, self.end))
        self.log.advance_log_start(self.start)

    @rule()
    def retain(self) -> None:
        self.log.apply_retention(NOW_MS)
        self._forget_before(self.log.segment_bases[0])

    def _forget_before(self, first: int) -> None:
        self.start = max(self.start, first)
        self.records = {o: content for o, content in self.records.items() if o >= first}

    # -- stopping and starting

    def _reopen(self) -> None:
        self.manager = opened(self.folder, CONFIG)
        self.log = partition_of(self.manager, CONFIG)

    @rule()
    def close_and_open(self) -> None:
        self.manager.close()
        self.saved_start, self.flushed, self.saved_flushed = self.start, self.end, self.end
        self._reopen()
        assert not recovered(self.manager)

    @rule(data=st.data())
    def crash(self, data: st.DataObject) -> None:
        """Cut a segment anywhere behind what was flushed, and any of its indexes anywhere."""
        bases = self.log.segment_bases
        ends = [*bases[1:], self.end]
        behind = [b for b, e in zip(bases, ends, strict=True) if e >= self.flushed]
        base = data.draw(st.sampled_from(behind or [bases[-1]]))
        flushed_bytes, scanned = self._flushed_bytes(base)
        self.manager.abandon()
        path = self.partition / f"{base:020d}.log"
        cut = data.draw(st.integers(flushed_bytes, path.stat().st_size))
        with path.open("r+b") as file:
            file.truncate(cut)
        for later in (one for one in bases if one > base):
            (self.partition / f"{later:020d}.log").unlink()
        for suffix in (".index", ".timeindex"):
            self._cut_index(path.with_suffix(suffix), data)
        survivors = [end for position, end in scanned if position <= cut]
        end = survivors[-1] if survivors else base
        self._reopen()
        if end < self.saved_start:
            end = self.saved_start
            self.records.clear()
        self._forget_from(end)
        self.start = max(self.saved_start, self.log.segment_bases[0])

    def _flushed_bytes(self, base: int) -> tuple[int, list[tuple[int, int]]]:
        """Return up to which byte a segment was flushed, and (end byte, next offset) of each."""
        data = (self.partition / f"{base:020d}.log").read_bytes()
        scanned: list[tuple[int, int]] = []
        position = flushed = 0
        for header, view in iterate_batches(data):
            position += len(view)
            scanned.append((position, header.next_offset))
            if header.next_offset <= self.flushed:
                flushed = position
        return flushed, scanned

    def _cut_index(self, path: Path, data: st.DataObject) -> None:
        if path.exists() and data.draw(st.booleans()):
            with path.open("r+b") as file:
                file.truncate(data.draw(st.integers(0, path.stat().st_size)))

    # -- always

    @invariant()
    def holds_what_it_should(self) -> None:
        assert (self.log.log_start_offset, self.log.log_end_offset) == (self.start, self.end)
        expected = [
            (offset, key, value)
            for offset, (key, value) in sorted(self.records.items())
            if offset >= self.start
        ]
        assert self._content() == expected

    def _records(self) -> list[Record]:
        records = [r for _, data in batches_left(self.log) for r in iterate_records(data)]
        return [record for record in records if record.offset >= self.start]

    def _content(self) -> list[Content]:
        return [(record.offset, record.key, record.value) for record in self._records()]

    @invariant()
    def has_indexes_that_agree_with_a_search(self) -> None:
        for segment in (*self.log.sealed_segments(), self.log._segments.active):
            placed = list(walk(segment.file, 0, segment.size))
            ends = {one.position: one.header.last_offset for one in placed}
            assert all(ends[p] == segment.base_offset + o for o, p in segment.index)
            for one in placed:
                found = segment.find(one.header.base_offset)
                assert found is not None
                assert found.position == one.position
        records = self._records()
        for record in records[::5]:
            found_record = record_at(self.log, record.timestamp_ms)
            first = next(r for r in records if r.timestamp_ms >= record.timestamp_ms)
            assert found_record is not None
            assert found_record.offset == first.offset

    @invariant()
    def knows_the_producers_of_its_batches(self) -> None:
        replayed = ProducerTable()
        for header, _ in batches_left(self.log):
            replayed.replay(header, NOW_MS)
        known = {entry.producer_id: entry for entry in self.log._producers}
        for entry in replayed:
            assert known[entry.producer_id].epoch == entry.epoch
            assert known[entry.producer_id].batches[-1] == entry.batches[-1]


DurabilityMachine.TestCase.settings = settings(
    stateful_step_count=30, max_examples=examples(15), deadline=None
)
TestDurabilityMachine = DurabilityMachine.TestCase
