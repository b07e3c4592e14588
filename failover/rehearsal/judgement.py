"""What became of each record of a rehearsal, and for how long nobody wrote or read. Pure.

It rests on what the load has seen and on both sites' logs, and on nothing that a promotion says.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, Final, Self, TypeAlias

from failover.rehearsal.seen import LoadSeen, Sighting
from runtime.untrusted_json import whole_number
from wire.values import frozen

Numbers: TypeAlias = Mapping[int, Sequence[int]]
"""The numbers of a rehearsal's records on a site, by partition, as they lie there."""


@frozen
class LoadVerdict:
    """Counts of records; all but the first are zero where nothing went wrong."""

    acknowledged: int
    lost: int
    """Acknowledged, and not on the site that is active in the end."""
    doubled: int
    """On it more than once, beyond the first."""
    out_of_order: int
    """On it behind a later one of their partition."""
    unsettled: int
    """Neither acknowledged nor refused when the load ended."""
    refused: int
    reread: int
    """Handed out again."""
    unread: int
    """On the active site, and never handed out."""
    uncopied: int
    """On the active site, and not on the other one."""

    def faults(self) -> Mapping[str, int]:
        """Return what went wrong, by name."""
        counts = {name: count for name, count in asdict(self).items() if name != "acknowledged"}
        return {name: count for name, count in counts.items() if count}

    @classmethod
    def of_document(cls, found: Mapping[str, Any]) -> Self:
        """Return what a JSON form says; raises ValueError, KeyError and TypeError."""
        return cls(**{one.name: whole_number(found[one.name]) for one in fields(cls)})


WORDS: Final[Mapping[str, str]] = {
    "lost": "acknowledged and lost",
    "doubled": "written twice",
    "out_of_order": "out of order",
    "unsettled": "neither acknowledged nor refused",
    "refused": "refused",
    "reread": "read again",
    "unread": "never read",
    "uncopied": "not on the other site",
}
"""The counts that should be zero, as people are told of them."""


def judge_load(seen: LoadSeen, active: Numbers, other: Numbers) -> LoadVerdict:
    """Return what became of the records, by the logs of the active site and of the other one."""
    acknowledged = {one.number for one in seen.acknowledged}
    copies = Counter(number for numbers in active.values() for number in numbers)
    handed_out = Counter(one.number for one in seen.delivered)
    copied = {number for numbers in other.values() for number in numbers}
    return LoadVerdict(
        acknowledged=len(acknowledged),
        lost=len(acknowledged - copies.keys()),
        doubled=copies.total() - len(copies),
        out_of_order=sum(_late(numbers) for numbers in active.values()),
        unsettled=seen.unsettled,
        refused=len(seen.refused),
        reread=handed_out.total() - len(handed_out),
        unread=len(copies.keys() - handed_out.keys()),
        uncopied=len(copies.keys() - copied),
    )


def standstill_ms(sightings: Sequence[Sighting], site: str, began_ms: int) -> int | None:
    """Return for how long nothing was seen around the change to a site, behind a moment.

    None where nothing was seen on that site since, or nothing on another one before.
    """
    last: Sighting | None = None
    for one in sightings:
        if one.site != site:
            last = one
        elif one.at_ms >= began_ms:
            return None if last is None else max(0, one.at_ms - last.at_ms)
    return None


def _late(numbers: Sequence[int]) -> int:
    """Return how many come, for the first time, behind a later one."""
    late, latest, known = 0, -1, set[int]()
    for number in numbers:
        late += number < latest and number not in known
        known.add(number)
        latest = max(latest, number)
    return late
