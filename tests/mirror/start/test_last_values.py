"""Of a compacted topic both sites end with the same last values, whatever only one has changed."""

from collections.abc import Sequence
from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from mirror.start.last_values import Theirs, to_restore
from mirror.start.quarantine import in_parts
from runtime.diverged import RESTORED, is_restored
from wire.record_batch import Record

Changes: TypeAlias = Sequence[tuple[bytes, bytes | None]]
CHANGES = st.lists(
    st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.sampled_from([None, b"", b"1", b"2"])),
    max_size=6,
)


def records(changes: Changes) -> list[Record]:
    return [Record(number, 5, key, value) for number, (key, value) in enumerate(changes)]


def last(*logs: Sequence[Record]) -> dict[bytes | None, bytes]:
    """The last value of each key that has one."""
    values = {record.key: record.value for log in logs for record in log}
    return {key: value for key, value in values.items() if value is not None}


@given(CHANGES, CHANGES, CHANGES)
def test_both_sites_end_with_the_same_value_of_each_key(
    mirrored: Changes, lost: Changes, newer: Changes
) -> None:
    both, only_here, stream = records(mirrored), records(lost), records(newer)
    mine = {one.key: one for one in only_here if one.key is not None}
    theirs = {one.key: Theirs(one, comes=False) for one in both if one.key is not None}
    theirs |= {one.key: Theirs(one, comes=True) for one in stream if one.key is not None}
    restored = to_restore(mine, theirs)
    assert last(both, only_here, restored, stream) == last(both, stream)
    assert all(map(is_restored, restored))
    # Whoever is killed behind it finds that it is done, and does not do it again.
    again = {**mine, **{one.key: one for one in restored if one.key is not None}}
    assert to_restore(again, theirs) == []
    streamed = {key for key, one in theirs.items() if one.comes}
    assert not streamed & {one.key for one in restored}


def test_a_value_that_is_set_back_keeps_its_time_and_headers() -> None:
    theirs = {b"k": Theirs(Record(7, 99, b"k", b"old", (("trace", b"1"),)), comes=False)}
    assert to_restore({b"k": Record(9, 100, b"k", b"new")}, theirs) == [
        Record(0, 99, b"k", b"old", (("trace", b"1"), RESTORED))
    ]


@given(st.lists(st.binary(max_size=4), max_size=9), st.integers(1, 8))
def test_parts_hold_all_in_order(values: list[bytes], most_bytes: int) -> None:
    whole = [Record(0, 0, b"k", value) for value in values]
    parts = list(in_parts(whole, most_bytes))
    assert [one for part in parts for one in part] == whole
    assert all(parts)
