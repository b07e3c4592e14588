"""One night at a site: what is read, and what it adds to what is remembered."""

from pathlib import Path
from uuid import UUID

import pyarrow as pa

from runtime.configuration.config import load
from spark_audit.evidence.belief import Disbelief
from spark_audit.evidence.chain import NO_LINKS, Chain
from spark_audit.evidence.links import Link, NightNumbers
from spark_audit.evidence.remembered import RememberedLog, remembered
from spark_audit.evidence.rows import Night, Note, table_of
from spark_audit.evidence.taking import (
    COMPACTED,
    MADE_AGAIN,
    LogTonight,
    corrupt_batches,
    forgotten,
    going_on,
    note_of,
    void_note,
    without_memory,
)
from spark_audit.scan.committed import HoleReason
from spark_audit.scan.scan_rows import RowKind, ScanRow, failure_row
from spark_audit.site_digest import WantedTopics
from spark_audit.snapshot.bounds import LogBounds
from tests.dc_yaml import dc_yaml, flow
from wire.topic_partition import TopicPartition

PLACE = TopicPartition("orders", 0)
NOW = LogBounds(start=0, stop=40, topic_id=UUID(int=1), is_compacted=False)


def _row(start: int, stop: int, epoch: int | None = 2, digest: bytes = bytes(16)) -> ScanRow:
    return ScanRow(
        RowKind.RANGE.value, start, stop, stop - start, digest, 1_000, None, leader_epoch=epoch
    )


def _link(start: int, stop: int) -> Link:
    return Link(start, stop, (_row(start, stop),))


KNOWN = Chain.of([_link(0, 10), _link(10, 20)])


def _log(*notes: Note | Disbelief | None) -> RememberedLog:
    tables = [
        table_of(Night(name=str(number), cluster="c1", notes=(note,)))
        for number, note in enumerate(notes)
        if isinstance(note, Note)
    ]
    return remembered(pa.concat_tables(tables), "here").logs[PLACE]


def test_a_log_of_which_nothing_is_known_is_read_whole_and_remembered_up_to_its_last_cut() -> None:
    tonight = without_memory(PLACE, NOW, None)
    assert (tonight.runs(), tonight.new()) == ([], [(0, 40)])
    note = note_of(tonight, [_row(0, 10), _row(10, 20), _row(20, 40, None)])
    assert _log(note).links == KNOWN


def test_what_is_new_is_read_and_the_last_link_again() -> None:
    tonight = going_on(PLACE, NOW, KNOWN, NightNumbers(since=0, tonight=1, days=1_000_000))
    assert (tonight.runs(), tonight.new()) == ([(10, 20)], [(20, 40)])
    before = note_of(without_memory(PLACE, NOW, None), [_row(0, 10), _row(10, 20)])
    after = note_of(tonight, [_row(10, 20, None), _row(20, 33), _row(33, 40, None)])
    assert _log(before, after).links == Chain.of([*KNOWN, _link(20, 33)])


def test_a_corrupt_batch_is_told_each_night_and_not_remembered() -> None:
    reason, why = HoleReason.CORRUPT.name, "the checksum of the batch at offset 12 fails"
    rotten = ScanRow(RowKind.HOLE.value, 12, 13, 1, reason=reason, detail=why)
    with_hole = ScanRow(RowKind.RANGE.value, 10, 20, 9, bytes(16), 1_000, None, leader_epoch=2)
    rows = [_row(0, 10), with_hole, rotten, _row(20, 40)]
    note = note_of(without_memory(PLACE, NOW, None), rows)
    assert _log(note).links == Chain.of([_link(0, 10)])
    assert corrupt_batches(PLACE, rows) == [f"orders-0: {why}"]


def test_a_night_without_anything_new_adds_nothing() -> None:
    tonight = going_on(PLACE, NOW, KNOWN, NightNumbers(since=0, tonight=1, days=1_000_000))
    assert note_of(tonight, [_row(10, 20), _row(20, 40, None)]) is None


def test_a_log_that_says_otherwise_of_what_is_read_again_is_void() -> None:
    tonight = going_on(PLACE, NOW, KNOWN, NightNumbers(since=0, tonight=1, days=1))
    assert tonight.runs() == [(0, 20)]
    rotten = [_row(0, 10, digest=b"x" * 16), _row(10, 20, None), _row(20, 40, None)]
    for rows in (rotten, rotten[1:], []):
        found = note_of(tonight, rows)
        assert isinstance(found, Disbelief)
        assert found.is_contradicted
        assert found.why == "orders-0: offsets 0 to 9 are not as they were"
    before = note_of(without_memory(PLACE, NOW, None), [_row(0, 10), _row(10, 20)])
    assert _log(before, void_note(PLACE, NOW.topic_id, "rotten")).fault == "rotten"


def test_a_log_that_cannot_be_read_adds_nothing_and_contradicts_nothing() -> None:
    tonight = going_on(PLACE, NOW, KNOWN, NightNumbers(since=0, tonight=1, days=1))
    found = note_of(tonight, [failure_row(3, "dc1: orders-0 at offset 3: gone")])
    assert found == Disbelief("dc1: orders-0 at offset 3: gone")


def test_topics_made_again_and_compacted_ones_are_forgotten() -> None:
    log = RememberedLog(topic_id=NOW.topic_id, links=KNOWN)
    compacted = LogBounds(start=0, stop=40, topic_id=NOW.topic_id, is_compacted=True)
    other = LogBounds(start=0, stop=40, topic_id=UUID(int=9), is_compacted=False)
    assert forgotten(log, NOW) is None
    assert forgotten(None, other) is None
    assert forgotten(log, other) == MADE_AGAIN
    assert forgotten(log, compacted) == COMPACTED
    tonight: LogTonight = without_memory(PLACE, compacted, COMPACTED)
    assert tonight.new() == []
    before = note_of(without_memory(PLACE, NOW, None), [_row(0, 10), _row(10, 20)])
    assert _log(before, note_of(tonight, [])).links == NO_LINKS


def test_a_night_takes_copies_under_prefixed_names_where_they_lie(tmp_path: Path) -> None:
    file = tmp_path / "dc.yaml"
    file.write_text(dc_yaml(flow(topics="orders", names="prefixed")))
    topics = {site: WantedTopics(load(file), site) for site in ("dc1", "dc2")}
    assert [topics["dc1"].matches(name) for name in ("orders", "dc1.orders")] == [True, False]
    assert [topics["dc2"].matches(name) for name in ("orders", "dc1.orders")] == [False, True]
