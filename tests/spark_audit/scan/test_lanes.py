"""Several fetches of a log under way: nothing is left out or comes twice, and distance hides."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from spark_audit.scan import lanes as module
from spark_audit.scan.lanes import (
    FETCH_BYTES,
    LEAST_FETCH_BYTES,
    MOST_LANES,
    Lanes,
    LogUnreadable,
    OffsetDensity,
)
from tests.properties import examples
from wire.messages.fetch import FetchPartitionData
from wire.record_batch import Buffer, Record, build_batch, iterate_batches

ROUND_TRIP_S = 0.08


def _batch(start: int, records: int, value: bytes = b"v") -> bytes:
    return build_batch(
        [Record(start + place, 1_000, None, value) for place in range(records)], base_offset=start
    )


@dataclass(slots=True)
class FarLog:
    """A log of batches, each answer of which takes a round trip."""

    batches: Sequence[tuple[int, bytes]]
    """Each with the offset behind it."""
    asked: list[int] = field(default_factory=list)
    asked_for: list[int] = field(default_factory=list)
    fails_from: int | None = None

    async def fetch(self, position: int, most_bytes: int) -> FetchPartitionData | None:
        self.asked.append(position)
        self.asked_for.append(most_bytes)
        await trio.sleep(ROUND_TRIP_S)
        if self.fails_from is not None and position >= self.fails_from:
            raise LogUnreadable(f"gone at {position}")
        found = b""
        for behind, batch in self.batches:
            if behind > position:
                if found and len(found) + len(batch) > most_bytes:
                    break
                found += batch
        if not found:
            return None
        return FetchPartitionData(
            partition_index=0, error_code=0, high_watermark=0, records=memoryview(found)
        )


def _log(sizes: Sequence[int], value: bytes = b"v") -> FarLog:
    batches: list[tuple[int, bytes]] = []
    start = 0
    for records in sizes:
        batches.append((start + records, _batch(start, records, value)))
        start += records
    return FarLog(batches)


async def _read(log: FarLog, most: int, stop: int, start: int = 0) -> list[int]:
    """Return the first offsets of the batches that were read, one behind the other."""
    found: list[int] = []
    position = start
    async with trio.open_nursery() as nursery:
        lanes = Lanes(nursery, log.fetch, stop, most)
        while position < stop:
            data = await lanes.answer(position)
            if data is None:
                break
            assert isinstance(data.records, Buffer)
            before = position
            for header, _ in iterate_batches(memoryview(data.records)):
                assert header.next_offset > position, "a batch was there before"
                found.append(header.base_offset)
                position = header.next_offset
            lanes.note(len(data.records), position - before)
        nursery.cancel_scope.cancel()
    return found


def _run(act: Callable[[], Awaitable[object]]) -> object:
    return trio.run(act, clock=MockClock(autojump_threshold=0))


@settings(max_examples=examples(40))
@given(st.lists(st.integers(1, 9), min_size=1, max_size=60), st.integers(1, 6), st.data())
def test_each_batch_of_a_stretch_comes_once_and_in_order(
    sizes: list[int], most: int, data: st.DataObject
) -> None:
    log = _log(sizes)
    stop = data.draw(st.integers(1, sum(sizes)))
    start = data.draw(st.integers(0, stop - 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FETCH_BYTES", 300)
        patch.setattr(module, "LEAST_FETCH_BYTES", 90)
        found = _run(lambda: _read(log, most, stop, start))
    assert isinstance(found, list)
    starts = [0, *(behind for behind, _ in log.batches)]
    wanted = [one for one, behind in pairwise(starts) if behind > start]
    assert found == wanted[: len(found)]
    assert [one for one in wanted if one < stop] == found[: sum(one < stop for one in wanted)]
    assert all(position < stop for position in log.asked)


def test_a_far_log_is_read_with_as_many_answers_under_way_as_may_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "FETCH_BYTES", 40_000)
    far, alone = _log([5] * 400, bytes(400)), _log([5] * 400, bytes(400))

    async def took(log: FarLog, most: int) -> float:
        began = trio.current_time()
        await _read(log, most, 2_000)
        return trio.current_time() - began

    side_by_side = _run(lambda: took(far, 16))
    assert _run(lambda: took(alone, 1)) == pytest.approx(len(alone.asked) * ROUND_TRIP_S)
    assert isinstance(side_by_side, float)
    assert side_by_side <= (len(far.asked) / MOST_LANES + 2) * ROUND_TRIP_S
    assert len(far.asked) <= len(alone.asked) * 9 / 8 + 2


def test_a_log_that_cannot_be_read_says_so_where_that_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "FETCH_BYTES", 1_000)
    log = _log([50] * 100)
    log.fails_from = 2_500
    with pytest.RaisesGroup(LogUnreadable):
        _run(lambda: _read(log, 4, 5_000))


def test_behind_a_stretch_few_questions_find_where_its_last_range_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "FETCH_BYTES", 1_000)
    monkeypatch.setattr(module, "LEAST_FETCH_BYTES", 100)
    log = _log([1] * 100)

    async def behind(log: FarLog) -> None:
        async with trio.open_nursery() as nursery:
            lanes = Lanes(nursery, log.fetch, 10, 4)
            for position in range(10, 16):
                await lanes.answer(position)

    _run(lambda: behind(log))
    assert log.asked_for == [100, 200, 400, 800, 1_000, 1_000]


def test_answers_are_asked_for_in_the_size_that_is_left() -> None:
    pace = OffsetDensity()
    assert pace.offsets_a_fetch() is None
    assert pace.bytes_for(10) == FETCH_BYTES
    pace.note(1_000_000, 1_000)
    assert pace.bytes_for(2_000) == 2_250_000
    assert pace.bytes_for(100_000) == FETCH_BYTES
    assert pace.bytes_for(10) == LEAST_FETCH_BYTES
    each = pace.offsets_a_fetch()
    assert each is not None
    assert FETCH_BYTES * 0.99 < pace.bytes_for(each) <= FETCH_BYTES
