"""Throttles in virtual time: what passes in a while is what the rate allows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror.state.throttle import LEAST_CHUNK_BYTES, Portion, Throttle, portion_of
from runtime.configuration.flow_section import ThrottleConfig
from wire.topic_partition import TopicPartition

KIB = 1024


def passed_in(throttle: Throttle, topics: list[str], milliseconds: int, size: int) -> int:
    """Fetch as often as allowed for so long; return the bytes that came."""
    total = now = 0
    while now < milliseconds:
        ready = [topic for topic in topics if throttle.wait_ms(topic, now) <= 0]
        if throttle.wait_ms(None, now) <= 0 and ready:
            for topic in ready:
                throttle.spend(topic, size, now)
                total += size
        now += 10
    return total


@given(st.integers(4 * KIB, 10_000 * KIB), st.integers(1, 500 * KIB))
def test_a_flow_reads_at_its_rate_and_a_second_in_advance_at_most(rate: int, size: int) -> None:
    throttle = Throttle(ThrottleConfig(flow=rate), 0)
    total = passed_in(throttle, ["t"], 60_000, size)
    assert total <= 61 * rate + size
    assert total >= min(55 * rate, 5_900 * size)


def test_each_topic_of_a_pattern_has_the_rate_for_itself() -> None:
    config = ThrottleConfig(topics=(("slow-a", KIB * 2), ("slow.*", KIB * 10)))
    rates = {}
    for topics in (["slow-a"], ["slow-b"], ["slow-b", "slow-c"]):
        rates[*topics] = passed_in(Throttle(config, 0), topics, 100_000, KIB) // (101 * KIB)
    assert rates == {("slow-a",): 2, ("slow-b",): 10, ("slow-b", "slow-c"): 20}
    assert Throttle(config, 0).wait_ms("fast", 0) == 0
    assert not Throttle(config, 0).is_idle
    assert Throttle(ThrottleConfig(), 0).is_idle


def test_a_clock_that_goes_back_neither_fills_nor_blocks() -> None:
    throttle = Throttle(ThrottleConfig(flow=KIB), 1_000_000)
    throttle.spend("t", 2 * KIB, 1_000_000)
    assert throttle.wait_ms(None, 500_000) > 0
    assert throttle.wait_ms(None, 503_000) == 0


PLACES = st.dictionaries(
    st.tuples(st.sampled_from(["t", "u"]), st.integers(0, 5)), st.sampled_from("abc"), min_size=1
)


@given(PLACES)
def test_all_portions_together_are_the_whole(holders: dict[TopicPartition, str]) -> None:
    portions = {worker: portion_of(worker, holders) for worker in set(holders.values())}
    assert sum(portion.flow for portion in portions.values()) == pytest.approx(1)
    for topic in {topic for topic, _ in holders}:
        parts = [
            portions[worker].of(topic)
            for worker in {who for (name, _), who in holders.items() if name == topic}
        ]
        assert sum(parts) == pytest.approx(1)


@given(st.lists(PLACES, min_size=1, max_size=5))
def test_workers_that_share_a_flow_keep_its_rates_whoever_has_what(
    stages: list[dict[TopicPartition, str]],
) -> None:
    rate, slow, size, each_ms = 100 * KIB, 20 * KIB, 1_000, 5_000
    config = ThrottleConfig(flow=rate, topics=(("u", slow),))
    throttles = {worker: Throttle(config, 0) for worker in "abc"}
    passed = {"t": 0, "u": 0}
    for number, holders in enumerate(stages):
        for worker, throttle in throttles.items():
            throttle.take(portion_of(worker, holders), number * each_ms)
        for now in range(number * each_ms, (number + 1) * each_ms, 10):
            for topic, worker in {(topic, who) for (topic, _), who in holders.items()}:
                throttle = throttles[worker]
                if throttle.wait_ms(None, now) <= 0 and throttle.wait_ms(topic, now) <= 0:
                    throttle.spend(topic, size, now)
                    passed[topic] += size
    seconds = len(stages) * each_ms / 1_000
    in_advance = 3 * len(stages)  # a worker that had nothing to do comes with a full bucket
    assert sum(passed.values()) <= (seconds + in_advance) * rate + 3 * size
    assert passed["u"] <= (seconds + in_advance) * slow + 3 * size


def test_with_a_low_rate_little_is_asked_for_at_once() -> None:
    throttle = Throttle(ThrottleConfig(flow=400 * KIB, topics=(("t", 1_024),)), 0)
    throttle.wait_ms("t", 0)
    assert throttle.chunk_bytes(None, 16 << 20) == 100 * KIB
    assert throttle.chunk_bytes("t", 1 << 20) == LEAST_CHUNK_BYTES
    assert throttle.chunk_bytes("u", 1 << 20) == 1 << 20


def test_other_rates_hold_at_once_for_the_same_portion_and_the_same_rates_change_nothing() -> None:
    portion = Portion(flow=0.5, topics={"t": 0.25})
    before = ThrottleConfig(flow=400 * KIB, topics=(("t", 1_024),))
    after = ThrottleConfig(flow=8 * KIB, topics=(("t", 4 * KIB),))
    throttle, fresh = Throttle(before, 0, portion), Throttle(after, 5, portion)
    throttle.spend("t", 900 * KIB, 0)
    waits_s = throttle.wait_s(["t"], 5)
    throttle.limit_to(before, 5)
    assert throttle.wait_s(["t"], 5) == waits_s > 0.05
    throttle.limit_to(after, 5)
    for one in (throttle, fresh):
        one.spend("t", 6 * KIB, 5)
    assert throttle.wait_s(["t"], 5) == fresh.wait_s(["t"], 5) == pytest.approx(5.001)
