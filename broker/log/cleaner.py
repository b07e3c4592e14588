"""The task that compacts logs: the dirtiest first, in slices that leave the loop to everybody else.

Why slices and not a thread: a thread that computes makes this one wait up to 5 ms (CPython's switch
interval) after each of its system calls; a slice of 3 ms is waited for once. Work that is longer
than a slice (an fsync, compressing a large batch) lets go of the interpreter and runs in a thread.
Measured: a step takes 1 ms, at most 5; 150,000 to 250,000 records a second of processor time.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import trio

from broker.log.cleaner_metrics import CleanerMetrics, CleanerState
from broker.log.cleaning import Cleaning, CleaningReport
from broker.log.cleaning_plan import Cleanable
from broker.log.log_manager import HighWatermarkOf, LogManager
from broker.log.partition_log import PartitionLog
from broker.log.results import StorageError
from broker.log.skimpy_offset_map import slots_within
from wire.record_batch import CorruptBatch
from wire.topic_partition import TopicPartition

LOG: Final = logging.getLogger(__name__)

SLICE_S: Final = 0.003
RESTS_PER_SLICE: Final = 2
"""The task takes at most a third of the loop's time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanerSettings:
    """Kafka's log.cleaner.* with its defaults."""

    backoff_ms: int = 15_000
    dedupe_buffer_size: int = 128 * 1024 * 1024
    io_buffer_load_factor: float = 0.9
    io_max_bytes_per_second: float = float("inf")


class LogCleaner:
    """Compacts the logs of one broker, one at a time.

    uncleanable     logs that are left alone until a restart, as a batch in them is damaged or what
                    nobody foresaw; one made anew under the same name is another log
    """

    def __init__(
        self,
        logs: LogManager,
        settings: CleanerSettings,
        *,
        high_watermark: HighWatermarkOf,
        now_ms: Callable[[], int],
    ) -> None:
        self._logs = logs
        self._settings = settings
        self._high_watermark = high_watermark
        self._now_ms = now_ms
        self.uncleanable: dict[TopicPartition, PartitionLog] = {}
        self._metrics = CleanerMetrics(
            dedupe_buffer_size=settings.dedupe_buffer_size, last_run_ms=now_ms()
        )

    def change_settings(self, settings: CleanerSettings) -> None:
        """Go by other settings from the next log on."""
        self._settings = settings

    async def run(self) -> None:
        """Clean whatever is due, for ever."""
        while True:
            if not await self.clean_filthiest():
                await trio.sleep(self._settings.backoff_ms / 1000)

    async def clean_filthiest(self) -> bool:
        """Clean one log; say whether there was one to clean and all went well."""
        due = self._due()
        if not due:
            return False
        log, plan = max(due, key=lambda one: one[1].ratio)
        began = trio.current_time()
        try:
            report = await self._clean(log, plan)
            if report is not None:
                self._logs.note_cleaned(log, report.next_dirty)
        except OSError as error:
            LOG.warning("%s: not compacted: %s", log.folder, self._logs.blame(log, error))
            return False
        except (CorruptBatch, StorageError) as fault:
            LOG.warning("%s: not compacted until a restart: %s", log.folder, fault)
            self.uncleanable[log.name] = log
            return False
        except Exception:  # a record, or a bug, that nobody thought of must not end the broker
            LOG.exception("%s: not compacted until a restart", log.folder)
            self.uncleanable[log.name] = log
            return False
        if report is not None:
            self._metrics.cleaned(report, trio.current_time() - began)
            _tell(log, report)
        return report is not None

    def _is_uncleanable(self, log: PartitionLog) -> bool:
        return self.uncleanable.get(log.name) is log

    def _due(self) -> list[tuple[PartitionLog, Cleanable]]:
        now_ms = self._now_ms()
        for name in [*self.uncleanable]:
            if self._logs.logs.get(name) is not self.uncleanable[name]:
                del self.uncleanable[name]  # deleted, or moved away
        found = [
            (log, plan)
            for log, plan in self._logs.cleanable(now_ms, high_watermark=self._high_watermark)
            if not self._is_uncleanable(log)
        ]
        self._metrics.looked((plan for _, plan in found), now_ms)
        return [(log, plan) for log, plan in found if plan.is_due(log.config)]

    def state(self) -> CleanerState:
        """Return what a scrape shows."""
        now_ms = self._now_ms()
        uncleanable = dict.fromkeys(self._logs.live_folders, (0, 0))
        if self.uncleanable:
            for log, plan in self._logs.cleanable(now_ms, high_watermark=self._high_watermark):
                if self._is_uncleanable(log):
                    partitions, dirty_bytes = uncleanable[log.folder.parent]
                    counted = partitions + 1, dirty_bytes + plan.cleanable_bytes
                    uncleanable[log.folder.parent] = counted
        return CleanerState(gauges=self._metrics.gauges(now_ms), uncleanable=uncleanable)

    async def _clean(self, log: PartitionLog, plan: Cleanable) -> CleaningReport | None:
        """Return None if the log changed on the way; the next turn begins anew."""
        slots = slots_within(
            self._settings.dedupe_buffer_size, self._settings.io_buffer_load_factor
        )
        cleaning = Cleaning(log, plan, slots=slots, now_ms=self._now_ms())
        steps = cleaning.steps()
        unchanged = log.changes
        answer: Any = None
        slice_begins = began = trio.current_time()
        try:
            while True:
                slow = steps.send(answer)
                answer = None
                if slow is not None:
                    answer = await trio.to_thread.run_sync(slow)
                elif trio.current_time() - slice_begins >= SLICE_S:
                    await trio.sleep(self._rest_s(cleaning.report, began, slice_begins))
                else:
                    continue
                slice_begins = trio.current_time()
                if log.changes != unchanged:
                    return None
        except StopIteration as end:
            report: CleaningReport = end.value
            return report
        except (OSError, CorruptBatch, StorageError):
            if log.changes != unchanged:
                return None  # its folder may have been renamed under a worker thread
            raise
        finally:
            steps.close()

    def _rest_s(self, report: CleaningReport, began: float, slice_begins: float) -> float:
        """Return how long to leave the loop, and the disk, to others."""
        now = trio.current_time()
        moved = report.bytes_read + report.bytes_written
        earliest = began + moved / self._settings.io_max_bytes_per_second
        return max(RESTS_PER_SLICE * (now - slice_begins), earliest - now)


def _tell(log: PartitionLog, report: CleaningReport) -> None:
    LOG.info(
        "%s: compacted offsets %d to %d: %d segments with %d bytes became %d with %d",
        log.folder,
        report.start_offset,
        report.next_dirty,
        report.segments_before,
        report.bytes_before,
        report.segments_after,
        report.bytes_after,
    )
