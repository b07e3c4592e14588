"""The patterns that members subscribe with: what they match, and that no one hangs a broker."""

from time import process_time
from uuid import UUID

import pytest
import trio

from broker.groups.consumer.patterns import (
    AT_ONCE,
    MOST_CHARACTERS,
    MOST_REMEMBERED,
    BadPattern,
    PatternMatches,
    compiled,
)
from broker.metadata_cache import MetadataCache, PartitionView

VIEW = PartitionView(index=0, leader=0, leader_epoch=0, replicas=(0,), isr=(0,))


def cluster(*topics: str) -> MetadataCache:
    cache = MetadataCache("cluster")
    for number, name in enumerate(topics, start=1):
        cache.put_partitions(name, UUID(int=number), [VIEW])
    return cache


async def test_a_pattern_matches_whole_names() -> None:
    matches = PatternMatches(cluster("orders", "orders-eu", "my-orders", "payments"))
    assert await matches.of("orders(-eu)?") == ("orders", "orders-eu")


async def test_a_pattern_is_held_against_new_topics() -> None:
    topics = cluster("orders")
    matches = PatternMatches(topics)
    assert await matches.of("o.*") == ("orders",)
    topics.put_partitions("others", UUID(int=9), [VIEW])
    assert await matches.of("o.*") == ("orders", "others")
    topics.remove_topic("orders")
    assert await matches.of("o.*") == ("others",)


async def test_others_have_their_turn_while_a_pattern_is_held_against_many_topics() -> None:
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    matches = PatternMatches(cluster(*(f"topic-{number}" for number in range(20 * AT_ONCE))))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(take_turns)
        assert len(await matches.of(".*") or ()) == 20 * AT_ONCE
        nursery.cancel_scope.cancel()
    assert turns >= 20


async def test_others_wait_for_one_pattern_at_a_time_however_many_there_are() -> None:
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    matches = PatternMatches(cluster(*(f"topic-{number}" for number in range(5 * AT_ONCE))))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(take_turns)
        async with trio.open_nursery() as strangers:
            for number in range(20):
                strangers.start_soon(matches.of, f"(topic|{number})-.*")
        nursery.cancel_scope.cancel()
    assert turns >= 20 * 5


async def test_others_have_their_turn_after_each_name_of_a_pattern_that_takes_long() -> None:
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    names = [f"{number}" + "x" * 240 for number in range(AT_ONCE)]
    matches = PatternMatches(cluster(*names))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(take_turns)
        assert len(await matches.of(r"\d(?:(?:xy?)?x?[a-y]?){0,500}") or ()) == AT_ONCE
        nursery.cancel_scope.cancel()
    assert turns >= AT_ONCE


async def test_not_more_patterns_are_remembered_than_are_in_use() -> None:
    matches = PatternMatches(cluster("orders"))
    for number in range(2 * MOST_REMEMBERED):
        await matches.of(f"o{number}.*")
    assert len(matches) <= MOST_REMEMBERED


@pytest.mark.parametrize(
    "pattern", ["(", "(?=a)b", r"(a)\1", "((x?y?z?w?){30}){30}", "x" * (MOST_CHARACTERS + 1)]
)
async def test_a_pattern_that_cannot_be_used_is_refused_and_matches_nothing(pattern: str) -> None:
    with pytest.raises(BadPattern):
        compiled(pattern)
    assert await PatternMatches(cluster("orders")).of(pattern) is None


@pytest.mark.parametrize("pattern", [r"\pL+", "|".join(f"name-of-topic-{n}" for n in range(100))])
def test_what_people_write_can_be_used(pattern: str) -> None:
    compiled(pattern)


@pytest.mark.parametrize("pattern", ["(a|aa)+$", "(a*)*b", "(.{0,30}x){0,8}"])
def test_no_pattern_takes_long(pattern: str) -> None:
    began = process_time()
    assert compiled(pattern).fullmatch("a" * 249) is None or pattern == "(a|aa)+$"
    assert process_time() - began < 1


@pytest.mark.parametrize(
    "pattern",
    ["(" * 999 + "a*" + ")" * 999, "((a*)*b?)*" * 200, "(a*)*" * 400],
    ids=["nested", "repeated", "in a row"],
)
def test_groups_cost_nothing_because_nobody_asks_what_they_matched(pattern: str) -> None:
    regexp = compiled(pattern)
    began = process_time()
    regexp.fullmatch("a" * 249)
    assert process_time() - began < 0.05
