"""What the map figures are measured on, in small."""

from offset_translation.translation import translate
from tests.freshness.maps import (
    Cost,
    lookup_us,
    map_with_holes,
    ordinary_maps,
    replayed,
    start_records,
)
from wire.topic_partition import TopicPartition


def test_the_map_with_holes_has_them() -> None:
    offset_map = map_with_holes(holes=3)
    assert [(one.source_start, one.target_start, one.count) for one in offset_map.pieces()] == [
        (0, 0, 10),
        (11, 10, 10),
        (22, 20, 10),
        (33, 30, 10),
    ]
    assert lookup_us(offset_map, lookups=10) > 0


def test_ordinary_maps_share_the_records() -> None:
    maps = ordinary_maps(partitions=4, records=100)
    assert [one.mirrored_source_end for one in maps] == [25] * 4


def test_a_start_reads_every_partitions_pieces() -> None:
    state = replayed(list(start_records(partitions=1_200, pieces=3)))
    assert len(state.maps) == len(state.topic_ids) == 1_200
    offset_map = state.maps[TopicPartition("a-topic-with-an-ordinary-name-1199", 0)]
    offset_map.advance(30)
    assert translate(offset_map, 25) == 23


def test_a_cost_is_held_against_its_limit() -> None:
    cost = Cost(name="x", value=2.0, limit=2.0, unit="us")
    assert str(cost).endswith("2.00 us (under 2 us): NOT reached")
    assert Cost(name="x", value=1.9, limit=2.0, unit="us").is_reached
