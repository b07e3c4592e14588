"""A fault in each partition, or a difference that is none, and what an audit is to find there."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from spark_audit.snapshot.bounds import SeenEnd
from tests.spark_audit.logs import Log, Pair, Pairs
from tests.spark_audit.planted.planting import Planted, PlantedFinding
from wire.record_batch import Record, build_batch

Scenario: TypeAlias = Callable[[Pair], set[PlantedFinding]]
BULK = 1_500
"""So many records around a fault: a few ranges before and behind it."""


def bulk(name: str) -> list[str]:
    return [f"{name} {number}" for number in range(BULK)]


def _around(fault: Scenario) -> Scenario:
    """Plant a fault in the middle of much that is equal, behind a gap in the source's offsets."""

    def plant(pair: Pair) -> set[PlantedFinding]:
        pair.mirror(*bulk("before"))
        pair.source.append_bytes(marker(pair.source.stop), 1)
        found = fault(pair)
        pair.mirror(*bulk("after"))
        return found

    return plant


def marker(offset: int) -> bytes:
    """Return the end of a transaction."""
    return build_batch(
        [Record(offset, 1, b"\x00\x00\x00\x01", b"")],
        base_offset=offset,
        producer_id=3,
        producer_epoch=0,
        is_transactional=True,
        is_control=True,
    )


def equal(_: Pair) -> set[PlantedFinding]:
    return set()


def lost(pair: Pair) -> set[PlantedFinding]:
    return {("lost", offset, None) for offset in pair.source.append("x", "y")}


def duplicated(pair: Pair) -> set[PlantedFinding]:
    (source,) = pair.source.append("x")
    _, second = pair.target.append("x", "x")
    return {("duplicated", source, second)}


def duplicated_far_away(pair: Pair) -> set[PlantedFinding]:
    (copy,) = pair.target.append("before 17")
    return {("duplicated", 17, copy)}


def replayed(pair: Pair) -> set[PlantedFinding]:
    """Hundreds of records once more, as a mirror does that forgot how far it was."""
    copies = pair.target.append(*bulk("before")[800:1_300])
    return {("duplicated", 800 + step, copy) for step, copy in enumerate(copies)}


def reordered(pair: Pair) -> set[PlantedFinding]:
    pair.source.append("a", "b", "c", "d")
    moved = pair.target.append("a", "c", "d", "b")[3]
    return {("reordered", pair.source.stop - 3, moved)}


def altered(pair: Pair) -> set[PlantedFinding]:
    pair.mirror("a")
    (source,), (target,) = pair.source.append("x:is this"), pair.target.append("x:is that")
    pair.mirror("b")
    return {("altered", source, target)}


def phantom(pair: Pair) -> set[PlantedFinding]:
    return {("phantom", None, pair.target.append("x")[0])}


def a_loss_beside_a_copy(pair: Pair) -> set[PlantedFinding]:
    """Counts agree, and in the same gap too: only the multiset tells."""
    (missing,) = pair.source.append("x")
    (copy,) = pair.target.append("before 3")
    return {("lost", missing, None), ("duplicated", 3, copy)}


def corrupt_on_target(pair: Pair) -> set[PlantedFinding]:
    pair.source.append("x", "y")
    place = append_corrupt(pair.target, "x", "y")
    return {("corrupt", None, place)}


def corrupt_on_source(pair: Pair) -> set[PlantedFinding]:
    place = append_corrupt(pair.source, "x", "y")
    pair.target.append("x", "y")
    return {("corrupt", place, None)}


def append_corrupt(log: Log, *contents: str) -> int:
    place = log.append(*contents)[0]
    behind, batch = log.batches.pop()
    log.batches.append((behind, batch[:-1] + bytes([batch[-1] ^ 1])))
    return place


def gap_on_source(pair: Pair) -> set[PlantedFinding]:
    place = pair.source.stop
    pair.source.skip(5)
    return {("hole", place, None)}


FAULTS: Mapping[str, Scenario] = {
    scenario.__name__: _around(scenario)
    for scenario in (
        equal,
        lost,
        duplicated,
        duplicated_far_away,
        replayed,
        reordered,
        altered,
        phantom,
        a_loss_beside_a_copy,
        corrupt_on_target,
        corrupt_on_source,
        gap_on_source,
    )
}


def _plant_retention(pairs: Pairs) -> None:
    for topic, side in (("source aged", "source"), ("target aged", "target")):
        pair = pairs[topic, 0]
        pair.mirror("a", "b", "c")
        pair.mirror(*bulk(topic))
        aged: Log = getattr(pair, side)
        aged.start = 3
        del aged.batches[0]


def _plant_retention_among_copies(pairs: Pairs) -> None:
    """Of equal records retention took the first: what is left is neither lost nor there twice."""
    for side in ("source", "target"):
        one, run = pairs[f"{side} aged copies", 0], pairs[f"{side} aged run", 0]
        one.mirror("a", "b", "c")
        one.mirror("d", "a")
        run.mirror("x", "x")
        run.mirror("x", "x", "x", "y")
        for pair in (one, run):
            pair.mirror(*bulk(side))
            pair.mirror("b")
            aged: Log = getattr(pair, side)
            aged.start = aged.batches[0][0]
            del aged.batches[0]


def _plant_alteration_behind_retention(pair: Pair) -> set[PlantedFinding]:
    """Of a run of equal records the fourth, in a stretch that reaches to where the log is cut."""
    pair.mirror("a", "b")
    pair.source.append("x", "x", "x", "x", "x", "x")
    pair.target.append("x", "x", "x", "y", "x", "x")
    pair.mirror("c")
    pair.target.start = 2
    del pair.target.batches[0]
    return {("altered", 5, 5)}


def _plant_lag_behind_retention(pair: Pair) -> None:
    """Nothing is on both sides: what the target has is gone from the source, the rest may come."""
    pair.mirror("a@1", "b@2", "c@3")
    pair.source.start = 3
    del pair.source.batches[0]
    pair.source.append("x@4", "y@5")


def _plant_loss_beside_retention(pair: Pair) -> set[PlantedFinding]:
    """Nine are missing where the target's log begins, and its retention took one."""
    pair.mirror("a")
    lost = pair.source.append("b", "c", "d", "e", "f", "g", "h", "i")
    pair.mirror("j", "k")
    pair.target.start = 1
    del pair.target.batches[0]
    return {("lost", offset, None) for offset in lost}


def _plant_compaction(pair: Pair) -> None:
    pair.source.is_compacted = pair.target.is_compacted = True
    pair.mirror("a")
    pair.source.append("x@1")
    pair.target.skip(1)
    pair.mirror("b")
    pair.source.skip(1)
    pair.target.append("y@1")
    pair.mirror("c", "x@2", "y@2")


def _plant_lag(pairs: Pairs) -> None:
    pairs["nothing yet", 0].source.append("a", "b", "c")
    pairs["some yet", 0].mirror(*bulk("some"))
    pairs["some yet", 0].source.append("a", "b")
    pairs["little yet", 0].mirror("a")
    pairs["little yet", 0].source.append(*bulk("rest"))


def _plant_cut_targets(pairs: Pairs) -> dict[str, set[PlantedFinding]]:
    """Plant targets that ended at 9 before; the last one has all of its source again."""
    for name in ("emptied", "cut", "begun anew"):
        pair = pairs[name, 0]
        if name != "emptied":
            pair.mirror(*"abc")
        if name != "begun anew":
            pair.source.append(*"defghi")
        pair.seen = SeenEnd(stop=9, at_ms=0)
    return {"emptied": {("hole", None, 0)}, "cut": {("hole", None, 3)}, "begun anew": set()}


OTHERS = (
    "nothing yet",
    "some yet",
    "little yet",
    "all aged",
    "source aged",
    "target aged",
    "compacted",
)
AGED_AND_MORE = ("aged and lost", "aged and altered")
COPIES = ("source aged copies", "source aged run", "target aged copies", "target aged run")


def plant_faults() -> Planted:
    """Plant all of them."""
    pairs = {(name, 0): Pair() for name in (*FAULTS, *OTHERS, *COPIES)}
    expected = {name: plant(pairs[name, 0]) for name, plant in FAULTS.items()}
    _plant_lag(pairs)
    _plant_retention(pairs)
    _plant_retention_among_copies(pairs)
    _plant_compaction(pairs["compacted", 0])
    _plant_lag_behind_retention(pairs["all aged", 0])
    pairs |= {(name, 0): Pair() for name in (*AGED_AND_MORE, "emptied", "cut", "begun anew")}
    expected |= _plant_cut_targets(pairs)
    expected["aged and altered"] = _plant_alteration_behind_retention(pairs["aged and altered", 0])
    expected["aged and lost"] = _plant_loss_beside_retention(pairs["aged and lost", 0])
    return Planted(pairs, expected | {name: set() for name in (*OTHERS, *COPIES)})
