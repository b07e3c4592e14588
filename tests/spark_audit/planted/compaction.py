"""Compacted topics: what a cleaner may have taken, and what it cannot have taken."""

from collections.abc import Callable, Sequence

from spark_audit.scan.entries import KEY_BYTES
from spark_audit.scan.scan_plan import ScanTask
from spark_audit.snapshot.origins import Brought
from spark_audit.snapshot.seals import Seal
from tests.spark_audit.logs import Log, Pair
from tests.spark_audit.planted.planting import Planted, PlantedFinding
from wire.record_batch import Record, build_batch, iterate_records

SIDES = ("source", "target")
DC1_MIRROR, DC2_MIRROR = 11, 22
"""The producer ids of the mirrors out of these sites."""


def _compacted(*contents: str) -> Pair:
    """Both sides with these records, a batch each, and with cleaners."""
    pair = Pair()
    pair.source.is_compacted = pair.target.is_compacted = True
    for content in contents:
        pair.mirror(content)
    return pair


def _clean(log: Log, *offsets: int) -> None:
    """Take these records, each in a batch of its own, out of the log, as a cleaner does."""
    log.batches = [one for one in log.batches if one[0] - 1 not in offsets]


def different_neighbours(pair: Pair) -> set[PlantedFinding]:
    """A tombstone that only the source's cleaner took, beside a record that only the target's did.

    To take the second for the first with other content would be an alteration.
    """
    pair.mirror("k@9:tombstone")
    pair.mirror("s@1")
    pair.mirror("s@2")
    _clean(pair.source, 1)
    _clean(pair.target, 2)
    return set()


def other_content(pair: Pair) -> set[PlantedFinding]:
    (source,), (target,) = pair.source.append("x:is this"), pair.target.append("x:is that")
    return {("altered", source, target)}


def an_altered_time(pair: Pair) -> set[PlantedFinding]:
    (source,) = pair.source.append("x@1:is this")
    return {("altered", source, _append(pair.target, b"x", 7, b"x@1:is this"))}


def an_altered_time_among_gaps(pair: Pair) -> set[PlantedFinding]:
    pair.source.append("s@1")
    pair.target.skip(1)
    found = an_altered_time(pair)
    pair.source.skip(1)
    pair.target.append("t@1")
    pair.mirror("s@2", "t@2")
    return found


def an_altered_key(pair: Pair) -> set[PlantedFinding]:
    (source,) = pair.source.append("x@1:is this")
    (time_ms,) = (one.timestamp_ms for one in iterate_records(pair.source.batches[-1][1]))
    pair.target.skip(1)
    target = _append(pair.target, b"y", time_ms, b"x@1:is this")
    return {("altered", source, target)}


def _append(log: Log, key: bytes, timestamp_ms: int, value: bytes) -> int:
    place = log.stop
    batch = build_batch([Record(place, timestamp_ms, key, value)], base_offset=place)
    log.append_bytes(batch, 1)
    return place


def a_lost_last_value(pair: Pair) -> set[PlantedFinding]:
    """Both cleaners took records of other keys here, so both logs have gaps with room for it."""
    (old,) = pair.target.append("k@1")
    pair.source.skip(2)
    (last,) = pair.source.append("k@2")
    pair.target.skip(1)
    return {("lost", last, None), ("phantom", None, old), ("ends differently", last, old)}


def a_loss_beside_what_a_cleaner_took(pair: Pair) -> set[PlantedFinding]:
    """The gap is as long as what was taken: it must not be too short for that because of a loss."""
    pair.source.append("s@1")
    pair.target.skip(1)
    (lost,) = pair.source.append("k@1")
    pair.mirror("s@2")
    return {("lost", lost, None)}


def a_value_that_went_with_its_tombstone(pair: Pair) -> set[PlantedFinding]:
    pair.mirror("k@1")
    pair.mirror("b")
    pair.mirror("k@9:tombstone")
    _clean(pair.target, 1, 3)
    return set()


def a_lost_tombstone(pair: Pair) -> set[PlantedFinding]:
    """The target's gap has room for it, but a cleaner would have taken what it stands for first."""
    pair.mirror("k@1")
    pair.mirror("b")
    pair.source.skip(1)
    (lost,) = pair.source.append("k@9:tombstone")
    pair.target.skip(1)
    return {("lost", lost, None)}


def a_value_whose_tombstone_is_not_mirrored_yet(pair: Pair) -> set[PlantedFinding]:
    (lost,) = pair.source.append("k@1")
    pair.target.skip(1)
    pair.mirror("b")
    pair.source.append("k@9:tombstone")
    return {("lost", lost, None)}


def superseded_by_what_is_in_flight(pair: Pair) -> set[PlantedFinding]:
    pair.mirror("k@1")
    pair.source.append("k@2")
    _clean(pair.source, 1)
    return set()


def superseded_where_only_the_source_has_a_cleaner(pair: Pair) -> set[PlantedFinding]:
    pair.target.is_compacted = False
    return superseded_by_what_is_in_flight(pair)


def another_key_that_begins_the_same(pair: Pair) -> set[PlantedFinding]:
    key = "k" * KEY_BYTES
    (lost,) = pair.source.append(f"{key}1@1")
    pair.target.skip(1)
    pair.mirror(f"{key}2@1")
    return {("lost", lost, None)}


def a_long_key_that_is_superseded(pair: Pair) -> set[PlantedFinding]:
    key = "k" * KEY_BYTES
    pair.mirror(f"{key}1@1")
    pair.mirror(f"{key}1@2")
    _clean(pair.target, 1)
    return set()


def equal_records_of_which_the_source_has_the_second(pair: Pair) -> set[PlantedFinding]:
    for content in ("k@1", "b", "k@1"):
        pair.mirror(content)
    _clean(pair.source, 1)
    return set()


SCENARIOS: dict[str, Callable[[Pair], set[PlantedFinding]]] = {
    scenario.__name__: scenario
    for scenario in (
        different_neighbours,
        other_content,
        an_altered_time,
        an_altered_time_among_gaps,
        an_altered_key,
        a_lost_last_value,
        a_loss_beside_what_a_cleaner_took,
        a_value_that_went_with_its_tombstone,
        a_lost_tombstone,
        a_value_whose_tombstone_is_not_mirrored_yet,
        superseded_by_what_is_in_flight,
        superseded_where_only_the_source_has_a_cleaner,
        another_key_that_begins_the_same,
        a_long_key_that_is_superseded,
        equal_records_of_which_the_source_has_the_second,
    )
}
IN_FLIGHT = {
    superseded_by_what_is_in_flight,
    superseded_where_only_the_source_has_a_cleaner,
    a_value_whose_tombstone_is_not_mirrored_yet,
}


def plant_what_cleaners_took() -> Planted:
    """A topic for each scenario, between records that are on both sides."""
    pairs = {(name, 0): _compacted("first") for name in SCENARIOS}
    expected = {name: plant(pairs[name, 0]) for name, plant in SCENARIOS.items()}
    for name, plant in SCENARIOS.items():
        if plant not in IN_FLIGHT:
            pairs[name, 0].mirror("last")
    return Planted(pairs, expected)


def plant_cleaners_at_work() -> Planted:
    """While the audit runs they take d@1, which a record behind the snapshot supersedes."""
    pairs = {}
    for side in ("source", "target"):
        pairs[f"cleaned meanwhile: {side}", 0] = pair = _compacted(
            "a", "b@1", "c", "d@1", "e", "b@2"
        )
        _clean(pair.target, 1)

    def take(_: int, __: Sequence[ScanTask]) -> None:
        for (topic, _partition), pair in pairs.items():
            pair.mirror("d@2")
            _clean(getattr(pair, topic.rpartition(" ")[2]), 3)

    return Planted(pairs, {topic: set() for topic, _ in pairs}, after_scan=take)


def plant_behind_a_promotion() -> Planted:
    """What applications wrote at the target supersedes there, and nothing at the source."""
    pairs = {(name, 0): _compacted("first", "k@1", "last") for name in ("taken", "surplus")}
    for pair in pairs.values():
        pair.seal = Seal(mirrored_source_end=pair.source.stop, target_end=pair.target.stop)
        pair.target.append("k@2")
    _clean(pairs["taken", 0].target, 1)
    _clean(pairs["surplus", 0].source, 1)
    return Planted(pairs, {"taken": set(), "surplus": {("phantom", None, 1)}})


def plant_both_ways() -> Planted:
    """Records of dc1 that dc2's supersede; a cleaner of either side has taken what it may."""
    names = (
        "by value",
        "by tombstone",
        "taken on dc1",
        "lost to a cleaner",
        "by the other site's next",
        "taken on dc1 by dc2's next",
    )
    pairs = {(name, 0): _compacted() for name in names}
    for (name, _), pair in pairs.items():
        pair.to_source = Brought(producer_ids=frozenset({DC2_MIRROR}))
        pair.to_target = Brought(producer_ids=frozenset({DC1_MIRROR}))
        superseding = "k@9:tombstone" if name == "by tombstone" else "k@2"
        for content in ("first", "k@1") if "next" in name else ("first", "k@1", "b"):
            pair.source.append(content)
            pair.target.append(content, producer_id=DC1_MIRROR)
        if name != "lost to a cleaner":
            pair.target.append(superseding)
            pair.source.append(superseding, producer_id=DC2_MIRROR)
        pair.source.append("last")
        pair.target.append("last", producer_id=DC1_MIRROR)
    _clean(pairs["by value", 0].target, 1)
    _clean(pairs["by tombstone", 0].target, 1, 3)
    _clean(pairs["taken on dc1", 0].source, 1)
    _clean(pairs["by the other site's next", 0].target, 1)
    _clean(pairs["taken on dc1 by dc2's next", 0].source, 1)
    _clean(pairs["lost to a cleaner", 0].target, 1)
    expected: dict[str, set[PlantedFinding]] = {name: set() for name in names}
    return Planted(pairs, expected | {"lost to a cleaner": {("lost", 1, None)}})
