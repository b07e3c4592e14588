"""Mirrors that are far behind."""

from spark_audit.snapshot.side import Side
from tests.spark_audit.logs import Pair
from tests.spark_audit.planted.planting import Planted, PlantedFinding

MIRRORED = 1_500
KEPT = 4_000
"""Enough for several ranges: one alone may be equal by chance."""
BACKLOG = 8_000
"""Some ranges, behind the one that the target's end cuts in two."""
BEHIND, LOST_BEFORE, GONE_ON = "backlog", "backlog behind a loss", "backlog gone on"


AGED = {"source far ahead": Side.TARGET, "target far ahead": Side.SOURCE}
"""Logs of which retention took the beginning, and the side that still has it."""
LOST_BEHIND_AGED = {f"{topic}, a loss behind": side for topic, side in AGED.items()}


def _plant_retention_far_ahead() -> tuple[
    dict[tuple[str, int], Pair], dict[str, set[PlantedFinding]]
]:
    pairs = {(topic, 0): Pair() for topic in (*AGED, *LOST_BEHIND_AGED)}
    expected: dict[str, set[PlantedFinding]] = {}
    for (topic, _), pair in pairs.items():
        pair.mirror(*(f"old {number}" for number in range(BACKLOG)))
        side = (AGED | LOST_BEHIND_AGED)[topic]
        aged = pair.source if side is Side.TARGET else pair.target
        aged.start = aged.stop
        aged.batches.clear()
        pair.mirror("kept")
        lost = pair.source.append("lost") if topic in LOST_BEHIND_AGED else []
        pair.mirror(*(f"new {number}" for number in range(KEPT)))
        expected[topic] = {("lost", offset, None) for offset in lost}
    return pairs, expected


def plant_backlogs() -> Planted:
    """Plant a mirror that is behind, one that has lost a record, and one that left a piece out."""
    pairs = {(name, 0): Pair() for name in (BEHIND, LOST_BEFORE, GONE_ON)}
    for pair in pairs.values():
        pair.mirror(*(f"mirrored {number}" for number in range(MIRRORED)))
    (lost,) = pairs[LOST_BEFORE, 0].source.append("x")
    pairs[LOST_BEFORE, 0].mirror("y")
    for pair in pairs.values():
        pair.source.append(*(f"waiting {number}" for number in range(BACKLOG)))
    pairs[GONE_ON, 0].target.append("waiting 7000")

    aged, expected = _plant_retention_far_ahead()
    passed_over = range(MIRRORED, MIRRORED + 7_000)
    return Planted(
        pairs | aged,
        expected
        | {
            BEHIND: set(),
            LOST_BEFORE: {("lost", lost, None)},
            GONE_ON: {("lost", offset, None) for offset in passed_over},
        },
    )
