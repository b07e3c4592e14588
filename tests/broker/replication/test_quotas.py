"""How fast throttled replicas may be copied."""

from broker.replication.quotas import ReplicationQuota, is_throttled


def test_a_quota_is_exceeded_while_the_mean_of_eleven_seconds_is_above_the_rate() -> None:
    quota = ReplicationQuota(rate=100)
    assert not quota.is_exceeded(0)
    quota.record(100, 0)
    assert not quota.is_exceeded(0), "a second counts at least"
    quota.record(300, 500)
    assert quota.is_exceeded(500)
    assert quota.is_exceeded(3_999)
    assert not quota.is_exceeded(4_000)
    quota.record(2_000, 6_000)
    assert quota.is_exceeded(10_999)
    assert quota.is_exceeded(16_999), "the first window does not count any more"
    assert not quota.is_exceeded(17_000)


def test_without_a_rate_nothing_is_exceeded_and_with_0_everything() -> None:
    quota = ReplicationQuota()
    quota.record(10**12, 0)
    assert not quota.is_exceeded(0)
    quota.rate = 0
    assert quota.is_exceeded(0)


def test_replicas_are_named_one_by_one_or_all() -> None:
    assert is_throttled({"0:1", "3:2"}, 3, 2)
    assert not is_throttled({"0:1", "3:2"}, 0, 2)
    assert is_throttled({"*"}, 7, 9)
    assert not is_throttled(frozenset(), 0, 0)
