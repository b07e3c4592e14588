"""Links in columns say what links one by one say; what both sites say alike is folded."""

from collections.abc import Sequence
from itertools import product
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_audit.compare.scanned import SIDES, Scanned
from spark_audit.evidence import chain as chains
from spark_audit.evidence.chain import Chain
from spark_audit.evidence.folding import LEAST_LINKS, folded
from spark_audit.evidence.links import Link, chained, whole
from spark_audit.evidence.remembered import RememberedLog, remembered
from spark_audit.evidence.rows import Night, Note, noted, table_of
from spark_audit.scan.committed import HoleReason
from spark_audit.scan.scan_rows import RowKind, ScanRow
from tests.properties import examples
from wire.topic_partition import TopicPartition

PLACES = (TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("bills", 0))
TOPIC_IDS = {"orders": UUID(int=7), "bills": UUID(int=9)}


def _link(start: int, kind: int, records: int, marker: int = 0) -> Link:
    """Return a link of a range of a kind, with a hole of so many offsets before it."""
    first = start + marker
    stop = first + records
    reason = HoleReason.MARKER.name
    hole = ScanRow(RowKind.HOLE.value, start, first, marker, reason=reason)
    digest = kind.to_bytes(2, "big") * 8
    row = ScanRow(RowKind.RANGE.value, first, stop, records, digest, 1_000, leader_epoch=3)
    return Link(start, stop, (hole, row) if marker else (row,))


@st.composite
def link_lists(draw: st.DrawFn, start: int = 0) -> list[Link]:
    """Links one behind the other, of which some have holes."""
    links: list[Link] = []
    for kind, records, marker in draw(
        st.lists(st.tuples(st.integers(0, 5), st.integers(1, 3), st.sampled_from([0, 0, 0, 2])))
    ):
        links.append(_link(links[-1].stop if links else start, kind, records, marker))
    return links


@pytest.fixture(autouse=True, scope="module")
def short_blocks() -> object:
    """Make rows in blocks of three, so that logs of a few links have several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chains, "BLOCK_ROWS", 3)
        yield


@given(link_lists(start=5), st.integers(0, 60), st.integers(0, 60))
def test_a_chain_has_the_links_it_was_made_of(links: list[Link], start: int, length: int) -> None:
    chain = Chain.of(links)
    assert list(chain) == links
    assert [chain[number] for number in range(len(links))] == links
    assert chain.rows() == [row for link in links for row in link.rows]
    stop = start + length
    inside = [link for link in links if start <= link.start and link.stop <= stop]
    assert list(chain.between(start, stop)) == inside
    assert chain == Chain.of(links)
    assert not links or chain != chain[1:]


@settings(max_examples=examples(40))
@given(st.lists(link_lists(), min_size=3, max_size=3), st.integers(1, 4), st.randoms())
def test_logs_come_back_from_the_rows_of_their_nights_in_any_order(
    logs: list[list[Link]], nights: int, order: object
) -> None:
    tables: list[pa.Table] = []
    for night in range(nights):
        notes: list[Note] = []
        for place, links in zip(PLACES, logs, strict=True):
            cuts = [number * len(links) // nights for number in (night, night + 1)]
            added = links[cuts[0] : cuts[1]]
            if added:
                rows = tuple(noted(added, added[0].start))
                notes.append(Note(place, TOPIC_IDS[place.topic], rows))
        tables.append(table_of(Night(name=str(night), cluster="c1", notes=tuple(notes))))
    table = pa.concat_tables(tables)
    numbers = list(range(table.num_rows))
    order.shuffle(numbers)  # type: ignore[attr-defined]
    site = remembered(table.take(pa.array(numbers, pa.int64())), "here")
    assert {place: list(log.links) for place, log in site.logs.items()} == {
        place: links for place, links in zip(PLACES, logs, strict=True) if links
    }
    assert not any(log.fault for log in site.logs.values())


def _edited(links: Sequence[Link], number: int, **fields: object) -> RememberedLog:
    """Return what is remembered of links of which somebody has edited a row."""
    rows = noted(links, links[0].start)
    rows[1 + number] = rows[1 + number]._replace(**fields)  # type: ignore[arg-type]
    note = Note(PLACES[0], TOPIC_IDS["orders"], tuple(rows))
    table = table_of(Night(name="1", cluster="c1", notes=(note,)))
    return remembered(table, "here").logs[PLACES[0]]


OF_EACH: list[dict[str, object]] = [
    {"start_offset": 6},
    {"start_offset": None},
    {"stop_offset": 30},
    {"records": 9},
    {"records": -3},
    {"records": None},
    {"reason": HoleReason.RETENTION.name},
    {"kind": None},
]
OF_RANGES: list[dict[str, object]] = [
    {"digest": None},
    {"digest": b"short"},
    {"leader_epoch": None},
    {"start_offset": 1},
]


@pytest.mark.parametrize(
    ("number", "fields"),
    [*product((0, 1, 3), OF_EACH), *product((0, 3), OF_RANGES)],
    ids=str,
)
def test_a_row_that_cannot_be_is_never_believed(number: int, fields: dict[str, object]) -> None:
    links = [_link(0, 1, 3), _link(3, 2, 3, marker=2), _link(8, 3, 3)]
    assert _edited(links, 0).fault is None
    log = _edited(links, number, **fields)
    assert log.fault is not None
    assert len(log.links) == 0


def _scanned(source: Sequence[ScanRow], target: Sequence[ScanRow]) -> Scanned:
    scanned = Scanned()
    for side, rows in zip(SIDES, (source, target), strict=True):
        for row in rows:
            scanned.add(side, row)
    return scanned


@st.composite
def pairs_of_logs(draw: st.DrawFn) -> tuple[list[Link], list[Link]]:
    """Logs that are alike but for their beginnings, some links in between, and their ends."""
    kinds = draw(st.lists(st.integers(0, 400), min_size=20, max_size=60))
    if draw(st.booleans()):
        kinds = list(range(len(kinds)))
    sides: list[list[Link]] = []
    for _ in SIDES:
        gone, waiting = draw(st.integers(0, 4)), draw(st.integers(0, 4))
        strange = draw(st.sets(st.integers(0, 200), max_size=1))
        links: list[Link] = []
        offset = draw(st.integers(0, 3))
        for number, kind in list(enumerate(kinds))[gone : len(kinds) - waiting]:
            hole = 1 if number in draw(st.just(strange)) else 0
            links.append(_link(offset, kind + (500 if number in strange else 0), 2, hole))
            offset = links[-1].stop
        sides.append(links)
    return sides[0], sides[1]


@settings(max_examples=examples(60))
@given(pairs_of_logs())
def test_folding_changes_nothing_that_an_audit_takes_from_both_logs(
    pair: tuple[list[Link], list[Link]],
) -> None:
    chains_of_both = [Chain.of(links) for links in pair]
    ours = _scanned(*folded(chains_of_both[0], chains_of_both[1]))
    theirs = _scanned(*(chain.rows() for chain in chains_of_both))
    assert ours.records() == theirs.records()
    assert ours.holes == theirs.holes
    windows, correspondence = ours.compared()
    windows_there, correspondence_there = theirs.compared()
    assert windows == windows_there
    assert list(correspondence.segments()) == list(correspondence_there.segments())


def test_what_is_alike_is_one_row_however_long_it_is() -> None:
    links = whole(chained(0, [row for n in range(5_000) for row in _link(2 * n, n, 2).rows]))
    chain = Chain.of(links)
    rows, others = folded(chain, chain)
    assert rows == others
    assert len(rows) == 5
    few = chain[: LEAST_LINKS + 3]
    assert len(folded(few, few)[0]) == len(few)
    begun_later = folded(chain, chain[1_000:])
    assert [len(side) for side in begun_later] == [1_005, 5]
