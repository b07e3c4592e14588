"""Pair two logs that differ only by what retention took and what is not mirrored yet. Pure.

    source      |--abc--|    of aabaabc; aaba is gone
    target  |--aabaab--|     c is in flight

Equal records do not tell by themselves which of them is there. Where the logs agree like this,
nothing was lost, although the counts of equal records differ.
"""

from collections.abc import Sequence

from spark_audit.scan.alignment import Match


def pairs_if_only_cut(
    source: Sequence[bytes], target: Sequence[bytes], *, is_last: bool, gone: int, taken: int = 0
) -> list[Match] | None:
    """Return which of the two logs' records are the same, None if the logs differ otherwise.

    The sequences begin with the oldest records that both logs still hold. The source has lost
    `gone` records at most, the target `taken`. Unless `is_last`, equal records follow behind the
    sequences.
    """
    if not is_last:
        shift = len(target) - len(source)
        return _paired(source, target, shift, gone) if source and target else None
    matched = _matched(source, target)
    whole = None
    if target and len(target) in matched:
        before = matched.index(len(target)) + 1 - len(target)
        whole = _paired(source, target, -before, gone)
        if before <= taken:
            return whole
    # What the target ends with may be what the source begins with.
    common = _matched(target, source)[-1] if source and target else 0
    overlap = _paired(source, target, len(target) - common, gone) if common else None
    return whole if overlap is None else overlap


def _paired(
    source: Sequence[bytes], target: Sequence[bytes], shift: int, gone: int
) -> list[Match] | None:
    """Return the pairs at this distance, if all that lies beside each other is equal."""
    if shift > gone:
        return None
    first, last = max(0, -shift), min(len(source), len(target) - shift)
    if any(source[index] != target[index + shift] for index in range(first, last)):
        return None
    return [Match(index, index + shift) for index in range(first, last)]


def _matched(text: Sequence[bytes], pattern: Sequence[bytes]) -> list[int]:
    """Return for each position of a text how much of a pattern's beginning ends there.

    After Knuth, Morris and Pratt (1977).
    """
    borders = [0]
    for item in pattern[1:]:
        length = borders[-1]
        while length and pattern[length] != item:
            length = borders[length - 1]
        borders.append(length + (pattern[length] == item))
    lengths: list[int] = []
    length = 0
    for item in text:
        if length == len(pattern):
            length = borders[-1] if pattern else 0
        while length and pattern[length] != item:
            length = borders[length - 1]
        length += bool(pattern) and pattern[length] == item
        lengths.append(length)
    return lengths
