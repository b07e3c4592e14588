"""Which files are run first, and which of them by one and the same process."""

from typing import Final

SPARK: Final = "tests/spark_audit/test_"
"""These share a Spark session, and audits in it, which each process would have to make again."""
LONGEST: Final = (
    SPARK,
    "tests/failover/test_failback.py",
    "tests/drill/test_drill.py",
    "tests/mirror/test_mirroring.py",
    "tests/failover/test_promotion.py",
    "tests/mirror/test_workers.py",
    "tests/mirror/test_both_ways.py",
    "tests/broker/integration/",
)
"""What takes half a minute and more, the longest first."""


def rank(test: str, *, is_in_slow_file: bool) -> tuple[bool, int]:
    """Return the place of a test: what takes long comes first, and what is quick fills the end."""
    starts = (at for at, start in enumerate(LONGEST) if test.startswith(start))
    return not is_in_slow_file, next(starts, len(LONGEST))


def unit(test: str) -> str:
    """Return what goes to one process as a whole: a file, or all that share a Spark session."""
    return SPARK if test.startswith(SPARK) else test.split("::", 1)[0]
