"""From commits and what became of them on the target to figures and a verdict. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.bench.measure.figures import percentile

P99_LIMIT_S: Final = 1.0
CPU_LIMIT: Final = 0.20
"""Of one core, by the whole mirror process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What the processes used while it was measured, in cores."""

    mirror: float
    source_brokers: float
    target_brokers: float
    this_program: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """From a commit's acknowledgement on the source to its place being readable on the target."""

    commits: int
    never: int
    """Commits that were not on the target when the waiting was over."""
    p50_s: float
    p99_s: float
    most_s: float

    @property
    def is_reached(self) -> bool:
        """Whether every commit arrived, and 99 of 100 soon enough."""
        return self.commits > 0 and self.never == 0 and self.p99_s < P99_LIMIT_S


class Arrivals:
    """Notes when each group's n-th commit was acknowledged, and when the target had it.

    A later commit that arrives in an earlier one's place makes the earlier one readable, too.
    """

    def __init__(self, groups: int, partitions: int) -> None:
        """Begin with nothing committed; commits of a group are numbered from 0."""
        self._acknowledged_s: dict[tuple[int, int], float] = {}
        self._arrived_s: dict[tuple[int, int], float] = {}
        self._latest = [[-1] * partitions for _ in range(groups)]
        self._arrived = [-1] * groups

    def acknowledged(self, group: int, number: int, at_s: float) -> None:
        """The source has acknowledged all partitions of a commit."""
        self._acknowledged_s[group, number] = at_s

    def seen(self, positions: Mapping[tuple[int, int], int], at_s: float) -> None:
        """Take the commit numbers that the target shows now, by (group, partition)."""
        for (group, partition), number in positions.items():
            self._latest[group][partition] = number
        for group in {group for group, _ in positions}:
            through = min(self._latest[group])
            for number in range(self._arrived[group] + 1, through + 1):
                self._arrived_s[group, number] = at_s
            self._arrived[group] = max(self._arrived[group], through)

    def missing(self, since_s: float, until_s: float) -> int:
        """Return how many commits acknowledged in this time have not arrived."""
        return sum(one not in self._arrived_s for one in self._of(since_s, until_s))

    def freshness(self, since_s: float, until_s: float) -> Freshness:
        """Return the figures of the commits acknowledged in this time.

        A commit may be seen on the target before we learn that it was acknowledged: that is 0.
        """
        asked = self._of(since_s, until_s)
        delays = [
            max(0.0, self._arrived_s[one] - self._acknowledged_s[one])
            for one in asked
            if one in self._arrived_s
        ]
        return Freshness(
            commits=len(asked),
            never=len(asked) - len(delays),
            p50_s=percentile(delays, 0.5) if delays else float("inf"),
            p99_s=percentile(delays, 0.99) if delays else float("inf"),
            most_s=max(delays, default=float("inf")),
        )

    def _of(self, since_s: float, until_s: float) -> Sequence[tuple[int, int]]:
        return [one for one, at_s in self._acknowledged_s.items() if since_s <= at_s < until_s]


def told(freshness: Freshness, usage: Usage, *, wrong: int) -> str:
    """Return the figures and the verdict in words; ``wrong`` positions differ at the end."""
    is_reached = freshness.is_reached and usage.mirror < CPU_LIMIT and not wrong
    waits = f"p50 {_ms(freshness.p50_s)}, p99 {_ms(freshness.p99_s)}, most {_ms(freshness.most_s)}"
    lines = [
        f"commits measured       {freshness.commits}, never arrived {freshness.never}",
        f"commit to readable     {waits} (p99 wanted: under {_ms(P99_LIMIT_S)})",
        f"mirror process         {usage.mirror:.1%} of a core (wanted: under {CPU_LIMIT:.0%})",
        f"brokers, source        {usage.source_brokers:.1%} of a core",
        f"brokers, target        {usage.target_brokers:.1%} of a core",
        f"this program           {usage.this_program:.1%} of a core",
        f"positions wrong at end {wrong}",
        f"verdict                {'reached' if is_reached else 'NOT reached'}",
    ]
    return "".join(f"{line}\n" for line in lines)


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.0f} ms"
