"""Rehearsals of a promotion in the configuration: the section `failover.rehearsal`.

With it the file has one more set of topics, `rehearsal`, which no application uses. A rehearsal
promotes that set alone.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from runtime.configuration.reading.section import Section
from wire.values import frozen

HOUR_MS: Final = 3_600_000
_TIME: Final = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "failover.rehearsal.partitions": "With this section, empty or not, the file has the set of "
        "topics `rehearsal` (`failover.rehearsal.*`), which all flows have to mirror, and `failover"
        " rehearse` promotes and takes back that set under load: see "
        "[Rehearsals](../operate/rehearsals.md). So many partitions its topic is made with.",
        "failover.rehearsal.records_per_second": "How many records a rehearsal writes, all "
        "partitions together.",
        "failover.rehearsal.load_ms": "How long it writes and reads before the promotion, between "
        "promotion and failback, and behind that.",
        "failover.rehearsal.every_hours": "So often `failover serve` rehearses by itself: at whole "
        "multiples of it since 1970 (UTC). Without it nothing is rehearsed by itself.",
        "failover.rehearsal.at": "The time of day (UTC, `HH:MM`) from which the hours are counted "
        "instead of midnight.",
        "failover.rehearsal.stale_after_hours": "When the last rehearsal that has passed is older, "
        "an alert says so. By default twice `every_hours`.",
    }
)
"""What each key is for."""


@frozen
class RehearsalConfig:
    """How promotions are rehearsed, and when by themselves."""

    partitions: int = 3
    records_per_second: int = 50
    load_ms: int = 10_000
    every_ms: int | None = None
    """None where nothing is rehearsed by itself."""
    at_ms: int = 0
    """So long behind midnight UTC."""
    stale_after_ms: int | None = None
    """None where no age is too old."""


def read_rehearsal(section: Section, *, is_given: bool) -> RehearsalConfig | None:
    """Take the whole section, None where there is none; raises ConfigurationError."""
    partitions = section.integer("partitions", 3, least=1, most=100)
    records_per_second = section.integer("records_per_second", 50, least=1, most=1_000)
    load_ms = section.integer("load_ms", 10_000, least=500, most=600_000)
    every_hours = section.optional_integer("every_hours", least=1, most=8_760)
    at = section.optional_string("at")
    stale_hours = section.optional_integer("stale_after_hours", least=1, most=87_600)
    found = _TIME.fullmatch(at or "00:00")
    if found is None:
        section.complain("at", f"{at!r} is no time of day, as 03:30 is")
    elif at is not None and every_hours is None:
        section.complain("at", "says when, and `every_hours` is missing, which says how often")
    section.finish()
    if not is_given:
        return None
    assert found is not None, "finish raises what is wrong"
    if stale_hours is None and every_hours is not None:
        stale_hours = 2 * every_hours
    return RehearsalConfig(
        partitions=partitions,
        records_per_second=records_per_second,
        load_ms=load_ms,
        every_ms=None if every_hours is None else every_hours * HOUR_MS,
        at_ms=int(found[1]) * HOUR_MS + int(found[2]) * 60_000,
        stale_after_ms=None if stale_hours is None else stale_hours * HOUR_MS,
    )
