"""Logs behind a promotion: what was not mirrored, and what was written again."""

from spark_audit.snapshot.seals import Seal
from tests.spark_audit.logs import Pair
from tests.spark_audit.planted.faults import BULK, bulk
from tests.spark_audit.planted.planting import Planted

NAMES = ("lost", "again", "copies", "planned", "unlisted")


def plant_unmirrored_ends() -> Planted:
    """The source's last records were not mirrored, in some cases written at the target later."""
    pairs = {(name, 0): Pair() for name in NAMES}
    for name in NAMES[:-1]:
        pair = pairs[name, 0]
        pair.mirror(*bulk(name))
        pair.seal = Seal(mirrored_source_end=pair.source.stop, target_end=pair.target.stop)
    pairs["lost", 0].source.append("x", "y")
    pairs["again", 0].source.append("x", "y")
    pairs["again", 0].target.append("other", "x", "y", "more")
    pairs["copies", 0].source.append("x", "x", "x")
    pairs["copies", 0].target.append("x")
    pairs["planned", 0].target.append("native", "writes")
    pairs["unlisted", 0].source.append("x")
    pairs["unlisted", 0].seal = Seal(mirrored_source_end=0, target_end=0)
    return Planted(
        pairs,
        {
            "lost": {("lost", BULK, None), ("lost", BULK + 1, None)},
            "again": set(),
            "copies": {("lost", BULK + 1, None), ("lost", BULK + 2, None)},
            "planned": set(),
            "unlisted": {("lost", 0, None)},
        },
    )
