"""Which transactions were aborted and up to where all is decided, against a scan of the log."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from broker.log.checkpoints import RECOVERY_POINTS
from broker.log.markers import AbortedTransaction
from broker.log.partition_log import PartitionLog
from broker.log.results import AppendOrigin, BatchRefused, FileSlice
from broker.log.transaction_index import TransactionIndex
from tests.broker.log.kafkas_folders import opened as kafkas_opened
from tests.broker.log.kafkas_folders import unpack, unpacked
from tests.broker.log.logs import (
    NOW_MS,
    batch,
    marker,
    one_log,
    opened,
    partition_of,
    scanned,
)
from tests.properties import examples
from wire.topic_partition import TopicPartition

ABORT, COMMIT = True, False


def add(log: PartitionLog, sent: bytes) -> None:
    done = log.append(sent, leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR)
    assert not isinstance(done, BatchRefused)


def begin(log: PartitionLog, producer_id: int, count: int = 1) -> None:
    add(log, batch([b"value"] * count, producer=(producer_id, 0, 0), is_transactional=True))


def test_an_open_transaction_holds_the_last_stable_offset(tmp_path: Path) -> None:
    with one_log(tmp_path) as log:
        add(log, batch([b"plain"] * 2))
        assert log.last_stable_offset(2) == 2
        begin(log, 7, 3)
        begin(log, 8)
        assert log.last_stable_offset(1) == 1
        assert log.last_stable_offset(6) == 2
        add(log, marker(7, is_abort=COMMIT))
        assert log.last_stable_offset(7) == 5
        add(log, marker(8, is_abort=ABORT))
        assert log.last_stable_offset(8) == 8


def test_a_marker_above_the_high_watermark_decides_nothing_yet(tmp_path: Path) -> None:
    with one_log(tmp_path) as log:
        begin(log, 7, 4)
        add(log, marker(7, is_abort=COMMIT))
        assert log.last_stable_offset(3) == 0
        assert log.last_stable_offset(4) == 0
        assert log.last_stable_offset(5) == 5


def test_a_slice_tells_up_to_where_aborted_transactions_matter(tmp_path: Path) -> None:
    with one_log(tmp_path) as log:
        for producer_id in range(6):
            begin(log, producer_id)
            add(log, marker(producer_id, is_abort=ABORT))
        found = log.locate(0, 200)
        assert isinstance(found, FileSlice)
        assert found.end_offset == 2
        assert log.aborted_transactions(0, found.end_offset) == [AbortedTransaction(0, 0, 1, 2)]
        everything = log.locate(10, 10_000)
        assert isinstance(everything, FileSlice)
        assert everything.end_offset == 12


def test_a_half_written_entry_is_written_over(tmp_path: Path) -> None:
    first, second = AbortedTransaction(1, 0, 4, 5), AbortedTransaction(2, 5, 9, 10)
    index = TransactionIndex(tmp_path / "0.txnindex")
    index.append([first])
    with index.path.open("ab") as file:
        file.write(b"half")
    index = TransactionIndex(index.path)
    assert index.fault(0) == "ends inside an entry"
    index.append([second])
    assert index.fault(0) is None
    assert TransactionIndex(index.path).entries() == [first, second]
    assert index.fault(5) is not None


def test_a_flush_takes_the_index_and_the_new_file_names_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(
        "broker.log.flushing.os.fdatasync",
        lambda descriptor: synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name),
    )
    with one_log(tmp_path) as log:
        begin(log, 7)
        add(log, marker(7, is_abort=ABORT))
        log.flush()
        assert sorted(synced) == [f"{0:020d}.log", f"{0:020d}.txnindex", "topic-0"]
        synced.clear()
        add(log, batch())
        log.flush()
        assert sorted(synced) == [f"{0:020d}.log", f"{0:020d}.txnindex"]


@pytest.mark.parametrize("name", ["clean", "killed"])
def test_apache_kafkas_transactions_are_told_as_it_told_them(tmp_path: Path, name: str) -> None:
    manager = unpacked(tmp_path, name)
    log = manager.logs[TopicPartition("tx", 0)]
    aborted, open_ones = scanned(log)
    assert len(aborted) == 3
    assert len(open_ones) == 1
    assert log.aborted_transactions(0, log.log_end_offset) == aborted
    assert log.last_stable_offset(log.log_end_offset) == min(open_ones.values())
    stored = [path.read_bytes() for path in sorted(log.folder.glob("*.txnindex"))]
    assert sum(map(len, stored)) == 3 * 34
    manager.abandon()


def test_a_lost_index_is_built_anew_to_the_byte_after_a_crash(tmp_path: Path) -> None:
    unpack(tmp_path, "killed")
    stored = {path: path.read_bytes() for path in tmp_path.glob("tx-0/*.txnindex")}
    assert stored
    (tmp_path / RECOVERY_POINTS).unlink()
    for path in (*stored, *tmp_path.glob("tx-0/*.snapshot")):
        path.unlink()
    kafkas_opened(tmp_path).abandon()
    assert {path: path.read_bytes() for path in tmp_path.glob("tx-0/*.txnindex")} == stored


class TransactionMachine(RuleBasedStateMachine):
    """Producers in and out of transactions, rolls, truncations, restarts of every kind."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.manager = opened(self.folder)
        self.log = partition_of(self.manager)
        self.flushed = 0

    def teardown(self) -> None:
        self.manager.abandon()
        shutil.rmtree(self.folder)

    @rule(producer_id=st.integers(1, 3), count=st.integers(1, 3))
    def write(self, producer_id: int, count: int) -> None:
        begin(self.log, producer_id, count)

    @rule()
    def write_outside(self) -> None:
        add(self.log, batch())

    @rule(producer_id=st.integers(1, 3), is_abort=st.booleans())
    def end(self, producer_id: int, is_abort: bool) -> None:
        add(self.log, marker(producer_id, is_abort=is_abort))

    @rule()
    def roll(self) -> None:
        self.log.roll(NOW_MS)

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(0, self.log.log_end_offset))
        self.log.truncate_to(offset, now_ms=NOW_MS)
        self.flushed = min(self.flushed, offset)

    @rule(is_clean=st.booleans(), loses_indexes=st.booleans())
    def restart(self, is_clean: bool, loses_indexes: bool) -> None:
        if is_clean:
            self.flushed = self.log.log_end_offset
            self.manager.close()
        else:
            self.manager.abandon()
            for path in self.log.folder.glob("*.txnindex"):
                if loses_indexes and int(path.stem) >= self.flushed:
                    path.unlink()
        self.manager = opened(self.folder)
        self.log = partition_of(self.manager)

    @invariant()
    def knows_what_a_scan_tells(self) -> None:
        aborted, open_ones = scanned(self.log)
        end = self.log.log_end_offset
        assert self.log.last_stable_offset(end) == min(open_ones.values(), default=end)
        for start in range(0, end, 3):
            for stop in range(start + 1, end + 1, 3):
                assert [
                    one
                    for one in self.log.aborted_transactions(start, stop)
                    if one.last_offset >= start and one.first_offset < stop
                ] == [
                    one for one in aborted if one.last_offset >= start and one.first_offset < stop
                ]


TransactionMachine.TestCase.settings = settings(
    stateful_step_count=25, max_examples=examples(15), deadline=None
)
TestTransactionMachine = TransactionMachine.TestCase
