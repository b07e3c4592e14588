"""Pair the items of two sequences that are the same: the heaviest common subsequence. Pure.

The audit uses it twice: on ranges of records (weight: their number) to find the windows in which
two logs differ, and on the records inside a window to find those that moved.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise
from typing import Final, NamedTuple, TypeAlias

MAX_CANDIDATES: Final = 4_000_000
"""How many (source, target) pairs of equal items are weighed. Beyond it (long runs of identical
records that were also disturbed) the k-th of a kind is matched with the k-th only: what is lost and
what is there twice stays exact, what moved may then be more than the least possible."""


REACH: Final = 32
"""So many items on, and through so many pairs, a better place is looked for among equal items that
others lie between."""


class Match(NamedTuple):
    """Equal items: positions in the two sequences."""

    source: int
    target: int


class _Link(NamedTuple):
    """The end of a common subsequence, with the way back."""

    pair: Match
    before: "_Link | None"


def common_subsequence(
    source: Sequence[Hashable],
    target: Sequence[Hashable],
    weights: Sequence[int] | None = None,
    *,
    max_candidates: int = MAX_CANDIDATES,
) -> list[Match]:
    """Return a common subsequence of the greatest total weight, in order.

    `weights` belong to the source's items (default 1 each); equal items must weigh the same. Of
    copies the earliest are taken, so that of two in a row the second is the surplus one.

    After Hunt and Szymanski (1977), with the weights of Jacobson and Vo (1992).
    """
    head = _equal_run(source, target)
    tail = _equal_run(source[head:][::-1], target[head:][::-1])
    source_end, target_end = len(source) - tail, len(target) - tail
    pairs = [Match(index, index) for index in range(head)]
    if head < source_end and head < target_end:
        middle = _heaviest(
            source[head:source_end],
            target[head:target_end],
            None if weights is None else weights[head:source_end],
            max_candidates,
        )
        pairs += [Match(pair.source + head, pair.target + head) for pair in middle]
    pairs += [Match(source_end + index, target_end + index) for index in range(tail)]
    positions = zip(
        _earliest(source, [pair.source for pair in pairs]),
        _earliest(target, [pair.target for pair in pairs]),
        strict=True,
    )
    return brought_together(source, target, [Match(*pair) for pair in positions])


def brought_together(
    source: Sequence[Hashable], target: Sequence[Hashable], pairs: Sequence[Match]
) -> list[Match]:
    """Return as many pairs, such that of a run of equal items the one left over lies where the
    other sequence has a stranger.

        source  a a a a a       the run is one too short on the target, where an x lies in it:
        target  a a x a a       the third a became x, not the fifth

    The same for the target's runs. Nothing changes where no stranger lies in the run. Equal items
    that others lie between are tried one by one, a few places on. Strangers that face what is left
    over never become fewer by it.
    """
    if not len(pairs) < min(len(source), len(target)):
        return list(pairs)
    known = set(source)
    all_of_source = range(len(source) + 1)
    strange = list(accumulate((item not in known for item in target), initial=0))
    there = _Side(source, all_of_source, strange).moved([(one.source, one.target) for one in pairs])
    back = _Side(target, strange, all_of_source).moved([(at, by) for by, at in there])
    return [Match(by, at) for at, by in back]


_Places: TypeAlias = Sequence[tuple[int, int]]
"""Pairs as one side has them: the item, and its counterpart."""


@dataclass(frozen=True, slots=True)
class _Side:
    """One of two sequences, of which equal items may stand for one another."""

    items: Sequence[Hashable]
    counted: Sequence[int]
    """How many of the items before each place count as left over, if they are in no pair."""
    counted_there: Sequence[int]
    """The same of the other sequence."""

    def moved(self, pairs: _Places) -> _Places:
        """Return the pairs with those moved within runs, and then over others, that may be."""
        moved = list(pairs)
        for take in (self._take_back, self._push):
            for step in range(len(moved)):
                before = moved[step - 1] if step else (-1, -1)
                mine, theirs = moved[step][0] - before[0] - 1, moved[step][1] - before[1] - 1
                if theirs > mine:
                    take(moved, step, theirs - mine)
        return moved

    def _take_back(self, moved: list[tuple[int, int]], first: int, strangers: int) -> None:
        """Leave up to so many items over before the pair `first`, from behind in its run."""
        items = self.items
        run = items[moved[first][0]]
        last = first
        while last < len(moved) and items[moved[last][0]] == run:
            following = moved[last + 1][0] if last + 1 < len(moved) else len(items)
            at = moved[last][0]
            if last > first and at != moved[last - 1][0] + 1:
                return
            spare = 0
            while spare < strangers and at + spare + 1 < following and items[at + spare + 1] == run:
                spare += 1
            if spare:
                places = [
                    (at + spare - last + number, moved[number][1])
                    for number in range(first, last + 1)
                ]
                if self._gain(moved, first, places) >= 0:
                    moved[first : last + 1] = places
                return
            last += 1

    def _push(self, moved: list[tuple[int, int]], first: int, _: int) -> None:
        """Move a pair on, and those in its way, where more that is left over is face to face then.

        source  a b a c     the first a is as good a counterpart as the second, but then two
        target  x y a c     are left over behind it on the source, and two before it on the
                            target: with the second, x stands for a and y for b
        """
        at = moved[first][0]
        best: _Places = ()
        most = 0
        for place in range(at + 1, min(at + REACH, len(self.items))):
            if self.items[place] == self.items[at]:
                places = self._pushed(moved, first, place)
                gain = self._gain(moved, first, places) if places else 0
                if gain > most:
                    best, most = places, gain
        moved[first : first + len(best)] = best

    def _pushed(self, pairs: _Places, first: int, place: int) -> _Places:
        """Return the pairs that move if `first` lies at `place`, each by as little as it must;
        none if there is no room."""
        pushed = [(place, pairs[first][1])]
        for at, by in pairs[first + 1 : first + REACH]:
            if at > place:
                return pushed
            ahead = range(place + 1, min(place + REACH, len(self.items)))
            found = next((one for one in ahead if self.items[one] == self.items[at]), None)
            if found is None:
                return ()
            place = found
            pushed.append((place, by))
        return pushed if first + len(pushed) == len(pairs) else ()

    def _gain(self, pairs: _Places, first: int, places: _Places) -> int:
        """Return how many more items are face to face with `places` for the pairs from `first`."""
        behind = first + len(places)
        before = pairs[first - 1] if first else (-1, -1)
        end = len(self.items), len(self.counted_there) - 1
        after = pairs[behind] if behind < len(pairs) else end
        now = self._face_to_face([before, *pairs[first:behind], after])
        return self._face_to_face([before, *places, after]) - now

    def _face_to_face(self, pairs: _Places) -> int:
        return sum(
            min(
                self.counted[at] - self.counted[before + 1],
                self.counted_there[by] - self.counted_there[by_before + 1],
            )
            for (before, by_before), (at, by) in pairwise(pairs)
        )


def _earliest(items: Sequence[Hashable], chosen: Sequence[int]) -> Iterator[int]:
    """Yield for each chosen position the first one behind the one before that is as good."""
    start = 0
    for position in chosen:
        while items[start] != items[position]:
            start += 1
        yield start
        start += 1


def taken_late(
    source: Sequence[Hashable], target: Sequence[Hashable], pairs: Sequence[Match], end: Match
) -> list[Match]:
    """Return as many pairs of the same items; of copies it takes the last ones before `end`.

    The first copies are missing where the beginning of a log is gone in the middle of their run.
    """
    positions = zip(
        _latest(source[: end.source], [pair.source for pair in pairs]),
        _latest(target[: end.target], [pair.target for pair in pairs]),
        strict=True,
    )
    return [Match(*pair) for pair in positions][::-1]


def brought_together_late(
    source: Sequence[Hashable], target: Sequence[Hashable], pairs: Sequence[Match]
) -> list[Match]:
    """Return `brought_together` as it is seen from the other end, for what was taken late."""

    def turned(some: Sequence[Match]) -> list[Match]:
        last = Match(len(source) - 1, len(target) - 1)
        return [Match(last.source - one.source, last.target - one.target) for one in some[::-1]]

    return turned(brought_together(source[::-1], target[::-1], turned(pairs)))


def _latest(items: Sequence[Hashable], chosen: Sequence[int]) -> Iterator[int]:
    """Yield `_earliest` as it is seen from the other end, the last position first."""
    last = len(items) - 1
    for position in _earliest(items[::-1], [last - position for position in reversed(chosen)]):
        yield last - position


def _equal_run(left: Sequence[Hashable], right: Sequence[Hashable]) -> int:
    """Return how many items both begin with in common."""
    for index, (mine, theirs) in enumerate(zip(left, right, strict=False)):
        if mine != theirs:
            return index
    return min(len(left), len(right))


def _heaviest(
    source: Sequence[Hashable],
    target: Sequence[Hashable],
    weights: Sequence[int] | None,
    max_candidates: int,
) -> list[Match]:
    # A staircase: `ends` are target positions where a subsequence ends, `totals` the best weight
    # of one that ends there or before; both strictly ascend, and `links` leads back along it.
    ends: list[int] = []
    totals: list[int] = []
    links: list[_Link] = []
    for pair in _candidates(source, target, max_candidates):
        step = bisect_left(ends, pair.target)
        before = links[step - 1] if step else None
        total = (totals[step - 1] if step else 0) + (1 if weights is None else weights[pair.source])
        worse = step
        while worse < len(ends) and totals[worse] <= total:
            worse += 1
        if worse == step and step < len(ends) and ends[step] == pair.target:
            continue
        ends[step:worse] = [pair.target]
        totals[step:worse] = [total]
        links[step:worse] = [_Link(pair, before)]
    pairs: list[Match] = []
    link = links[-1] if links else None
    while link is not None:
        pairs.append(link.pair)
        link = link.before
    return pairs[::-1]


def _candidates(
    source: Sequence[Hashable], target: Sequence[Hashable], max_candidates: int
) -> Iterator[Match]:
    """Yield pairs of equal items by source position, then from the target's end to its start.

    That order keeps a source item from being used twice in one subsequence.
    """
    candidates: defaultdict[Hashable, list[int]] = defaultdict(list)
    for position, item in enumerate(target):
        candidates[item].append(position)
    count = sum(len(candidates[item]) * times for item, times in Counter(source).items())
    if count > max_candidates:
        yield from _same_rank(source, candidates)
        return
    for position, item in enumerate(source):
        for candidate in reversed(candidates[item]):
            yield Match(position, candidate)


def _same_rank(
    source: Sequence[Hashable], candidates: dict[Hashable, list[int]]
) -> Iterator[Match]:
    seen: Counter[Hashable] = Counter()
    for position, item in enumerate(source):
        rank = seen[item]
        seen[item] += 1
        for candidate in islice(candidates[item], rank, rank + 1):
            yield Match(position, candidate)
