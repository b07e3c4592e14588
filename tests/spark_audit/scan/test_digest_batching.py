"""Digests of a log see its records and their order, and nothing of how they are batched."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_audit.scan import digests
from spark_audit.scan.committed import CommittedLog
from spark_audit.scan.sinks import RangeSink
from wire.compression import Compression
from wire.record_batch import Record, build_batch

values = st.none() | st.binary(max_size=40)
bodies = st.tuples(st.integers(-1, 2**41), values, values)
logs = st.lists(bodies, min_size=1, max_size=30)
batchings = st.lists(
    st.tuples(st.integers(1, 7), st.sampled_from(Compression)), min_size=1, max_size=30
)


def _digests(
    records: Sequence[tuple[int, bytes | None, bytes | None]],
    batching: Sequence[tuple[int, Compression]],
    start: int = 0,
) -> list[tuple[int, bytes | None]]:
    """Return number and digest of each range of a log that begins at an offset."""
    batches: list[bytes] = []
    taken = 0
    while taken < len(records):
        size, codec = batching[len(batches) % len(batching)]
        some = [
            Record(start + taken + number, *body)
            for number, body in enumerate(records[taken : taken + size])
        ]
        batches.append(build_batch(some, base_offset=start + taken, compression=codec))
        taken += len(some)
    log = CommittedLog(start, start + len(records))
    sink = RangeSink(starts_log=True, split_stop=start + len(records))
    all(sink.take(one) for one in log.feed(memoryview(b"".join(batches)), ()))
    return [(row.records, row.digest) for row in sink.rows()]


@pytest.fixture(autouse=True, scope="module")
def short_ranges() -> object:
    """Cut behind one record in eight, so that logs of a few records have several ranges."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digests, "_CUT_BELOW", b"\x20" + bytes(15))
        yield


@given(logs, batchings, batchings, st.integers(0, 2**40))
def test_equal_records_have_equal_digests_in_any_batching_at_any_offset(
    records: list[tuple[int, bytes | None, bytes | None]],
    one: list[tuple[int, Compression]],
    other: list[tuple[int, Compression]],
    start: int,
) -> None:
    assert _digests(records, one) == _digests(records, other, start)


@given(logs, batchings, st.data())
def test_a_record_that_is_lost_twice_there_moved_or_altered_changes_the_digests(
    records: list[tuple[int, bytes | None, bytes | None]],
    batching: list[tuple[int, Compression]],
    data: st.DataObject,
) -> None:
    at = data.draw(st.integers(0, len(records) - 1))
    to = data.draw(st.integers(0, len(records) - 1))
    body = data.draw(bodies)
    rest = [*records[:at], *records[at + 1 :]]
    disturbed = [
        rest,
        [*records[:at], records[at], *records[at:]],
        [*rest[:to], records[at], *rest[to:]],
        [*records[:at], body, *records[at + 1 :]],
    ]
    whole = _digests(records, batching)
    for other in disturbed:
        assert (_digests(other, batching) == whole) is (other == records)
