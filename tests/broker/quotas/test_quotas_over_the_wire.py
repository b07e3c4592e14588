"""Quotas over the wire: set and described in Kafka's words, and held against what clients move."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from broker.quotas.entity import (
    CONSUMER_RATE,
    DEFAULT,
    MUTATION_RATE,
    PRODUCER_RATE,
    REQUEST_PERCENTAGE,
    QuotaEntity,
)
from broker.zookeeper.store import Change
from tests.broker.rig import Client, Rig, batch, fetch, outcome, produce, serving
from wire.errors import ErrorCode
from wire.messages.alter_client_quotas import (
    AlterClientQuotasEntity,
    AlterClientQuotasEntry,
    AlterClientQuotasOperation,
    AlterClientQuotasRequest,
)
from wire.messages.describe_client_quotas import (
    DescribeClientQuotasComponent,
    DescribeClientQuotasRequest,
)


@asynccontextmanager
async def limited(folder: Path) -> AsyncIterator[tuple[Rig, Client]]:
    """Serve; quotas that are altered are kept in memory instead of ZooKeeper."""
    kept: dict[QuotaEntity, Mapping[str, str]] = {}
    async with serving(folder) as rig, rig.connect() as client:

        async def change(entity: QuotaEntity, change: Change) -> None:
            kept[entity] = change(kept.get(entity, {}))
            rig.node.quotas.table.put(entity, kept[entity])

        rig.node.change_quotas = change  # type: ignore[attr-defined]
        yield rig, client


def part(kind: str, name: str | None) -> AlterClientQuotasEntity:
    return AlterClientQuotasEntity(entity_type=kind, entity_name=name)


USER = part("user", "alice")
CLIENT = part("client-id", "c")


def setting(key: str, value: float, *, remove: bool = False) -> AlterClientQuotasOperation:
    return AlterClientQuotasOperation(key=key, value=value, remove=remove)


async def alter(
    client: Client, entity: tuple[Any, ...], *ops: AlterClientQuotasOperation, check: bool = False
) -> int:
    entry = AlterClientQuotasEntry(entity=entity, ops=ops)
    answer = await client.ask(AlterClientQuotasRequest(entries=(entry,), validate_only=check))
    [result] = answer.entries
    assert result.entity == entity
    assert bool(result.error_message) is bool(result.error_code)
    return int(result.error_code)


def component(kind: str, match_type: int, match: str | None = None) -> Any:
    return DescribeClientQuotasComponent(entity_type=kind, match_type=match_type, match=match)


async def found(client: Client, *components: Any, strict: bool = False) -> list[dict[str, Any]]:
    """Return the entities that a filter finds, with the number of their quotas."""
    answer = await client.ask(DescribeClientQuotasRequest(components=components, strict=strict))
    assert answer.error_code == ErrorCode.NONE
    return [
        {one.entity_type: one.entity_name for one in entry.entity}
        | {value.key: value.value for value in entry.values}
        for entry in answer.entries
    ]


async def test_quotas_are_set_described_and_removed(tmp_path: Path) -> None:
    async with limited(tmp_path) as (_, client):
        quota = setting(PRODUCER_RATE, 1_000)
        assert await alter(client, (USER,), quota, setting(CONSUMER_RATE, 2_000)) == 0
        assert await alter(client, (USER, CLIENT), quota) == 0
        assert await alter(client, (part("client-id", None),), quota) == 0
        assert await alter(client, (CLIENT,), quota, check=True) == 0
        alice = {"user": "alice", PRODUCER_RATE: 1_000.0, CONSUMER_RATE: 2_000.0}
        both = {"user": "alice", "client-id": "c", PRODUCER_RATE: 1_000.0}
        others = {"client-id": None, PRODUCER_RATE: 1_000.0}
        assert await found(client) == [alice, both, others]
        assert await found(client, component("user", 0, "alice")) == [alice, both]
        assert await found(client, component("user", 0, "alice"), strict=True) == [alice]
        assert await found(client, component("client-id", 2)) == [both, others]
        assert await found(client, component("client-id", 1)) == [others]
        assert await found(client, component("user", 1)) == []
        removal = setting(PRODUCER_RATE, 0, remove=True)
        assert await alter(client, (USER,), removal) == 0
        assert await alter(client, (USER, CLIENT), removal) == 0
        alice.pop(PRODUCER_RATE)
        assert await found(client, component("user", 2)) == [alice]


BAD: dict[str, tuple[tuple[Any, ...], tuple[AlterClientQuotasOperation, ...]]] = {
    "nobody": ((), (setting(PRODUCER_RATE, 1),)),
    "a user twice": ((USER, part("user", None)), (setting(PRODUCER_RATE, 1),)),
    "a type that is none": ((part("host", "h"),), (setting(PRODUCER_RATE, 1),)),
    "an address of a user": ((USER, part("ip", "10.0.0.1")), (setting(PRODUCER_RATE, 1),)),
    "no name": ((part("user", ""),), (setting(PRODUCER_RATE, 1),)),
    "a name that is too long": ((part("user", "u" * 1_001),), (setting(PRODUCER_RATE, 1),)),
    "below zero": ((USER,), (setting(PRODUCER_RATE, -1),)),
    "zero": ((USER,), (setting(PRODUCER_RATE, 0),)),
    "half a byte": ((USER,), (setting(PRODUCER_RATE, 1.5),)),
    "no number": ((USER,), (setting(PRODUCER_RATE, float("nan")),)),
    "a key that is none": ((USER,), (setting("speed", 1),)),
    "a key of addresses": ((USER,), (setting("connection_creation_rate", 50),)),
    "no percentage": ((USER,), (setting(REQUEST_PERCENTAGE, 0),)),
    "fewer than no changes": ((USER,), (setting(MUTATION_RATE, -0.5),)),
    "a key twice": ((USER,), (setting(PRODUCER_RATE, 1), setting(PRODUCER_RATE, 2))),
    "a quota of an address": ((part("ip", "10.0.0.1"),), (setting(PRODUCER_RATE, 1),)),
}


@pytest.mark.parametrize(("entity", "ops"), BAD.values(), ids=BAD)
async def test_a_quota_that_cannot_be_is_refused(
    tmp_path: Path, entity: tuple[Any, ...], ops: tuple[AlterClientQuotasOperation, ...]
) -> None:
    async with limited(tmp_path) as (rig, client):
        assert await alter(client, entity, *ops) == ErrorCode.INVALID_REQUEST
        assert rig.node.quotas.table.is_empty


@pytest.mark.parametrize(
    "components",
    [
        (component("host", 2),),
        (component("user", 3),),
        (component("user", 0),),
        (component("user", 1, "alice"),),
        (component("user", 2), component("user", 1)),
        (component("ip", 2), component("user", 2)),
    ],
    ids=str,
)
async def test_a_filter_that_cannot_be_is_refused(
    tmp_path: Path, components: tuple[Any, ...]
) -> None:
    async with limited(tmp_path) as (_, client):
        asked = DescribeClientQuotasRequest(components=components, strict=False)
        answer = await client.ask(asked)
        assert answer.error_code == ErrorCode.INVALID_REQUEST
        assert answer.entries is None


async def test_a_producer_is_told_to_rest_and_left_alone_for_so_long(
    tmp_path: Path,
    autojump_clock: trio.testing.MockClock,  # noqa: ARG001
) -> None:
    """Answered at once (KIP-219); its next request waits, whatever the client does."""
    async with limited(tmp_path) as (rig, client):
        for acks in (-1, 1):
            rig.node.quotas.table.put(QuotaEntity(client=DEFAULT), {PRODUCER_RATE: "1000"})
            began = trio.current_time()
            asked = produce(batch(b"x" * 20_000), acks=acks)
            answer = await client.ask(asked, client_id=f"c{acks}")
            assert outcome(answer)[0] == ErrorCode.NONE
            assert trio.current_time() == began
            assert 10_000 < answer.throttle_time_ms < 10_500, "20 s of its quota, 10 are free"
            await client.ask(fetch(0), client_id=f"c{acks}")
            rested_ms = (trio.current_time() - began) * 1_000
            assert rested_ms == pytest.approx(answer.throttle_time_ms)


async def test_a_producer_that_wants_no_answer_is_left_alone_too(
    tmp_path: Path,
    autojump_clock: trio.testing.MockClock,  # noqa: ARG001
) -> None:
    async with limited(tmp_path) as (rig, client):
        rig.node.quotas.table.put(QuotaEntity(client="c"), {PRODUCER_RATE: "1000"})
        began = trio.current_time()
        await client.send(produce(batch(b"x" * 20_000), acks=0), client_id="c")
        client.asked.clear()
        assert outcome(await client.ask(produce(batch(b"y")), client_id="c")) == (0, 1)
        assert trio.current_time() - began > 10


async def test_a_consumer_gets_no_more_at_once_than_its_quota_allows_in_ten_seconds(
    tmp_path: Path,
    autojump_clock: trio.testing.MockClock,  # noqa: ARG001
) -> None:
    async with limited(tmp_path) as (rig, client):
        for _ in range(10):
            await client.ask(produce(batch(b"x" * 2_000)))
        rig.node.quotas.table.put(QuotaEntity(user="ANONYMOUS"), {CONSUMER_RATE: "500"})
        began, offset, got, rested_ms = trio.current_time(), 0, 0, 0
        while offset < 10:
            answer = await client.ask(fetch(offset))
            size = len(answer.responses[0].partitions[0].records)
            assert 0 < size <= 5_000
            got += size
            offset += size // 2_000
            rested_ms += answer.throttle_time_ms
        elapsed_s = trio.current_time() - began
        assert rested_ms > 0
        assert got <= 500 * (elapsed_s + rested_ms / 1_000 + 10) + 5_000


async def test_quotas_of_time_and_of_changes_may_be_fractions(tmp_path: Path) -> None:
    async with limited(tmp_path) as (_, client):
        both = setting(REQUEST_PERCENTAGE, 12.5), setting(MUTATION_RATE, 0.5)
        assert await alter(client, (USER,), *both) == 0
        alice = {"user": "alice", REQUEST_PERCENTAGE: 12.5, MUTATION_RATE: 0.5}
        assert await found(client) == [alice]


async def test_a_client_that_takes_too_much_of_the_brokers_time_rests_a_second_at_most(
    tmp_path: Path,
    autojump_clock: trio.testing.MockClock,  # noqa: ARG001
) -> None:
    async with limited(tmp_path) as (rig, client):
        quotas = rig.node.quotas
        quotas.table.put(QuotaEntity(client="busy"), {REQUEST_PERCENTAGE: "0.000001"})
        began = trio.current_time()
        answer = await client.ask(fetch(0), client_id="busy")
        assert answer.throttle_time_ms == 1_000, "it would be minutes, as for bytes"
        assert (await client.ask(fetch(0), client_id="other")).throttle_time_ms == 0
        assert trio.current_time() - began == pytest.approx(1), "its connection was left alone"
        quotas.table.put(QuotaEntity(client="busy"), {REQUEST_PERCENTAGE: "100"})
        assert (await client.ask(fetch(0), client_id="busy")).throttle_time_ms == 0
