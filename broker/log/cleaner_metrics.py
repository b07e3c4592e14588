"""The log cleaner's metrics, by the names of Kafka's LogCleaner and its manager."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from broker.log.cleaning import CleaningReport
from broker.log.cleaning_plan import Cleanable
from broker.log.skimpy_offset_map import ENTRY_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanerState:
    """The cleaner's state as a scrape shows it: whole numbers, as Kafka's gauges are."""

    gauges: Mapping[str, int]
    """By Kafka's name with underscores."""
    uncleanable: Mapping[Path, tuple[int, int]]
    """Per log folder the partitions, and their dirty bytes, that are left alone until a restart."""


@dataclass(slots=True, kw_only=True)
class CleanerMetrics:
    """The last cleaning, and the last search for a log to clean. Times are wall clocks.

    What Kafka takes the largest of over its threads is here that of the one task.
    """

    dedupe_buffer_size: int
    last_run_ms: int
    max_dirty_ratio: float = 0.0
    max_compaction_delay_ms: int = 0
    clean_time_s: float = 0.0
    report: CleaningReport = field(default_factory=lambda: CleaningReport(start_offset=0))

    def looked(self, plans: Iterable[Cleanable], now_ms: int) -> None:
        """Note all that could be cleaned, due or not."""
        found = list(plans)
        self.last_run_ms = now_ms
        self.max_dirty_ratio = max((plan.ratio for plan in found), default=0.0)
        self.max_compaction_delay_ms = max((plan.delay_ms for plan in found), default=0)

    def cleaned(self, report: CleaningReport, seconds: float) -> None:
        """Note a cleaning that came to its end."""
        self.report = report
        self.clean_time_s = seconds

    def gauges(self, now_ms: int) -> dict[str, int]:
        """Return what is not told by folder."""
        report = self.report
        used = report.keys * ENTRY_BYTES / max(self.dedupe_buffer_size, 1)
        return {
            "max_buffer_utilization_percent": min(int(100 * used), 100),
            "cleaner_recopy_percent": int(100 * report.bytes_written / max(report.bytes_read, 1)),
            "max_clean_time_secs": int(self.clean_time_s),
            "max_compaction_delay_secs": self.max_compaction_delay_ms // 1000,
            "max_dirty_percent": int(100 * self.max_dirty_ratio),
            "time_since_last_run_ms": now_ms - self.last_run_ms,
        }
