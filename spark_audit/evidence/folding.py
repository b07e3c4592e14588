"""What both sites remember alike is one range for an audit, however long it is. Pure.

    source  |=1=|=2=|=3=|=4=| ... |=9=|--x--|       2 to 8 become one range on both sides: their
    target  |=1=|=2=|=3=|=4=| ... |=9=|             digests follow from those of the links

Links with holes are left as they are: what a hole explains is judged one by one. So are the edges,
by which a range that is equal by chance is told from others (`windows`).
"""

from typing import Final

import numpy as np
from xxhash import xxh3_128_digest

from spark_audit.evidence.chain import Chain, Column
from spark_audit.scan.scan_rows import RowKind, ScanRow

LEAST_LINKS: Final = 16
"""Fewer are not worth it."""
_EDGE: Final = 2
"""So many links beside what is folded stay as they are, at each end."""


def folded(source: Chain, target: Chain) -> tuple[list[ScanRow], list[ScanRow]]:
    """Return the rows of both chains, in which a long part that is alike is one range."""
    if min(len(source), len(target)) < LEAST_LINKS + 2 * _EDGE:
        return source.rows(), target.rows()
    begins = _beginnings(source.digests, target.digests)
    if begins is None:
        return source.rows(), target.rows()
    alike = _alike(source[begins[0] :], target[begins[1] :])
    if len(alike) < LEAST_LINKS:
        return source.rows(), target.rows()
    ours, theirs = (
        _folded(chain, range(begin + alike.start, begin + alike.stop))
        for chain, begin in zip((source, target), begins, strict=True)
    )
    return ours, theirs


def _beginnings(source: Column, target: Column) -> tuple[int, int] | None:
    """Return the numbers of the first links that are alike; None if one begins within the other
    in more ways than one, or in none.

    Retention takes the beginning of one log before it takes the other's.
    """
    if (source[0] == target[0]).all():
        return 0, 0
    for begin, longer, shorter in ((0, source, target), (1, target, source)):
        places = np.flatnonzero((longer == shorter[0]).all(axis=1))
        if len(places) == 1 and not np.isin(longer[: places[0], 0], shorter[:, 0]).any():
            number = int(places[0])
            return (number, 0) if begin == 0 else (0, number)
    return None


def _alike(source: Chain, target: Chain) -> range:
    """Return the numbers of the links that may be one: from the first on, up to what differs."""
    count = min(len(source), len(target))
    ours, theirs = source.digests, target.digests
    is_alike = (ours[:count] == theirs[:count]).all(axis=1)
    is_alike &= source.are_plain[:count] & target.are_plain[:count]
    differs = np.flatnonzero(~is_alike)
    start, stop = _EDGE, (int(differs[0]) if len(differs) else count) - _EDGE
    # Of ranges that are copies of each other the other log may have another number: none of these
    # is divided.
    while start < stop and (ours[start] == ours[start - 1]).all():
        start += 1
    while start < stop and (ours[stop] == ours[stop - 1]).all():
        stop -= 1
    return range(start, max(start, stop))


def _folded(chain: Chain, numbers: range) -> list[ScanRow]:
    first, last = chain[numbers.start].rows[-1], chain[numbers.stop - 1].rows[-1]
    one = ScanRow(
        RowKind.RANGE.value,
        first.start_offset,
        last.stop_offset,
        last.stop_offset - first.start_offset,
        xxh3_128_digest(chain.digests[numbers.start : numbers.stop].tobytes()),
        first.timestamp_ms,
        leader_epoch=last.leader_epoch,
    )
    return [*chain[: numbers.start].rows(), one, *chain[numbers.stop :].rows()]
