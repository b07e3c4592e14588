"""Reconnecting: how often, after which waits, and one attempt for all who want it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from tests.doubles.fake_cluster import FakeBroker, FakeCluster
from tests.doubles.memory_transport import memory_transport
from wire.net.backoff import Backoff
from wire.net.client_settings import ClientSettings, Growing
from wire.net.connecting import ConnectionSettings
from wire.net.connection import Connection
from wire.net.errors import BrokerUnreachable
from wire.net.pool import PREPARED_AFTER_S, PREPARED_AGAIN_S, ConnectionPool
from wire.net.transport import Address, Transport

PLACE: Address = ("memory", 1)


class Network:
    """Dials into a fake broker, or fails as often as it is told, and notes when."""

    def __init__(self, nursery: trio.Nursery, failures: int) -> None:
        self.dialled_at: list[float] = []
        self.failures = failures
        self.dialling_takes_s = 0.0
        self._nursery = nursery
        cluster = FakeCluster()
        self.broker = cluster.brokers[0] = FakeBroker(cluster, 0)

    async def dial(self, address: Address) -> Transport:
        self.dialled_at.append(trio.current_time())
        await trio.sleep(self.dialling_takes_s)
        if self.failures:
            self.failures -= 1
            raise BrokerUnreachable(f"{address[0]}:{address[1]}: not now")
        transport, far_end = memory_transport()
        self._nursery.start_soon(self.broker.serve, far_end)
        return transport


@asynccontextmanager
async def pool_over(
    failures: int, backoff: Backoff | None = None
) -> AsyncIterator[tuple[ConnectionPool, Network]]:
    async with trio.open_nursery() as nursery:
        network = Network(nursery, failures)
        settings = ConnectionSettings(
            client_id="test", dial=network.dial, backoff=backoff or Backoff()
        )
        yield ConnectionPool(nursery, settings), network
        nursery.cancel_scope.cancel()


@given(st.integers(0, 2_000), st.floats(0, 1, exclude_max=True))
def test_waits_double_up_to_a_bound_and_are_spread(failures: int, luck: float) -> None:
    pauses = Growing(first_ms=30, longest_ms=700)
    after = Backoff(failures=failures, pauses=pauses).after_failure(100.0, luck)
    plain = min(0.03 * 2 ** min(failures, 100), 0.7)
    assert after.failures == failures + 1
    assert 0.79 * plain <= after.not_before - 100.0 <= 1.21 * plain


async def test_an_open_connection_is_used_again(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    async with pool_over(failures=0) as (pool, network):
        assert await pool.connection(PLACE) is await pool.connection(PLACE)
        assert len(network.dialled_at) == 1
        assert pool.is_open(PLACE)


async def test_each_attempt_waits_longer_until_one_succeeds(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    async with pool_over(failures=6) as (pool, network):
        for _ in range(6):
            with pytest.raises(BrokerUnreachable, match="not now"):
                await pool.connection(PLACE)
        assert (await pool.connection(PLACE)).is_open
        times = network.dialled_at
        waits = [later - earlier for earlier, later in pairwise(times)]
        for wait, plain in zip(waits, [0.05, 0.1, 0.2, 0.4, 0.8, 1.0], strict=True):
            assert 0.79 * plain <= wait <= 1.21 * plain


async def test_the_waits_are_those_that_are_set_after_a_success_too(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    client = ClientSettings(reconnect_backoff_ms=3_000, reconnect_backoff_max_ms=5_000)
    async with pool_over(2, Backoff(pauses=client.reconnect)) as (pool, network):
        for _ in range(2):
            network.dialled_at.clear()
            network.failures = 2
            for _ in range(2):
                with pytest.raises(BrokerUnreachable, match="not now"):
                    await pool.connection(PLACE)
            (await pool.connection(PLACE)).close("enough")
            waits = [later - earlier for earlier, later in pairwise(network.dialled_at)]
            for wait, plain in zip(waits, [3.0, 5.0], strict=True):
                assert 0.79 * plain <= wait <= 1.21 * plain


async def test_success_forgets_the_failures(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    async with pool_over(failures=1) as (pool, network):
        with pytest.raises(BrokerUnreachable):
            await pool.connection(PLACE)
        first = await pool.connection(PLACE)
        first.close("enough")
        asked_at = trio.current_time()
        second = await pool.connection(PLACE)
        assert second is not first
        assert network.dialled_at[-1] == asked_at


async def test_callers_at_the_same_time_share_one_attempt_and_its_failure(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    async with pool_over(failures=1) as (pool, network):
        network.dialling_takes_s = 2.0
        faults: list[BrokerUnreachable] = []

        async def ask() -> None:
            with pytest.raises(BrokerUnreachable) as fault:
                await pool.connection(PLACE)
            faults.append(fault.value)

        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(ask)
        assert len(faults) == 10
        assert len(network.dialled_at) == 1


async def test_callers_at_the_same_time_share_one_connection(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    async with pool_over(failures=0) as (pool, network):
        network.dialling_takes_s = 2.0
        found: list[Connection] = []

        async def ask() -> None:
            found.append(await pool.connection(PLACE))

        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(ask)
        assert len(set(found)) == 1
        assert len(network.dialled_at) == 1


async def test_a_cancelled_attempt_leaves_the_next_caller_free_to_try(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    async with pool_over(failures=0) as (pool, network):
        network.dialling_takes_s = 5.0
        with trio.move_on_after(1) as scope:
            await pool.connection(PLACE)
        assert scope.cancelled_caught
        assert (await pool.connection(PLACE)).is_open
        assert len(network.dialled_at) == 2


async def test_the_soonest_are_tried_first(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    failing, fresh, working = ("memory", 1), ("memory", 2), ("memory", 3)
    async with pool_over(failures=1) as (pool, _):
        with pytest.raises(BrokerUnreachable):
            await pool.connection(failing)
        await pool.connection(working)
        order = pool.soonest_first([failing, fresh, working, fresh])
        assert order == [working, fresh, failing]


async def test_closing_the_pool_closes_its_connections(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    async with pool_over(failures=0) as (pool, _):
        connection = await pool.connection(PLACE)
        pool.close("done")
        assert not connection.is_open
        assert not pool.is_open(PLACE)


async def test_a_connection_is_prepared_where_none_is_open_and_none_has_failed_lately(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    another, soon_s = ("memory", 2), 2 * PREPARED_AFTER_S
    async with pool_over(failures=1) as (pool, network):
        for _ in range(2):
            pool.prepare([PLACE])
            await trio.sleep(soon_s)
        assert len(network.dialled_at) == 1
        pool.prepare([PLACE, another])
        await trio.sleep(soon_s)
        assert pool.is_open(another)
        assert not pool.is_open(PLACE)
        pool.prepare([another, PLACE])
        await trio.sleep(PREPARED_AGAIN_S)
        assert not pool.is_open(PLACE), "one is open"
        pool.prepare([PLACE])
        await trio.sleep(soon_s)
        assert pool.is_open(PLACE)
        assert len(network.dialled_at) == 3


async def test_a_client_that_leaves_soon_begins_no_connection_that_it_would_drop(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    async with pool_over(failures=0) as (pool, network):
        for _ in range(5):
            pool.prepare([PLACE])
            await trio.sleep(PREPARED_AFTER_S / 10)
        assert network.dialled_at == []
        await trio.sleep(PREPARED_AFTER_S)
        assert len(network.dialled_at) == 1


async def test_nobody_prepares_what_is_being_made(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    async with pool_over(failures=0) as (pool, network):
        network.dialling_takes_s = 5.0
        pool.prepare([PLACE])
        await trio.sleep(2 * PREPARED_AFTER_S)
        pool.prepare([PLACE])
        assert (await pool.connection(PLACE)).is_open
        assert len(network.dialled_at) == 1
