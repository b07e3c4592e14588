"""What a drill plants: partitions of each kind of topic, and the faults in each, from a seed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from tests.drill.audit.items import SIDES, Expected, Fault, Hole, Item, Writing, items_of
from tests.drill.audit.laying import MOST_TOGETHER, Laid, cut
from tests.drill.audit.mapping import plan_mapped
from tests.drill.audit.partitions import KINDS, Planted, TopicKind, laid_down

HOUR_MS: Final = 3_600_000
FRESH_MS: Final = 600_000
"""Records are so old: what waits at an end may do so."""
BETWEEN: Final = (4, 25, 150, 700)
"""So many clean records lie between two faults, about."""
FAULTS_A_PARTITION: Final = 6
TAKEN: Final = 0.4
"""So large a share of what is superseded each site's cleaner has taken."""
LARGE_RECORDS: Final = 250_000
HEAD: Final = 60
"""So many records at least lie before the first fault: retention may take their beginning."""


def plan(
    seed: int,
    *,
    faults: int,
    now_ms: int,
    kinds: Sequence[TopicKind] = KINDS,
    between: Sequence[int] = BETWEEN,
) -> list[Planted]:
    """Return partitions with at least so many faults, and some without any.

    Each kind of topic has as many partitions as it takes, six faults in each.
    """
    luck = Random(seed)
    planted: list[Planted] = []
    each = -(-faults // (FAULTS_A_PARTITION * len(kinds)))
    clean, mapped = 1 + each // 5, 1 + each // 2
    for kind in kinds:
        queue = _dealt(luck, list(kind.plants))
        for number in range(each + clean):
            count = FAULTS_A_PARTITION if number < each else 0
            names = [next(queue) for _ in range(count)]
            planted.append(_partition(luck, kind, number, names, now_ms, between))
        if not kind.both_ways:
            numbers = range(each + clean, each + clean + mapped)
            planted += (plan_mapped(luck, kind, number, now_ms) for number in numbers)
    return planted


def _dealt(luck: Random, names: list[str]) -> Iterator[str]:
    """Yield each name once, in any order, and again and again."""
    while True:
        luck.shuffle(names)
        yield from names


def _partition(
    luck: Random,
    kind: TopicKind,
    number: int,
    names: Sequence[str],
    now_ms: int,
    between: Sequence[int],
) -> Planted:
    writing = Writing(
        luck=luck,
        now_ms=now_ms - FRESH_MS,
        is_keyed=kind.is_compacted,
        both_ways=kind.both_ways,
    )
    writing.clean(luck.choice(between) + HEAD)
    for name in names:
        kind.plants[name](writing)
        writing.clean(luck.choice(between) + 2)
    writing.clean(2 * MOST_TOGETHER)  # brokers recover no log with a hole before its last batch
    ending = luck.choice(("level", "in flight", "overdue", "lost at the end"))
    if kind.both_ways and ending == "lost at the end":
        ending = "in flight"
    promised = _end(writing, ending, is_faulty=bool(names))
    if kind.is_compacted:
        _clean(writing)
    planted = laid_down(luck, kind, number, writing)
    if promised is not None:
        planted.promised = promised.offset(planted.sides[0])
    if not kind.is_compacted and not any(map(_looks_back, writing.faults)):
        _take_beginning(luck, planted)
    if kind.is_compacted:
        _hold_keys(planted, writing)
    return planted


@dataclass(frozen=True, slots=True)
class _Promise:
    """The mirror had brought all up to `last`; what is behind it may be in flight."""

    last: Item

    def offset(self, source: Laid) -> int:
        return source.offsets[id(self.last)] + 1


def _end(writing: Writing, ending: str, *, is_faulty: bool) -> _Promise | None:
    """Write an end of the source that the target does not have."""
    origin = writing.origin()
    items = writing.items(origin, writing.luck.choice((1, 3, 40)))
    match ending:
        case "in flight":
            writing.sides[origin].extend(items)
        case "overdue" if is_faulty:
            for item in items:
                item.timestamp_ms -= 5 * HOUR_MS
            writing.sides[origin].extend(items)
            first = Expected(kind="overdue", origin=origin, source=(origin, items[0]))
            writing.plant("overdue at the end", [first])
        case "lost at the end" if is_faulty:
            writing.sides[0].extend(items)
            count = writing.luck.randint(1, len(items))
            way = [Expected(kind="lost", origin=0, source=(0, one)) for one in items[:count]]
            writing.plant("lost at the end", way)
            return _Promise(items[count - 1])
        case _:
            pass
    return None


def _looks_back(fault: Fault) -> bool:
    return fault.name in {"replayed", "lost beside a copy"}


def plan_large(seed: int, *, now_ms: int, records: int = LARGE_RECORDS) -> list[Planted]:
    """Return a compacted partition of which the target's cleaner took very much, the source's none.

    Two records are lost among it, and one was altered.
    """
    luck = Random(f"large {seed}")
    kind = TopicKind(name="compacted-large", is_compacted=True)
    writing = Writing(
        luck=luck, now_ms=now_ms - FRESH_MS, is_keyed=True, hot_keys=5_000, hot_share=0.8
    )
    for name in ("lost", "lost last value", "altered: value"):
        writing.clean(records // 4)
        kind.plants[name](writing)
    writing.clean(records // 4)
    _clean(writing, shares=(0.0, 0.9))
    return [laid_down(luck, kind, 0, writing)]


def _clean(writing: Writing, shares: tuple[float, float] = (TAKEN, TAKEN)) -> None:
    """Have each site's cleaner take some records that later ones of their keys supersede."""
    for side, share in zip(writing.sides, shares, strict=True):
        last: dict[bytes | None, int] = {
            item.key: number for number, item in enumerate(side) if isinstance(item, Item)
        }
        for number, item in enumerate(side):
            if not isinstance(item, Item) or not item.is_hot or last[item.key] == number:
                continue
            if writing.luck.random() < share:
                side[number] = Hole(1, item.origin)


def _take_beginning(luck: Random, planted: Planted) -> None:
    """Have retention take the beginning of a log, before the first fault, or not."""
    if luck.random() < 0.5 and not any(laid.damaged for laid in planted.sides):
        cut(planted.sides[luck.choice(SIDES)], HEAD - 10, luck)


def _hold_keys(planted: Planted, writing: Writing) -> None:
    """Expect what readers of a compacted topic see differently for good, where that is asked."""
    told = [one for fault in writing.faults for way in fault.ways for one in way]
    if not planted.kind.both_ways and not any(one.kind == "phantom" for one in told):
        return
    origin = 1 if planted.kind.both_ways else 0
    ends: list[dict[bytes, Item]] = []
    for side in SIDES:
        last = {one.key: one for one in items_of(writing.sides[side]) if one.key is not None}
        ends.append(last)
    known = {
        (id(one.source[1]), id(one.target[1]))
        for one in told
        if one.kind == "ends differently" and one.source is not None and one.target is not None
    }
    source, target = ends[origin], ends[1 - origin]
    for key in source.keys() & target.keys():
        ours, theirs = source[key], target[key]
        if ours.value != theirs.value and (id(ours), id(theirs)) not in known:
            expected = Expected(
                kind="ends differently",
                origin=origin,
                source=(origin, ours),
                target=(1 - origin, theirs),
            )
            planted.faults.append(Fault(name="ends differently", ways=[[expected]]))
