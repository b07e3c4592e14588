"""Log folders that Apache Kafka wrote are opened, read and continued (golden/README.md)."""

import json
from pathlib import Path

import pytest

from broker.log.results import AppendResult
from tests.broker.log.kafkas_folders import GOLDEN, opened, unpacked
from tests.broker.log.logs import NOW_MS, batch, batches_of, record_at, recovered, values_of
from wire.record_batch import BatchHeader
from wire.topic_partition import TopicPartition

CODECS = 5


@pytest.mark.parametrize("name", ["clean", "killed"])
def test_every_record_is_there_and_found_by_time(tmp_path: Path, name: str) -> None:
    manager = unpacked(tmp_path, name)
    assert not recovered(manager)
    records: dict[str, list[tuple[int, int, str]]]
    records = json.loads((GOLDEN / "kafka-3.9.2-records.json").read_text())
    for topic, expected in records.items():
        log = manager.logs[TopicPartition(topic, 0)]
        markers = {header.base_offset for header, _ in batches_of(log) if header.is_control}
        values = {
            offset: value for offset, value in values_of(log).items() if offset not in markers
        }
        assert values == {offset: value.encode() for offset, _, value in expected}
        for offset, timestamp_ms, _ in expected:
            found = record_at(log, timestamp_ms)
            assert found is not None
            assert found.timestamp_ms >= timestamp_ms
            assert found.offset <= offset
    manager.close()


@pytest.mark.parametrize("name", ["clean", "killed"])
def test_every_producers_last_batches_are_known(tmp_path: Path, name: str) -> None:
    manager = unpacked(tmp_path, name)
    log = manager.get("events", 0)
    assert log is not None
    produced: dict[int, list[BatchHeader]] = {}
    for header, _ in batches_of(log):
        produced.setdefault(header.producer_id, []).append(header)
    assert len(produced) == CODECS
    for headers in produced.values():
        for header in headers[-5:]:
            found = log.find_duplicate(header)
            assert found is not None
            assert (found.base_offset, found.last_offset) == (
                header.base_offset,
                header.last_offset,
            )
        assert not any(log.find_duplicate(header) for header in headers[:-5])
    manager.close()


@pytest.mark.parametrize("name", ["clean", "killed"])
def test_the_log_goes_on_where_kafka_ended(tmp_path: Path, name: str) -> None:
    manager = unpacked(tmp_path, name)
    before = {key: (log.log_end_offset, values_of(log)) for key, log in manager.logs.items()}
    for key, log in manager.logs.items():
        for number in range(60):
            done = log.append(batch([b"%d" % number] * 3), leader_epoch=1, now_ms=NOW_MS)
            assert isinstance(done, AppendResult)
            assert done.base_offset == before[key][0] + 3 * number
    manager.abandon()
    again = opened(tmp_path)
    assert not recovered(again)
    for key, log in again.logs.items():
        end, values = before[key]
        assert log.end_offset_for_epoch(0) == (0, end)
        assert values_of(log) == values | {end + o: b"%d" % (o // 3) for o in range(180)}
    again.close()
