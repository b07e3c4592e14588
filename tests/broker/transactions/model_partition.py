"""A partition's log in memory: what producers and coordinators append is checked as on a disk."""

from dataclasses import dataclass, field

from broker.log.appending import Context, prepare_own, prepare_produced
from broker.log.config import LogConfig
from broker.log.markers import AbortedTransaction, Marker, build_marker
from broker.log.producer_state import NO_OFFSET, ProducerTable, find_duplicate
from broker.log.results import BatchRefused
from wire.errors import ErrorCode
from wire.record_batch import Record, build_batch, parse_header

NOW_MS = 1_700_000_000_000


@dataclass(slots=True)
class ModelPartition:
    """Batches by offset. Everything is committed at once."""

    table: ProducerTable = field(default_factory=ProducerTable)
    data: list[tuple[int, int, str]] = field(default_factory=list)
    """Offset, producer id and value of each record that is no marker."""
    markers: list[tuple[int, int, bool]] = field(default_factory=list)
    """Producer id, epoch, and whether it commits."""
    aborted: list[AbortedTransaction] = field(default_factory=list)
    end: int = 0

    def _context(self, *, is_verified: bool = False) -> Context:
        return Context(
            config=LogConfig(),
            producers=self.table,
            log_end_offset=self.end,
            leader_epoch=0,
            now_ms=NOW_MS,
            is_verified=is_verified,
        )

    def is_open(self, producer_id: int, epoch: int) -> bool:
        """Say whether a transaction of this producer has records here, and no end."""
        known = self.table.get(producer_id)
        return known is not None and known.is_in_transaction and known.epoch == epoch

    def produce(
        self, producer_id: int, epoch: int, sequence: int, value: str, *, is_verified: bool
    ) -> ErrorCode:
        """Append one record of a transaction, as a leader does."""
        batch = build_batch(
            [Record(0, NOW_MS, None, value.encode(), ())],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        header = parse_header(batch)
        if find_duplicate(self.table.get(producer_id), header) is not None:
            return ErrorCode.NONE
        prepared = prepare_produced(batch, header, self._context(is_verified=is_verified))
        if isinstance(prepared, BatchRefused):
            return prepared.error
        self.data.append((self.end, producer_id, value))
        self.table.replay(prepared[0].header, NOW_MS)
        self.end += 1
        return ErrorCode.NONE

    def mark(self, producer_id: int, epoch: int, marker: Marker) -> ErrorCode:
        """Append the end of a transaction, as a leader does."""
        batch = build_marker(marker, producer_id=producer_id, producer_epoch=epoch, wall_ms=NOW_MS)
        prepared = prepare_own(batch, self._context())
        if isinstance(prepared, BatchRefused):
            return prepared.error
        aborted = self.table.replay(prepared[0].header, NOW_MS, prepared[0].marker())
        if aborted is not None:
            self.aborted.append(aborted)
        self.markers.append((producer_id, epoch, not marker.is_abort))
        self.end += 1
        return ErrorCode.NONE

    def reload(self) -> None:
        """Be led by a replica that knows what is in the log, and no more."""
        self.table = ProducerTable(list(self.table), end_offset=self.end)

    @property
    def last_stable(self) -> int:
        """Up to where a read-committed reader reads."""
        unstable = self.table.first_unstable(self.end)
        return self.end if unstable == NO_OFFSET else unstable

    def committed(self) -> list[str]:
        """Return what a read-committed reader is given, in order."""
        return [
            value
            for offset, producer_id, value in self.data
            if offset < self.last_stable
            and not any(
                one.producer_id == producer_id and one.first_offset <= offset < one.last_offset
                for one in self.aborted
            )
        ]
