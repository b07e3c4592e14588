"""The verdict on a mirror's memory."""

from tests.memory.figures import MB, Footprint


def footprint(partitions: int, most_mb: int) -> Footprint:
    return Footprint(
        partitions=partitions,
        mirrored_bytes=256 * MB,
        buffer_bytes=50 * MB,
        most_bytes=most_mb * MB,
        rest_bytes=most_mb * MB // 2,
        rest_load=0.012,
    )


def test_a_thousand_partitions_have_a_base_and_the_buffers() -> None:
    assert [footprint(1_000, size).is_reached for size in (200, 201)] == [True, False]
    assert footprint(10, 200).is_reached


def test_ten_thousand_partitions_have_a_limit_with_everything() -> None:
    assert [footprint(10_000, size).is_reached for size in (600, 601)] == [True, False]
    assert str(footprint(10_000, 601)).endswith("limit 600 MB with 50 MB of buffers: NOT reached")


def test_the_load_at_rest_is_told_beside_the_memory() -> None:
    assert "at rest, which takes 1.2% of a processor" in str(footprint(10, 200))
