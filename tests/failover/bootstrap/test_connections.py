"""Many connections at an endpoint: each ends alone, and a switch ends them all."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from trio.testing import open_stream_to_socket_listener

from failover.bootstrap.active_site import FollowedSite, ShownSite
from failover.bootstrap.endpoint import Endpoint, told_exposure
from failover.bootstrap.endpoint_metrics import FULL, NO_SITE, NOT_THE_WAY, UNREACHABLE
from runtime.configuration.bootstrap_section import BootstrapConfig
from runtime.configuration.config import load
from runtime.process.ports import free_port
from tests.dc_yaml import dc_yaml
from tests.doubles.fake_cluster import run_fake_cluster
from wire.headers import RequestHeader, encode_request
from wire.messages.api_versions import ApiVersionsRequest
from wire.messages.produce import ProduceRequest
from wire.net.security import PLAINTEXT, Security, Tls

ASKED = b"".join(
    encode_request(
        RequestHeader(api_key=18, api_version=0, correlation_id=7, client_id="me"),
        ApiVersionsRequest(),
    )
)
ANOTHER = b"".join(
    encode_request(
        RequestHeader(api_key=0, api_version=9, correlation_id=7, client_id="me"),
        ProduceRequest(acks=-1, timeout_ms=1, topic_data=()),
    )
)
Connect = Callable[[], Awaitable[trio.SocketStream]]


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold clients for a moment only."""
    monkeypatch.setattr("failover.bootstrap.sites.broker_reach.HELD_FOR_S", 0.2)


@asynccontextmanager
async def endpoint(
    folder: Path, *, most: int = 10, is_up: bool = True, security: Security = PLAINTEXT
) -> AsyncIterator[tuple[Endpoint, FollowedSite, Connect]]:
    """Serve clients of a cluster dc1, a fake one; dc2 is not there."""
    async with (
        run_fake_cluster() as cluster,
        AsyncExitStack() as clients,
        trio.open_nursery() as nursery,
    ):
        port = cluster.bootstrap[0][1] if is_up else free_port()
        file = folder / "dc.yaml"
        file.write_text(dc_yaml(dc1=f"127.0.0.1:{port}", dc2=f"127.0.0.1:{free_port()}"))
        followed = FollowedSite()
        followed.take(ShownSite("dc1", 1))
        bootstrap = BootstrapConfig(listen=("127.0.0.1", 1), max_connections=most)
        configuration = load(file)
        clusters = {
            name: replace(cluster, security=security)
            for name, cluster in configuration.clusters.items()
        }
        served = Endpoint(replace(configuration, clusters=clusters), bootstrap, followed)
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, served.serve_client, [listener])

        async def connect() -> trio.SocketStream:
            return await clients.enter_async_context(await open_stream_to_socket_listener(listener))

        yield served, followed, connect
        nursery.cancel_scope.cancel()


async def is_answered(client: trio.SocketStream) -> bool:
    await client.send_all(ASKED)
    with trio.fail_after(5):
        return len(await client.receive_some()) > 8


async def is_let_go(client: trio.SocketStream) -> bool:
    with trio.fail_after(5):
        try:
            return await client.receive_some() == b""
        except trio.BrokenResourceError:
            return True


async def test_a_switch_ends_every_connection_and_the_next_is_carried_elsewhere(
    tmp_path: Path,
) -> None:
    async with endpoint(tmp_path) as (served, followed, connect):
        clients = [await connect() for _ in range(3)]
        assert all([await is_answered(client) for client in clients])
        followed.take(ShownSite("dc2", 2))
        assert all([await is_let_go(client) for client in clients])
        assert (served.counts.carried, served.counts.moved) == (3, 3)
        assert await is_let_go(await connect())
        assert served.counts.refused[UNREACHABLE] == 1
        assert served.counts.open == 0


async def test_the_longest_silent_connection_makes_room_for_a_new_one(tmp_path: Path) -> None:
    async with endpoint(tmp_path, most=2) as (served, _, connect):
        first, second = await connect(), await connect()
        for client in (first, second, first):
            assert await is_answered(client)
        third = await connect()
        assert await is_answered(third)
        assert await is_let_go(second)
        assert await is_answered(first)
        assert served.counts.refused[FULL] == 1


async def test_an_authority_that_cannot_be_read_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gone = Security(tls=Tls(ca=tmp_path / "gone.pem"))
    async with endpoint(tmp_path, security=gone) as (served, _, connect):
        assert await is_let_go(await connect())
        assert served.counts.refused[UNREACHABLE] == 1
        assert "clusters.dc1.ssl.ca: " in caplog.text


async def test_who_asks_for_something_else_is_let_go_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with endpoint(tmp_path) as (served, _, connect):
        honest, other = await connect(), await connect()
        assert await is_answered(honest)
        for _ in range(3):
            await other.send_all(ANOTHER)
            assert await is_let_go(other)
            other = await connect()
        assert await is_answered(honest)
        assert served.counts.refused[NOT_THE_WAY] == 3
        assert caplog.text.count("a request of API 0") == 1, "strangers cannot fill the log"


async def test_without_a_site_and_without_brokers_clients_are_let_go_and_counted(
    tmp_path: Path,
) -> None:
    async with endpoint(tmp_path, is_up=False) as (served, followed, connect):
        assert await is_let_go(await connect())
        followed.take(ShownSite(None, 1, "an old copy"))
        assert await is_let_go(await connect())
        refused = served.counts.refused
        assert (refused[UNREACHABLE], refused[NO_SITE]) == (1, 1)


def test_logins_in_the_clear_before_brokers_with_tls_are_warned_of(tmp_path: Path) -> None:
    file = tmp_path / "dc.yaml"
    secure = {"bootstrap": "127.0.0.1:1", "security_protocol": "SSL"}
    for dc2, failover, warnings in (
        (secure, {"bootstrap": {"listen": "0.0.0.0:9000"}}, 1),
        (secure, {}, 0),
        ("127.0.0.1:1", {"bootstrap": {"listen": "0.0.0.0:9000"}}, 0),
    ):
        file.write_text(dc_yaml(dc2=dc2, failover=failover))
        told = list(told_exposure(load(file)))
        assert len(told) == warnings
        assert all("failover.bootstrap.tls is missing, and dc2 speak" in one for one in told)
