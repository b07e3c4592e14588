"""A log as a chain of links, of which none can be missing unseen."""

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_audit.evidence.chain import Chain
from spark_audit.evidence.links import (
    REREAD_OFFSETS,
    Link,
    NightNumbers,
    chained,
    contradiction,
    whole,
)
from spark_audit.scan import digests
from spark_audit.scan.committed import CommittedBatch, Hole, HoleReason
from spark_audit.scan.scan_plan import left_to_read
from spark_audit.scan.scan_rows import RowKind, ScanRow
from spark_audit.scan.sinks import RangeSink
from wire.topic_partition import TopicPartition

contents = st.lists(
    st.tuples(
        st.sampled_from([None, HoleReason.MARKER, HoleReason.ABORTED, HoleReason.GAP]),
        st.integers(1, 5),
        st.integers(0, 3),
    ),
    max_size=40,
)
"""Holes of so many offsets, or batches of so many records of a kind."""


@pytest.fixture(autouse=True, scope="module")
def short_ranges() -> object:
    """Cut behind one record in four, so that logs of a few records have several links."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digests, "_CUT_BELOW", b"\x40" + bytes(15))
        patch.setattr(digests, "MAX_RANGE_RECORDS", 6)
        yield


def _read(
    log: Sequence[tuple[HoleReason | None, int, int]], start: int = 0, stop: int = 1 << 40
) -> list[ScanRow]:
    """Return the rows of reading a log between two offsets, as one split."""
    sink = RangeSink(starts_log=True, split_stop=stop)
    offset = 0
    for reason, offsets, kind in log:
        for at in range(max(offset, start), min(offset + offsets, stop)):
            if reason is None:
                batch = CommittedBatch(7, at, [1_000 + at], [b"record %d" % kind], at // 10)
                sink.take(batch)
            else:
                sink.take(Hole(start_offset=at, stop_offset=at + 1, reason=reason))
        offset += offsets
    return sink.rows()


@given(contents)
def test_links_lie_one_behind_the_other_and_account_for_each_offset(
    log: list[tuple[HoleReason | None, int, int]],
) -> None:
    rows = _read(log)
    links = whole(chained(0, rows))
    ends = [0, *(link.stop for link in links)]
    assert [link.start for link in links] == ends[:-1]
    assert sum(row.records for link in links for row in link.rows) == ends[-1]
    assert len(links) == sum(row.leader_epoch is not None for row in rows)


@given(contents, st.data())
def test_a_row_that_is_missing_ends_the_chain_before_it(
    log: list[tuple[HoleReason | None, int, int]], data: st.DataObject
) -> None:
    rows = _read(log)
    links = whole(chained(0, rows))
    of_links = [row for link in links for row in link.rows]
    if not of_links:
        return
    missing = data.draw(st.integers(0, len(of_links) - 1))
    whole_before = [link for link in links if link.stop <= of_links[missing].start_offset]
    left = whole(chained(0, [row for row in rows if row is not of_links[missing]]))
    assert len(left) <= len(links) - 1
    assert left == links[: len(left)]
    assert len(left) <= len(whole_before) + 1


@given(contents, st.data())
def test_reading_goes_on_behind_the_last_whole_link_as_if_it_had_never_stopped(
    log: list[tuple[HoleReason | None, int, int]], data: st.DataObject
) -> None:
    end = sum(offsets for _, offsets, _ in log)
    stop = data.draw(st.integers(0, end))
    kept = whole(chained(0, _read(log, stop=stop)))
    resume = kept[-1].stop if kept else 0
    rest = whole(chained(resume, _read(log, start=resume)))
    assert [*kept, *rest] == whole(chained(0, _read(log)))


@given(contents, st.data())
def test_links_that_are_read_again_say_the_same_until_the_log_does_not(
    log: list[tuple[HoleReason | None, int, int]], data: st.DataObject
) -> None:
    links = whole(chained(0, _read(log)))
    if not links:
        return
    first = data.draw(st.integers(0, len(links) - 1))
    run = links[first : data.draw(st.integers(first, len(links) - 1)) + 1]
    rows = _read(log, start=run[0].start, stop=run[-1].stop)
    assert contradiction(run, rows) is None
    number = data.draw(st.integers(0, len(rows) - 1))
    altered = rows[number]._replace(digest=bytes(16), records=rows[number].records + 1)
    assert contradiction(run, [*rows[:number], altered, *rows[number + 1 :]]) is not None
    assert contradiction(run, [*rows[:number], *rows[number + 1 :]]) is not None


def test_nothing_is_said_of_a_run_whose_beginning_retention_took() -> None:
    run = whole(chained(0, _read([(None, 40, 1)])))
    gone = ScanRow(RowKind.HOLE.value, 0, 3, 3, reason=HoleReason.RETENTION.name)
    assert contradiction(run, [gone]) is None


@given(contents, st.integers(0, 60), st.integers(0, 120))
def test_what_links_between_two_offsets_do_not_tell_is_left_to_read(
    log: list[tuple[HoleReason | None, int, int]], start: int, length: int
) -> None:
    stop = start + length
    links = Chain.of(whole(chained(0, _read(log)))).between(start, stop)
    left = left_to_read(links.span() if len(links) else None, start, stop)
    parts = sorted([*((one.start, one.stop) for one in links), *left])
    assert [at for first, last in parts for at in range(first, last)] == list(range(start, stop))


@given(
    st.integers(1, 40),
    st.integers(0, 3),
    st.integers(1, 9),
    st.integers(0, 10_000),
    st.integers(1, 9),
)
def test_each_link_is_read_again_once_in_so_many_days_and_the_last_in_each_night(
    blocks: int, partition: int, nights: int, first: int, every: int
) -> None:
    each = REREAD_OFFSETS
    ranges = [
        ScanRow(RowKind.RANGE.value, start, start + each, each, bytes(16), leader_epoch=3)
        for start in range(0, blocks * each, each)
    ]
    links = Chain.of(Link(row.start_offset, row.stop_offset, (row,)) for row in ranges)
    place = TopicPartition("orders", partition)
    read = [
        [
            link
            for run in links.to_read_again(
                place, NightNumbers(since=night - every, tonight=night, days=every * nights)
            )
            for link in run
        ]
        for night in range(first, first + every * nights, every)
    ]
    assert all(tonight[-1] == links[-1] for tonight in read)
    often = Counter(link.start for tonight in read for link in tonight)
    assert all(often[link.start] == 1 for link in links[:-1])
    assert often.keys() == {link.start for link in links}


def test_a_second_night_of_a_day_reads_no_turn_again_and_a_long_pause_all() -> None:
    day = NightNumbers(since=7, tonight=7, days=3)
    assert [day.have_come(turn) for turn in range(4)] == [False] * 4
    pause = NightNumbers(since=0, tonight=7, days=3)
    assert all(pause.have_come(turn) for turn in range(4))


def test_a_range_without_a_digest_is_no_link() -> None:
    row = ScanRow(RowKind.RANGE.value, 0, 2, 2, b"short", leader_epoch=1)
    assert chained(0, [row]) == []
    assert chained(0, [row._replace(digest=bytes(16), records=3)]) == []
    assert len(chained(0, [row._replace(digest=bytes(16))])) == 1
