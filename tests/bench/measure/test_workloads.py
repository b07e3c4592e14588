"""Which workloads there are, and how much each moves."""

import pytest

from tests.bench.measure.workloads import (
    BASE,
    DATA_BYTES,
    DEFAULT_PARTS,
    GIB,
    KIB,
    MIB,
    Part,
    Workload,
    one_at_a_time,
    parse_parts,
    stored_mb,
)
from wire.compression import Compression


def test_each_value_of_the_issue_is_tried_and_differs_from_the_base_in_one_respect() -> None:
    workloads = one_at_a_time()
    assert workloads[0] == BASE
    assert {each.record_bytes for each in workloads} == {100, KIB, 10 * KIB}
    assert {each.codec for each in workloads} == {
        Compression.NONE,
        Compression.LZ4,
        Compression.ZSTD,
    }
    assert {each.batch_bytes for each in workloads} == {0, 16 * KIB, 100 * KIB}
    assert {each.partitions for each in workloads} == {1, 12, 120}
    assert len({each.name for each in workloads}) == len(workloads) == 9


def test_a_workload_is_whole_batches_in_every_partition() -> None:
    assert BASE.records_per_batch == 16
    assert BASE.batches_per_partition == DATA_BYTES // (16 * KIB * 12)
    assert BASE.records == BASE.batches_per_partition * 16 * 12
    assert DATA_BYTES * 0.99 < BASE.value_bytes <= DATA_BYTES


def test_a_batch_of_one_record_holds_one_whatever_its_size() -> None:
    workload = Workload(record_bytes=100, batch_bytes=0, partitions=1, data_bytes=MIB)
    assert (workload.records_per_batch, workload.records) == (1, MIB // 100)
    assert workload.name == "100 B, none, batch 1 record, 1p"


def test_records_larger_than_the_batch_travel_alone() -> None:
    assert Workload(record_bytes=10 * KIB, batch_bytes=KIB).records_per_batch == 1


def test_many_partitions_still_get_a_few_batches_each() -> None:
    workload = Workload(batch_bytes=100 * KIB, partitions=120, data_bytes=MIB)
    assert workload.batches_per_partition == 4


def test_tiny_batches_move_less_data() -> None:
    by_name = {each.name: each for each in one_at_a_time()}
    assert by_name["1 KiB, none, batch 1 record, 12p"].data_bytes == 3 * GIB // 2
    assert by_name["100 B, none, batch 16 KiB, 12p"].data_bytes == 1_200_000_000
    assert by_name["10 KiB, none, batch 16 KiB, 12p"].data_bytes == DATA_BYTES


def test_only_picks_parts_and_names_what_it_does_not_know() -> None:
    assert parse_parts(None) == parse_parts("") == [*DEFAULT_PARTS]
    assert parse_parts("drain,replicated") == [Part.DRAIN, Part.REPLICATED]
    assert parse_parts("broker") == [Part.BROKER]
    assert parse_parts("offsets, mirror,offsets") == [Part.OFFSETS, Part.MIRROR]
    with pytest.raises(ValueError, match=r"ONLY=disk: unknown part 'disk'; there are mirror, "):
        parse_parts("disk")


def test_there_must_be_room_for_the_largest_workload_on_both_sides() -> None:
    assert stored_mb(one_at_a_time()) > 2 * DATA_BYTES // MIB
