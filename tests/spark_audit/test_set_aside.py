"""Records that were set aside are explained where they lie, and nowhere else."""

from collections.abc import Mapping
from typing import Any

import pytest

from offset_translation import map_records
from runtime.diverged import RESTORED
from spark_audit.compare import settling
from spark_audit.flow_audit import audit_flow
from spark_audit.result.coverage import Share, coverage
from spark_audit.snapshot.origins import Arrivals
from spark_audit.snapshot.set_aside import parts_of
from tests.spark_audit.audits import planner_of
from tests.spark_audit.logs import MemoryReader, Pair, snapshot_of, time_of
from wire.record_batch import Record, build_batch


def audited(pair: Pair, promotion: int | None = None) -> tuple[list[Any], Mapping[str, Any]]:
    """Return the findings, (kind, source offset), and the summary of one partition."""
    pairs = {("t", 0): pair}
    snapshot = snapshot_of(pairs, promotion)
    result = audit_flow(MemoryReader(pairs), snapshot, planner_of(snapshot))
    found = [(row["kind"], row["source_offset"], row["records"]) for row in result.findings]
    [summary] = result.summary
    return found, summary


def lost_with_its_site(*, is_last: bool = False) -> Pair:
    """The source alone has c at 2, d at 3 and e at 4."""
    pair = Pair()
    pair.mirror("a", "b")
    pair.source.append("c", "d", "e")
    if not is_last:
        pair.mirror("f", "g")
    return pair


@pytest.mark.parametrize("is_last", [False, True], ids=["in the middle", "at the end"])
def test_what_was_set_aside_is_explained_and_nothing_is_lost(*, is_last: bool) -> None:
    pair = lost_with_its_site(is_last=is_last)
    pair.set_aside = ((2, 5),)
    found, summary = audited(pair)
    assert (found, summary["explained"], summary["in_flight"]) == ([], 3, 0)
    shares = coverage(summary, "source")
    assert shares[Share.SET_ASIDE] == 3
    assert sum(shares.values()) == summary["source_stop"]
    assert shares[Share.NOT_COMPARED] == 0


@pytest.mark.parametrize("gap", [1, 2], ids=["the copy was taken", "the lost one as well"])
def test_a_value_that_sets_a_key_back_is_no_other_form_of_the_one_it_repeats(gap: int) -> None:
    """Its time, key and value are those of the record whose copy a cleaner took because of it."""
    pair = Pair()
    pair.source.is_compacted = pair.target.is_compacted = True
    pair.mirror("a")
    pair.target.append("k@1:kept")
    pair.source.skip(gap)
    if gap == 1:
        pair.source.append("k@2:lost")
    restored = Record(3, time_of("k@1:kept"), b"k", b"k@1:kept", (RESTORED,))
    pair.source.append_bytes(build_batch([restored], base_offset=3), 1)
    pair.mirror("f", "g")
    pair.set_aside = ((2, 4),)
    found, summary = audited(pair)
    assert found == []
    assert summary["explained"] == (3 if gap == 1 else 2)


def test_what_does_not_lie_aside_is_lost() -> None:
    """Somebody has deleted one of them there, or it was never written."""
    pair = lost_with_its_site()
    pair.set_aside = ((2, 3), (4, 5))
    found, summary = audited(pair)
    assert (found, summary["explained"]) == ([("lost", 3, 1)], 2)


def test_among_very_many_differences_they_are_explained_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(settling, "MOST_UNMATCHED", 2)
    pair = lost_with_its_site()
    pair.set_aside = ((2, 4),)
    found, summary = audited(pair)
    assert (found, summary["explained"]) == ([("lost", 4, 1)], 2)


def test_the_map_names_what_was_set_aside_until_it_is_taken_back() -> None:
    arrivals = Arrivals()
    key, value = map_records.set_aside("t", 0, source_start=2, source_end=5)
    arrivals.replay(key, value)
    assert arrivals.set_aside == {("t", 0): {2: 5}}
    arrivals.replay(key, b"\x00\x09")
    assert arrivals.set_aside == {("t", 0): {2: 5}}, "a value that makes no sense says nothing"
    arrivals.replay(key, None)
    assert arrivals.set_aside == {("t", 0): {}}


def test_only_what_the_map_names_and_the_topic_has_counts_as_set_aside() -> None:
    assert parts_of([2, 3, 3, 7, 20], {2: 5, 6: 8}) == ((2, 4), (7, 8))
    assert parts_of([], {2: 5}) == ()
