"""The comparison that stands for an audit tells records by origin and finds what is planted."""

import pytest

from spark_audit.snapshot.origins import Brought, Part
from tests.auditing import contents, counts
from wire.record_batch import Record, build_batch

MIRROR = 7
BROUGHT = Brought(producer_ids=frozenset({MIRROR}), start=100, stop=102)
OURS = Part(brought=BROUGHT, is_brought=False)
THEIRS = Part(brought=BROUGHT, is_brought=True)


def batch(base: int, *values: bytes, producer_id: int = -1, is_control: bool = False) -> bytes:
    records = [
        Record(base + at, 5, b"k", value, (("h", value),)) for at, value in enumerate(values)
    ]
    return build_batch(
        records,
        base_offset=base,
        producer_id=producer_id,
        is_transactional=is_control,
        is_control=is_control,
    )


LOG = [
    batch(0, b"a", b"b"),
    batch(2, b"\0\0\0\1", producer_id=3, is_control=True),
    batch(3, b"x", producer_id=MIRROR),
    batch(100, b"y"),
    batch(102, b"c", b"d"),
]
ALL = range(200)


def test_each_record_belongs_to_the_site_that_wrote_it_and_markers_to_none() -> None:
    assert list(contents(LOG, None, ALL)) == [0, 1, 3, 100, 102, 103]
    assert list(contents(LOG, OURS, ALL)) == [0, 1, 102, 103]
    assert list(contents(LOG, THEIRS, ALL)) == [3, 100]
    assert list(contents(LOG, OURS, range(1, 103))) == [1, 102]


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ([batch(9, b"a", b"b", b"c", b"d")], {}),
        ([batch(9, b"a", b"b", b"d")], {"lost": 1}),
        ([batch(9, b"a", b"b", b"c"), batch(20, b"b", b"d")], {"duplicate": 1}),
        ([batch(9, b"b", b"a", b"c", b"d")], {"reordered": 1}),
        ([batch(9, b"a", b"b", b"c", b"d", b"e")], {"phantom": 1}),
        ([batch(9, b"a", b"b", b"c", b"other")], {"lost": 1, "phantom": 1}),
    ],
    ids=["equal", "lost", "twice", "out of order", "of nobody", "altered"],
)
def test_each_difference_of_a_target_is_counted(target: list[bytes], found: dict[str, int]) -> None:
    there = contents(target, None, ALL)
    sizes = {"source_records": 4, "target_records": len(there)}
    assert counts(contents(LOG, OURS, ALL), there) == sizes | found


RECORD = Record(0, 5, b"k", b"v", (("h", b"v"),))


@pytest.mark.parametrize(
    "other",
    [
        RECORD._replace(timestamp_ms=6),
        RECORD._replace(key=None),
        RECORD._replace(value=None),
        RECORD._replace(headers=()),
    ],
    ids=["time", "key", "value", "headers"],
)
def test_a_record_is_the_same_only_in_all_its_parts(other: Record) -> None:
    one, two = (contents([build_batch([each])], None, ALL) for each in (RECORD, other))
    assert counts(one, one) == {"source_records": 1, "target_records": 1}
    assert counts(one, two) == {
        "source_records": 1,
        "target_records": 1,
        "lost": 1,
        "phantom": 1,
    }
