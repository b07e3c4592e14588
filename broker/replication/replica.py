"""A replica's log with what replication adds to it: the high watermark, and who watches both."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from broker.log.partition_log import PartitionLog
from broker.log.results import Appended, BatchRefused
from broker.replication.watching import Waiter, Watcher
from wire.record_batch import Buffer

_LOG = logging.getLogger(__name__)


class Replica:
    """The part that leaders and followers have in common, and a follower's work on its log."""

    def __init__(self, log: PartitionLog, high_watermark: int) -> None:
        """Begin with the high watermark saved last, as far as the log reaches."""
        self.log = log
        self._watchers: set[Watcher] = set()
        self._high_watermark = min(max(high_watermark, log.log_start_offset), log.log_end_offset)

    @property
    def log_start_offset(self) -> int:
        return self.log.log_start_offset

    @property
    def log_end_offset(self) -> int:
        return self.log.log_end_offset

    @property
    def high_watermark(self) -> int:
        return self._high_watermark

    @property
    def last_stable_offset(self) -> int:
        """The end of what is decided: read-committed consumers read up to here."""
        return self.log.last_stable_offset(self._high_watermark)

    # -- following ------------------------------------------------------------------------------

    def append_fetched(
        self, batches: Buffer, *, high_watermark: int, log_start_offset: int, now_ms: int
    ) -> Appended | None:
        """Append what the leader sent, as it is; take over its high watermark and log start.

        None where there was nothing to append. Raises StorageError.
        """
        appended: Appended | None = None
        if len(batches):
            appended = self.log.append_as_follower(batches, now_ms=now_ms)
            if isinstance(appended, BatchRefused):
                return appended
            for watcher in self._watchers:
                watcher.grown()
        self._commit(min(high_watermark, self.log.log_end_offset))
        if log_start_offset > self.log.log_start_offset:
            self.delete_before(log_start_offset)
        return appended

    def delete_before(self, offset: int) -> None:
        """Move the log's start up to a committed `offset`. Raises StorageError."""
        self.log.advance_log_start(min(offset, self.log.log_end_offset))
        self._high_watermark = max(self._high_watermark, self.log.log_start_offset)
        self._tell_committed()

    def truncate_to(self, offset: int, *, now_ms: int) -> None:
        """Drop what the leader does not have, from `offset` on. Raises StorageError."""
        if offset < self._high_watermark:
            _LOG.warning(
                "%s: truncated to %s, below its high watermark %s",
                self.log.name,
                offset,
                self._high_watermark,
            )
        self.log.truncate_to(offset, now_ms=now_ms)
        self._cut()

    def start_anew_at(self, offset: int, *, now_ms: int) -> None:
        """Drop everything: the leader's log starts at `offset`. Raises StorageError."""
        self.log.truncate_fully_and_start_at(offset, now_ms=now_ms)
        self._high_watermark = offset
        self._cut()

    def _cut(self) -> None:
        self._high_watermark = min(self._high_watermark, self.log.log_end_offset)
        self._tell_changed()

    # -- watching -------------------------------------------------------------------------------

    def watch(self, watcher: Watcher) -> None:
        """Tell `watcher` of everything that happens from now on."""
        self._watchers.add(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        """Tell it no longer."""
        self._watchers.discard(watcher)

    def _tell_committed(self) -> None:
        for watcher in self._watchers:
            watcher.committed()

    def _tell_changed(self) -> None:
        for watcher in self._watchers:
            watcher.changed()

    def folder_failed(self) -> None:
        """Let all who wait find that the log's folder has failed."""
        self._tell_changed()

    @contextmanager
    def waking(self, waiter: Waiter) -> Iterator[None]:
        """Wake `waiter` whenever the high watermark or the leadership moves."""
        self._watchers.add(waiter)
        try:
            yield
        finally:
            self._watchers.discard(waiter)

    def _commit(self, offset: int) -> None:
        if offset > self._high_watermark:
            self._high_watermark = offset
            self._tell_committed()
