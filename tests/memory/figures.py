"""How much memory a mirror may use, and whether it did. Pure."""

from dataclasses import dataclass
from typing import Final

MB: Final = 1_000_000
BASE_BYTES: Final = 150 * MB
"""At BASE_PARTITIONS or fewer, beside the configured buffers."""
BASE_PARTITIONS: Final = 1_000
MANY_BYTES: Final = 600 * MB
"""At MANY_PARTITIONS, with everything."""
MANY_PARTITIONS: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """Resident bytes of one mirror process: the most while it caught up, and afterwards."""

    partitions: int
    mirrored_bytes: int
    buffer_bytes: int
    """What the flow may hold by its configuration: produced and unanswered, and one fetch."""
    most_bytes: int
    rest_bytes: int
    rest_load: float
    """Processor time per time, with nothing left to mirror."""

    @property
    def limit_bytes(self) -> int:
        """Return what it may use: up to 1,000 partitions a base, and from there in proportion."""
        first = BASE_BYTES + self.buffer_bytes
        more = (self.partitions - BASE_PARTITIONS) / (MANY_PARTITIONS - BASE_PARTITIONS)
        return round(first + max(0.0, more) * (MANY_BYTES - first))

    @property
    def is_reached(self) -> bool:
        """Whether it stayed below."""
        return self.most_bytes <= self.limit_bytes

    def __str__(self) -> str:
        """Return the figures and the verdict."""
        verdict = "reached" if self.is_reached else "NOT reached"
        return (
            f"{self.partitions} partitions, {_mb(self.mirrored_bytes)} mirrored: "
            f"{_mb(self.most_bytes)} at most, {_mb(self.rest_bytes)} at rest, which takes "
            f"{self.rest_load:.1%} of a processor; "
            f"limit {_mb(self.limit_bytes)} with {_mb(self.buffer_bytes)} of buffers: {verdict}"
        )


def _mb(size: int) -> str:
    return f"{size / MB:.0f} MB"
