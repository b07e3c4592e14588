"""Which faults come when, drawn from a seed. Pure: whoever is drilled carries them out."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import combinations
from typing import Final

FIRST_S: Final = 1.0
"""The drilled work undisturbed for so long."""
UNCLEAN_S: Final = 16.0
"""For two sessions with ZooKeeper to end, one after the other, and a while under the new leader."""


class Kind(Enum):
    """What can be done to a process, or between two."""

    KILL = "kill"
    TERMINATE = "terminate"
    PAUSE = "pause"
    CUT = "cut"
    CUT_ONE_WAY = "cut one way"
    RESET = "reset"
    ISOLATE = "isolate"
    UNCLEAN = "unclean election"
    """The first of two brokers is ended; the second takes records alone and is killed; the first
    comes back, leads without them, and the second follows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One fault: from `at_s` on for `lasts_s`, in seconds since the drill began."""

    at_s: float
    lasts_s: float
    kind: Kind
    targets: tuple[str, ...]

    @property
    def ends_s(self) -> float:
        return self.at_s + self.lasts_s

    def __str__(self) -> str:
        return f"{self.kind.value} {' - '.join(self.targets)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """What may be hit: processes that can be restarted, and everybody who talks to them."""

    processes: tuple[str, ...]
    bystanders: tuple[str, ...] = ()
    """Their connections can be cut, but they are not killed."""
    together: int = 2
    """So many faults may overlap."""
    has_network: bool = True
    pairs: tuple[tuple[str, str], ...] = ()
    """Who talks to whom, where not everybody does."""
    replicas: tuple[str, ...] = ()
    """Two brokers that have everything, and may lead without having been in sync."""

    @property
    def ends(self) -> tuple[str, ...]:
        return self.processes + self.bystanders


def plan(seed: int, seconds: float, targets: Targets) -> list[Planned]:
    """Return faults that have all ended after `seconds`, in the order of their beginnings.

    No process is hit by two at once, and no more than `together` overlap.
    """
    luck = random.Random(seed)
    planned: list[Planned] = []
    at_s = FIRST_S + luck.random()
    while at_s < seconds - 1:
        lasts_s = min(
            luck.choice((0.2, 1.0, 2.5, 4.0, 7.0, 10.0)) * luck.uniform(0.8, 1.2), seconds - at_s
        )
        fault = _draw(luck, at_s, lasts_s, targets)
        if fault.kind is Kind.UNCLEAN:
            fault = replace(fault, lasts_s=UNCLEAN_S)
        running = [one for one in planned if one.ends_s > at_s]
        is_free = len(running) < targets.together and not _shares(fault, running)
        if is_free and fault.ends_s <= max(seconds, at_s + lasts_s):
            planned.append(fault)
        at_s += luck.choice((0.1, 0.5, 1.0, 2.0, 4.0))
    return planned


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """A member of the group is killed at `at_s`, and another takes its place `lasts_s` later."""

    at_s: float
    lasts_s: float
    member: int


def plan_absences(seed: int, seconds: float, members: int) -> list[Absence]:
    """Return which members of the group die when; one at a time, and all are back in time."""
    luck = random.Random(f"group {seed}")
    absences: list[Absence] = []
    at_s = FIRST_S + luck.uniform(1.0, 4.0)
    while True:
        lasts_s = luck.choice((0.1, 1.0, 3.0, 7.0))
        if at_s + lasts_s >= seconds:
            return absences
        absences.append(Absence(at_s=at_s, lasts_s=lasts_s, member=luck.randrange(members)))
        at_s += lasts_s + luck.choice((1.0, 4.0, 8.0))


def _draw(luck: random.Random, at_s: float, lasts_s: float, targets: Targets) -> Planned:
    kinds = [Kind.KILL, Kind.KILL, Kind.KILL, Kind.TERMINATE, Kind.PAUSE, Kind.PAUSE]
    if targets.has_network:
        kinds += [Kind.CUT, Kind.CUT, Kind.CUT_ONE_WAY, Kind.RESET, Kind.ISOLATE, Kind.ISOLATE]
    if targets.replicas:
        kinds += [Kind.UNCLEAN] * 3
    kind = luck.choice(kinds)
    hit: Sequence[str]
    if kind is Kind.UNCLEAN:
        hit = luck.sample(targets.replicas, 2)
    elif kind in {Kind.CUT, Kind.CUT_ONE_WAY, Kind.RESET}:
        pairs = targets.pairs or [
            pair
            for pair in combinations(targets.ends, 2)
            if not set(pair) <= set(targets.bystanders)
        ]
        hit = list(luck.choice(pairs))
        luck.shuffle(hit)
    else:
        hit = [luck.choice(targets.processes)]
    return Planned(at_s=at_s, lasts_s=lasts_s, kind=kind, targets=tuple(hit))


def _shares(fault: Planned, running: Sequence[Planned]) -> bool:
    """Return whether a process would be stopped twice, or the same pair cut twice."""
    return any(set(fault.targets) & set(one.targets) for one in running)
