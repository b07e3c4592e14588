"""The endpoint: listens, carries connections to the active site, and counts."""

import logging
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from types import MappingProxyType
from typing import Final

import trio

from failover.bootstrap.active_site import FollowedSite, SiteFollower
from failover.bootstrap.addresses import BrokerNames, BrokerPorts
from failover.bootstrap.byte_budget import ByteBudget
from failover.bootstrap.endpoint_metrics import (
    FULL,
    HANDSHAKE,
    NOT_THE_WAY,
    PRODUCER_ID,
    EndpointCollector,
)
from failover.bootstrap.forwarding import ForwardedConnection, Forwarding, ForwardingCounts
from failover.bootstrap.owned_ids import IdNotKnown
from failover.bootstrap.relay import IdleLimits, carry
from failover.bootstrap.sites.broker_addresses import BrokerAddresses
from failover.bootstrap.sites.broker_reach import BrokerReach, NoBroker
from failover.bootstrap.sites.fence_looks import FenceLooks
from failover.bootstrap.spoken import NotCarried
from failover.bootstrap.the_way import NotTheWay
from runtime.configuration.bootstrap_section import BootstrapConfig
from runtime.configuration.config import Configuration, ConfigurationError
from runtime.configuration.reading.addresses import in_brackets
from runtime.configuration.topic_sets import endpoint_key
from runtime.pages.exposition import program_registry
from runtime.pages.metrics import AddressInUse, serve_metrics
from runtime.pages.set_metrics import SetsCollector
from runtime.pair.opening import open_clusters
from runtime.process.fault_note import FaultNote
from runtime.process.open_files import allow_many_files, most_open
from runtime.process.tasks import background_tasks
from runtime.process.unforeseen import keep_at_work
from wire.net.transport import Address
from wire.primitives import MalformedMessage

_LOG = logging.getLogger(__name__)

HANDSHAKE_TIMEOUT_S: Final = 10.0
_REASONS_OF: Final[Mapping[type[ValueError], str]] = MappingProxyType(
    {
        NotTheWay: NOT_THE_WAY,
        NotCarried: NOT_THE_WAY,
        MalformedMessage: NOT_THE_WAY,
        IdNotKnown: PRODUCER_ID,
    }
)
"""What a peer did that ends its connection."""
_NAMED: Final[ContextVar[str | None]] = ContextVar("name", default=None)
"""The host that this connection's client has named (SNI); each connection has its own task."""


class Endpoint:
    """Carries the connections of one listener."""

    def __init__(
        self,
        configuration: Configuration,
        bootstrap: BootstrapConfig,
        followed: FollowedSite,
        forwarding: Forwarding | None = None,
    ) -> None:
        """Read the listener's certificate. Raises OSError, of which ssl.SSLError is one.

        Without `forwarding` clients are only shown the way.
        """
        self._forwarding = forwarding
        self._clusters = configuration.clusters
        self._most = most_open(bootstrap.max_connections, files_each=2)
        self._keys = None if bootstrap.tls is None else bootstrap.tls.keys()
        self._patience = IdleLimits()
        addresses = None if forwarding is None else forwarding.brokers
        self._reach = BrokerReach(configuration.clusters, followed, addresses)
        self._strangers = FaultNote("clients")
        self._by_movement: dict[trio.CancelScope, None] = {}
        """The connections, the one that moved something last at the end."""
        self.counts = EndpointCollector(followed, forwarding)

    async def serve_client(
        self, socket_stream: trio.SocketStream, node_id: int | None = None
    ) -> None:
        """Carry one connection, to a broker if it is for one in particular.

        Whatever goes wrong with it ends it alone.
        """
        counts = self.counts
        async with socket_stream:
            self._make_room()
            counts.open += 1
            connection = trio.CancelScope()
            try:
                with connection:
                    await self._carry(socket_stream, node_id, connection)
            except tuple(_REASONS_OF) as reason:
                counts.refused[_REASONS_OF[type(reason)]] += 1
                self._strangers.note(f"{_peer(socket_stream)}: connection ended: {reason}")
            except (trio.BrokenResourceError, trio.ClosedResourceError, OSError) as error:
                _LOG.debug("%s: connection lost: %s", _peer(socket_stream), error)
            except Exception:  # noqa: BLE001 - ours, and it must not end the others
                _LOG.exception("%s: connection ended: our mistake", _peer(socket_stream))
            finally:
                self._by_movement.pop(connection, None)
                counts.open -= 1

    def _make_room(self) -> None:
        """Let the connection go that has moved nothing for the longest time, if there are many."""
        if self.counts.open >= self._most and self._by_movement:
            silent = next(iter(self._by_movement))
            del self._by_movement[silent]
            silent.cancel()
            self.counts.refused[FULL] += 1

    async def _carry(
        self,
        socket_stream: trio.SocketStream,
        node_id: int | None,
        connection: trio.CancelScope,
    ) -> None:
        counts = self.counts
        self._moved(connection)
        client = await self._let_in(socket_stream)
        if client is None:
            counts.refused[HANDSHAKE] += 1
            return
        names = None if self._forwarding is None else self._forwarding.places
        if isinstance(names, BrokerNames):
            node_id = names.node_of(_NAMED.get())
        try:
            broker, site, changed = await self._reach.find(node_id)
        except NoBroker as refused:
            counts.refused[refused.reason] += 1
            return
        counts.carried += 1
        try:
            async with broker, background_tasks() as tasks:
                moved = partial(self._moved, connection)
                if changed.is_set() or self._forwarding is None:
                    tasks.start_soon(self._end_with_site, changed, connection)
                    await carry(client, broker, self._patience, moved)
                else:
                    host = _peer(socket_stream).rpartition(":")[0]
                    forwarded = ForwardedConnection(
                        client,
                        broker,
                        self._forwarding,
                        moved,
                        host,
                        wants_login=self._clusters[site].security.sasl is not None,
                    )
                    tasks.start_soon(self._finish_with_site, changed, forwarded)
                    await forwarded.carry()
        finally:
            if client is not socket_stream:
                await trio.aclose_forcefully(client)

    def _moved(self, connection: trio.CancelScope) -> None:
        self._by_movement.pop(connection, None)
        self._by_movement[connection] = None

    async def _end_with_site(self, changed: trio.Event, connection: trio.CancelScope) -> None:
        await changed.wait()
        self.counts.moved += 1
        connection.cancel()

    async def _finish_with_site(self, changed: trio.Event, forwarded: ForwardedConnection) -> None:
        await changed.wait()
        self.counts.moved += 1
        await forwarded.finish()

    async def _let_in(self, socket_stream: trio.SocketStream) -> trio.abc.Stream | None:
        """Return the client's connection in the clear, None for one that cannot agree on TLS."""
        if self._keys is None:
            return socket_stream
        context = self._keys.current()
        context.sni_callback = _note_name
        stream = trio.SSLStream(socket_stream, context, server_side=True, https_compatible=True)
        try:
            with trio.fail_after(HANDSHAKE_TIMEOUT_S):
                await stream.do_handshake()
        except (trio.BrokenResourceError, trio.TooSlowError) as error:
            _LOG.debug("%s: TLS: %s", _peer(socket_stream), error.__cause__ or error)
            return None
        return stream


def told_exposure(configuration: Configuration) -> Iterator[str]:
    """Yield a warning where clients would show in the clear what brokers are shown by TLS."""
    bootstrap = configuration.failover.bootstrap
    names = [each.name for each in configuration.clusters.values() if each.security.tls is not None]
    if bootstrap is not None and bootstrap.tls is None and names:
        yield (
            f"failover.bootstrap.tls is missing, and {' and '.join(names)} speak TLS: what clients "
            "say to this endpoint, passwords included, can be read on the way"
        )


def _note_name(_: object, name: str | None, __: ssl.SSLContext) -> None:
    """Keep the name for the task that shakes hands: it is called in that one."""
    _NAMED.set(name)


def _peer(stream: trio.SocketStream) -> str:
    try:
        host, port, *_ = stream.socket.getpeername()
    except OSError:
        return "a client that has left"
    return f"{in_brackets(host)}:{port}"


async def serve_bootstrap(
    configuration: Configuration,
    *,
    task_status: trio.TaskStatus[tuple[int, int]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until cancelled; report the ports of the listener and of the metrics.

    Each set of topics that has a listener in the file is served; the port is that of the first.
    Raises AddressInUse, and ConfigurationError where the file has no endpoint.
    """
    by_set = {
        name: of_set
        for name, of_set in configuration.by_set().items()
        if of_set.failover.bootstrap is not None
    }
    if not by_set:
        raise ConfigurationError(
            f"{configuration.file}: failover.bootstrap.listen is missing: it says where clients "
            "reach the endpoint"
        )
    allow_many_files()
    for warning in told_exposure(configuration):
        _LOG.warning("%s", warning)
    metrics, followed = configuration.metrics, {name: FollowedSite() for name in by_set}
    counts: dict[str, tuple[EndpointCollector]] = {}
    async with background_tasks() as tasks:
        ports: list[int] = []
        for name, of_set in by_set.items():
            counts[name], port = await tasks.start(_serve_set, of_set, followed[name])
            ports.append(port)
        registry = program_registry("failover-bootstrap")
        registry.register(SetsCollector(counts))
        metrics_port = await tasks.start(
            partial(
                serve_metrics,
                metrics.host,
                metrics.bootstrap_port,
                ready=lambda: all(one.answer.site is not None for one in followed.values()),
                registry=registry,
                door=metrics.door,
            )
        )
        address = f"{metrics.door.scheme}://{metrics.host}:{metrics_port}/metrics"
        _LOG.info("metrics at %s", address)
        task_status.started((ports[0], metrics_port))
        await trio.sleep_forever()


async def _serve_set(
    configuration: Configuration,
    followed: FollowedSite,
    *,
    task_status: trio.TaskStatus[tuple[tuple[EndpointCollector], int]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve clients of one set until cancelled; report what is counted, and the listener's port.

    Raises AddressInUse.
    """
    bootstrap = configuration.failover.bootstrap
    assert bootstrap is not None, "it was looked for"
    follower = SiteFollower(configuration, followed)
    async with (
        _forwarding(configuration, followed, follower) as forwarding,
        background_tasks() as tasks,
    ):
        endpoint = Endpoint(configuration, bootstrap, followed, forwarding)
        tasks.start_soon(keep_at_work, follower.run, FaultNote("following the active site"))
        key = endpoint_key(configuration.topic_set)
        listeners = await _listen(f"{key}.listen", bootstrap.listen)
        if forwarding is not None:
            host, _ = bootstrap.listen
            for node_id, port in enumerate(bootstrap.forward.ports if bootstrap.forward else ()):
                there = await _listen(f"{key}.forward.ports", (host, port))
                serve = partial(endpoint.serve_client, node_id=node_id)
                tasks.start_soon(trio.serve_listeners, serve, there)
        host, port = bootstrap.listen[0], int(listeners[0].socket.getsockname()[1])
        name = configuration.topic_set
        of_set = "" if name is None else f" of the set {name}"
        _LOG.info("clients reach the active site%s at %s:%d", of_set, host, port)
        task_status.started(((endpoint.counts,), port))
        await trio.serve_listeners(endpoint.serve_client, listeners)


@asynccontextmanager
async def _forwarding(
    configuration: Configuration, followed: FollowedSite, follower: SiteFollower
) -> AsyncIterator[Forwarding | None]:
    """Yield what forwarded connections share, None where clients are only shown the way."""
    bootstrap = configuration.failover.bootstrap
    forward = None if bootstrap is None else bootstrap.forward
    if forward is None:
        yield None
        return
    async with open_clusters(configuration) as clusters:
        yield Forwarding(
            followed=followed,
            ask_witness=follower.ask,
            ask_fence=FenceLooks(configuration, clusters).closed,
            places=(
                BrokerPorts(forward.host, forward.ports)
                if forward.ports
                else BrokerNames(forward.host, forward.port)
            ),
            budget=ByteBudget(forward.max_held_bytes),
            brokers=BrokerAddresses(configuration.clusters, clusters),
            members=follower.members,
            counts=ForwardingCounts(),
        )


async def _listen(key: str, address: Address) -> list[trio.SocketListener]:
    """Listen there, by this key of the configuration. Raises AddressInUse."""
    host, port = address
    try:
        return await trio.open_tcp_listeners(port, host=host)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise AddressInUse(f"{key}: cannot listen on {host}:{port}: {reason}") from error
