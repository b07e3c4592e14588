"""How a client comes to a broker, also while its site is lost."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from ssl import SSLContext

import pytest
import trio

from failover.bootstrap.active_site import FollowedSite, ShownSite
from failover.bootstrap.endpoint_metrics import NO_SITE, UNREACHABLE
from failover.bootstrap.relay import reach_broker
from failover.bootstrap.sites import broker_reach
from failover.bootstrap.sites.broker_addresses import BrokerAddresses
from failover.bootstrap.sites.broker_reach import BrokerReach, NoBroker, ReachedBroker
from failover.bootstrap.sites.shared_look import SharedLook
from runtime.configuration.config import load
from runtime.process.ports import free_port
from tests.dc_yaml import dc_yaml
from wire.net.transport import Address

HOST = "127.0.0.1"
SOON_S = 3.0
"""Less than a client is held for."""


class Known(BrokerAddresses):
    """Where single brokers are."""

    def __init__(self, by_node: dict[int, Address]) -> None:
        super().__init__({}, {})
        self.by_node = by_node

    async def find(self, site: str, node_id: int | None) -> list[Address]:
        assert site == "dc1"
        await trio.lowlevel.checkpoint()
        assert node_id is not None
        return [self.by_node[node_id]]


class Stage:
    """Two sites, of which brokers listen or not."""

    def __init__(self, folder: Path, nursery: trio.Nursery) -> None:
        self.ports = {"dc1": free_port(), "dc2": free_port()}
        file = folder / "dc.yaml"
        dc1, dc2 = (f"{HOST}:{port}" for port in self.ports.values())
        file.write_text(dc_yaml(dc1=dc1, dc2=dc2))
        self.clusters = load(file).clusters
        self.followed = FollowedSite()
        self.followed.take(ShownSite("dc1", 1))
        self.nursery = nursery
        self.found: list[ReachedBroker] = []

    async def start(self, site: str) -> None:
        """Have the site's broker listen."""
        (listener,) = await trio.open_tcp_listeners(self.ports[site], host=HOST)
        self.nursery.start_soon(trio.serve_listeners, _wait_end, [listener])

    async def find(self, node_id: int | None = None, known: BrokerAddresses | None = None) -> None:
        """Find a broker for a client, and keep it."""
        reach = BrokerReach(self.clusters, self.followed, known)
        self.found.append(await reach.find(node_id))


async def _wait_end(stream: trio.SocketStream) -> None:
    async with stream:
        await stream.receive_some()


@asynccontextmanager
async def staged(folder: Path) -> AsyncIterator[Stage]:
    async with trio.open_nursery() as nursery:
        stage = Stage(folder, nursery)
        yield stage
        for one in stage.found:
            await one.broker.aclose()
        nursery.cancel_scope.cancel()


async def test_a_client_of_a_lost_site_is_led_to_the_other_one_once_that_is_active(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path) as stage:
        await stage.start("dc2")
        with trio.fail_after(SOON_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(stage.find)
                await trio.sleep(0.1)
                assert not stage.found
                stage.followed.take(ShownSite("dc2", 2))
        [found] = stage.found
        assert (found.site, found.changed) == ("dc2", stage.followed.changed)


async def test_a_client_without_a_site_waits_for_one(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.followed.take(ShownSite(None, 1, "an old copy"))
        await stage.start("dc1")
        with trio.fail_after(SOON_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(stage.find)
                await trio.sleep(0.1)
                stage.followed.take(ShownSite("dc1", 1))
        assert [one.site for one in stage.found] == ["dc1"]


async def test_a_site_that_is_back_is_reached_soon(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        with trio.fail_after(SOON_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(stage.find)
                await trio.sleep(0.1)
                await stage.start("dc1")
        assert [one.site for one in stage.found] == ["dc1"]


async def test_a_broker_that_alone_is_away_is_not_waited_for(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await stage.start("dc1")
        with trio.fail_after(SOON_S):
            with pytest.raises(NoBroker) as refused:
                await stage.find(7, Known({7: (HOST, free_port())}))
            assert refused.value.reason == UNREACHABLE


@pytest.mark.parametrize(
    ("shown", "reason"),
    [(ShownSite("dc1", 1), UNREACHABLE), (ShownSite(None, 1, "not known"), NO_SITE)],
)
async def test_nobody_is_held_for_long(
    shown: ShownSite, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_reach, "HELD_FOR_S", 0.05)
    async with staged(tmp_path) as stage:
        stage.followed.take(shown)
        with trio.fail_after(SOON_S):
            with pytest.raises(NoBroker) as refused:
                await stage.find()
            assert refused.value.reason == reason


async def test_a_lost_site_that_says_nothing_holds_up_nobody_behind_a_switch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its addresses swallow what is sent to them, for seconds each."""
    async with staged(tmp_path) as stage:
        await stage.start("dc2")
        lost = stage.ports["dc1"]

        async def swallowed(
            addresses: Iterable[Address], context: SSLContext | None
        ) -> trio.abc.Stream:
            places = list(addresses)
            if places == [(HOST, lost)]:
                await trio.sleep_forever()
            return await reach_broker(places, context)

        monkeypatch.setattr(broker_reach, "reach_broker", swallowed)
        with trio.fail_after(SOON_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(stage.find)
                await trio.sleep(0.1)
                stage.followed.take(ShownSite("dc2", 2))
        assert [one.site for one in stage.found] == ["dc2"]


async def test_many_who_wait_cost_one_look(autojump_clock: trio.testing.MockClock) -> None:
    assert autojump_clock.rate == 0, "its time is virtual"
    begun: list[str] = []

    async def slowly(site: str) -> int:
        begun.append(site)
        await trio.sleep(3)
        return len(begun)

    looks, found = SharedLook(slowly), []

    async def look() -> None:
        found.append(await looks.at("dc1"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(look)
        await trio.sleep(1)
        for _ in range(50):
            nursery.start_soon(look)
    assert found == [1, *[2] * 50], "what was begun before they came is too old for them"
    assert trio.current_time() < 7
