"""Clients that name the broker they mean when they begin TLS, all at one port."""

import ssl
from dataclasses import dataclass, field
from pathlib import Path

import trio
from trio.testing import open_stream_to_socket_listener

from demo.certificates import Authority
from failover.bootstrap.active_site import FollowedSite, ShownSite
from failover.bootstrap.addresses import BrokerNames
from failover.bootstrap.byte_budget import ByteBudget
from failover.bootstrap.endpoint import Endpoint
from failover.bootstrap.forwarding import Forwarding, ForwardingCounts
from failover.bootstrap.group_members import GroupMembers
from failover.bootstrap.sites.broker_addresses import BrokerAddresses
from runtime.configuration.bootstrap_section import BootstrapConfig
from runtime.configuration.config import load
from runtime.coordination.witness import ActiveSite
from runtime.pages.page_door import PageTls
from tests.dc_yaml import dc_yaml
from tests.doubles.fake_cluster import run_fake_cluster
from wire.headers import RequestHeader, decode_response, encode_request
from wire.messages.metadata import MetadataRequest, MetadataResponse
from wire.net.rights import Right
from wire.net.transport import Address

NAMES = BrokerNames("b{broker}.kafka.test", 443)
ASKED = b"".join(
    encode_request(
        RequestHeader(api_key=3, api_version=8, correlation_id=7, client_id="me"),
        MetadataRequest(topics=None),
    )
)


@dataclass
class Found(BrokerAddresses):
    """Finds one address for every broker, and notes for which."""

    address: Address
    asked: list[int | None] = field(default_factory=list)

    async def find(self, _: str, node_id: int | None) -> list[Address]:
        await trio.lowlevel.checkpoint()
        self.asked.append(node_id)
        return [self.address]

    def learn(self, *_: object) -> None:
        """Know already."""


async def nothing_is_closed(_: str) -> frozenset[Right]:
    return frozenset()


async def witness_says() -> ActiveSite:
    await trio.lowlevel.checkpoint()
    return ActiveSite(site="dc1", epoch=1)


async def answer_to(stream: trio.SSLStream[trio.SocketStream]) -> MetadataResponse:
    """Ask for the brokers."""
    frame = b""
    with trio.fail_after(5):
        await stream.send_all(ASKED)
        while len(frame) < 4 or len(frame) < 4 + int.from_bytes(frame[:4], "big"):
            frame += bytes(await stream.receive_some())
    return decode_response(MetadataResponse, frame[4:], 8)


async def test_the_name_in_tls_leads_to_its_broker_and_brokers_are_shown_by_names(
    tmp_path: Path,
) -> None:
    authority = Authority(tmp_path)
    certificate = authority.sign("endpoint", ["*.kafka.test"])
    file = tmp_path / "dc.yaml"
    file.write_text(dc_yaml())
    followed = FollowedSite()
    followed.take(ShownSite("dc1", 1))
    tls = PageTls(certificate=certificate, key=certificate.with_suffix(".key"))
    bootstrap = BootstrapConfig(listen=("127.0.0.1", 1), max_connections=10, tls=tls)
    trusting = ssl.create_default_context(cafile=authority.file)
    async with run_fake_cluster() as cluster, trio.open_nursery() as nursery:
        found = Found(cluster.bootstrap[0])
        forwarding = Forwarding(
            followed=followed,
            ask_witness=witness_says,
            ask_fence=nothing_is_closed,
            places=NAMES,
            budget=ByteBudget(2**30),
            brokers=found,
            members=GroupMembers(),
            counts=ForwardingCounts(),
        )
        served = Endpoint(load(file), bootstrap, followed, forwarding)
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, served.serve_client, [listener])
        for name in ("b0.kafka.test", "boot.kafka.test", "B12.kafka.test"):
            connected = await open_stream_to_socket_listener(listener)
            async with trio.SSLStream(connected, trusting, server_hostname=name) as stream:
                brokers = (await answer_to(stream)).brokers
                assert brokers
                assert all((one.host, one.port) == NAMES.of(one.node_id) for one in brokers)
        nursery.cancel_scope.cancel()
    assert found.asked == [0, None, 12]
