"""Part the gaps of a partition into chunks that a worker can hold. Pure.

    windows  |-gap-gap-|--gap--|-gap-gap-gap-|
    chunks   '-----1----------' '-----2-----'

A gap that both sides have records in is never parted, as those are held against each other. The
last chunk is settled first, because where the records in flight begin bears on all others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from spark_audit.compare.outcomes import Gap, WindowGaps


def unmatched(windows: Sequence[WindowGaps]) -> int:
    """Return how many records these windows leave unmatched."""
    return sum(_size(gap) for window in windows for gap in window.gaps)


def chunks_of(windows: Sequence[WindowGaps], most: int) -> Iterator[list[WindowGaps]]:
    """Yield the windows in chunks of at most so many records, the last one first.

    A gap of both sides with more of them makes a chunk of its own.
    """
    chunk: list[WindowGaps] = []
    records = 0
    for window in reversed(windows):
        gaps: list[Gap] = []
        for gap in reversed([part for whole in window.gaps for part in _parts(whole, most)]):
            if records and records + _size(gap) > most:
                yield _with(window, gaps, chunk)
                chunk, gaps, records = [], [], 0
            gaps.append(gap)
            records += _size(gap)
        chunk = _with(window, gaps, chunk)
    if chunk:
        yield chunk


def _parts(gap: Gap, most: int) -> Iterator[Gap]:
    """Yield a gap, or the parts of one that is too large and of one side."""
    if _size(gap) <= most or (gap.source and gap.target):
        yield gap
        return
    for at in range(0, _size(gap), most):
        yield replace(
            gap,
            source=gap.source[at : at + most],
            target=gap.target[at : at + most],
            skipped=gap.skipped + at,
        )


def _with(
    window: WindowGaps, last_first: Sequence[Gap], behind: list[WindowGaps]
) -> list[WindowGaps]:
    """Return a chunk with some gaps of a window before what it has."""
    if not last_first:
        return behind
    gaps = tuple(reversed(last_first))
    targets = {offset for gap in gaps for offset in gap.target}
    known = {at: first for at, first in window.known.items() if at in targets}
    return [replace(window, gaps=gaps, known=known), *behind]


def _size(gap: Gap) -> int:
    return len(gap.source) + len(gap.target)
