"""The fate of every record, computed from the ledgers and the surviving log. Pure."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TypeAlias

from demo.ledger import UNTOLD, Delivery
from wire.values import frozen

Partition: TypeAlias = int
RecordOffset: TypeAlias = tuple[Partition, int]
"""A partition and an offset."""


@frozen
class DemoEvidence:
    """All that the verdict rests on.

    `acknowledged`: where each record was acknowledged, by its number; `deliveries`: by time, all
    consumers together; `survivors`: the numbers in the surviving site's log, by partition in log
    order; `committed`: the group's last acknowledged commit per partition on the lost or left site;
    `listed`: where the audit says that records are lost.
    """

    acknowledged: Mapping[int, RecordOffset]
    deliveries: tuple[Delivery, ...]
    survivors: Mapping[Partition, tuple[int, ...]]
    committed: Mapping[Partition, int]
    listed: frozenset[RecordOffset]
    left_site: str


@frozen
class DemoVerdict:
    """The last line of the demo."""

    records: int
    consumed: int
    lost: int
    listed_lost: int
    duplicated: int
    reordered: int
    reread: int
    uncommitted: int
    rto_s: float
    mirror_cpu_s_per_gib: float
    audit: str

    def json(self) -> str:
        """Return the one line."""
        return json.dumps(asdict(self))


def lost(evidence: DemoEvidence) -> int:
    """Return how many acknowledged records the surviving log does not hold."""
    return len(_lost_places(evidence))


def misnamed(evidence: DemoEvidence) -> int:
    """Return how many places are lost and not listed, or listed and not lost.

    A lost record whose producer was told no offset may be any one of its partition.
    """
    places = _lost_places(evidence)
    told = {place for place in places if place[1] != UNTOLD}
    untold = Counter(partition for partition, offset in places if offset == UNTOLD)
    others = Counter(partition for partition, _ in evidence.listed - told)
    return len(told - evidence.listed) + (others - untold).total() + (untold - others).total()


def _lost_places(evidence: DemoEvidence) -> list[RecordOffset]:
    surviving = {number for numbers in evidence.survivors.values() for number in numbers}
    return [place for number, place in evidence.acknowledged.items() if number not in surviving]


def duplicated(evidence: DemoEvidence) -> int:
    """Return how many records the surviving log holds beyond the first of each."""
    copies = Counter(number for numbers in evidence.survivors.values() for number in numbers)
    return sum(count - 1 for count in copies.values())


def consumed(evidence: DemoEvidence) -> int:
    """Return how many different records the group was given."""
    return len({delivery.number for delivery in evidence.deliveries})


def skipped(evidence: DemoEvidence) -> int:
    """Return how many records of the surviving log the group was never given."""
    given = {delivery.number for delivery in evidence.deliveries}
    return len({number for numbers in evidence.survivors.values() for number in numbers} - given)


def reread(evidence: DemoEvidence) -> int:
    """Return how many deliveries brought a record that the group had been given before."""
    return len(evidence.deliveries) - consumed(evidence)


def reordered(evidence: DemoEvidence) -> int:
    """Return how many records came, for the first time, after a later record of the same key."""
    return sum(_late(evidence.deliveries))


def uncommitted(evidence: DemoEvidence) -> int:
    """Return how many deliveries the group had not committed when it left its site."""
    return sum(
        delivery.site == evidence.left_site
        and delivery.offset >= evidence.committed.get(delivery.partition, 0)
        for delivery in evidence.deliveries
    )


def broken_promises(
    verdict: DemoVerdict, *, disaster: bool, misnamed: int = 0, skipped: int = 0
) -> list[str]:
    """Return a sentence for each promise that did not hold; none means the demo succeeded."""
    held = {
        f"{verdict.duplicated} records stand twice in the surviving log": verdict.duplicated == 0,
        f"{verdict.reordered} records came out of their key's order": verdict.reordered == 0,
        f"{verdict.lost} records are lost but {verdict.listed_lost} are listed as lost": (
            verdict.lost == verdict.listed_lost
        ),
        f"{skipped} records stand in the surviving log and were never consumed": skipped == 0,
        f"{misnamed} places are lost and not listed, or listed and not lost": misnamed == 0,
        f"{verdict.reread} records were read again, {verdict.uncommitted} were not committed": (
            verdict.reread <= verdict.uncommitted if disaster else verdict.reread == 0
        ),
        f"only {verdict.consumed} of {verdict.records} records were consumed": (
            verdict.records - verdict.lost <= verdict.consumed <= verdict.records
        ),
        f"the audit says {verdict.audit}": (
            verdict.audit == ("findings" if verdict.lost else "clean")
        ),
        f"{verdict.lost} records are lost in a planned switch-over": disaster or verdict.lost == 0,
    }
    return [sentence for sentence, holds in held.items() if not holds]


def _late(deliveries: Iterable[Delivery]) -> Iterable[bool]:
    latest: dict[str, int] = {}
    seen: set[int] = set()
    for delivery in deliveries:
        if delivery.number in seen:
            continue
        seen.add(delivery.number)
        yield delivery.number < latest.get(delivery.key, -1)
        latest[delivery.key] = max(delivery.number, latest.get(delivery.key, -1))
