"""Partitions are chosen as Kafka's own clients choose them."""

import pytest

from failover.client.partitioner import STICKY_RECORDS, murmur2, partition_of


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        # Apache Kafka, clients/src/test/java/org/apache/kafka/common/utils/UtilsTest.java
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_hash_is_javas(key: bytes, expected: int) -> None:
    assert murmur2(key) == expected & 0xFFFFFFFF


def test_equal_keys_share_a_partition_and_records_without_key_take_turns() -> None:
    assert {partition_of(b"k", 6, number) for number in range(5000)} == {
        (murmur2(b"k") & 0x7FFFFFFF) % 6
    }
    by_turns = [partition_of(None, 3, number) for number in range(3 * STICKY_RECORDS)]
    assert by_turns == [0] * STICKY_RECORDS + [1] * STICKY_RECORDS + [2] * STICKY_RECORDS
