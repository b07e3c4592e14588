"""Audit what was planted over logs in memory: everything but the network, Spark and the disk."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from spark_audit.flow_audit import audit_flow
from spark_audit.snapshot.bounds import Promise, Snapshot
from spark_audit.snapshot.origins import Brought
from tests.drill.audit.items import Expected, SidedPiece
from tests.drill.audit.judging import PlantedFault, Sought, Told, told_by
from tests.drill.audit.laying import MIRRORS, Laid, damaged
from tests.drill.audit.mapping import Fixed
from tests.drill.audit.partitions import Planted
from tests.spark_audit.audits import planner_of
from tests.spark_audit.logs import MemoryReader, Pair, Pairs, snapshot_of

FLOWS: Final = ("dc1->dc2", "dc2->dc1")
"""By the site that writes."""


def told_in_memory(planted: Sequence[Planted], now_ms: int) -> dict[Told, str]:
    """Return what an audit of these partitions finds, of both directions where both have run."""
    for one in planted:
        for laid in one.sides:
            _damage(laid)
    ahead = {(one.topic, one.partition): _pair(one) for one in planted if not one.kind.both_ways}
    both = {(one.topic, one.partition): _pair(one) for one in planted if one.kind.both_ways}
    back = {
        place: Pair(pair.target, pair.source, to_source=pair.to_target, to_target=pair.to_source)
        for place, pair in both.items()
    }
    rows: list[Any] = []
    if ahead:
        rows += _audited(_snapshot(ahead, 0, now_ms), ahead)[0]
    if both:
        found, mirrored = _audited(_snapshot(both, 0, now_ms), both)
        rows += found
        rows += _audited(_snapshot(back, 1, now_ms), back, way_back=mirrored)[0]
    return told_by(rows)


def _audited(snapshot: Snapshot, pairs: Pairs, way_back: Any = None) -> tuple[Any, Any]:
    result = audit_flow(MemoryReader(pairs), snapshot, planner_of(snapshot), way_back=way_back)
    assert not result.untold, result.untold
    return result.findings, result.mirrored


def _snapshot(pairs: Pairs, origin: int, now_ms: int) -> Snapshot:
    source, target = FLOWS[origin].split("->")
    return replace(
        snapshot_of(pairs), flow=FLOWS[origin], source=source, target=target, taken_ms=now_ms
    )


def _damage(laid: Laid) -> None:
    for number in laid.damaged:
        end, batch = laid.log.batches[number]
        laid.log.batches[number] = end, damaged(batch)


def _pair(planted: Planted) -> Pair:
    source, target = (laid.log for laid in planted.sides)
    ours, theirs = (Brought(producer_ids=frozenset({one})) for one in MIRRORS)
    is_both = planted.kind.both_ways
    return Pair(
        source,
        target,
        promise=None if planted.promised is None else Promise(source_end=planted.promised, at_ms=0),
        to_source=theirs if is_both else None,
        to_target=ours if is_both else None,
        places=planted.places,
        pieces=planted.pieces,
    )


def expected_of(planted: Iterable[Planted]) -> list[PlantedFault]:
    """Return the faults with the offsets at which they came to lie."""
    return [
        PlantedFault(
            name=fault.name,
            ways=tuple(
                tuple(Sought(_told(one, partition), one.words) for one in way) for way in fault.ways
            ),
        )
        for partition in planted
        for fault in partition.faults
    ]


def allowed_of(planted: Iterable[Planted]) -> frozenset[Told]:
    """Return what may be told beside the faults.

    Whose records a hole or a corrupt batch had, nobody knows: both directions tell it.
    """
    of_maps = {
        Told(FLOWS[0], one.topic, one.partition, *allowed)
        for one in planted
        for allowed in one.allowed
    }
    of_both = {
        told._replace(
            flow=FLOWS[1 - FLOWS.index(told.flow)], source=told.target, target=told.source
        )
        for partition in planted
        if partition.kind.both_ways
        for fault in partition.faults
        for way in fault.ways
        for one in way
        if one.kind in {"hole", "corrupt"}
        for told in [_told(one, partition)]
    }
    return frozenset(of_maps | of_both)


def _told(one: Expected, planted: Planted) -> Told:
    return Told(
        FLOWS[one.origin],
        planted.topic,
        planted.partition,
        one.kind,
        _offset(one.source, planted),
        _offset(one.target, planted),
    )


def _offset(place: SidedPiece | None, planted: Planted) -> int | None:
    if place is None:
        return None
    side, piece = place
    return piece.offsets if isinstance(piece, Fixed) else planted.sides[side].offsets[id(piece)]
