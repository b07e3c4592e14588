"""The checkpoint topic is read over whatever lies in it; the map's topic is not."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from mirror.clusters.malformed_records import OddRecords
from mirror.clusters.tail_reader import TailReader, TopicUnreadable
from mirror.groups.checkpoint_log import CheckpointLog
from mirror.state.measurements import FlowMeasurements
from offset_translation import checkpoint
from offset_translation.checkpoint import Checkpoint
from runtime.process.fault_note import FaultNote
from tests.doubles.fake_cluster import FakeCluster, run_fake_cluster
from tests.doubles.map_writers import MemoryWriters
from tests.mirror.building import CONFIG
from tests.mirror.groups.source_logs import Stored, damaged, fetched
from tests.mirror.two_fakes import let_create
from wire.headers import RequestHeader
from wire.messages.fetch import FetchRequest, FetchResponse
from wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from wire.net import open_cluster
from wire.record_batch import (
    BatchHeader,
    Record,
    assign_offsets,
    build_batch,
    iterate_batches,
    iterate_records,
)

TOPIC = CONFIG.names.checkpoints_topic


def applied(base: int, *groups: str) -> bytes:
    """Return a batch of checkpoints, each at its own offset."""
    records = []
    for place, group in enumerate(groups):
        one = Checkpoint(
            group=group,
            topic=CONFIG.names.on_target("orders"),
            partition=0,
            upstream_offset=base + place,
            downstream_offset=base + place,
            metadata="",
        )
        records.append(Record(place, 1, *checkpoint.encode(one)))
    batch = bytearray(build_batch(records))
    assign_offsets(batch, base, 0)
    return bytes(batch)


GOOD, BAD, MORE = applied(0, "a", "b"), applied(2, "c", "d"), applied(4, "e")
FOREIGN = build_batch([Record(0, 1, b"?", b"?"), Record(1, 1, None, b"?")])
DAMAGES = {
    "wrong checksum": damaged(BAD, 90, BAD[90] ^ 1),
    "last offset under the wrong checksum": damaged(BAD, 26, 99),
    "magic of another format": damaged(BAD, 16, 7),
    "cut-off records": BAD[:8] + (len(BAD) - 12 - 5).to_bytes(4) + BAD[12:-5],
}


def hold(fake: FakeCluster, *log: Stored) -> None:
    """Have the topic hold these batches, whatever they are."""
    topic = fake.create_topic(TOPIC, 0)
    topic.partitions[0].end = log[-1][0]

    async def fetch(_: RequestHeader, request: FetchRequest) -> FetchResponse:
        return fetched({0: log}, request)

    fake.brokers[0].scripts[FetchRequest.API_KEY] = fetch


@pytest.mark.parametrize("bad", DAMAGES.values(), ids=DAMAGES.keys())
@pytest.mark.parametrize("behind", [((5, MORE),), ()], ids=["more follows", "nothing follows"])
async def test_a_damaged_batch_of_checkpoints_is_counted_once_and_passed_over(
    bad: bytes, behind: tuple[Stored, ...], caplog: pytest.LogCaptureFixture
) -> None:
    measurements = FlowMeasurements("f")
    odd = OddRecords(measurements, TOPIC)
    async with run_fake_cluster() as fake, open_cluster(fake.bootstrap, client_id="t") as cluster:
        hold(fake, (2, GOOD), (4, bad), *behind)
        log = CheckpointLog(
            cluster, replace(CONFIG, replication_factor=1), odd, FaultNote("f"), MemoryWriters()
        )
        await log.load()
    assert [place[0] for place in log.applied] == ["a", "b", *(["e"] if behind else [])]
    assert measurements.malformed[TOPIC] == 1
    assert caplog.text.count("left out; further ones are counted only") == 1


async def test_unbelieved_records_among_checkpoints_are_counted_and_passed_over() -> None:
    measurements = FlowMeasurements("f")
    async with run_fake_cluster() as fake, open_cluster(fake.bootstrap, client_id="t") as cluster:
        hold(fake, (2, FOREIGN), (4, BAD))
        log = CheckpointLog(
            cluster, CONFIG, OddRecords(measurements, TOPIC), FaultNote("f"), MemoryWriters()
        )
        await log.load()
    assert [place[0] for place in log.applied] == ["c", "d"]
    assert measurements.malformed[TOPIC] == 2


@pytest.mark.parametrize("bad", DAMAGES.values(), ids=DAMAGES.keys())
async def test_who_must_not_miss_a_record_does_not_read_over_a_damaged_batch(bad: bytes) -> None:
    async with run_fake_cluster() as fake, open_cluster(fake.bootstrap, client_id="t") as cluster:
        hold(fake, (2, GOOD), (4, bad), (5, MORE))
        reader = TailReader(cluster, TOPIC)
        read: list[int] = []
        with pytest.raises(TopicUnreadable, match="damaged batch at offset 2"):
            await read_all(reader, read)
    assert read == [0, 1]


async def read_all(reader: TailReader, read: list[int]) -> None:
    async for _, record in reader.read_new():
        read.append(record.offset)


async def test_a_topic_that_was_deleted_is_made_again_with_all_that_was_applied() -> None:
    fault = FaultNote("f")
    ours = Checkpoint("ours", CONFIG.names.on_target("orders"), 0, 9, 9)
    async with run_fake_cluster(1) as fake:
        settings = let_create(fake)
        fake.create_topic(TOPIC, 0)
        async with open_cluster(fake.bootstrap, client_id="t") as cluster:
            log = CheckpointLog(
                cluster, CONFIG, OddRecords(FlowMeasurements("f"), TOPIC), fault, MemoryWriters()
            )
            await log.load()
            log.applied["theirs", "orders", 0] = theirs = ours._replace(group="theirs")
            del fake.topics[TOPIC]
            log.note(("ours", "orders", 0), ours)
            texts = []
            for _ in range(2):
                await log.write()
                texts.append(fault.text)
        [batch] = fake.topics[TOPIC].partitions[0].batches
    assert texts == [f"{TOPIC}: UNKNOWN_TOPIC_OR_PARTITION", None]
    [(_, written)] = iterate_batches(memoryview(batch))
    found = [
        checkpoint.decode(one.key or b"", one.value or b"") for one in iterate_records(written)
    ]
    assert sorted(found) == [ours, theirs]
    assert settings == {"cleanup.policy": "compact"}


@pytest.mark.parametrize(("topic_set", "applied_here"), [(None, {"a", "b"}), ("stock", set())])
async def test_checkpoints_of_another_set_are_none_of_its_flow(
    topic_set: str | None, applied_here: set[str]
) -> None:
    of_set = replace(CONFIG, topic_set=topic_set)
    if topic_set is not None:
        topics = replace(CONFIG.topics, include=(re.compile("stock"),))
        of_set = replace(of_set, topics=topics)
    async with run_fake_cluster(1) as fake:
        let_create(fake)
        hold(fake, (2, GOOD))
        async with open_cluster(fake.bootstrap, client_id="t") as cluster:
            odd = OddRecords(FlowMeasurements("f"), TOPIC)
            log = CheckpointLog(cluster, of_set, odd, FaultNote("f"), MemoryWriters())
            await log.load()
    assert {group for group, _, _ in log.applied} == applied_here


@asynccontextmanager
async def strict_log(fake: FakeCluster) -> AsyncIterator[tuple[CheckpointLog, FaultNote]]:
    """A log that believes nobody but who has registered."""
    fault, odd = FaultNote("f"), OddRecords(FlowMeasurements("f"), TOPIC)
    async with open_cluster(fake.bootstrap, client_id="t") as cluster:
        yield CheckpointLog(cluster, CONFIG, odd, fault, MemoryWriters(is_strict=True)), fault


async def test_checkpoints_of_nobody_registered_are_counted_and_not_applied() -> None:
    async with run_fake_cluster() as fake:
        hold(fake, (2, GOOD), (4, BAD))
        async with strict_log(fake) as (log, _):
            await log.load()
    assert not log.applied
    assert log.unbelieved_records.describe() == [
        "4 of producer id -1 (a plain producer), from offset 0 on"
    ]


async def test_a_checkpoint_that_somebody_else_has_written_over_is_written_again() -> None:
    """The cleaner keeps the last record of a key, whoever has written it."""
    ours = Checkpoint("a", CONFIG.names.on_target("orders"), 0, 9, 9)
    async with run_fake_cluster() as fake:
        let_create(fake)
        fake.create_topic(TOPIC, 0)
        async with strict_log(fake) as (log, fault):
            await log.load()
            log.note(("a", "orders", 0), ours)
            await log.write()
            partition = fake.topics[TOPIC].partitions[0]
            forged = bytearray(applied(0, "a", "b"))
            assign_offsets(forged, 1, 0)
            partition.batches.append(bytes(forged))
            partition.end = 3
            is_behind = [log.is_behind]
            await log.catch_up()
            is_behind.append(log.is_behind)
            await log.write()
            is_behind.append(log.is_behind)
            await log.catch_up()
    assert is_behind == [False, True, False]
    assert log.applied == {("a", "orders", 0): ours}
    assert (fault.text, log.unbelieved_records.count) == (None, 2)
    [first, forger, last] = headers(partition.batches)
    assert first.producer_id == last.producer_id != forger.producer_id == -1
    assert (first.base_sequence, last.base_sequence) == (0, 1)


async def test_behind_a_fault_another_producer_writes_so_that_no_sequence_is_in_doubt() -> None:
    ours = Checkpoint("a", CONFIG.names.on_target("orders"), 0, 9, 9)
    async with run_fake_cluster() as fake:
        let_create(fake)
        fake.create_topic(TOPIC, 0)
        async with strict_log(fake) as (log, fault):
            await log.load()
            log.note(("a", "orders", 0), ours)
            await log.write()
            broker = fake.brokers[0]
            broker.scripts[ProduceRequest.API_KEY] = refused
            log.note(("a", "orders", 0), ours._replace(upstream_offset=10))
            await log.write()
            texts = [fault.text]
            del broker.scripts[ProduceRequest.API_KEY]
            await log.write()
            texts.append(fault.text)
            written = headers(fake.topics[TOPIC].partitions[0].batches)
        async with strict_log(fake) as (another, _):
            another._writers = log._writers
            await another.load()
    assert texts == [f"{TOPIC}: NOT_ENOUGH_REPLICAS", None]
    assert len({one.producer_id for one in written}) == 2
    assert [one.base_sequence for one in written] == [0, 0]
    assert another.applied == {("a", "orders", 0): ours._replace(upstream_offset=10)}


def headers(batches: Sequence[bytes]) -> list[BatchHeader]:
    return [header for one in batches for header, _ in iterate_batches(memoryview(one))]


async def refused(_: RequestHeader, __: ProduceRequest) -> ProduceResponse:
    """Refuse a write as a broker does that has lost its in-sync replicas."""
    answer = PartitionProduceResponse(index=0, error_code=19, base_offset=-1)
    return ProduceResponse(
        responses=(TopicProduceResponse(name=TOPIC, partition_responses=(answer,)),)
    )
