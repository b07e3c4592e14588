"""TLS as a user sets it: stores, versions, suites and names, held against what a broker sees."""

import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest
import trio

from tests.doubles.key_stores import Family, signed
from tests.doubles.tls_broker import broker_behind
from wire.messages.metadata import MetadataRequest
from wire.net import AuthenticationFailed, BrokerUnreachable, open_cluster
from wire.net.security import Pem, Security, Tls
from wire.net.tls import TlsDial, TlsTransport
from wire.net.tls_context import make_context
from wire.net.transport import Address, connect_socket

GCM = "ECDHE-ECDSA-AES128-GCM-SHA256"
OTHER_GCM = "ECDHE-ECDSA-AES256-GCM-SHA384"


@dataclass(slots=True)
class FakeStore:
    """A store whose content a test changes; `times_read` counts."""

    found: Pem
    files: tuple[Path, ...] = (Path("store.p12"),)
    times_read: int = 0

    @property
    def origin(self) -> str:
        return "a store"

    def pem(self) -> Pem:
        self.times_read += 1
        return self.found


@dataclass(slots=True)
class Seen:
    """What a server has seen of its clients."""

    names: list[str | None] = field(default_factory=list)
    subjects: list[str] = field(default_factory=list)
    versions: list[str | None] = field(default_factory=list)
    suites: list[str] = field(default_factory=list)


@asynccontextmanager
async def watched(context: ssl.SSLContext) -> AsyncIterator[tuple[Address, Seen]]:
    """Run a server that shakes hands, waits for the end, and notes who has come how."""
    seen = Seen()

    def note_name(_: ssl.SSLObject, name: str | None, __: ssl.SSLContext) -> None:
        seen.names.append(name)

    async def serve(stream: trio.SSLStream[trio.SocketStream]) -> None:
        try:
            await stream.do_handshake()
            await stream.send_all(b"\0")
        except trio.BrokenResourceError:
            return
        certificate = stream.getpeercert() or {}
        subject = dict(part[0] for part in certificate.get("subject", ()))
        seen.subjects.append(subject.get("commonName", ""))
        seen.versions.append(stream.version())
        seen.suites.append(stream.cipher()[0])

    context.sni_callback = note_name
    async with trio.open_nursery() as nursery:
        start = partial(trio.serve_ssl_over_tcp, serve, 0, context, host="127.0.0.1")
        (listener,) = await nursery.start(start)
        yield ("localhost", listener.transport_listener.socket.getsockname()[1]), seen
        nursery.cancel_scope.cancel()


async def greet(dial: TlsDial, address: Address) -> None:
    """Connect, and wait until the broker has taken our side for good."""
    transport = await dial(address)
    try:
        assert await transport.receive_into(memoryview(bytearray(1))) == 1
    finally:
        transport.close()


@pytest.fixture(scope="module")
def family() -> Family:
    return Family()


def stores(family: Family) -> Tls:
    own = Pem(
        certificates=family.client.pem() + family.between.pem(),
        private_key=family.client.key_pem(),
    )
    return Tls(keystore=FakeStore(own), truststore=FakeStore(Pem(certificates=family.root.pem())))


async def test_a_broker_that_trusts_the_root_alone_takes_a_chain_of_a_store(
    family: Family,
) -> None:
    async with watched(family.server_context(wants_client=True)) as (address, seen):
        await greet(TlsDial(stores(family)), address)
    assert seen.subjects == ["client"]


async def test_a_chain_without_what_is_between_is_refused(family: Family) -> None:
    own = Pem(certificates=family.client.pem(), private_key=family.client.key_pem())
    tls = replace(stores(family), keystore=FakeStore(own))
    async with broker_behind(family.server_context(wants_client=True)) as broker:
        security = Security(tls=tls)
        async with open_cluster([broker.address], client_id="t", security=security) as cluster:
            with pytest.raises(BrokerUnreachable, match="closed by the broker"):
                await cluster.request(MetadataRequest(topics=()))


def test_a_key_from_memory_is_left_nowhere(family: Family) -> None:
    open_before = set(Path("/proc/self/fd").iterdir())
    make_context(stores(family))
    assert set(Path("/proc/self/fd").iterdir()) == open_before


async def test_a_store_is_read_again_when_its_file_changes_and_else_not(
    family: Family, tmp_path: Path
) -> None:
    file = tmp_path / "authorities.p12"
    file.write_bytes(b"old")
    trusted = FakeStore(Pem(certificates=signed("stranger", is_authority=True).pem()), (file,))
    async with watched(family.server_context()) as (address, seen):
        dial = TlsDial(Tls(truststore=trusted))
        with pytest.raises(AuthenticationFailed, match="not trusted"):
            await dial(address)
        trusted.found = Pem(certificates=family.root.pem())
        file.write_bytes(b"new")
        os.utime(file, ns=(0, 1))
        await greet(dial, address)
        await greet(dial, address)
        assert trusted.times_read == 2
        file.unlink()
        await greet(dial, address)
    assert len(seen.subjects) == 3


@pytest.mark.parametrize("checks_hostname", [True, False])
async def test_a_hosts_name_is_sent_without_the_dot_at_its_end(
    family: Family, *, checks_hostname: bool
) -> None:
    tls = replace(stores(family), checks_hostname=checks_hostname)
    async with watched(family.server_context()) as ((_, port), seen):
        for host in ("localhost", "localhost.", "127.0.0.1"):
            connected = await connect_socket(("127.0.0.1", port))
            transport = TlsTransport(connected, make_context(tls), host)
            await transport.handshake()
            transport.close()
    assert seen.names == ["localhost", "localhost", None]


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
async def test_only_the_versions_that_are_set_are_spoken(family: Family, version: str) -> None:
    tls = replace(stores(family), protocols=(version,))
    async with watched(family.server_context()) as (address, seen):
        await greet(TlsDial(tls), address)
    assert seen.versions == [version]


async def test_only_the_suites_that_are_set_are_used(family: Family) -> None:
    tls = replace(stores(family), protocols=("TLSv1.2",), ciphers=(GCM,))
    async with watched(family.server_context()) as (address, seen):
        await greet(TlsDial(tls), address)
    assert seen.suites == [GCM]
    context = family.server_context()
    context.set_ciphers(OTHER_GCM)
    async with watched(context) as (address, _):
        trial = TlsDial(tls)
        with pytest.raises(BrokerUnreachable, match="closed by the broker"):
            await trial(address)
