"""What of two sites' evidence one audit of a flow may believe. Pure.

Where both directions have run, a log's records are told apart by who brought them, and evidence is
of whole logs: such flows are read.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from spark_audit.evidence.belief import AskedLinks, Disbelief, considered, proven, wrong_cluster
from spark_audit.evidence.chain import Chain
from spark_audit.evidence.remembered import Remembered
from spark_audit.snapshot.bounds import PartitionBounds, Snapshot
from spark_audit.snapshot.seals import CannotTell
from spark_audit.snapshot.side import Side
from wire.errors import ErrorCode
from wire.net.partition_operations import EpochEnd
from wire.topic_partition import TopicPartition

SIDES = (Side.SOURCE, Side.TARGET)


@dataclass(frozen=True, slots=True, kw_only=True)
class Considered:
    """The links that may be believed, by log as its cluster calls it, and why others' partitions
    are not compared.
    """

    asked: Mapping[tuple[Side, TopicPartition], AskedLinks]
    untold: Mapping[TopicPartition, str]

    def epochs(self, side: Side) -> dict[TopicPartition, int]:
        """Return the epochs to ask the leaders of one side for."""
        return {place: one.epoch for (of, place), one in self.asked.items() if of is side}


@dataclass(frozen=True, slots=True, kw_only=True)
class Believed:
    """The links that are there still, by log, and why others' partitions are not compared."""

    kept: Mapping[tuple[Side, TopicPartition], Chain]
    untold: Mapping[TopicPartition, str]


def site_of(snapshot: Snapshot, side: Side) -> str:
    """Return the site that has the log of a side."""
    return snapshot.source if side is Side.SOURCE else snapshot.target


def consider(snapshot: Snapshot, told: Remembered) -> Considered:
    """Return what to ask the leaders of both sides about.

    Raises CannotTell for evidence of another cluster.
    """
    for side in SIDES:
        site = site_of(snapshot, side)
        wrong = site in told and wrong_cluster(site, told[site], snapshot.cluster_ids.get(site))
        if wrong:
            raise CannotTell(wrong)
    asked: dict[tuple[Side, TopicPartition], AskedLinks] = {}
    untold: dict[TopicPartition, str] = {}
    for side, bounds, one in _each(snapshot, told):
        if isinstance(one, AskedLinks):
            asked[side, bounds.place(side)] = one
        elif isinstance(one, Disbelief):
            untold.setdefault(bounds.place(Side.SOURCE), one.why)
    return Considered(asked=asked, untold=untold)


def _each(
    snapshot: Snapshot, told: Remembered
) -> Iterator[tuple[Side, PartitionBounds, AskedLinks | Disbelief | None]]:
    for bounds in snapshot.partitions:
        for side in SIDES:
            site = site_of(snapshot, side)
            if site in told and bounds.part(side) is None:
                log, start, stop = bounds.side(side)
                known = told[site].logs.get(bounds.place(side))
                yield side, bounds, considered(site, known, log, start, stop, snapshot.told_set)


def believe(
    snapshot: Snapshot,
    considered_logs: Considered,
    answers: Mapping[Side, Mapping[TopicPartition, EpochEnd | ErrorCode]],
) -> Believed:
    """Return what the leaders' answers prove."""
    kept: dict[tuple[Side, TopicPartition], Chain] = {}
    untold = dict(considered_logs.untold)
    for bounds, side in product(snapshot.partitions, SIDES):
        place, there = bounds.place(Side.SOURCE), bounds.place(side)
        asked = considered_logs.asked.get((side, there))
        if asked is None:
            continue
        found = proven(site_of(snapshot, side), asked, answers[side].get(there), snapshot.told_set)
        if isinstance(found, Disbelief):
            untold.setdefault(place, f"{there}: {found.why}")
        else:
            kept[side, place] = found
    return Believed(kept=kept, untold=untold)
