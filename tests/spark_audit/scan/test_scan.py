"""Reading a log of a cluster: what brokers of other kinds and in trouble answer."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import trio

from spark_audit.scan.scan import Looking, Reading, look, scan
from spark_audit.scan.scan_plan import ScanTask, read_once
from spark_audit.scan.scan_rows import RowKind, ScannedLog
from spark_audit.scan.sinks import WindowSink
from spark_audit.snapshot.origins import Brought, Part
from spark_audit.snapshot.side import Side
from tests.doubles.fake_answers import fetch
from tests.doubles.fake_cluster import FakeBroker, FakeCluster, Raw, run_fake_cluster
from wire.errors import ErrorCode
from wire.headers import RequestHeader
from wire.messages.fetch import FetchRequest, FetchResponse
from wire.primitives import ZERO_UUID
from wire.record_batch import Record, build_batch
from wire.topic_partition import TopicPartition

FETCH = 1
METADATA = 3
FIRST_BY_ID = 13


def _knows_no_ids(broker: FakeBroker) -> None:
    """Refuse topics by id, as brokers do whose metadata are still written as before 2.8."""

    async def answer(header: RequestHeader, request: FetchRequest) -> Any:
        if header.api_version >= FIRST_BY_ID:
            return FetchResponse(error_code=ErrorCode.UNKNOWN_TOPIC_ID, responses=())
        return fetch(broker, header.api_version, request)

    broker.scripts[FETCH] = answer


def _fill(fake: FakeCluster, records: int) -> ScanTask:
    """Give the cluster a log with so many records, and return the task that reads the first."""
    topic = fake.create_topic("t", 0)
    topic.topic_id = ZERO_UUID
    topic.partitions[0].batches = [
        build_batch([Record(offset, 1_000, b"k", b"v")], base_offset=offset)
        for offset in range(records)
    ]
    topic.partitions[0].end = records
    return ScanTask(
        cluster="dc1",
        bootstrap=tuple(fake.bootstrap),
        topic_id=ZERO_UUID,
        place=TopicPartition("t", 0),
        log=ScannedLog(side=Side.SOURCE, topic="t", partition=0),
        start=0,
        stop=1,
        log_stop=1,
        starts_log=True,
    )


async def test_a_log_of_a_cluster_without_topic_ids_is_read() -> None:
    async with run_fake_cluster() as fake:
        task = _fill(fake, 1)
        _knows_no_ids(fake.brokers[0])
        [rows] = await trio.to_thread.run_sync(scan, [task])
    assert [row.kind for row in rows] == [RowKind.RANGE.value]


async def test_what_was_written_since_the_snapshot_is_read_if_it_is_asked_for() -> None:
    async with run_fake_cluster() as fake:
        task = _fill(fake, 3)
        tasks = [task, replace(task, to_end=True)]
        found = await trio.to_thread.run_sync(look, tasks, list(map(_offsets, tasks)))
    assert found == [[0], [0, 1, 2]]


async def test_what_supersedes_a_record_before_it_is_read_is_read_as_well() -> None:
    """A cleaner takes the record at 2 while 0 and 1 are read: 3 has its key, behind the end."""
    async with run_fake_cluster() as fake:
        task = replace(_fill(fake, 3), to_end=True)
        log = fake.topics["t"].partitions[0]

        async def answer(header: RequestHeader, request: FetchRequest) -> Any:
            found = fetch(fake.brokers[0], header.api_version, request)
            if log.end == 3:
                found = _with_records(found, b"".join(log.batches[:2]))
                log.batches[2] = build_batch([Record(3, 1_000, b"k", b"v")], base_offset=3)
                log.end = 4
            return found

        fake.brokers[0].scripts[FETCH] = answer
        found = await trio.to_thread.run_sync(look, [task], [_offsets(task)])
    assert found == [[0, 1, 3]]


def _with_records(answer: FetchResponse, records: bytes) -> FetchResponse:
    [topic] = answer.responses
    [partition] = topic.partitions
    changed = replace(topic, partitions=(replace(partition, records=records),))
    return replace(answer, responses=(changed,))


def _offsets(task: ScanTask) -> Looking[list[int]]:
    sink = WindowSink(100)
    yield [Reading(task=task, sink=sink)]
    return list(sink.offsets)


async def test_one_log_that_cannot_be_read_keeps_no_other_from_being_looked_into(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("spark_audit.scan.scan.PATIENCE_S", 0.3)
    async with run_fake_cluster() as fake:
        task = _fill(fake, 2)
        tasks = [replace(task, start=5, stop=6), task]
        first, second = await trio.to_thread.run_sync(look, tasks, list(map(_offsets, tasks)))
    assert "at offset 5" in str(first)
    assert second == [0]


async def test_an_answer_with_a_code_of_a_later_kafka_leaves_the_log_unread_by_its_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("spark_audit.scan.scan.PATIENCE_S", 0.3)
    async with run_fake_cluster() as fake:
        task = _fill(fake, 1)

        async def answer(header: RequestHeader, request: FetchRequest) -> Any:
            found = fetch(fake.brokers[0], header.api_version, request)
            [topic] = found.responses
            [partition] = topic.partitions
            refused = replace(partition, error_code=9_999, records=b"")
            return replace(found, responses=(replace(topic, partitions=(refused,)),))

        fake.brokers[0].scripts[FETCH] = answer
        [[row]] = await trio.to_thread.run_sync(scan, [task])
    assert row.kind == RowKind.FAILURE.value
    assert "error 9999" in str(row.detail)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (ErrorCode.UNKNOWN_TOPIC_ID, "UNKNOWN_TOPIC_ID"),
        (ErrorCode.INCONSISTENT_TOPIC_ID, "INCONSISTENT_TOPIC_ID"),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "UNKNOWN_TOPIC_OR_PARTITION"),
    ],
    ids=["made again", "made again, for a broker that knows both", "gone"],
)
async def test_a_topic_that_goes_while_it_is_read_is_named_and_never_read_as_another(
    monkeypatch: pytest.MonkeyPatch, code: ErrorCode, why: str
) -> None:
    monkeypatch.setattr("spark_audit.scan.scan.PATIENCE_S", 0.3)
    async with run_fake_cluster() as fake:
        task = replace(_fill(fake, 2), stop=2, log_stop=2)
        broker = fake.brokers[0]

        async def answer(header: RequestHeader, request: FetchRequest) -> Any:
            found = fetch(broker, header.api_version, request)
            [topic] = found.responses
            [partition] = topic.partitions
            if not request.topics[0].partitions[0].fetch_offset:
                [first, _] = fake.topics["t"].partitions[0].batches
                known = replace(partition, records=first)
            else:
                known = replace(partition, error_code=code, records=b"")
            return replace(found, responses=(replace(topic, partitions=(known,)),))

        broker.scripts[FETCH] = answer
        [rows] = await trio.to_thread.run_sync(scan, [task])
    assert rows[-1].kind == RowKind.FAILURE.value
    assert str(rows[-1].detail).startswith("dc1: t-0 at offset 1: ")
    assert why in str(rows[-1].detail)


async def test_a_broker_that_dies_while_it_is_read_and_is_back_soon_costs_no_record() -> None:
    async with run_fake_cluster() as fake:
        task = replace(_fill(fake, 2), stop=2, log_stop=2)
        broker, deaths = fake.brokers[0], 0

        async def answer(header: RequestHeader, request: FetchRequest) -> Any:
            nonlocal deaths
            if not deaths:
                deaths += 1
                return Raw(b"", cut=True)
            return fetch(broker, header.api_version, request)

        broker.scripts[FETCH] = answer
        [rows] = await trio.to_thread.run_sync(scan, [task])
    assert deaths == 1
    assert sum(row.records for row in rows if row.kind == RowKind.RANGE.value) == 2


async def test_logs_are_read_side_by_side() -> None:
    """Each of two brokers answers once the other one has been asked, too."""
    async with run_fake_cluster(2) as fake:
        first = _fill(fake, 2)
        other = fake.create_topic("u", 1)
        other.topic_id = ZERO_UUID
        other.partitions[0].batches = fake.topics["t"].partitions[0].batches
        other.partitions[0].end = 2
        second = replace(first, place=TopicPartition("u", 0))
        asked = [trio.Event(), trio.Event()]

        def hold(number: int) -> None:
            async def answer(header: RequestHeader, request: FetchRequest) -> Any:
                asked[number].set()
                await asked[1 - number].wait()
                return fetch(fake.brokers[number], header.api_version, request)

            fake.brokers[number].scripts[FETCH] = answer

        hold(0)
        hold(1)
        with trio.fail_after(20):
            found = await trio.to_thread.run_sync(scan, [first, second])
    assert [[row.start_offset for row in rows] for rows in found] == [[0], [0]]


async def test_many_logs_are_read_over_one_connection_with_one_question_for_their_leaders() -> None:
    async with run_fake_cluster() as fake:
        first = _fill(fake, 2)
        other = fake.create_topic("u", 0)
        other.topic_id = ZERO_UUID
        other.partitions[0] = fake.topics["t"].partitions[0]
        second = replace(first, place=TopicPartition("u", 0), start=1, stop=2, log_stop=2)
        broker = fake.brokers[0]
        found = await trio.to_thread.run_sync(scan, [first, second] * 20)
        asked = Counter(header.api_key for header, _ in broker.asked)
        accepted = broker.accepted
    assert [[row.start_offset for row in rows] for rows in found] == [[0], [1]] * 20
    assert asked[FETCH] == 40
    assert asked[METADATA] <= 2
    assert accepted <= 2


async def test_a_log_that_two_flows_read_is_fetched_once_and_gives_each_flow_its_records() -> None:
    async with run_fake_cluster() as fake:
        task = replace(_fill(fake, 6), stop=6, log_stop=6)
        batches = fake.topics["t"].partitions[0].batches
        for offset in (1, 2, 4):
            record = Record(offset, 1_000, b"k", b"brought")
            batches[offset] = build_batch([record], base_offset=offset, producer_id=7)
        brought = Brought(producer_ids=frozenset({7}))
        own = replace(task, part=Part(brought=brought, is_brought=False))
        back = replace(
            task, part=Part(brought=brought, is_brought=True), log=replace(task.log, flow="back")
        )
        alone = await trio.to_thread.run_sync(scan, [own, back])
        asked_twice = _fetches(fake.brokers[0].asked)
        fake.brokers[0].asked.clear()
        [once] = read_once([own, back])
        together = await trio.to_thread.run_sync(scan, [once])
        asked_once = _fetches(fake.brokers[0].asked)
    assert together == alone
    assert [sum(row.records for row in rows if row.kind == "range") for rows in alone] == [3, 3]
    assert asked_twice == 2 * asked_once > 0


def _fetches(asked: Sequence[tuple[RequestHeader, object]]) -> int:
    return sum(header.api_key == FETCH for header, _ in asked)


async def test_a_log_that_two_flows_read_and_that_is_cut_fails_both() -> None:
    async with run_fake_cluster() as fake:
        task = replace(_fill(fake, 2), stop=3, log_stop=3)
        longer = replace(task, stop=9, log_stop=9, log=replace(task.log, flow="back"))
        [once] = read_once([task, longer])
        fake.brokers[0].scripts[FETCH] = _out_of_range(fake)
        found = await trio.to_thread.run_sync(scan, [once])
    assert [rows[-1].kind for rows in found] == [RowKind.FAILURE.value] * 2


def _out_of_range(fake: FakeCluster) -> Any:
    async def answer(header: RequestHeader, request: FetchRequest) -> Any:
        found = fetch(fake.brokers[0], header.api_version, request)
        [topic] = found.responses
        [partition] = topic.partitions
        code = ErrorCode.OFFSET_OUT_OF_RANGE
        refused = replace(partition, error_code=code, records=b"")
        return replace(found, responses=(replace(topic, partitions=(refused,)),))

    return answer
