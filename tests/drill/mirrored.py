"""Whether a target holds what its source holds. Pure, and independent of the mirror."""

from collections import Counter
from collections.abc import Iterator, Mapping

from tests.drill.checker import Kind, Offence

PHANTOM = "PHANTOM"


def compare(
    source: Mapping[str, Mapping[int, str]], target: Mapping[str, Mapping[int, str]]
) -> list[Offence]:
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
