"""A broker that is cut off from its controller alone: it answers, and knows only what was."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from tests.doubles.fake_cluster import FakeCluster, run_fake_cluster
from tests.doubles.fake_groups import find_coordinator
from wire.errors import ErrorCode
from wire.headers import RequestHeader
from wire.messages.find_coordinator import FindCoordinatorRequest
from wire.messages.metadata import MetadataRequest
from wire.net import Cluster, RequestRefused, open_cluster
from wire.net.operations import fetch_group_offsets, fetch_offsets_of


@asynccontextmanager
async def client(
    brokers: int = 2, *, opened: bool = True
) -> AsyncIterator[tuple[FakeCluster, Cluster]]:
    """Give a client that has met broker 0 first, and all the others where `opened`."""
    async with (
        run_fake_cluster(brokers) as fake,
        open_cluster([fake.brokers[0].address], client_id="test") as cluster,
    ):
        fake.create_topic("orders", 0)
        await cluster.metadata(["orders"])
        for node in fake.brokers if opened else ():
            await cluster.connection(node)
        yield fake, cluster


def move_leader(fake: FakeCluster, to: int) -> None:
    partition = fake.topics["orders"].partitions[0]
    partition.leader = to
    partition.leader_epoch += 1


def lookups(fake: FakeCluster) -> list[int]:
    """Return how often each broker was asked for metadata."""
    return [
        sum(header.api_key == MetadataRequest.API_KEY for header, _ in broker.asked)
        for broker in fake.brokers.values()
    ]


def accepted(fake: FakeCluster) -> list[int]:
    """Return how many connections each broker was asked for."""
    return [broker.accepted for broker in fake.brokers.values()]


async def leaders(cluster: Cluster, times: int, topics: list[str] | None) -> list[int]:
    """Look up that often who leads."""
    views = [await cluster.metadata(topics, refresh=True) for _ in range(times)]
    return [view.partition("orders", 0).leader for view in views]


async def test_after_a_moved_leader_another_broker_is_asked() -> None:
    async with client() as (fake, cluster):
        fake.brokers[0].cut_off()
        move_leader(fake, 1)
        for _ in range(4):
            cluster.forget("orders")
            assert await cluster.leader("orders", 0) is await cluster.connection(1)


@pytest.mark.parametrize("topics", [["orders"], None], ids=["by name", "all"])
async def test_what_a_stale_broker_says_is_not_believed_any_more(topics: list[str] | None) -> None:
    async with client(3) as (fake, cluster):
        fake.brokers[0].cut_off()
        move_leader(fake, 1)
        found = await leaders(cluster, 9, topics)
        assert found[2:] == [1] * 7
        assert set(found[:2]) <= {0, 1}
        assert all(asked >= 3 for asked in lookups(fake))


async def test_where_one_broker_is_open_another_is_opened_and_nobody_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("wire.net.pool.PREPARED_AFTER_S", 0.001)
    async with client(3, opened=False) as (fake, cluster):
        assert accepted(fake) == [1, 0, 0]
        fake.brokers[0].cut_off()
        move_leader(fake, 1)
        await cluster.metadata(["orders"], refresh=True)
        with trio.fail_after(10):
            while accepted(fake) == [1, 0, 0]:  # noqa: ASYNC110 - the fake has no event for it
                await trio.sleep(0.001)
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert (await leaders(cluster, 5, ["orders"]))[1:] == [1] * 4
        assert sorted(accepted(fake)) == [0, 1, 1]


async def test_another_that_cannot_be_reached_holds_no_lookup_up() -> None:
    async with client(2, opened=False) as (fake, cluster):
        fake.brokers[1].stop()
        assert await leaders(cluster, 5, ["orders"]) == [0] * 5
        assert lookups(fake) == [6, 0]


@pytest.mark.parametrize("topics", [["new"], None], ids=["by name", "all"])
async def test_a_topic_that_one_broker_has_not_heard_of_is_not_gone(
    topics: list[str] | None,
) -> None:
    async with client() as (fake, cluster):
        fake.brokers[0].cut_off()
        fake.create_topic("new", 1)
        for _ in range(2):  # whoever is asked first
            await cluster.metadata(topics, refresh=True)
        for _ in range(6):
            view = await cluster.metadata(topics, refresh=True)
            assert view.partition("new", 0).leader == 1


@pytest.mark.parametrize("told", [-1, 0], ids=["of none", "of the one before"])
async def test_a_broker_that_goes_on_to_tell_a_wrong_coordinator_is_not_the_only_one_asked(
    told: int,
) -> None:
    async with client() as (fake, cluster):

        async def tell_old(header: RequestHeader, request: FindCoordinatorRequest) -> object:
            fake.coordinators["g"] = told
            answer = find_coordinator(fake.brokers[0], header.api_version, request)
            fake.coordinators["g"] = 1
            return answer

        fake.brokers[0].scripts[FindCoordinatorRequest.API_KEY] = tell_old
        fake.coordinators["g"] = 1
        for _ in range(3):
            cluster.forget_coordinator("g")
            with trio.fail_after(5):
                assert await fetch_group_offsets(cluster, "g") == {}
        found = [await fetch_offsets_of(cluster, ["g"]) for _ in range(3)]
        assert found[1:] == [{"g": {}}] * 2


async def test_a_topic_that_nobody_knows_any_more_is_gone() -> None:
    async with client() as (fake, cluster):
        del fake.topics["orders"]
        assert "orders" not in (await cluster.metadata(refresh=True)).topics
        before = sum(lookups(fake))
        with pytest.raises(RequestRefused) as fault:
            await cluster.leader("orders", 0)
        assert fault.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert sum(lookups(fake)) == before + 1
