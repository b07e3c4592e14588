"""TLS: bytes both ways in any cut, who is trusted and who is not, and renewed certificates."""

import shutil
import socket
import ssl
import threading
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from tests.doubles.certificates import KEY_PASSWORD, Certificates
from tests.doubles.fake_cluster import FakeBroker
from tests.doubles.sasl_broker import RIGHT, SaslScripts
from tests.doubles.tls_broker import broker_behind
from wire.messages.metadata import MetadataRequest
from wire.net import AuthenticationFailed, BrokerUnreachable, open_cluster
from wire.net.security import Mechanism, Sasl, Security, Tls
from wire.net.tls import PIECE_BYTES, SMALL_BYTES, TlsDial, _pieces
from wire.net.transport import Address, Transport

METADATA = MetadataRequest(topics=())


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def server_context(
    certificates: Certificates, certificate: Path, *, wants_client: bool = False
) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificates.key(certificate))
    if wants_client:
        context.load_verify_locations(certificates.ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


@asynccontextmanager
async def echo(context: ssl.SSLContext) -> AsyncIterator[Address]:
    """Run a server that sends back what it is sent."""

    async def serve(stream: trio.SSLStream[trio.SocketStream]) -> None:
        try:
            async for data in stream:
                await stream.send_all(data)
        except trio.BrokenResourceError:
            return

    async with trio.open_nursery() as nursery:
        start = partial(trio.serve_ssl_over_tcp, serve, 0, context, host="127.0.0.1")
        (listener,) = await nursery.start(start)
        yield listener.transport_listener.socket.getsockname()
        nursery.cancel_scope.cancel()


async def ask(broker: FakeBroker, tls: Tls, sasl: Sasl | None = None) -> int:
    """Return how many brokers the cluster says it has."""
    security = Security(tls=tls, sasl=sasl)
    opened = open_cluster([broker.address], client_id="test", name="dc2", security=security)
    async with opened as cluster:
        return len((await cluster.request(METADATA)).brokers)


async def send_all(transport: Transport, parts: Sequence[bytes]) -> None:
    """Send as a connection does: what was not taken is offered again."""
    left = [memoryview(part) for part in parts]
    while left:
        sent = transport.send_now(left)
        if not sent:
            await transport.wait_sendable()
        while sent:
            taken = min(sent, len(left[0]))
            left[0], sent = left[0][taken:], sent - taken
            if not left[0]:
                left.pop(0)


async def test_parts_of_all_sizes_arrive_in_order_although_the_socket_is_full(
    certificates: Certificates,
) -> None:
    parts = [bytes([n % 251]) * size for n, size in enumerate([1, 61, 70_000, 9, 2_000_000, 3] * 4)]
    whole = b"".join(parts)
    async with echo(server_context(certificates, certificates.broker)) as address:
        transport = await TlsDial(Tls(ca=certificates.ca))(address)
        received = bytearray()
        buffer = memoryview(bytearray(1 << 20))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send_all, transport, parts)
            while len(received) < len(whole):
                size = await transport.receive_into(buffer)
                assert size
                received += buffer[:size]
        assert received == whole
        transport.close()
        transport.close()
        with pytest.raises(trio.ClosedResourceError):
            transport.send_now([b"x"])
        with pytest.raises(trio.ClosedResourceError):
            await transport.receive_into(buffer)


async def test_closing_takes_back_what_was_not_delivered_yet(certificates: Certificates) -> None:
    context = server_context(certificates, certificates.broker)
    context.num_tickets = 0  # closing with them unread would be a reset anyhow
    is_closed = threading.Event()

    def stall(listener: socket.socket) -> None:
        connected, _ = listener.accept()
        connected.settimeout(10)
        # Read below TLS, which takes a reset for an end.
        with connected.dup() as below, context.wrap_socket(connected, server_side=True):
            assert is_closed.wait(10)
            with pytest.raises(ConnectionResetError):
                deque(iter(partial(below.recv, 1 << 16), b""), maxlen=0)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, stall, listener)
            transport = await TlsDial(Tls(ca=certificates.ca))(listener.getsockname())
            part = bytes(1 << 20)
            while transport.send_now([part]) == len(part):
                pass
            transport.close()
            is_closed.set()


@given(
    st.lists(st.integers(0, 3 * SMALL_BYTES), max_size=6),
    st.integers(0, 3 * SMALL_BYTES),
)
def test_pieces_are_the_parts_without_what_was_sent(sizes: list[int], skip: int) -> None:
    parts = [bytes([n]) * size for n, size in enumerate(sizes)]
    whole = b"".join(parts)
    skip = min(skip, len(whole))
    pieces = list(_pieces(parts, skip=skip))
    assert b"".join(pieces) == whole[skip:]
    assert all(0 < len(piece) <= PIECE_BYTES for piece in pieces)


async def test_a_broker_with_a_certificate_of_our_authority_is_asked(
    certificates: Certificates,
) -> None:
    async with broker_behind(server_context(certificates, certificates.broker)) as broker:
        assert await ask(broker, Tls(ca=certificates.ca)) == 1


async def test_a_certificate_of_another_authority_is_not_trusted(
    certificates: Certificates,
) -> None:
    async with broker_behind(server_context(certificates, certificates.broker)) as broker:
        said = r"dc2: 127.*certificate is not trusted: .* \(trusted is /.*/strange\.pem\)$"
        with pytest.raises(AuthenticationFailed, match=said):
            await ask(broker, Tls(ca=certificates.strange_ca))


async def test_a_certificate_that_has_expired_is_not_trusted(certificates: Certificates) -> None:
    async with broker_behind(server_context(certificates, certificates.expired)) as broker:
        said = r"dc2: 127.*is not trusted: certificate has expired \(trusted is /.*/ca\.pem\)$"
        with pytest.raises(AuthenticationFailed, match=said):
            await ask(broker, Tls(ca=certificates.ca))


async def test_a_certificate_for_another_host_is_trusted_only_when_asked_for(
    certificates: Certificates,
) -> None:
    async with broker_behind(server_context(certificates, certificates.misnamed)) as broker:
        with pytest.raises(AuthenticationFailed, match=r"not valid for '127\.0\.0\.1'"):
            await ask(broker, Tls(ca=certificates.ca))
        assert await ask(broker, Tls(ca=certificates.ca, checks_hostname=False)) == 1


@pytest.mark.parametrize("is_expired", [False, True], ids=["none", "expired"])
async def test_a_broker_that_wants_a_client_certificate_says_what_is_wrong_with_ours(
    certificates: Certificates, *, is_expired: bool
) -> None:
    ours, said = Tls(ca=certificates.ca), r"certificate required \(shown is no cert"
    if is_expired:
        expired = certificates.expired_client
        ours = replace(ours, certificate=expired, key=certificates.key(expired))
        said = r"certificate expired \(shown is /.*/expired-client\.pem\)$"
    context = server_context(certificates, certificates.broker, wants_client=True)

    def refuse(listener: socket.socket) -> None:
        # Not trio's server, which keeps the alert to itself.
        connected, _ = listener.accept()
        with connected.dup() as left_open:
            with pytest.raises(ssl.SSLError):
                context.wrap_socket(connected, server_side=True)
            # Closed with bytes unread, TCP would take the alert back.
            with suppress(ConnectionResetError):  # the client has heard it and dropped the rest
                deque(iter(partial(left_open.recv, 4096), b""), maxlen=0)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        security = Security(tls=ours)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, refuse, listener)
            address = listener.getsockname()
            async with open_cluster([address], client_id="test", security=security) as cluster:
                with pytest.raises(AuthenticationFailed, match=said):
                    await cluster.request(METADATA)


async def test_a_broker_that_wants_a_client_certificate_gets_ours(
    certificates: Certificates,
) -> None:
    context = server_context(certificates, certificates.broker, wants_client=True)
    async with broker_behind(context) as broker:
        ours = Tls(
            ca=certificates.ca,
            certificate=certificates.client,
            key=certificates.locked_key,
            key_password=KEY_PASSWORD,
        )
        assert await ask(broker, ours) == 1
        assert KEY_PASSWORD not in repr(ours)


async def test_credentials_travel_inside_tls(certificates: Certificates) -> None:
    sasl = Sasl(mechanism=Mechanism.SCRAM_SHA_256, username="mirror", password=RIGHT)
    async with broker_behind(server_context(certificates, certificates.broker)) as broker:
        SaslScripts().install(broker)
        assert await ask(broker, Tls(ca=certificates.ca), sasl) == 1


async def test_a_port_without_tls_is_named(certificates: Certificates) -> None:
    async def hang_up(stream: trio.SocketStream) -> None:
        await stream.receive_some()

    async with trio.open_nursery() as nursery:
        serve = partial(trio.serve_tcp, hang_up, 0, host="127.0.0.1")
        (listener,) = await nursery.start(serve)
        address = listener.socket.getsockname()
        with pytest.raises(BrokerUnreachable, match="does it speak TLS"):
            await TlsDial(Tls(ca=certificates.ca))(address)
        nursery.cancel_scope.cancel()


async def test_files_that_were_renewed_are_read_again(
    certificates: Certificates, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trusted = tmp_path / "trusted.pem"
    shutil.copy(certificates.strange_ca, trusted)
    async with echo(server_context(certificates, certificates.broker)) as address:
        dial = TlsDial(Tls(ca=trusted))
        with pytest.raises(AuthenticationFailed, match="not trusted"):
            await dial(address)
        shutil.copy(certificates.ca, trusted)
        (await dial(address)).close()
        for broken in (lambda: trusted.write_text("half"), trusted.unlink):
            broken()
            for _ in range(2):
                (await dial(address)).close()
        said = f"trusted is {trusted}; shown is no certificate: not used, the last one still is: "
        assert [message.startswith(said) for message in caplog.messages] == [True, True]


async def test_files_that_cannot_be_used_from_the_beginning_are_named_and_read_again(
    certificates: Certificates, tmp_path: Path
) -> None:
    trusted = tmp_path / "trusted.pem"
    async with echo(server_context(certificates, certificates.broker)) as address:
        dial = TlsDial(Tls(ca=trusted, key_path="clusters.dc2.ssl"))
        said = rf"TLS files: No such file .* \(trusted is clusters\.dc2\.ssl\.ca: {trusted}; shown"
        with pytest.raises(AuthenticationFailed, match=said):
            await dial(address)
        shutil.copy(certificates.ca, trusted)
        (await dial(address)).close()
