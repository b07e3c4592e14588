"""Partitions of equal logs, with groups' positions and a map of which some are wrong."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random

from offset_translation import NotYet, OffsetMap, translate
from spark_audit.snapshot.bounds import GroupPlace
from tests.drill.audit.items import Expected, Fault, Hole, Whole, Writing, items_of
from tests.drill.audit.partitions import Planted, TopicKind, laid_down


def plan_mapped(luck: Random, kind: TopicKind, number: int, now_ms: int) -> Planted:
    """Return a partition of equal logs, with groups' positions and a map, some of them wrong."""
    writing = Writing(luck=luck, now_ms=now_ms - 600_000)
    for _ in range(luck.randint(2, 6)):
        writing.clean(luck.choice((10, 60, 300, 900)) + 20)
        if kind.is_compacted:
            writing.sides[0].append(Hole(luck.randint(1, 9)))
        elif kind.is_transactional:
            aborted = tuple(writing.items(0, luck.randint(1, 4)))
            writing.sides[0].append(Whole(items=aborted, is_aborted=True))
    writing.clean(30)
    planted = laid_down(luck, kind, number, writing)
    source, target = planted.sides
    truth = {source.offsets[id(one)]: target.offsets[id(one)] for one in items_of(writing.sides[1])}
    planted.places = tuple(_places(luck, planted, truth))
    planted.pieces = _pieces(truth)
    if len(planted.pieces) > 1 and luck.random() < 0.75:
        _spoil(luck, planted, truth)
    return planted


def _places(luck: Random, planted: Planted, truth: Mapping[int, int]) -> Iterator[GroupPlace]:
    offsets = sorted(truth)
    stop = planted.sides[1].log.stop
    told: set[tuple[int, int]] = set()
    for number in range(6):
        at = luck.choice(offsets[:-1])
        exact = truth[at]
        name = f"group-{number}"
        match number % 3:
            case 0:
                yield GroupPlace(name, at, exact)
            case 1:
                yield GroupPlace(name, at, luck.randint(0, exact))
            case _:
                far = luck.choice((exact + 1, luck.randint(exact + 1, stop), stop + 7))
                if (at, far) in told:
                    continue  # the judge tells findings apart by their offsets
                told.add((at, far))
                place = GroupPlace(name, at, far)
                yield place
                planted.faults.append(Fault(name="position too far", ways=[[_told(place)]]))


def _told(place: GroupPlace) -> Expected:
    return Expected(
        kind="position too far",
        origin=0,
        source=(0, Fixed(place.source)),
        target=(1, Fixed(place.target)),
        words=place.group,
    )


@dataclass(eq=False, slots=True)
class Fixed(Hole):
    """An offset that was chosen when everything lay there."""


def _pieces(truth: Mapping[int, int]) -> list[tuple[int, int]]:
    pieces: list[tuple[int, int]] = []
    before = (-1, -1)
    for here, there in sorted(truth.items()):
        if (here, there) != (before[0] + 1, before[1] + 1) or not pieces:
            pieces.append((here, there))
        before = (here, there)
    return pieces


def _spoil(luck: Random, planted: Planted, truth: Mapping[int, int]) -> None:
    """Move, remove or make a piece of the map; expect the first record that it moves."""
    assert planted.pieces is not None, "the map was made before"
    pieces = list(planted.pieces)
    number = luck.randrange(1, len(pieces))
    here, there = pieces[number]
    match luck.choice(("source", "place", "gone", "made")):
        case "source":
            pieces[number] = (here - 1, there)
        case "place":
            pieces[number] = (here, there + 1)
        case "gone":
            del pieces[number]
        case _:
            pieces.insert(number, (here - 1, there - 1) if here > 1 else (here, there))
    stop = planted.sides[1].log.stop
    try:
        spoilt = OffsetMap.from_starts(pieces, stop)
    except ValueError:
        return
    wrong = sorted(one for one in truth if _mapped_to(spoilt, one) not in {truth[one], None})
    if not wrong:
        return
    planted.pieces = pieces
    first, *rest = wrong
    expected = Expected(
        kind="mapped wrongly",
        origin=0,
        source=(0, Fixed(first)),
        target=(1, Fixed(truth[first])),
    )
    planted.allowed |= {("mapped wrongly", one, truth[one]) for one in rest}
    planted.faults.append(Fault(name="wrong piece of the map", ways=[[expected]]))


def _mapped_to(offset_map: OffsetMap, at: int) -> int | None:
    """Return what a map says of an offset; nothing where it was trimmed, which is no fault."""
    mapped = translate(offset_map, at)
    if mapped is NotYet.FORGOTTEN:
        return None
    return -1 if isinstance(mapped, NotYet) else mapped
