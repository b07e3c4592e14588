"""Writes of the map whose answers were lost, on brokers that keep batches in their own way."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from mirror.map.map_log import MapLog, MapUnwritable
from offset_translation.map_records import MirrorProducer, mirror_producer, piece_start
from offset_translation.runs import Place
from tests.doubles.fake_answers import ANSWERS, fetch
from tests.doubles.fake_cluster import FakePartition, run_fake_cluster
from tests.doubles.map_writers import MemoryWriters
from wire.compression import Compression
from wire.headers import RequestHeader
from wire.messages.fetch import FetchRequest, FetchResponse
from wire.messages.produce import ProduceRequest
from wire.net import open_cluster
from wire.record_batch import assign_offsets, build_batch, iterate_records, parse_header
from wire.record_batch.header import stamp_append_time
from wire.topic_partition import TopicPartition

PIECE = piece_start("t", 0, source_start=5, place=Place(3))


def stamped(batch: bytes) -> bytes:
    """As with message.timestamp.type=LogAppendTime."""
    own = bytearray(batch)
    stamp_append_time(own, 1_000)
    return bytes(own)


def compressed(batch: bytes) -> bytes:
    """As with compression.type=gzip."""
    header = parse_header(batch)
    own = bytearray(
        build_batch(
            list(iterate_records(batch)),
            compression=Compression.GZIP,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
        )
    )
    assign_offsets(own, header.base_offset, 0)
    return bytes(own)


@pytest.mark.parametrize("kept", [bytes, stamped, compressed])
async def test_after_a_lost_answer_writing_goes_on_however_the_broker_keeps_a_batch(
    kept: Callable[[bytes], bytes],
) -> None:
    async with run_fake_cluster() as fake:
        log: FakePartition = fake.create_topic("dc1.offset-map.internal", 0).partitions[0]
        [broker] = fake.brokers.values()
        produced = 0

        async def keep(header: RequestHeader, request: ProduceRequest) -> object:
            nonlocal produced
            answer = ANSWERS[header.api_key](broker, header.api_version, request)
            log.batches[-1] = kept(log.batches[-1])
            produced += 1
            if produced == 1:
                await broker.cut_connections()
                return None
            return answer

        broker.scripts[ProduceRequest.API_KEY] = keep
        async with open_cluster(fake.bootstrap, client_id="test") as client:
            map_log = MapLog(client, "dc1", 1, MemoryWriters())
            map_log._writer = MirrorProducer(producer_id=9, producer_epoch=0)
            ours = mirror_producer(MirrorProducer(producer_id=7, producer_epoch=0))
            await map_log.write(lambda: [ours, PIECE])
            await map_log.write(lambda: [ours])
            assert map_log.state.producer is not None
            assert len(map_log.state.maps[TopicPartition("t", 0)]) == 1
    assert produced == 3


async def test_a_repetition_that_is_another_write_is_written_again() -> None:
    """A broker takes what has the sequence of an earlier write for that one come again."""
    async with run_fake_cluster() as fake:
        log: FakePartition = fake.create_topic("dc1.offset-map.internal", 0).partitions[0]
        [broker] = fake.brokers.values()
        answers: list[object] = []

        async def repeat(header: RequestHeader, request: ProduceRequest) -> object:
            if len(answers) == 1:
                answers.append(None)
                return answers[0]
            answers.append(ANSWERS[header.api_key](broker, header.api_version, request))
            return answers[-1]

        broker.scripts[ProduceRequest.API_KEY] = repeat
        async with open_cluster(fake.bootstrap, client_id="test") as client:
            map_log = MapLog(client, "dc1", 1, MemoryWriters())
            map_log._writer = MirrorProducer(producer_id=9, producer_epoch=0)
            await map_log.write(
                lambda: [mirror_producer(MirrorProducer(producer_id=7, producer_epoch=0))]
            )
            map_log._is_unsure = True
            await map_log.write(lambda: [PIECE])
    assert len(log.batches) == 2
    assert [one.key for batch in log.batches for one in iterate_records(batch)][1] == PIECE[0]


async def test_a_write_that_comes_back_damaged_is_a_write_that_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mirror.map.map_log.FIRST_PAUSE_S", 0)
    async with run_fake_cluster() as fake:
        fake.create_topic("dc1.offset-map.internal", 0)
        [broker] = fake.brokers.values()

        async def damage(header: RequestHeader, request: FetchRequest) -> FetchResponse:
            answer = fetch(broker, header.api_version, request)
            [topic] = answer.responses
            [data] = topic.partitions
            assert isinstance(data.records, bytes)
            whole = data.records
            damaged = replace(data, records=whole[:8] + b"\xff" * 4 + whole[12:])
            return replace(answer, responses=(replace(topic, partitions=(damaged,)),))

        broker.scripts[FetchRequest.API_KEY] = damage
        async with open_cluster(fake.bootstrap, client_id="test") as client:
            map_log = MapLog(client, "dc1", 1, MemoryWriters())
            map_log._writer = MirrorProducer(producer_id=9, producer_epoch=0)
            map_log._is_unsure = True
            with pytest.raises(MapUnwritable, match="damaged batch at offset 0"):
                await map_log.write(lambda: [PIECE])
