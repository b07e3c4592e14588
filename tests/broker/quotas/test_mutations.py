"""Changes of the cluster against their quota, as Kafka's ControllerMutationQuotaManager has it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.quotas.client_quotas import MOST_BUCKETS, ClientQuotas
from broker.quotas.entity import DEFAULT, MUTATION_RATE, QuotaEntity
from broker.quotas.mutations import SECONDS_AT_ONCE, MutationQuota, TokenBucket

RATE = 2.0


def request(quotas: ClientQuotas, now_ms: int, *, is_strict: bool = True) -> MutationQuota:
    return quotas.mutations("User:alice", "c", is_strict=is_strict, now_ms=now_ms)


@pytest.fixture
def quotas() -> ClientQuotas:
    made = ClientQuotas()
    made.table.put(QuotaEntity(user="alice"), {MUTATION_RATE: str(RATE)})
    return made


def test_a_change_is_begun_while_something_is_left_and_may_take_more(quotas: ClientQuotas) -> None:
    first = request(quotas, 0)
    assert [first.takes(10), first.takes(10), first.takes(10)] == [True, True, True]
    assert not first.takes(1)
    assert first.throttle_ms == 4_000, "eight partitions too many"
    later = request(quotas, 3_999)
    assert not later.takes(1)
    assert later.throttle_ms == 1
    assert request(quotas, 4_000).takes(1)


def test_what_an_older_client_asks_is_done_and_it_rests(quotas: ClientQuotas) -> None:
    older = request(quotas, 0, is_strict=False)
    assert [older.takes(30), older.takes(30)] == [True, True]
    assert older.throttle_ms == 19_000
    assert not request(quotas, 0).takes(1), "both share what is left"


def test_without_a_quota_nothing_is_counted() -> None:
    free = request(ClientQuotas(), 0)
    assert not free.is_limited
    assert free.takes(10**6)
    assert free.throttle_ms == 0


@given(
    st.lists(st.tuples(st.integers(0, 20_000), st.integers(1, 100)), max_size=30),
    st.floats(0.1, 50),
)
def test_whoever_rests_as_told_changes_what_the_quota_allows(
    changes: list[tuple[int, int]], limit: float
) -> None:
    bucket, now_ms, done = TokenBucket(limit, 0), 0, 0
    for pause_ms, partitions in changes:
        now_ms += pause_ms
        now_ms += bucket.rest_ms(limit, now_ms)
        assert bucket.rest_ms(limit, now_ms) == 0
        bucket.take(partitions, limit, now_ms)
        done += partitions
        assert done <= limit * (now_ms / 1_000 + SECONDS_AT_ONCE) + partitions + 1e-6


def test_a_client_of_a_thousand_names_takes_no_more_room() -> None:
    quotas = ClientQuotas()
    quotas.table.put(QuotaEntity(client=DEFAULT), {MUTATION_RATE: "1"})
    for number in range(2 * MOST_BUCKETS):
        quotas.mutations("User:a", str(number), is_strict=True, now_ms=number).takes(1)
    assert len(quotas._mutations) <= MOST_BUCKETS
