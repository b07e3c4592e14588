"""Whether a target holds what its source holds. Pure, and independent of the mirror."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from tests.drill.checker import Kind, Offence

PHANTOM = "PHANTOM"
UNKNOWN = -1
"""Where on the source a record was that nobody was acknowledged, and that is compacted away."""


Contents: TypeAlias = Mapping[str, Mapping[int, str]]
"""What is in each log, by offset."""


def compare(source: Contents, target: Contents) -> list[Offence]:
    """Return how the target differs from "each source record once, in order"; by log."""
    return sorted(
        offence
        for log in source.keys() | target.keys()
        for offence in _compare(log, source.get(log, {}), target.get(log, {}))
    )


def _compare(log: str, source: Mapping[int, str], target: Mapping[int, str]) -> Iterator[Offence]:
    wanted = [content for _, content in sorted(source.items())]
    present = Counter(target.values())
    for offset, content in sorted(source.items()):
        if content not in present:
            yield Offence(Kind.LOST.name, log, offset, f"{content} is not on the target")
    places = {content: place for place, content in enumerate(wanted)}
    seen: dict[str, int] = {}
    furthest = -1
    for offset, content in sorted(target.items()):
        place = places.get(content)
        if place is None:
            yield Offence(PHANTOM, log, offset, f"{content} is not on the source")
        elif content in seen:
            says = f"{content} is at {seen[content]} already"
            yield Offence(Kind.DUPLICATE.name, log, offset, says)
        elif place < furthest:
            says = f"{content}, which is record {place} of the source, comes after {furthest}"
            yield Offence(Kind.REORDERED.name, log, offset, says)
        seen.setdefault(content, offset)
        furthest = max(furthest, -1 if place is None else place)


def compare_compacted(source: Contents, target: Contents, written: Contents) -> list[Offence]:
    """Return how a target that keeps everything differs from a source that is compacted; by log.

    `written` tells what was acknowledged at which source offset, before it was compacted away.
    What the source still has must be there; what it has no longer may be, where a later record of
    its key took its place. Contents end with their key (tests.drill.history.keyed).
    """
    return sorted(
        offence
        for log in source.keys() | target.keys()
        for offence in _compare_compacted(
            log, source.get(log, {}), target.get(log, {}), written.get(log, {})
        )
    )


def _compare_compacted(
    log: str,
    source: Mapping[int, str],
    target: Mapping[int, str],
    written: Mapping[int, str],
) -> Iterator[Offence]:
    offsets = {content: offset for offset, content in (*written.items(), *source.items())}
    latest = {_key(content): offset for offset, content in sorted(source.items())}
    kept, present = set(source.values()), set(target.values())
    for offset, content in sorted(source.items()):
        if content not in present:
            yield Offence(Kind.LOST.name, log, offset, f"{content} is not on the target")
    seen: dict[str, int] = {}
    furthest = -1
    for at, content in sorted(target.items()):
        offset = offsets.get(content, UNKNOWN)
        if content in seen:
            says = f"{content} is at {seen[content]} already"
            yield Offence(Kind.DUPLICATE.name, log, at, says)
        elif content not in kept and latest.get(_key(content), UNKNOWN) <= offset:
            says = f"{content} is not on the source, nor has a later record taken its place"
            yield Offence(PHANTOM, log, at, says)
        elif UNKNOWN < offset < furthest:
            says = f"{content}, which is at {offset} of the source, comes after {furthest}"
            yield Offence(Kind.REORDERED.name, log, at, says)
        seen.setdefault(content, at)
        furthest = max(furthest, offset)


def _key(content: str) -> str:
    return content.rpartition(" ")[2]
