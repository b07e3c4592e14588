"""Last values of keys on two sites that both were written to, against a plain model of two logs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_audit.compare import key_ends
from spark_audit.flow_audit import FlowResult, audit_flow
from spark_audit.result.coverage import why_not_compared
from spark_audit.result.report import finding_line
from spark_audit.scan.last_values import EVERY_KEY, value_digest
from tests.properties import examples
from tests.spark_audit.audits import planner_of
from tests.spark_audit.keyed_sites import PLACE, KeyedSites, crossed, key_of
from tests.spark_audit.logs import MemoryReader, Pair, snapshot_of
from wire.topic_partition import TopicPartition


def audited(pair: Pair, way_back: Mapping[TopicPartition, int | None] | None) -> FlowResult:
    pairs = {(PLACE.topic, PLACE.partition): pair}
    snapshot = snapshot_of(pairs)
    return audit_flow(MemoryReader(pairs), snapshot, planner_of(snapshot), way_back=way_back)


def audited_both(sites: KeyedSites) -> FlowResult:
    """Return what the direction says that is audited last."""
    return audited(sites.pair, audited(sites.back(), None).mirrored)


def ends(result: FlowResult) -> list[Mapping[str, Any]]:
    return [row for row in result.findings if row["kind"] == "ends differently"]


def offsets(result: FlowResult) -> set[tuple[int, int]]:
    return {(row["source_offset"], row["target_offset"]) for row in ends(result)}


Step: TypeAlias = tuple[int, str | None]
"""A site, and what is written there, or None: its next record is mirrored."""
written = st.builds(
    "{}@{}{}".format,
    st.sampled_from("klmn"),
    st.integers(0, 3),
    st.sampled_from(["", ":tombstone"]),
)
steps: st.SearchStrategy[list[Step]] = st.lists(
    st.tuples(st.integers(0, 1), st.none() | written), max_size=30
)


@pytest.fixture(autouse=True, scope="module")
def _few_keys_at_a_time() -> Iterator[None]:
    """Let four keys need several slices."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_ends, "MOST_KEYS", 2)
        yield


def built(taken: Sequence[Step]) -> KeyedSites:
    sites = KeyedSites()
    for site, content in taken:
        if content is None:
            sites.mirror(site)
        else:
            sites.write(site, content)
    return sites


@settings(max_examples=examples(20))  # two whole audits each
@given(steps, st.sets(st.integers(0, 1)))
def test_once_all_is_mirrored_the_keys_are_found_that_end_differently(
    taken: list[Step], cleaned: set[int]
) -> None:
    """Of equal records of which a cleaner took one, another one may count as in flight."""
    sites = built(taken)
    for site in (0, 1):
        sites.mirror(site, len(taken))
    for site in cleaned:
        sites.clean(site)
    found = offsets(audited_both(sites))
    assert found <= sites.differing()
    written_there = [step for step in taken if step[1] is not None]
    if not cleaned or len(set(written_there)) == len(written_there):
        assert found == sites.differing()


@settings(max_examples=examples(20))  # two whole audits each
@given(steps)
def test_what_is_in_flight_makes_no_key_differ_and_hides_no_other(taken: list[Step]) -> None:
    sites = built(taken)
    moving = {key_of(content) for waiting in sites.waiting for content in waiting}
    still = {
        places for places in sites.differing() if key_of(sites.contents[0][places[0]]) not in moving
    }
    result = audited_both(sites)
    assert offsets(result) == still
    [row] = result.summary
    both = sites.lasts(0).keys() & sites.lasts(1).keys()
    in_flight = len(sites.differing()) - len(still)
    assert row["keys_in_flight"] == in_flight
    assert row["keys_alike"] == len(both) - len(sites.differing())


def test_a_key_that_both_sites_wrote_at_once_ends_differently() -> None:
    [row] = ends(audited_both(crossed("k")))
    ours, theirs = (value_digest(value).hex() for value in (b"k@1", b"k@2"))
    assert finding_line(row) == (
        "ends differently t:0:1, target offset 1, key k, time 2023-11-14T22:13:20.221+00:00: "
        f"on the source the key ends with a value of digest {theirs}, brought there, "
        f"on the target with a value of digest {ours}, brought there"
    )


def test_a_value_that_was_set_aside_and_is_still_there_ends_differently() -> None:
    """A lost site came back with a write that was never mirrored: it would serve it again."""
    sites = KeyedSites()
    sites.write(0, "k@100")
    sites.mirror(0)
    sites.write(0, "k@90")
    sites.waiting[0].clear()
    sites.pair.set_aside = ((1, 2),)
    result = audited_both(sites)
    [row] = ends(result)
    assert (row["source_offset"], row["target_offset"]) == (1, 0)
    assert row["reason"].endswith("; the source's was set aside")


def test_a_strangers_value_on_a_standby_ends_differently() -> None:
    pair = Pair()
    pair.source.is_compacted = pair.target.is_compacted = True
    pair.mirror("k@1", "a")
    pair.target.append("k@2")
    pair.mirror("b")
    assert offsets(audited(pair, None)) == {(0, 2)}


def test_a_key_that_changes_while_the_audit_reads_is_in_flight() -> None:
    sites = crossed("k", "l")
    way_back = audited(sites.back(), None).mirrored
    pairs = {(PLACE.topic, PLACE.partition): sites.pair}
    snapshot = snapshot_of(pairs)
    sites.write(0, "k@3")
    result = audit_flow(MemoryReader(pairs), snapshot, planner_of(snapshot), way_back=way_back)
    assert [row["key"] for row in ends(result)] == ["l"]
    assert result.summary[0]["keys_in_flight"] == 1


def test_more_keys_than_are_compared_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_ends, "MOST_SLICE_BITS", 0)
    result = audited_both(crossed("k", "l", "m"))
    assert not ends(result)
    assert result.summary[0]["keys_not_compared"] == 2
    assert why_not_compared(result.summary[0]) == (
        "1 of 1 slices of the keys have more than 2 each: last values there are not compared"
    )


def test_many_keys_that_differ_are_listed_in_part_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(key_ends, "MOST_LISTED", 1)
    result = audited_both(crossed("k", "l", "m"))
    assert [row["records"] for row in ends(result)] == [1, 2]
    assert result.summary[0]["ends_differently"] == 3
    assert "2 keys: so many more keys end differently" in finding_line(ends(result)[1])


def test_where_the_way_back_is_not_known_no_key_counts_as_compared() -> None:
    sites = crossed("k")
    result = audited(sites.pair, {PLACE: None})
    assert why_not_compared(result.summary[0]) is not None
    assert not ends(result)
    without = audited(sites.pair, {})
    assert why_not_compared(without.summary[0]) is None, "nothing comes back of this topic"


def test_slices_have_each_key_once() -> None:
    slices = [EVERY_KEY]
    for _ in range(3):
        slices = [half for part in slices for half in part.halves()]
    for first in range(256):
        assert sum(part.has(bytes([first, 7])) for part in slices) == 1


def test_an_empty_value_is_no_tombstone() -> None:
    assert value_digest(b"") != value_digest(None)
