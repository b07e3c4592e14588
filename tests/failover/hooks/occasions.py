"""What hooks of tests are told."""

from typing import Final

from failover.hooks.occasion import Occasion

OCCASION: Final = Occasion(
    hook="dns",
    step="switch",
    when="after",
    action="do",
    epoch=3,
    kind="planned",
    source="dc1",
    site="dc2",
    active="dc2",
    bootstrap="k1:9092,k2:9092",
    begun_ms=1_700_000_000_000,
)
