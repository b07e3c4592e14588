"""Divergent records: the way back to where they came from, and the keys that end differently."""

import json
from base64 import b64decode
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from runtime.diverged import KeyComparison, Origin, json_line, origin_of, with_origin
from wire.record_batch import Record, build_batch, iterate_records

BYTES = st.none() | st.binary(max_size=6)
HEADERS = st.lists(
    st.tuples(st.sampled_from(["trace", "diverged.offset", "diverged.site"]), BYTES), max_size=3
)
RECORDS = st.builds(
    lambda time, key, value, headers: Record(0, time, key, value, tuple(headers)),
    st.integers(-1, 2**40),
    BYTES,
    BYTES,
    HEADERS,
)
ORIGINS = st.builds(
    Origin,
    site=st.sampled_from(["dc1", "dc-2"]),
    topic_id=st.uuids(),
    partition=st.integers(0, 2**31 - 1),
    offset=st.integers(0, 2**62),
    leader_epoch=st.integers(-1, 2**31 - 1),
    timestamp_ms=st.integers(-1, 2**62),
    range_start=st.integers(0, 2**62),
)


@given(RECORDS, ORIGINS)
def test_a_record_that_was_set_aside_says_where_it_was_whatever_headers_it_had(
    record: Record, origin: Origin
) -> None:
    [kept] = iterate_records(build_batch([with_origin(record, origin)]))
    assert origin_of(kept) == origin
    assert kept[:4] == record[:4]
    assert kept.headers[: len(record.headers)] == record.headers


def test_a_record_of_somebody_else_has_no_origin() -> None:
    assert origin_of(Record(0, 0, b"k", b"v")) is None
    odd = (("diverged.site", b"\xff"), ("diverged.topic.id", b"no"))
    assert origin_of(Record(0, 0, b"k", b"v", odd)) is None


@given(RECORDS, ORIGINS)
def test_a_line_of_the_file_has_all_of_a_record(record: Record, origin: Origin) -> None:
    line = json_line("orders", record, origin)
    assert line.count(b"\n") == 1
    told = json.loads(line)
    assert (told["topic"], told["offset"]) == ("orders", origin.offset)
    held = [None if told[name] is None else b64decode(told[name]) for name in ("key", "value")]
    assert held == [record.key, record.value]


CHANGES = st.lists(st.tuples(st.sampled_from([b"a", b"b", b"c"]), BYTES), max_size=8)


@given(CHANGES, CHANGES)
def test_the_keys_that_end_differently_are_those_whose_last_values_differ(
    diverged: Sequence[tuple[bytes, bytes | None]], newer: Sequence[tuple[bytes, bytes | None]]
) -> None:
    keys = KeyComparison()
    for key, value in diverged:
        keys.take_diverged(Record(0, 0, key, value))
    for key, value in newer:
        keys.take_newer(Record(0, 0, key, value))
    on_returned_site = dict([*diverged, *newer])
    on_other_site = dict([*newer, *diverged])
    differing = [key for key, last in on_returned_site.items() if last != on_other_site[key]]
    assert (keys.differing, keys.keys) == (len(differing), len(dict(diverged)))


def test_of_too_many_keys_the_count_is_a_least_one() -> None:
    keys = KeyComparison(most_keys=1)
    for key in (b"a", b"b", b"a"):
        keys.take_diverged(Record(0, 0, key, b"old"))
        keys.take_newer(Record(0, 0, key, b"new"))
    assert str(keys) == "at least 1 of 1 keys end with different values"


def test_records_without_key_have_no_last_value() -> None:
    keys = KeyComparison()
    keys.take_diverged(Record(0, 0, None, b"v"))
    keys.take_newer(Record(0, 0, None, b"w"))
    assert (keys.keys, keys.differing) == (0, 0)
