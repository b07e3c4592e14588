"""What the witness keeps of a source's ends, for the day on which the source cannot be asked."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.coordination.known_ends import KnownEnd, KnownEnds
from runtime.coordination.long_document import join
from runtime.coordination.witness import WitnessGarbled
from wire.topic_partition import TopicPartition

AT_MS = 1_763_620_000_000
ORDERS = TopicPartition("orders", 0)
OTHER = TopicPartition("other", 0)

past = st.integers(0, AT_MS)
partitions = st.builds(TopicPartition, st.text(min_size=1, max_size=5), st.integers(0, 2**31 - 1))
known = st.builds(
    KnownEnd,
    end=st.integers(0, 2**63 - 1),
    heard_ms=past,
    level_ms=st.none() | past,
    is_last_word=st.booleans(),
)


@given(st.dictionaries(partitions, known, max_size=5))
def test_known_ends_survive_their_document(ends: dict[TopicPartition, KnownEnd]) -> None:
    found = KnownEnds(at_ms=AT_MS, ends=ends)
    document = found.encode()
    assert KnownEnds.decode(join(document.head, document.parts)) == found


def test_twenty_thousand_partitions_take_parts_that_fit_nodes() -> None:
    one = KnownEnd(end=2**63 - 1, heard_ms=AT_MS - 350, level_ms=AT_MS - 3_750)
    ends = {TopicPartition(f"{n * 7919 % 10**8:0249}", 0): one for n in range(20_000)}
    found = KnownEnds(at_ms=AT_MS, ends=ends)
    document = found.encode()
    assert max(len(document.head), *map(len, document.parts.values())) < 1_000_000
    assert KnownEnds.decode(join(document.head, document.parts)) == found


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"at_ms": 1}',
        b'{"at_ms": 1, "topics": {"t": [[0, 1, 2, 3]]}}',
        b'{"at_ms": 1, "topics": {"t": [[0, 1, 2, 3, 4]]}}',
        b'{"at_ms": 1, "topics": {"t": [[0, -1, 2, 3, true]]}}',
        b'{"at_ms": 1, "topics": {"t": [[0, 1e9, 2, 3, true]]}}',
        b'{"at_ms": 1, "topics": {"t": 5}}',
    ],
)
def test_what_is_no_such_document_is_named(data: bytes) -> None:
    with pytest.raises(WitnessGarbled, match="no valid known ends"):
        KnownEnds.decode(data)


def test_a_worker_that_begins_while_the_source_is_away_keeps_what_was_known() -> None:
    last = KnownEnd(end=7, heard_ms=50, level_ms=40, is_last_word=True)
    earlier = KnownEnds(at_ms=60, ends={ORDERS: last, OTHER: last})
    new = KnownEnd(end=9, heard_ms=100, level_ms=None)
    now = KnownEnds(at_ms=100, ends={OTHER: new})
    kept = now.kept(earlier, {ORDERS, OTHER})
    assert kept.ends == {
        ORDERS: replace(last, is_last_word=False),  # nobody looked on in between
        OTHER: KnownEnd(end=9, heard_ms=100, level_ms=40),
    }
    assert now.kept(earlier, {OTHER}).ends.keys() == {OTHER}
    assert now.kept(None, {ORDERS}) == now
