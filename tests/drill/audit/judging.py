"""Hold what an audit told against what was planted: recall and precision by kind. Pure."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final, NamedTuple, TypeAlias

EACH_RECORD: Final = frozenset({"lost", "duplicated", "reordered", "altered", "phantom"})
"""Kinds of which one row stands for records in a row."""

CONTROLS: Final = 12
"""So many planted faults are withheld from the judge, and as many made up, to try it."""


class Told(NamedTuple):
    """One finding, as an audit told it or as one was planted; a setting has no offsets."""

    flow: str
    topic: str
    partition: int
    kind: str
    source: int | None = None
    target: int | None = None


@dataclass(frozen=True, slots=True)
class Sought:
    """One finding that has to be told, with these words in its reason."""

    told: Told
    words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedFault:
    """A fault: one of its ways has to be told whole."""

    name: str
    ways: tuple[tuple[Sought, ...], ...]

    @property
    def topic(self) -> str:
        """Return the topic in which it lies, named for its kind."""
        return next((one.told.topic for way in self.ways for one in way), "none")

    @property
    def kinds(self) -> frozenset[str]:
        """Return the kinds of its findings."""
        return frozenset(one.told.kind for way in self.ways for one in way)


Reasons: TypeAlias = Mapping[Told, str]
"""What an audit told, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What came of the planted faults and of what was told."""

    found: Counter[str]
    missed: Sequence[tuple[PlantedFault, Sequence[Told]]]
    """With what was told of the same offsets instead."""
    invented: Sequence[tuple[Told, str]]
    planted: Counter[str]
    right: Counter[str] = field(default_factory=Counter)
    """By the audit's kind: findings that were planted."""
    told: Counter[str] = field(default_factory=Counter)
    planted_in: Counter[str] = field(default_factory=Counter)
    """By the kind of topic."""
    found_in: Counter[str] = field(default_factory=Counter)

    @property
    def is_right(self) -> bool:
        return not (self.missed or self.invented)


def told_by(rows: Iterable[Mapping[str, Any]]) -> dict[Told, str]:
    """Return an audit's findings, record by record, with their reasons."""
    found: dict[Told, str] = {}
    for row in rows:
        source, target = row["source_offset"], row["target_offset"]
        for step in range(row["records"] if row["kind"] in EACH_RECORD else 1):
            found[
                Told(
                    row["flow"],
                    row["topic"],
                    row["partition"],
                    row["kind"],
                    None if source is None else source + step,
                    None if target is None else target + step,
                )
            ] = row["reason"]
    return found


def judge(
    planted: Sequence[PlantedFault], told: Reasons, allowed: frozenset[Told] = frozenset()
) -> Judged:
    """Return which faults were told exactly, and which findings nobody planted.

    `allowed` may be told and need not be.
    """
    found: Counter[str] = Counter()
    found_in: Counter[str] = Counter()
    missed: list[tuple[PlantedFault, Sequence[Told]]] = []
    claimed: set[Told] = set()
    near = _Near(told)
    for fault in planted:
        way = next((way for way in fault.ways if _is_told(way, told)), None)
        if way is None:
            missed.append((fault, near.to(fault)))
        else:
            found[fault.name] += 1
            found_in[fault.topic] += 1
            claimed |= {one.told for one in way}
    invented = [one for one in told if one not in claimed and one not in allowed]
    return Judged(
        planted=Counter(fault.name for fault in planted),
        found=found,
        missed=missed,
        invented=[(one, told[one]) for one in invented],
        right=Counter(one.kind for one in told if one in claimed or one in allowed),
        told=Counter(one.kind for one in told),
        planted_in=Counter(fault.topic for fault in planted),
        found_in=found_in,
    )


def blind_spots(
    planted: Sequence[PlantedFault], told: Reasons, allowed: frozenset[Told], luck: Random
) -> list[str]:
    """Return what the judge itself does not see, of the same audit with another story.

    Faults that were planted and are not said to be must come out as invented, and faults that are
    said to be and were not planted as missed.
    """
    withheld = luck.sample(planted, min(CONTROLS, len(planted)))
    made_up = [_made_up(fault, number) for number, fault in enumerate(withheld)]
    story = [fault for fault in planted if fault not in withheld]
    judged = judge([*story, *made_up], told, allowed)
    missed = [fault for fault, _ in judged.missed]
    invented = {one for one, _ in judged.invented}
    blind = [
        f"{fault.name} was made up, and counts as found" for fault in made_up if fault not in missed
    ]
    blind += [
        f"{fault.name} was withheld, and nothing is invented"
        for fault in withheld
        if not any(one.told in invented or one.told in allowed for way in fault.ways for one in way)
    ]
    return blind


def _made_up(fault: PlantedFault, number: int) -> PlantedFault:
    """Return a fault that was not planted: elsewhere, of another kind, or for another reason."""
    change: Callable[[Sought], Sought] = (
        lambda one: replace(one, told=one.told._replace(partition=one.told.partition + 10_000)),
        lambda one: replace(one, told=one.told._replace(kind="overtaken")),
        lambda one: replace(one, words="because of nothing at all"),
    )[number % 3]
    return PlantedFault(name=fault.name, ways=tuple(tuple(map(change, way)) for way in fault.ways))


def _is_told(way: Sequence[Sought], told: Reasons) -> bool:
    return all(one.told in told and one.words in told[one.told] for one in way)


class _Near:
    """Findings by partition and offset."""

    def __init__(self, told: Reasons) -> None:
        self._by_place: defaultdict[tuple[str, str, int, bool, int], list[Told]] = defaultdict(list)
        for one in told:
            for place in _places(one):
                self._by_place[place].append(one)

    def to(self, fault: PlantedFault) -> Sequence[Told]:
        """Return what was told of the offsets of a fault."""
        places = {place for way in fault.ways for one in way for place in _places(one.told)}
        return sorted({one for place in places for one in self._by_place[place]}, key=str)


def _places(one: Told) -> Iterator[tuple[str, str, int, bool, int]]:
    for is_source, offset in ((True, one.source), (False, one.target)):
        if offset is not None:
            yield one.flow, one.topic, one.partition, is_source, offset


def table(judged: Judged) -> Iterator[str]:
    """Yield three tables: recall by fault and by topic, precision by the audit's kinds."""
    names = sorted(judged.planted)
    width = max(map(len, [*names, *judged.planted_in, *judged.told, "planted fault", "in all"]))
    yield f"{'planted fault':<{width}}  planted  found  recall"
    for name in names:
        yield _line(name, width, judged.planted[name], judged.found[name])
    yield _line("in all", width, judged.planted.total(), judged.found.total())
    yield ""
    yield f"{'kind of topic':<{width}}  planted  found  recall"
    for name in sorted(judged.planted_in):
        yield _line(name, width, judged.planted_in[name], judged.found_in[name])
    yield ""
    yield f"{'told as':<{width}}     told  right  precision"
    for kind in sorted(judged.told):
        yield _line(kind, width, judged.told[kind], judged.right[kind])
    yield _line("in all", width, judged.told.total(), judged.right.total())


def _line(name: str, width: int, whole: int, part: int) -> str:
    share = f"{part / whole:6.1%}" if whole else "     -"
    return f"{name:<{width}}  {whole:7,}  {part:5,}  {share}"


def complaints(judged: Judged, most: int = 30) -> Iterator[str]:
    """Yield what was missed, named wrongly and invented, the first of each."""
    for fault, instead in judged.missed[:most]:
        wanted = "; or ".join(", ".join(_words(one.told) for one in way[:3]) for way in fault.ways)
        said = ", ".join(map(_words, instead[:4])) or "nothing"
        yield f"MISSED {fault.name}: {wanted}; told there: {said}"
    for one, why in judged.invented[:most]:
        yield f"INVENTED {_words(one)}: {why}"
    left = len(judged.missed) + len(judged.invented) - 2 * most
    if left > 0:
        yield f"and up to {left} more"


def _words(one: Told) -> str:
    return f"{one.flow} {one.topic}-{one.partition} {one.kind} {one.source} {one.target}"
