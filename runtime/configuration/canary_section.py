"""The canary in the configuration: the section `failover.canary`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from runtime.configuration.reading.section import Section
from wire.values import frozen

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "failover.canary.topic": "The topic into which `failover serve` writes a record again and "
        "again on the active site, and looks for it on the others. Flows have to mirror it. "
        "Without it there is no canary.",
        "failover.canary.interval_ms": "How often.",
        "failover.canary.late_after_ms": "So long after a switch a record is waited for; one that "
        "has not come by then is lost.",
    }
)
"""What each key is for."""


@frozen
class CanaryConfig:
    """Which topic, how often, and when a record is given up."""

    topic: str
    interval_ms: int = 1_000
    late_after_ms: int = 30_000


def read_canary(section: Section) -> CanaryConfig | None:
    """Take the whole section, None where there is none; raises ConfigurationError."""
    topic = section.optional_string("topic")
    interval_ms = section.integer("interval_ms", 1_000, least=100, most=3_600_000)
    late_after_ms = section.integer("late_after_ms", 30_000, least=1_000, most=3_600_000)
    section.finish()
    if topic is None:
        if section.values:
            raise section.missing("topic")
        return None
    return CanaryConfig(topic=topic, interval_ms=interval_ms, late_after_ms=late_after_ms)
