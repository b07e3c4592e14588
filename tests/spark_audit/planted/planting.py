"""Logs with what was done to them, what is to be found, and what happens while an audit reads."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from spark_audit.scan.scan_plan import ScanTask
from tests.spark_audit.logs import Pair

PlantedFinding: TypeAlias = tuple[str, int | None, int | None]
"""A finding's kind and its two offsets."""
Findings: TypeAlias = Mapping[str, set[PlantedFinding]]
"""By topic."""


def _nothing(number: int, tasks: Sequence[ScanTask]) -> None:
    """Let the logs be as they are."""


@dataclass(frozen=True, slots=True)
class Planted:
    """Partitions, each of a topic of its own, so that many may be audited in one run."""

    pairs: dict[tuple[str, int], Pair]
    expected: dict[str, set[PlantedFinding]] = field(default_factory=dict)
    before_scan: Callable[[int, Sequence[ScanTask]], None] = _nothing
    """Called with the scan's number, from 0, before an audit reads."""
    after_scan: Callable[[int, Sequence[ScanTask]], None] = _nothing

    @property
    def topics(self) -> frozenset[str]:
        """Return the topics of these partitions."""
        return frozenset(topic for topic, _ in self.pairs)
