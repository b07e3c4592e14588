"""Pair the items of two sequences that are the same: the heaviest common subsequence. Pure.

The audit uses it twice: on ranges of records (weight: their number) to find the windows in which
two logs differ, and on the records inside a window to find those that moved.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

MAX_CANDIDATES: Final = 4_000_000
"""How many (source, target) pairs of equal items are weighed. Beyond it (long runs of identical
records that were also disturbed) the k-th of a kind is matched with the k-th only: what is lost and
what is there twice stays exact, what moved may then be more than the least possible."""


class Pair(NamedTuple):
    """Equal items: positions in the two sequences."""

    source: int
    target: int


class _Link(NamedTuple):
    """The end of a common subsequence, with the way back."""

    pair: Pair
    before: "_Link | None"


def common_subsequence(
    source: Sequence[Hashable],
    target: Sequence[Hashable],
    weights: Sequence[int] | None = None,
    *,
    max_candidates: int = MAX_CANDIDATES,
) -> list[Pair]:
    """Return a common subsequence of the greatest total weight, in order.

    `weights` belong to the source's items (default 1 each); equal items must weigh the same. Of
    copies the earliest are taken, so that of two in a row the second is the surplus one.

    After Hunt and Szymanski (1977), with the weights of Jacobson and Vo (1992).
    """
    head = _equal_run(source, target)
    tail = _equal_run(source[head:][::-1], target[head:][::-1])
    source_end, target_end = len(source) - tail, len(target) - tail
    pairs = [Pair(index, index) for index in range(head)]
    if head < source_end and head < target_end:
        middle = _heaviest(
            source[head:source_end],
            target[head:target_end],
            None if weights is None else weights[head:source_end],
            max_candidates,
        )
        pairs += [Pair(pair.source + head, pair.target + head) for pair in middle]
    pairs += [Pair(source_end + index, target_end + index) for index in range(tail)]
    positions = zip(
        _earliest(source, [pair.source for pair in pairs]),
        _earliest(target, [pair.target for pair in pairs]),
        strict=True,
    )
    return brought_together(source, target, [Pair(*pair) for pair in positions])


def brought_together(
    source: Sequence[Hashable], target: Sequence[Hashable], pairs: Sequence[Pair]
) -> list[Pair]:
    """Return as many pairs, such that of a run of equal items the one left over lies where the
    other sequence has a stranger.

        source  a a a a a       the run is one too short on the target, where an x lies in it:
        target  a a x a a       the third a became x, not the fifth

    The same for the target's runs. Nothing changes where no stranger lies in the run.
    """
    there = _moved_to_strangers(source, [(pair.source, pair.target) for pair in pairs])
    back = _moved_to_strangers(target, [(at, by) for by, at in there])
    return [Pair(by, at) for at, by in back]


def _moved_to_strangers(
    items: Sequence[Hashable], pairs: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return the pairs with those of `items` moved within runs; (item, counterpart) each."""
    moved = list(pairs)
    step = 0
    while step < len(moved):
        before = moved[step - 1] if step else (-1, -1)
        mine, theirs = moved[step][0] - before[0] - 1, moved[step][1] - before[1] - 1
        if theirs > mine:
            _take_back(items, moved, step, theirs - mine)
        step += 1
    return moved


def _take_back(
    items: Sequence[Hashable], moved: list[tuple[int, int]], first: int, strangers: int
) -> None:
    """Leave up to so many items over before the pair `first`, taken from behind in its run."""
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
            moved[first : last + 1] = [
                (at + spare - last + number, moved[number][1]) for number in range(first, last + 1)
            ]
            return
        last += 1


def _earliest(items: Sequence[Hashable], chosen: Sequence[int]) -> Iterator[int]:
    """Yield for each chosen position the first one behind the one before that is as good."""
    start = 0
    for position in chosen:
        while items[start] != items[position]:
            start += 1
        yield start
        start += 1


def taken_late(
    source: Sequence[Hashable], target: Sequence[Hashable], pairs: Sequence[Pair], end: Pair
) -> list[Pair]:
    """Return as many pairs of the same items; of copies it takes the last ones before `end`.

    The first copies are missing where the beginning of a log is gone in the middle of their run.
    """
    positions = zip(
        _latest(source[: end.source], [pair.source for pair in pairs]),
        _latest(target[: end.target], [pair.target for pair in pairs]),
        strict=True,
    )
    return [Pair(*pair) for pair in positions][::-1]


def brought_together_late(
    source: Sequence[Hashable], target: Sequence[Hashable], pairs: Sequence[Pair]
) -> list[Pair]:
    """Return `brought_together` as it is seen from the other end, for what was taken late."""

    def turned(some: Sequence[Pair]) -> list[Pair]:
        last = Pair(len(source) - 1, len(target) - 1)
        return [Pair(last.source - one.source, last.target - one.target) for one in some[::-1]]

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
) -> list[Pair]:
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
    pairs: list[Pair] = []
    link = links[-1] if links else None
    while link is not None:
        pairs.append(link.pair)
        link = link.before
    return pairs[::-1]


def _candidates(
    source: Sequence[Hashable], target: Sequence[Hashable], max_candidates: int
) -> Iterator[Pair]:
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
            yield Pair(position, candidate)


def _same_rank(source: Sequence[Hashable], candidates: dict[Hashable, list[int]]) -> Iterator[Pair]:
    seen: Counter[Hashable] = Counter()
    for position, item in enumerate(source):
        rank = seen[item]
        seen[item] += 1
        for candidate in islice(candidates[item], rank, rank + 1):
            yield Pair(position, candidate)
