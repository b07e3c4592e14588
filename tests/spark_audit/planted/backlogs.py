"""Mirrors that are far behind."""

from collections import Counter
from collections.abc import Sequence

from spark_audit.scan.scan_plan import ScanTask
from spark_audit.snapshot.side import Side
from tests.spark_audit.logs import Pair
from tests.spark_audit.planted.planting import Planted

MIRRORED = 1_500
BACKLOG = 8_000
"""Some ranges, behind the one that the target's end cuts in two."""
BEHIND, LOST_BEFORE, GONE_ON = "backlog", "backlog behind a loss", "backlog gone on"


def plant_backlogs(read: Counter[str]) -> Planted:
    """Count into `read` how many records of each source are read for themselves."""
    pairs = {(name, 0): Pair() for name in (BEHIND, LOST_BEFORE, GONE_ON)}
    for pair in pairs.values():
        pair.mirror(*(f"mirrored {number}" for number in range(MIRRORED)))
    (lost,) = pairs[LOST_BEFORE, 0].source.append("x")
    pairs[LOST_BEFORE, 0].mirror("y")
    for pair in pairs.values():
        pair.source.append(*(f"waiting {number}" for number in range(BACKLOG)))
    pairs[GONE_ON, 0].target.append("waiting 7000")

    def count(_: int, tasks: Sequence[ScanTask]) -> None:
        for task in tasks:
            if task.log.side is Side.SOURCE and not task.wants_ranges:
                read[task.log.topic] += task.stop - task.start

    passed_over = range(MIRRORED, MIRRORED + 7_000)
    return Planted(
        pairs,
        {
            BEHIND: set(),
            LOST_BEFORE: {("lost", lost, None)},
            GONE_ON: {("lost", offset, None) for offset in passed_over},
        },
        before_scan=count,
    )
