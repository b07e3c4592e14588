"""A log whose end is cut: what it still knows of producers, and how much of it is read for that."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.log.config import LogConfig
from broker.log.producer_state import REMEMBERED_BATCHES
from broker.log.results import AppendResult, Duplicate
from tests.broker.log.logs import NOW_MS, batch, log_folder, one_log, opened, partition_of
from tests.properties import examples
from wire.record_batch import parse_header

BATCHES = 300


@pytest.mark.parametrize("producer_id", [-1, 7])
def test_the_end_of_a_large_segment_is_cut_without_reading_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, producer_id: int
) -> None:
    """Everybody else waits meanwhile, and after a leader's death many logs are cut."""
    reads: list[int] = []
    pread = os.pread

    def counted(descriptor: int, length: int, position: int) -> bytes:
        reads.append(position)
        return pread(descriptor, length, position)

    with one_log(tmp_path, LogConfig()) as log:
        for number in range(BATCHES):
            sent = batch([b"v" * 60_000], producer=(producer_id, 0, number))
            log.append(sent, leader_epoch=1, now_ms=NOW_MS)
        monkeypatch.setattr(os, "pread", counted)
        end = BATCHES - REMEMBERED_BATCHES  # all that a producer has under way are cut
        log.truncate_to(end, now_ms=NOW_MS)
        assert len(reads) < BATCHES / 3
        again = batch([b"w"], producer=(producer_id, 0, end))
        done = log.append(again, leader_epoch=2, now_ms=NOW_MS)
    assert isinstance(done, AppendResult)
    assert done.base_offset == end


Write = tuple[int, bool, bool]
"""Of which producer, whether in its next epoch, and whether in a new segment."""


@settings(max_examples=examples(25))
@given(
    writes=st.lists(
        st.tuples(
            st.sampled_from([-1, 1, 2]), st.sampled_from([False] * 5 + [True]), st.booleans()
        ),
        min_size=1,
        max_size=25,
    ),
    data=st.data(),
)
def test_a_cut_log_knows_of_producers_what_one_opened_anew_does(
    writes: list[Write], data: st.DataObject
) -> None:
    epochs, sequences = {1: 0, 2: 0}, {1: 0, 2: 0}
    sent: list[bytes] = []
    with log_folder() as folder:
        manager = opened(folder)
        log = partition_of(manager)
        for producer_id, is_next_epoch, rolls in writes:
            if rolls:
                log.roll(NOW_MS)
            if is_next_epoch and producer_id > 0:
                epochs[producer_id] += 1
                sequences[producer_id] = 0
            of = (producer_id, epochs.get(producer_id, -1), sequences.get(producer_id, -1))
            sent.append(batch([b"v"], producer=of))
            log.append(sent[-1], leader_epoch=1, now_ms=NOW_MS)
            if producer_id > 0:
                sequences[producer_id] += 1
        end = data.draw(st.integers(0, len(sent)))
        log.truncate_to(end, now_ms=NOW_MS)
        known = log.last_records()
        for last in known.values():
            found = log.find_duplicate(parse_header(sent[last.last_offset]))
            assert isinstance(found, Duplicate)
            assert found.base_offset == last.last_offset
        manager.abandon()
        manager = opened(folder)
        again = partition_of(manager)
        assert (again.last_records(), again.log_end_offset) == (known, end)
        manager.abandon()
