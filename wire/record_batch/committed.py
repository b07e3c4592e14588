"""The batches of a fetched chunk that hold committed records, as a consumer reads them. Pure."""

from collections.abc import Sequence

from wire.record_batch.header import BatchHeader
from wire.values import frozen


@frozen
class Aborted:
    """A transaction to leave out: of this producer, from this offset to its marker."""

    producer_id: int
    first_offset: int


class CommittedFilter:
    """Reads committed: knows the transactions that are aborted where the chunk has arrived."""

    __slots__ = ("_ahead", "_now")

    def __init__(self, aborted: Sequence[Aborted]) -> None:
        """Take what the Fetch answer says of one partition."""
        self._ahead = sorted(
            aborted, key=lambda transaction: transaction.first_offset, reverse=True
        )
        self._now: set[int] = set()

    def is_left_out(self, header: BatchHeader) -> bool:
        """Whether it is a marker, aborted or empty; to be asked for every batch, in order."""
        while self._ahead and self._ahead[-1].first_offset <= header.last_offset:
            self._now.add(self._ahead.pop().producer_id)
        if header.is_control:
            self._now.discard(header.producer_id)
            return True
        if header.record_count == 0:
            return True
        return header.is_transactional and header.producer_id in self._now
