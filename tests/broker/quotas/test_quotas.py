"""Which quota holds, and for how long a client has to rest: Kafka's rules, held against models."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.quotas.client_quotas import LONGEST_NAME_CHARS, MOST_BUCKETS, ClientQuotas
from broker.quotas.entity import (
    DEFAULT,
    MUTATION_RATE,
    PRODUCER_RATE,
    Name,
    QuotaEntity,
    entity_at,
)
from broker.quotas.rate import WINDOW_MS, WINDOWS, SampledRate
from broker.quotas.table import Bucket, QuotaTable

SOME: Name = "alice"
OTHER: Name = "c"


def table(*entities: QuotaEntity) -> QuotaTable:
    """Give each entity a quota: its place in the row, from 1 on."""
    made = QuotaTable()
    for number, entity in enumerate(entities, 1):
        made.put(entity, {PRODUCER_RATE: str(number)})
    return made


PRECEDENCE = (
    (QuotaEntity(user="alice", client="c"), Bucket("alice", "c")),
    (QuotaEntity(user="alice", client=DEFAULT), Bucket("alice", "c")),
    (QuotaEntity(user="alice"), Bucket("alice", None)),
    (QuotaEntity(user=DEFAULT, client="c"), Bucket("alice", "c")),
    (QuotaEntity(user=DEFAULT, client=DEFAULT), Bucket("alice", "c")),
    (QuotaEntity(user=DEFAULT), Bucket("alice", None)),
    (QuotaEntity(client="c"), Bucket(None, "c")),
    (QuotaEntity(client=DEFAULT), Bucket(None, "c")),
)
"""As the documentation of Kafka lists it, the first that is set."""


@pytest.mark.parametrize("first", range(len(PRECEDENCE)))
def test_the_quota_that_is_said_first_holds(first: int) -> None:
    held = table(*(entity for entity, _ in PRECEDENCE[first:]))
    assert held.limit(PRODUCER_RATE, "alice", "c") == (PRECEDENCE[first][1], 1.0)
    assert held.limit("consumer_byte_rate", "alice", "c") is None


def test_a_quota_of_others_holds_for_nobody_else() -> None:
    others = (
        QuotaEntity(user="bob", client="c"),
        QuotaEntity(user="bob"),
        QuotaEntity(client="d"),
        QuotaEntity(ip="10.0.0.1"),
    )
    assert table(*others).limit(PRODUCER_RATE, "alice", "c") is None


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "much", ""])
def test_what_is_no_quota_in_zookeeper_is_named_and_left_out(
    value: str, caplog: pytest.LogCaptureFixture
) -> None:
    made = QuotaTable()
    made.put(QuotaEntity(user="alice"), {PRODUCER_RATE: value, "SCRAM-SHA-256": "x"})
    assert made.is_empty
    assert "/config/users/alice: ignored: producer_byte_rate" in caplog.text


NAMES = st.none() | st.just(DEFAULT) | st.text(min_size=1, max_size=5)
ENTITIES = st.builds(QuotaEntity, user=NAMES, client=NAMES).filter(
    lambda one: (one.user, one.client) != (None, None)
) | st.builds(QuotaEntity, ip=st.just(DEFAULT) | st.text("0.1:", min_size=3))


@given(ENTITIES)
def test_an_entity_is_found_again_by_its_path(entity: QuotaEntity) -> None:
    assert entity_at(entity.path) == entity


@pytest.mark.parametrize("path", ["", "users", "topics/t", "users/a/b/c", "users/a/clients/c/d"])
def test_a_path_of_nobody_is_nobodys(path: str) -> None:
    assert entity_at(path) is None


MOVES = st.lists(st.tuples(st.integers(0, 3_000), st.integers(1, 50_000)), min_size=1, max_size=40)


@given(MOVES, st.integers(1, 20_000))
def test_the_rest_is_that_part_of_the_window_by_which_the_mean_is_above_the_quota(
    moves: list[tuple[int, int]], limit: int
) -> None:
    """Kafka's QuotaUtils.throttleTime over its Rate and SampledStat, from all that was moved."""
    rate, now_ms = SampledRate(), 0
    samples: list[list[int]] = []
    for pause_ms, size in moves:
        now_ms += pause_ms
        rate.record(size, now_ms)
        if samples and now_ms < samples[-1][0] + WINDOW_MS:
            samples[-1][1] += size
        else:
            samples.append([now_ms, size])
        known = [one for one in samples if now_ms < one[0] + WINDOWS * WINDOW_MS]
        whole = (now_ms - known[0][0]) // WINDOW_MS
        window_ms = now_ms - known[0][0] + max(0, WINDOWS - 1 - whole) * WINDOW_MS
        mean = sum(size for _, size in known) * 1_000 / window_ms
        rest_ms = rate.rest_ms(limit, now_ms)
        assert abs(rest_ms - max(0, (mean - limit) / limit * window_ms)) <= 1
        now_ms += rest_ms
    assert rate.is_idle(now_ms + WINDOWS * WINDOW_MS)


def test_ten_seconds_of_a_quota_may_come_at_once() -> None:
    rate = SampledRate()
    rate.record(10_000, 0)
    assert rate.rest_ms(1_000, 0) == 0
    rate.record(1_000, 0)
    assert rate.rest_ms(1_000, 0) == 1_000
    assert rate.rest_ms(1_000, 11_000) == 0


def test_clients_of_one_user_share_its_quota_and_other_users_do_not() -> None:
    quotas = ClientQuotas()
    assert quotas.throttle_ms(PRODUCER_RATE, "User:alice", "a", 10**9, 0) == 0
    quotas.table.put(QuotaEntity(user=DEFAULT), {PRODUCER_RATE: "100"})
    assert quotas.most_at_once(PRODUCER_RATE, "User:alice", "a") == 1_000
    assert quotas.throttle_ms(PRODUCER_RATE, "User:alice", "a", 1_000, 0) == 0
    assert quotas.throttle_ms(PRODUCER_RATE, "User:alice", "b", 100, 0) == 1_000
    assert quotas.throttle_ms(PRODUCER_RATE, "User:bob", "a", 1_000, 0) == 0


def test_a_client_of_a_thousand_names_takes_no_more_room() -> None:
    quotas = ClientQuotas()
    quotas.table.put(QuotaEntity(client=DEFAULT), {PRODUCER_RATE: "100"})
    for number in range(2 * MOST_BUCKETS):
        quotas.throttle_ms(PRODUCER_RATE, "User:alice", str(number), 1, number)
    assert len(quotas._rates) <= MOST_BUCKETS


def test_new_names_make_all_be_looked_at_once_in_a_while_and_not_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    quotas = ClientQuotas()
    quotas.table.put(QuotaEntity(client=DEFAULT), {PRODUCER_RATE: "100"})
    for number in range(MOST_BUCKETS):
        quotas.throttle_ms(PRODUCER_RATE, "User:alice", str(number), 1, number)
    looked = 0

    def is_idle(_rate: SampledRate, now_ms: int) -> bool:
        nonlocal looked
        looked += 1
        return looked == 1 and now_ms > 0

    monkeypatch.setattr(SampledRate, "is_idle", is_idle)
    for number in range(100):
        quotas.throttle_ms(PRODUCER_RATE, "User:alice", f"new {number}", 1, MOST_BUCKETS)
    assert looked <= MOST_BUCKETS


def test_names_that_are_too_long_for_a_quota_of_their_own_are_not_kept_whole() -> None:
    quotas = ClientQuotas()
    quotas.table.put(QuotaEntity(client=DEFAULT), {PRODUCER_RATE: "100"})
    for end in "ab":
        quotas.throttle_ms(PRODUCER_RATE, "User:alice", "x" * 30_000 + end, 1, 0)
    assert [len(bucket.client or "") for _, bucket in quotas._rates] == [LONGEST_NAME_CHARS]


@pytest.mark.parametrize("value", ["5e-324", "1e-300"])
def test_the_smallest_quota_there_can_be_gives_the_longest_rest_an_answer_can_name(
    value: str,
) -> None:
    quotas = ClientQuotas()
    quotas.table.put(QuotaEntity(user="alice"), {PRODUCER_RATE: value, MUTATION_RATE: value})
    rest_ms = quotas.throttle_ms(PRODUCER_RATE, "User:alice", "a", 1, 0)
    assert 2**31 - 20_000 < rest_ms < 2**31
    for _ in range(2):
        change = quotas.mutations("User:alice", "a", is_strict=False, now_ms=0)
        assert change.takes(5)
        assert change.throttle_ms == 2**31 - 1
