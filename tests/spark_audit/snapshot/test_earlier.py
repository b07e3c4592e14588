"""What an audit knows of earlier ones: where the target's logs ended."""

import json
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_audit.snapshot.bounds import LogBounds, PartitionBounds, SeenEnd, Snapshot
from spark_audit.snapshot.earlier import Earlier, Memory, compared_with, decode, encode, remembered
from spark_audit.snapshot.seals import Seal
from wire.topic_partition import TopicPartition

PLACE = TopicPartition("orders", 0)
FLOW = "dc1->dc2"
NIGHT_MS = 24 * 3_600_000
LAST_MS = 253_402_300_799_999
"""The end of the year 9999."""


def log(stop: int, topic_id: int = 1) -> LogBounds:
    return LogBounds(start=0, stop=stop, topic_id=UUID(int=topic_id), is_compacted=False)


def snapshot(
    source: LogBounds, target: int, *, night: int = 0, promotion: int | None = None
) -> Snapshot:
    seal = None if promotion is None else Seal(mirrored_source_end=5, target_end=5)
    one = PartitionBounds(topic=PLACE[0], partition=0, source=source, target=log(target), seal=seal)
    return Snapshot(
        flow=FLOW,
        source="dc1",
        target="dc2",
        taken_ms=night * NIGHT_MS,
        promotion=promotion,
        partitions=(one,),
        only_on_target=(),
    )


def after(*nights: Snapshot, behind: bool = True) -> Memory:
    """Return what is known behind these audits; `behind`: the target lacked something in each."""
    memory: Memory = {}
    for now in nights:
        places = {FLOW: {PLACE: 95} if behind else {}}
        memory = remembered(memory, [compared_with(memory, now)], places, is_part=False)
    return memory


def seen(memory: Memory, now: Snapshot) -> int | None:
    (one,) = compared_with(memory, now).partitions
    return None if one.seen is None else one.seen.stop


def test_of_what_could_not_be_told_an_audit_remembers_what_it_knew() -> None:
    memory = after(snapshot(log(100), 90))
    untold = snapshot(log(120), 0).without({PLACE: "no leader"})
    assert after(snapshot(log(100), 90), untold) == memory
    assert after(untold) == {FLOW: {}}


def test_a_topic_that_was_audited_and_that_the_target_alone_has_is_untold_every_night() -> None:
    memory = after(snapshot(log(100), 90))
    vanished = replace(snapshot(log(100), 90), partitions=(), only_on_target=("orders", "theirs"))
    for _ in range(2):
        now = compared_with(memory, vanished)
        assert now.untold.keys() == {PLACE}
        assert "dc1 has no such topic any more" in now.untold[PLACE]
        memory = remembered(memory, [now], {FLOW: {}}, is_part=False)
    gone = replace(vanished, only_on_target=())
    assert not compared_with(memory, gone).untold, "it was deleted on both sites"
    assert not compared_with(memory, replace(vanished, promotion=3)).untold


def test_a_target_that_ends_before_where_it_ended_is_told() -> None:
    memory = after(snapshot(log(100), 90))
    assert seen(memory, snapshot(log(120), 90)) is None
    assert seen(memory, snapshot(log(120), 89)) == 90
    assert seen(memory, snapshot(log(100), 0)) == 90
    (one,) = compared_with(memory, snapshot(log(120), 0, night=1)).partitions
    assert one.seen == SeenEnd(stop=90, at_ms=0)
    assert (
        one.seen.words == "the target's log ended at 90 in the audit of 1970-01-01T00:00:00+00:00"
    )


def test_it_is_told_each_night_until_the_target_has_all_again() -> None:
    cut = [snapshot(log(100), 90), snapshot(log(120), 10, night=1)]
    assert seen(after(*cut), snapshot(log(120), 50, night=2)) == 90
    begun_anew = remembered(
        after(*cut),
        [compared_with(after(*cut), snapshot(log(120), 50, night=2))],
        {FLOW: {}},
        is_part=False,
    )
    assert seen(begun_anew, snapshot(log(130), 50, night=3)) is None
    assert seen(begun_anew, snapshot(log(130), 49, night=3)) == 50


@pytest.mark.parametrize(
    "now",
    [
        snapshot(log(120, topic_id=2), 0),
        snapshot(log(99), 0),
        snapshot(log(120), 0, promotion=1),
    ],
    ids=["another topic", "a source that was cut as well", "a promotion since"],
)
def test_what_was_seen_of_something_else_says_nothing(now: Snapshot) -> None:
    assert seen(after(snapshot(log(100), 90)), now) is None


def test_an_audit_of_some_topics_leaves_the_others_as_they_were() -> None:
    memory = after(snapshot(log(100), 90))
    other = replace(snapshot(log(7), 7), partitions=())
    assert remembered(memory, [other], {FLOW: {}}, is_part=True) == memory
    assert remembered(memory, [other], {FLOW: {}}, is_part=False) == {FLOW: {}}


def test_an_audit_of_some_topics_leaves_flows_without_them_as_they_were() -> None:
    memory = after(snapshot(log(100), 90))
    other = replace(snapshot(log(7), 7), flow="dc1->dc3", partitions=())
    looked = {other.flow: dict[TopicPartition, int]()}
    assert remembered(memory, [other], looked, is_part=True) == {**memory, other.flow: {}}


def test_what_waits_was_first_seen_by_the_audit_that_first_saw_it() -> None:
    """Whatever was written since, and however often somebody audits."""
    nights = [snapshot(log(100 + night), 90, night=night) for night in range(3)]
    (now,) = compared_with(after(*nights), nights[-1]).partitions
    assert now.source_seen == SeenEnd(stop=100, at_ms=0)
    (now,) = compared_with(after(*nights, behind=False), nights[-1]).partitions
    assert now.source_seen == SeenEnd(stop=102, at_ms=2 * NIGHT_MS)


def test_by_a_clock_that_was_set_back_the_next_audit_counts_from_the_one_before() -> None:
    night = snapshot(log(100), 90, night=1)
    memory = remembered(
        after(snapshot(log(100), 90, night=400)), [night], {FLOW: {PLACE: 100}}, is_part=False
    )
    assert memory[FLOW][PLACE].source == SeenEnd(stop=100, at_ms=NIGHT_MS)


def test_a_file_of_before_the_source_was_remembered_is_read() -> None:
    old = {"version": 1, "flows": {FLOW: [["t", 0, str(UUID(int=1)), 9, 8, 7, None]]}}
    (seen_then,) = decode(json.dumps(old))[FLOW].values()
    assert (seen_then.source_stop, seen_then.target.stop, seen_then.source) == (9, 8, None)


def held(stop: int, *, night: int, behind: int = 7) -> Snapshot:
    return snapshot(replace(log(stop), held_back=behind), stop, night=night)


def test_what_one_transaction_has_held_back_since_an_earlier_night_is_not_audited() -> None:
    memory = after(held(100, night=1), behind=False)
    [why] = compared_with(memory, held(100, night=3, behind=9)).unaudited
    assert why.startswith("orders-0: a transaction has been open for 48.0 h at least: of dc1 9 off")
    for ended in (held(101, night=3), held(100, night=3, behind=0)):
        assert compared_with(memory, ended).unaudited == ()
    memory = after(held(100, night=1), held(100, night=2), behind=False)
    assert "48.0 h" in compared_with(memory, held(100, night=3)).unaudited[0]
    assert compared_with(memory, held(100, night=3), limit_ms=3 * NIGHT_MS).unaudited == ()
    assert compared_with({}, held(100, night=3)).unaudited == (), "it may have just begun"
    assert after(held(100, night=9), held(100, night=1), behind=False)[FLOW][PLACE].held_at == (
        SeenEnd(stop=100, at_ms=NIGHT_MS)
    ), "the clock was set back"


def test_a_file_of_before_open_transactions_were_remembered_is_read() -> None:
    old = {"version": 2, "flows": {FLOW: [["t", 0, str(UUID(int=1)), 9, 8, 7, None, 9, 6]]}}
    (seen_then,) = decode(json.dumps(old))[FLOW].values()
    assert (seen_then.source, seen_then.held_at) == (SeenEnd(stop=9, at_ms=6), None)


OFFSETS = st.integers(0, 2**63 - 1)
TIMES = st.integers(0, LAST_MS)
EARLIER = st.builds(
    Earlier,
    source_topic_id=st.uuids(),
    source_stop=OFFSETS,
    target=st.builds(SeenEnd, stop=OFFSETS, at_ms=TIMES),
    promotion=st.none() | st.integers(1, 9),
    source=st.none() | st.builds(SeenEnd, stop=OFFSETS, at_ms=TIMES),
    held_at=st.none() | st.builds(SeenEnd, stop=OFFSETS, at_ms=TIMES),
)
PLACES = st.tuples(st.text(max_size=5), st.integers(0, 9))


@given(st.dictionaries(st.text(max_size=5), st.dictionaries(PLACES, EARLIER, max_size=3)))
def test_what_is_kept_comes_back(memory: Memory) -> None:
    back = decode(encode(memory))
    assert back == memory
    assert all(one.target.words for places in back.values() for one in places.values())


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"version": 3}', '{"version": 1, "flows": {"f": [["t", 0]]}}', "null"]
)
def test_what_no_audit_has_written_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(text)


@pytest.mark.parametrize("at_ms", [-1, 10**30, LAST_MS + 1, "5", None, 1.5])
def test_a_time_without_a_name_is_refused(at_ms: object) -> None:
    row = ["t", 0, str(UUID(int=1)), 5, 5, at_ms, None]
    with pytest.raises(ValueError, match="is no time in milliseconds"):
        decode(json.dumps({"version": 1, "flows": {FLOW: [row]}}))
