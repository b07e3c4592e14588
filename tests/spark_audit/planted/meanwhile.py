"""Logs that retention cuts while an audit runs."""

from collections.abc import Sequence

from spark_audit.scan.scan_plan import ScanTask
from tests.spark_audit.logs import Log, Pair
from tests.spark_audit.planted.planting import Planted


def plant_retention_at_work() -> Planted:
    """It parts equal records before either of two scans: for their ranges, for their records."""
    places = [
        (f"cut meanwhile: {side}, scan {scan}", 0)
        for side in ("source", "target")
        for scan in (0, 1)
    ]
    pairs = {place: Pair() for place in places}
    for pair in pairs.values():
        pair.mirror("x", "x")
        pair.mirror("x", "x", "x", "y")
        pair.source.append("z")

    def apply(number: int, _: Sequence[ScanTask]) -> None:
        for (topic, _partition), pair in pairs.items():
            side, when = topic.removeprefix("cut meanwhile: ").split(", ")
            if when == f"scan {number}":
                aged: Log = getattr(pair, side)
                aged.start = 2
                del aged.batches[0]

    return Planted(pairs, {topic: set() for topic, _ in places}, before_scan=apply)
