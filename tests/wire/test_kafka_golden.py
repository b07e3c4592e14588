"""Bytes that Apache Kafka wrote: what its Java producer and its group coordinator put in a log."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from wire.compression import Compression
from wire.consumer_offsets import (
    GroupMetadataKey,
    OffsetKey,
    decode_group_value,
    decode_key,
    decode_offset_value,
    encode_group_value,
    encode_key,
    encode_offset_value,
)
from wire.record_batch import build_batch, crc_is_valid, iterate_batches, iterate_records

GOLDEN: Final[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "golden" / "kafka_logs.json").read_text()
)
VERSIONS: Final = [name for name in GOLDEN if name != "provenance"]


@pytest.mark.parametrize("codec", Compression)
@pytest.mark.parametrize("version", VERSIONS)
def test_javas_batches_are_read(version: str, codec: Compression) -> None:
    log = bytes.fromhex(GOLDEN[version]["batches"][codec.name.lower()])
    ((header, batch),) = iterate_batches(log)
    assert crc_is_valid(batch)
    assert header.compression is codec
    records = list(iterate_records(batch))
    assert [record.offset for record in records] == list(range(40))
    assert {len(record.value or b"") for record in records} == {30}
    assert {record.key for record in records} == {None}
    assert max(record.timestamp_ms for record in records) == header.max_timestamp


@pytest.mark.parametrize("version", VERSIONS)
def test_an_uncompressed_batch_is_built_as_java_builds_it(version: str) -> None:
    log = bytes.fromhex(GOLDEN[version]["batches"]["none"])
    ((header, batch),) = iterate_batches(log)
    built = build_batch(
        iterate_records(batch),
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        partition_leader_epoch=header.partition_leader_epoch,
    )
    assert built == log


@pytest.mark.parametrize("version", VERSIONS)
def test_the_coordinators_records_are_read_and_written_alike(version: str) -> None:
    committed = []
    for key, value in GOLDEN[version]["consumer_offsets"]:
        raw_key, raw_value = bytes.fromhex(key), bytes.fromhex(value)
        decoded = decode_key(raw_key)
        match decoded:
            case OffsetKey():
                offset = decode_offset_value(raw_value)
                committed.append((decoded.topic, decoded.partition, offset.offset))
                encoded = encode_offset_value(offset)
            case GroupMetadataKey(group="gruppe-ä"):
                encoded = encode_group_value(decode_group_value(raw_value))
            case _:
                raise AssertionError(decoded)
        assert encode_key(decoded) == raw_key
        # Kafka 4 writes offsets as version 4, with the topic's id; we write as 3.9 does.
        if raw_value[:2] == encoded[:2]:
            assert encoded == raw_value
        else:
            assert (raw_value[1], encoded[1]) == (4, 3)
    assert committed == [("t", 0, 10)]
