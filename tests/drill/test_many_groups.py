"""What counts as a stable group, and which beats are held against the bar."""

from uuid import UUID

import pytest

from tests.drill.many_groups import (
    PARTITIONS,
    Group,
    Member,
    bound_of,
    buckets_of,
    percentile,
)
from wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

TOPIC_ID = UUID(int=1)


def member(first: int, end: int, *, epoch: int = 3, heard_s: float = 10.0) -> Member:
    owned = TopicPartitions(topic_id=TOPIC_ID, partitions=tuple(range(first, end)))
    return Member(name="m", epoch=epoch, owned=(owned,), heard_s=heard_s)


@pytest.mark.parametrize(
    ("members", "is_stable"),
    [
        ([member(0, 4), member(4, PARTITIONS)], True),
        ([member(0, 4), member(4, PARTITIONS, heard_s=5.0)], False),
        ([member(0, 4), member(4, PARTITIONS, epoch=2)], False),
        ([member(0, 4), member(5, PARTITIONS)], False),
        ([member(0, 5), member(4, PARTITIONS)], False),
    ],
    ids=["all", "one is not heard of", "one is behind", "a partition is free", "or owned twice"],
)
def test_a_group_is_stable_when_all_beat_and_share_everything(
    members: list[Member], is_stable: bool
) -> None:
    assert Group(name="g", members=members).is_stable(since_s=9.0) is is_stable


def test_a_member_tells_what_it_owns_once_it_was_told_something_new() -> None:
    one = Member(name="m")
    assert one.request("g").subscribed_topic_names is not None
    owned = (TopicPartitions(topic_id=TOPIC_ID, partitions=(1, 2)),)
    answer = ConsumerGroupHeartbeatResponse(
        error_code=0,
        member_epoch=1,
        heartbeat_interval_ms=5_000,
        assignment=Assignment(topic_partitions=owned),
    )
    one.take(answer, 1.0)
    assert one.request("g").topic_partitions == owned
    quiet = ConsumerGroupHeartbeatResponse(
        error_code=0, member_epoch=1, heartbeat_interval_ms=5_000
    )
    one.take(quiet, 2.0)
    assert one.request("g").topic_partitions is None


def test_no_beats_are_never_fast() -> None:
    assert percentile([], 0.99) == float("inf")
    assert percentile([float(number) for number in range(100)], 0.99) == 99.0


def test_how_long_brokers_took_is_told_by_the_buckets_that_grew_meanwhile() -> None:
    def page(fast: int, slow: int) -> str:
        name = 'broker_request_duration_seconds_bucket{api="ConsumerGroupHeartbeat",le='
        other = 'broker_request_duration_seconds_bucket{api="Fetch",le="5.0"} 70.0'
        counts = {"0.001": fast, "0.05": fast + slow, "+Inf": fast + slow}
        lines = [f'{name}"{bound}"}} {count}' for bound, count in counts.items()]
        return "\n".join(["# TYPE broker_request_duration_seconds histogram", other, *lines, ""])

    before = [buckets_of(page(1_000, 1_000)), buckets_of(page(0, 0))]
    after = [buckets_of(page(1_990, 1_005)), buckets_of(page(0, 5))]
    assert bound_of(before, after, 0.99) == 0.001
    assert bound_of(before, after, 0.999) == 0.05
    assert bound_of(before, before, 0.99) == float("inf"), "nothing was answered"
