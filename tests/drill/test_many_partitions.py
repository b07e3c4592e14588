"""What is held against the bars when very many partitions are measured."""

import pytest

from tests.drill.many_partitions import Figure, all_full, all_led, report, view_of
from wire.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


def answer(*partitions: tuple[int, tuple[int, ...]], name: str = "many-0") -> MetadataResponse:
    told = tuple(
        MetadataResponsePartition(
            error_code=0,
            partition_index=index,
            leader_id=leader,
            replica_nodes=(0, 1, 2),
            isr_nodes=isr,
        )
        for index, (leader, isr) in enumerate(partitions)
    )
    topic = MetadataResponseTopic(error_code=0, name=name, partitions=told)
    return MetadataResponse(brokers=(), topics=(topic,))


@pytest.mark.parametrize(
    ("partitions", "are_led", "are_full"),
    [
        ([(0, (0, 1, 2)), (1, (0, 1, 2))], True, True),
        ([(0, (0, 1)), (1, (0, 1, 2))], True, False),
        ([(0, (0, 1, 2)), (2, (0, 1, 2))], False, True),
        ([(0, (0, 1, 2)), (-1, (0, 1, 2))], False, True),
        ([(0, (0, 1, 2))], False, False),
    ],
)
def test_every_partition_must_be_known_led_by_the_living_and_in_sync(
    partitions: list[tuple[int, tuple[int, ...]]], are_led: bool, are_full: bool
) -> None:
    view = view_of(answer(*partitions))
    assert all_led(2, [0, 1])(view) == are_led
    assert all_full(2)(view) == are_full


def test_other_topics_do_not_count() -> None:
    assert view_of(answer((0, (0, 1, 2)), name="__consumer_offsets")).total == 0


def test_a_bar_that_is_missed_is_said_and_what_has_none_is_only_told() -> None:
    kept = Figure(what="started", seconds=20.0, bar_s=20.0)
    missed = Figure(what="moved", seconds=5.01, bar_s=5.0)
    told = Figure(what="created", seconds=99.0)
    assert report([kept, told], 2_000)[-1] == "PASSED"
    lines = report([kept, missed, told], 2_000)
    assert lines[2] == "  5.01 s  moved (bar 5 s, MISSED)"
    assert lines[-1] == "FAILED: 1 of the bars missed"
