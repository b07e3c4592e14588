"""Idempotence by Kafka's rules, told against a producer's whole history."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from broker.log.producer_snapshot import decode, encode, recall
from broker.log.producer_state import (
    SEQUENCES,
    BatchMetadata,
    ProducerEntry,
    ProducerTable,
    check,
    find_duplicate,
)
from broker.log.results import AppendOrigin
from wire.errors import ErrorCode
from wire.record_batch import BatchHeader

LAST_SEQUENCE = SEQUENCES - 1


def header(
    sequence: int,
    count: int = 1,
    *,
    epoch: int = 0,
    base_offset: int = 0,
    attributes: int = 0,
) -> BatchHeader:
    return BatchHeader(
        base_offset=base_offset,
        batch_bytes=61,
        partition_leader_epoch=0,
        magic=2,
        crc=0,
        attributes=attributes,
        last_offset_delta=count - 1,
        base_timestamp=0,
        max_timestamp=1000 + base_offset,
        producer_id=5,
        producer_epoch=epoch,
        base_sequence=sequence,
        record_count=count,
    )


def error(entry: ProducerEntry | None, asked: BatchHeader) -> ErrorCode | None:
    refused = check(entry, asked, AppendOrigin.CLIENT)
    return refused.error if refused else None


@dataclass(slots=True)
class History:
    """What a producer wrote in its present epoch: (base offset, first sequence, count)."""

    epoch: int
    batches: list[tuple[int, int, int]] = field(default_factory=list)

    @property
    def next_sequence(self) -> int:
        if not self.batches:
            return 0
        _, sequence, count = self.batches[-1]
        return (sequence + count) % SEQUENCES


class ProducerMachine(RuleBasedStateMachine):
    """One producer that continues, repeats, skips, bumps its epoch and comes back as a zombie."""

    def __init__(self) -> None:
        super().__init__()
        self.table = ProducerTable()
        self.history: History | None = None
        self.log: list[BatchHeader] = []
        self.end = 0

    def append(self, asked: BatchHeader) -> None:
        entry = self.table.get(5)
        assert find_duplicate(entry, asked) is None
        assert error(entry, asked) is None
        placed = asked._replace(base_offset=self.end)
        self.table.replay(placed, now_ms=self.end)
        self.log.append(placed)
        if self.history is None or self.history.epoch != asked.producer_epoch:
            self.history = History(asked.producer_epoch)
        self.history.batches.append((self.end, asked.base_sequence, asked.record_count))
        self.end += asked.record_count

    @rule(first=st.sampled_from([0, 17, LAST_SEQUENCE - 1, LAST_SEQUENCE]), count=st.integers(1, 3))
    def begin_or_continue(self, first: int, count: int) -> None:
        if self.history is None:
            self.append(header(first, count))
        else:
            self.append(header(self.history.next_sequence, count, epoch=self.history.epoch))

    @rule(bump=st.integers(1, 3), count=st.integers(1, 3))
    def bump_epoch(self, bump: int, count: int) -> None:
        epoch = self.history.epoch + bump if self.history else bump
        self.append(header(0, count, epoch=epoch))

    @rule(back=st.integers(1, 9))
    def repeat(self, back: int) -> None:
        if self.history is None or back > len(self.history.batches):
            return
        offset, sequence, count = self.history.batches[-back]
        asked = header(sequence, count, epoch=self.history.epoch)
        found = find_duplicate(self.table.get(5), asked)
        if back <= 5:
            assert found is not None
            assert (found.first_offset, found.last_offset) == (offset, offset + count - 1)
        else:
            assert found is None
            assert error(self.table.get(5), asked) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    @rule(skip=st.integers(1, SEQUENCES - 1), count=st.integers(1, 3))
    def skip(self, skip: int, count: int) -> None:
        if self.history is None:
            return
        sequence = (self.history.next_sequence + skip) % SEQUENCES
        asked = header(sequence, count, epoch=self.history.epoch)
        if find_duplicate(self.table.get(5), asked) is None:
            assert error(self.table.get(5), asked) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    @rule(sequence=st.integers(1, LAST_SEQUENCE))
    def begin_an_epoch_in_the_middle(self, sequence: int) -> None:
        if self.history is not None:
            asked = header(sequence, epoch=self.history.epoch + 1)
            assert error(self.table.get(5), asked) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    @rule()
    def come_back_as_a_zombie(self) -> None:
        if self.history is not None and self.history.epoch > 0:
            asked = header(self.history.next_sequence, epoch=self.history.epoch - 1)
            assert find_duplicate(self.table.get(5), asked) is None
            assert error(self.table.get(5), asked) is ErrorCode.INVALID_PRODUCER_EPOCH

    @rule()
    def be_forgotten(self) -> None:
        self.table.expire(self.end + 100, expiration_ms=100)
        assert self.table.get(5) is None
        self.history, self.log = None, []

    @invariant()
    def comes_back_from_snapshot_and_log(self) -> None:
        restored = ProducerTable(decode(encode(self.table), now_ms=self.end), end_offset=self.end)
        recall(restored, self.log)
        for entry in self.table:
            again = restored.get(entry.producer_id)
            assert again is not None
            assert (again.epoch, again.batches) == (entry.epoch, entry.batches)
            assert again.last_timestamp_ms == entry.last_timestamp_ms


ProducerMachine.TestCase.settings = settings(deadline=None)
TestProducerMachine = ProducerMachine.TestCase


def test_a_table_replayed_from_the_log_is_the_same() -> None:
    headers = [header(n, base_offset=n) for n in range(8)]
    table = ProducerTable()
    for one in headers:
        table.replay(one, now_ms=3)
    entry = table.get(5)
    assert entry is not None
    assert [batch.last_offset for batch in entry.batches] == [3, 4, 5, 6, 7]
    assert table.end_offset == 8


@given(first=st.integers(0, LAST_SEQUENCE), count=st.integers(1, 2**31 - 1))
def test_first_and_last_sequence_agree_across_the_wrap(first: int, count: int) -> None:
    last = (first + count - 1) % SEQUENCES
    assert BatchMetadata(last, count - 1, count - 1, 0).first_sequence == first


def test_the_same_sequences_cut_otherwise_are_no_duplicate() -> None:
    table = ProducerTable()
    table.replay(header(0, 4), now_ms=0)
    assert find_duplicate(table.get(5), header(0, 4)) is not None
    assert find_duplicate(table.get(5), header(0, 3)) is None
    assert find_duplicate(table.get(5), header(1, 3)) is None


TRANSACTIONAL, CONTROL = 0x10, 0x30


def test_a_marker_ends_the_transaction_and_keeps_the_sequence() -> None:
    table = ProducerTable()
    table.replay(header(0, 2, attributes=TRANSACTIONAL), now_ms=0)
    table.replay(header(2, 1, base_offset=2, attributes=TRANSACTIONAL), now_ms=0)
    assert table.first_unstable(100) == 0
    assert error(table.get(5), header(3)) is ErrorCode.INVALID_TXN_STATE
    table.expire(10**9, expiration_ms=1)
    assert len(table) == 1
    table.replay(header(-1, base_offset=3, attributes=CONTROL), now_ms=0)
    assert table.first_unstable(100) == -1
    assert error(table.get(5), header(3)) is None


def test_an_own_batch_without_sequence_is_only_asked_for_its_epoch() -> None:
    table = ProducerTable()
    table.replay(header(4, epoch=2), now_ms=0)
    own = header(-1, epoch=2)
    assert check(table.get(5), own, AppendOrigin.COORDINATOR) is None
    zombie = check(table.get(5), own._replace(producer_epoch=1), AppendOrigin.COORDINATOR)
    assert zombie is not None
    assert zombie.error is ErrorCode.INVALID_PRODUCER_EPOCH
