"""What a consumer takes along never makes it skip a record, nor read again what it has read."""

from failover.client.carried import Carried, start_of, starts_on
from offset_translation.offset_map import OffsetMap
from wire.topic_partition import TopicPartition

CARRIED = Carried(
    site="dc1",
    positions={TopicPartition("t", 0): 12, TopicPartition("t", 1): 50, TopicPartition("t", 2): 3},
)


def sealed(starts: list[tuple[int, int]], source_end: int, target_end: int) -> OffsetMap:
    """A map whose target goes on with records of its own."""
    offset_map = OffsetMap.from_starts(starts, target_end)
    offset_map.seal(source_end, target_end)
    offset_map.advance(target_end + 1_000)
    return offset_map


def test_positions_are_translated_and_clamped_to_what_was_mirrored() -> None:
    maps = {
        TopicPartition("t", 0): sealed([(2, 2), (10, 6)], 15, 11),
        TopicPartition("t", 1): sealed([(0, 0)], 40, 40),
    }
    assert starts_on("dc2", CARRIED, maps) == {("t", 0): 8, ("t", 1): 40}


def test_on_the_same_site_positions_stay_as_they_are() -> None:
    assert starts_on("dc1", CARRIED, {}) == CARRIED.positions


def test_the_further_position_wins() -> None:
    assert start_of(committed=10, start=None) is None
    assert start_of(committed=10, start=10) is None
    assert start_of(committed=11, start=10) is None
    assert start_of(committed=9, start=10) == 10
    assert start_of(committed=-1001, start=0) == 0
