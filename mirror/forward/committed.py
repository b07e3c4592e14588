"""The batches of a fetched chunk that are committed and the source's own. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from wire.record_batch import BatchHeader


@dataclass(frozen=True, slots=True, kw_only=True)
class Aborted:
    """A transaction to leave out: of this producer, from this offset to its marker."""

    producer_id: int
    first_offset: int


class CommittedFilter:
    """Reads committed: knows the transactions that are aborted where the chunk has arrived."""

    __slots__ = ("_ahead", "_loop_ids", "_now")

    def __init__(self, aborted: Sequence[Aborted], loop_ids: frozenset[int] = frozenset()) -> None:
        """Take what the Fetch answer says of one partition."""
        self._ahead = sorted(aborted, key=lambda one: one.first_offset, reverse=True)
        self._now: set[int] = set()
        self._loop_ids = loop_ids

    def is_left_out(self, header: BatchHeader) -> bool:
        """Whether it is a marker, aborted or a mirror's; to be asked for every batch, in order."""
        while self._ahead and self._ahead[-1].first_offset <= header.last_offset:
            self._now.add(self._ahead.pop().producer_id)
        if header.is_control:
            self._now.discard(header.producer_id)
            return True
        if header.record_count == 0 or header.producer_id in self._loop_ids:
            return True
        return header.is_transactional and header.producer_id in self._now
