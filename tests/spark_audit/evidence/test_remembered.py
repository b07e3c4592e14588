"""What nights say together: none goes on where none ended, and nothing that lacks is overlooked."""

from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_audit.evidence.chain import Chain
from spark_audit.evidence.links import Link
from spark_audit.evidence.remembered import RememberedLog, RememberedSite, remembered
from spark_audit.evidence.rows import (
    EvidenceUnusable,
    Night,
    Note,
    noted,
    table_of,
    voided,
)
from spark_audit.scan.committed import HoleReason
from spark_audit.scan.scan_rows import RowKind, ScanRow
from wire.topic_partition import TopicPartition

PLACE = TopicPartition("orders", 0)
TOPIC_ID = UUID(int=1)


def _link(start: int, stop: int, *, marker: bool = False) -> Link:
    hole = ScanRow(RowKind.HOLE.value, start, start + 1, 1, reason=HoleReason.MARKER.name)
    first = start + marker
    row = ScanRow(
        RowKind.RANGE.value, first, stop, stop - first, bytes(16), 1_000, None, leader_epoch=2
    )
    return Link(start, stop, (hole, row) if marker else (row,))


def _night(name: str, *rows: ScanRow, topic_id: UUID = TOPIC_ID) -> Night:
    return Night(name=name, cluster="c1", notes=(Note(PLACE, topic_id, rows),))


def _log(*nights: Night) -> RememberedLog:
    return _site(*map(table_of, nights)).logs[PLACE]


def _site(*tables: pa.Table) -> RememberedSite:
    return remembered(pa.concat_tables(tables), "here")


FIRST = [_link(0, 10), _link(10, 20, marker=True)]
SECOND = [_link(20, 33)]
NIGHTS = [_night("1", *noted(FIRST, 0)), _night("2", *noted(SECOND, 20))]


def test_nights_go_on_where_those_before_ended() -> None:
    log = _log(*NIGHTS)
    assert list(log.links) == [*FIRST, *SECOND]
    assert (log.fault, log.night) == (None, "2")


def test_nights_come_back_from_their_table_in_any_order_of_rows() -> None:
    tables = [table_of(night) for night in NIGHTS]
    table = pa.concat_tables(tables)
    backwards = table.take(list(range(table.num_rows))[::-1])
    assert _site(backwards) == _site(table)
    assert (_site(table).cluster, _site(table).night) == ("c1", "2")
    assert _site(table_of(Night(name="1", cluster="c1", notes=()))) == RememberedSite()
    assert remembered(None, "here") == RememberedSite()


@given(st.data())
def test_a_row_that_is_missing_is_never_overlooked(data: st.DataObject) -> None:
    tables = [table_of(night) for night in NIGHTS]
    table = pa.concat_tables(tables)
    missing = data.draw(st.integers(0, table.num_rows - 1))
    left = table.take([row for row in range(table.num_rows) if row != missing])
    assert _site(left).logs[PLACE].fault is not None


def test_a_whole_night_that_is_missing_shows_in_the_next() -> None:
    later = _night("3", *noted([_link(33, 40)], 33))
    assert _log(NIGHTS[0], later).fault == "night 3 begins at offset 33, not at 20"


def test_a_night_that_was_taken_twice_at_once_counts_once() -> None:
    again = _night("3", *noted([*SECOND, _link(33, 40)], 20))
    assert list(_log(*NIGHTS, again).links) == [*FIRST, *SECOND, _link(33, 40)]
    assert list(_log(*NIGHTS, _night("3", *noted(SECOND, 20))).links) == [*FIRST, *SECOND]


def test_a_log_that_said_otherwise_is_not_believed_until_it_is_begun_anew() -> None:
    void = _night("3", *voided("orders-0: offsets 0 to 9 are not as they were"))
    assert _log(*NIGHTS, void).fault == "orders-0: offsets 0 to 9 are not as they were"
    more = _night("4", *noted([_link(33, 40)], 33))
    assert _log(*NIGHTS, void, more).fault is not None
    anew = _night("5", *noted([_link(5, 40)], 5, begins_because="it was asked for"))
    assert _log(*NIGHTS, void, anew) == RememberedLog(
        topic_id=TOPIC_ID, links=Chain.of([_link(5, 40)]), night="5"
    )


def test_a_topic_that_was_made_again_is_no_continuation() -> None:
    other = _night("3", *noted([_link(33, 40)], 33), topic_id=UUID(int=2))
    assert _log(*NIGHTS, other).fault == "night 3 is of another topic of this name"


def test_rows_of_another_format_or_of_several_clusters_are_refused_by_name() -> None:
    table = table_of(NIGHTS[0])
    for formats in (0, None, 2):
        column = pa.array([formats] * table.num_rows, pa.int32())
        with pytest.raises(EvidenceUnusable, match=f"here: evidence of format {formats}"):
            _site(table.set_column(1, "format", column))
    other = Night(name="1", cluster="c2", notes=NIGHTS[0].notes)
    with pytest.raises(EvidenceUnusable, match="here: evidence of several clusters: c1, c2"):
        _site(pa.concat_tables([table, table_of(other)]))


def test_what_is_no_evidence_is_refused() -> None:
    table = table_of(NIGHTS[0])
    column = pa.array(["no id"] * table.num_rows)
    with pytest.raises(EvidenceUnusable, match="here: no evidence of a site"):
        _site(table.set_column(5, "topic_id", column))
