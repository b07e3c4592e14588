"""Batches of very many records, which compress to little: nobody waits while they are looked at."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from broker.fairness import RECORDS_AT_ONCE, UNPACKED_AT_ONCE_BYTES
from broker.log import lookup, validation
from broker.log.record_scan import scan_records
from tests.broker.rig import NOW_MS, LoneNode, outcome, produce, serving
from wire.compression import Compression, decompress
from wire.errors import ErrorCode
from wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from wire.primitives import Buffer
from wire.record_batch import (
    MAX_RECORDS_BYTES,
    Record,
    build_batch,
    iterate_records,
    parse_header,
    reading,
)
from wire.record_batch.header import pack_header
from wire.record_batch.varints import varint

MANY = 3 * RECORDS_AT_ONCE


def long_batch(*, last_key: bytes | None = b"k", count: int = MANY) -> bytes:
    """Return a batch whose last record may have no key, and is a second younger."""
    records = [Record(slot, NOW_MS, b"k", b"") for slot in range(count - 1)]
    records.append(Record(count - 1, NOW_MS + 1_000, last_key, b""))
    return build_batch(records, compression=Compression.ZSTD)


def compact(node: LoneNode) -> None:
    partition = node.partitions.led("t", 0)
    assert partition is not None
    partition.log.config = replace(partition.log.config, cleanup_policy=frozenset({"compact"}))


@pytest.mark.parametrize(
    ("last_key", "error"), [(b"k", ErrorCode.NONE), (None, ErrorCode.INVALID_RECORD)]
)
async def test_keys_of_very_many_records_are_looked_for_beside_the_loop_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last_key: bytes | None, error: ErrorCode
) -> None:
    threads: list[int] = []

    def noted(payload: bytes, count: int) -> Any:
        threads.append(threading.get_ident())
        return scan_records(payload, count)

    monkeypatch.setattr(validation, "scan_records", noted)
    async with serving(tmp_path) as rig, rig.connect() as client:
        compact(rig.node)
        answer = await client.ask(produce(long_batch(last_key=last_key), acks=1))
        assert outcome(answer)[0] == error
        assert len(threads) == 1
        assert threads[0] != threading.get_ident()
        await client.ask(produce(long_batch(count=2), acks=1))
        assert threads[1:] == [threading.get_ident()]


LARGE_MESSAGE = 2 * 1024 * 1024
LARGE = bytes(16 * 1024 * 1024)


def bomb(codec: Compression, *, key: bytes | None = b"k") -> bytes:
    """Return a batch of one record that is thousands of times as large unpacked."""
    return build_batch([Record(0, NOW_MS, key, LARGE)], compression=codec)


@contextmanager
def unpacking(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Give the threads in which large records were unpacked."""
    threads: list[int] = []

    def noted(codec: Compression, data: Buffer, *, limit_bytes: int) -> bytes:
        unpacked = decompress(codec, data, limit_bytes=limit_bytes)
        if len(unpacked) > UNPACKED_AT_ONCE_BYTES:
            threads.append(threading.get_ident())
        return unpacked

    with monkeypatch.context() as patched:
        patched.setattr(reading, "decompress", noted)
        yield threads


@pytest.mark.parametrize("codec", [one for one in Compression if one is not Compression.NONE])
@pytest.mark.parametrize(
    ("key", "error"), [(b"k", ErrorCode.NONE), (None, ErrorCode.INVALID_RECORD)]
)
async def test_a_small_batch_that_becomes_large_is_unpacked_beside_the_loop(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    codec: Compression,
    key: bytes | None,
    error: ErrorCode,
) -> None:
    async with serving(tmp_path, message_max_bytes=LARGE_MESSAGE) as rig, rig.connect() as client:
        compact(rig.node)
        with unpacking(monkeypatch) as threads:
            answer = await client.ask(produce(bomb(codec, key=key), acks=1))
        assert outcome(answer)[0] == error
        assert len(threads) == 1
        assert threads[0] != threading.get_ident()


async def test_a_time_is_looked_for_beside_the_loop_where_a_small_batch_becomes_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as rig, rig.connect() as client:
        await client.ask(produce(bomb(Compression.ZSTD), acks=1))
        with unpacking(monkeypatch) as threads:
            answer = await client.ask(at_time(NOW_MS))
        assert answer.topics[0].partitions[0].offset == 0
        assert threads
        assert threading.get_ident() not in threads


async def test_records_beyond_the_limit_are_refused_before_they_are_unpacked(
    tmp_path: Path,
) -> None:
    batch = build_batch(
        [Record(0, NOW_MS, b"k", bytes(MAX_RECORDS_BYTES))], compression=Compression.ZSTD
    )
    async with serving(tmp_path) as rig, rig.connect() as client:
        compact(rig.node)
        answer = await client.ask(produce(batch, acks=1))
        assert outcome(answer)[0] == ErrorCode.CORRUPT_MESSAGE


def at_time(timestamp: int) -> ListOffsetsRequest:
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topic = ListOffsetsTopic(name="t", partitions=(asked,))
    return ListOffsetsRequest(replica_id=-1, topics=(topic,))


@pytest.mark.parametrize(("count", "beside"), [(MANY, 1), (2, 2)])
async def test_a_time_is_looked_for_beside_the_loop_where_there_are_very_many_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, beside: int
) -> None:
    """Be they in one batch, or in many whose headers tell of a time that no record has."""
    threads: list[int] = []

    def noted(data: bytes) -> Any:
        threads.append(threading.get_ident())
        return iterate_records(data)

    monkeypatch.setattr(lookup, "iterate_records", noted)
    batch = long_batch(count=count)
    lying = pack_header(parse_header(batch)._replace(max_timestamp=NOW_MS + 5_000), batch[61:])
    async with serving(tmp_path) as rig, rig.connect() as client:
        for _ in range(MANY // count):
            await client.ask(produce(lying + batch[61:], acks=1))
        answer = await client.ask(at_time(NOW_MS + 500))
        assert answer.topics[0].partitions[0].offset == count - 1
        threads.clear()
        answer = await client.ask(at_time(NOW_MS + 4_000))
        assert answer.topics[0].partitions[0].offset == -1
        assert len(threads) == MANY // count
        assert len(threads) - threads.count(threading.get_ident()) == beside, "of each thousand"


async def test_a_time_beyond_a_long_wraps_as_javas_does_and_is_no_later_one(
    tmp_path: Path,
) -> None:
    body = b"\0" + varint(2**62) + varint(0) + varint(-1) + varint(0) + b"\0"
    records = varint(len(body)) + body
    header = parse_header(long_batch(count=1))
    header = header._replace(base_timestamp=2**62, max_timestamp=NOW_MS, attributes=0)
    async with serving(tmp_path) as rig, rig.connect() as client:
        await client.ask(produce(pack_header(header, records) + records, acks=1))
        answer = await client.ask(at_time(NOW_MS))
        [partition] = answer.topics[0].partitions
        assert (partition.timestamp, partition.offset) == (-1, -1)
