"""Whether replicas hold the same, read off their folders: what no client sees until one leads."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.drill.checker import Offence
from wire.record_batch import iterate_batches

DIVERGED = "DIVERGED"


class Held(NamedTuple):
    """One batch of a replica."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int


def held_in(folder: Path) -> list[Held]:
    """Return the batches of a partition's folder, in order; no folder holds none."""
    return [
        Held(
            header.base_offset,
            header.base_offset + header.last_offset_delta,
            header.partition_leader_epoch,
            header.crc,
        )
        for segment in sorted(folder.glob("*.log"))
        for header, _ in iterate_batches(segment.read_bytes())
    ]


def diverged(log: str, replicas: Mapping[str, list[Held]]) -> Iterator[Offence]:
    """Return where two replicas differ first, up to the end of the shorter one."""
    (first, batches), *others = sorted(replicas.items())
    for name, theirs in others:
        for ours, other in zip(batches, theirs, strict=False):
            if ours != other:
                says = f"{first} holds {tuple(ours)}, {name} {tuple(other)}"
                yield Offence(DIVERGED, log, min(ours.base_offset, other.base_offset), says)
                break


def compare(folder: Path, brokers: list[str], logs: frozenset[str]) -> list[Offence]:
    """Compare what the brokers in `folder` hold of each log; they must have ended."""
    return [
        offence
        for log in sorted(logs)
        for offence in diverged(
            log, {broker: held_in(folder / broker / "logs" / log) for broker in brokers}
        )
    ]
