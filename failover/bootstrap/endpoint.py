"""The endpoint: listens, carries connections to the active site, and counts."""

import logging
import random
import ssl
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Final

import trio
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from failover.bootstrap.active_site import FollowedSite, SiteFollower
from failover.bootstrap.relay import Patience, carry, reach_broker
from failover.bootstrap.the_way import NotTheWay
from runtime.configuration.bootstrap_section import BootstrapConfig
from runtime.configuration.config import ClusterConfig, Configuration, ConfigurationError
from runtime.pages.metrics import AddressInUse, serve_metrics
from runtime.pages.renewed_context import RenewedContext
from runtime.process.fault_note import FaultNote
from runtime.process.open_files import allow_many_files, most_open
from runtime.process.tasks import background_tasks
from runtime.process.unforeseen import keep_at_work
from wire.net.errors import AuthenticationFailed, BrokerUnreachable
from wire.net.tls import make_context, reason_of

_LOG = logging.getLogger(__name__)

HANDSHAKE_TIMEOUT_S: Final = 10.0
NO_SITE: Final = "no-site"
UNREACHABLE: Final = "unreachable"
NOT_THE_WAY: Final = "other-request"
FULL: Final = "full"
"""It was let go for a new one: there were as many as there may be."""
HANDSHAKE: Final = "handshake"
REASONS: Final = (NO_SITE, UNREACHABLE, NOT_THE_WAY, FULL, HANDSHAKE)


class EndpointCollector(Collector):
    """What the endpoint does, as metrics."""

    def __init__(self, followed: FollowedSite) -> None:
        self._followed = followed
        self.open = 0
        self.carried = 0
        self.moved = 0
        self.refused = dict.fromkeys(REASONS, 0)

    def collect(self) -> Iterator[Metric]:
        """Yield what is known now."""
        up = GaugeMetricFamily("failover_bootstrap_witness_up", "1 while the witness can be read")
        up.add_metric([], int(self._followed.is_witness_up))
        yield up
        site = GaugeMetricFamily(
            "failover_bootstrap_site", "1 for the site that clients are shown", labels=["site"]
        )
        if self._followed.answer.site is not None:
            site.add_metric([self._followed.answer.site], 1)
        yield site
        connections = GaugeMetricFamily(
            "failover_bootstrap_connections", "Connections that are carried now"
        )
        connections.add_metric([], self.open)
        yield connections
        for name, text, value in (
            ("failover_bootstrap_carried", "Connections carried to a broker", self.carried),
            ("failover_bootstrap_moved", "Connections ended by a switch", self.moved),
        ):
            counter = CounterMetricFamily(name, text)
            counter.add_metric([], value)
            yield counter
        refused = CounterMetricFamily(
            "failover_bootstrap_refused", "Connections that were not carried on", labels=["reason"]
        )
        for reason, count in self.refused.items():
            refused.add_metric([reason], count)
        yield refused


class Endpoint:
    """Carries the connections of one listener."""

    def __init__(
        self, configuration: Configuration, bootstrap: BootstrapConfig, followed: FollowedSite
    ) -> None:
        """Read the listener's certificate. Raises OSError, of which ssl.SSLError is one."""
        self._clusters = configuration.clusters
        self._most = most_open(bootstrap.max_connections, files_each=2)
        self._keys = None if bootstrap.tls is None else bootstrap.tls.keys()
        self._followed = followed
        self._patience = Patience()
        self._contexts: dict[str, RenewedContext] = {}
        self._brokers = FaultNote("brokers of the active site")
        self._strangers = FaultNote("clients")
        self._by_movement: dict[trio.CancelScope, None] = {}
        """The connections, the one that moved something last at the end."""
        self.counts = EndpointCollector(followed)

    async def serve_client(self, socket_stream: trio.SocketStream) -> None:
        """Carry one connection; whatever goes wrong with it ends it alone."""
        counts = self.counts
        async with socket_stream:
            self._make_room()
            counts.open += 1
            connection = trio.CancelScope()
            try:
                with connection:
                    await self._carry(socket_stream, connection)
            except NotTheWay as reason:
                counts.refused[NOT_THE_WAY] += 1
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

    async def _carry(self, socket_stream: trio.SocketStream, connection: trio.CancelScope) -> None:
        counts, followed = self.counts, self._followed
        self._moved(connection)
        site, changed = followed.answer.site, followed.changed
        if site is None:
            counts.refused[NO_SITE] += 1
            return
        client = await self._let_in(socket_stream)
        if client is None:
            counts.refused[HANDSHAKE] += 1
            return
        try:
            broker = await self._reach(self._clusters[site])
        except (BrokerUnreachable, AuthenticationFailed) as error:
            counts.refused[UNREACHABLE] += 1
            self._brokers.note(f"{site}: {error}", site)
            return
        self._brokers.clear(site)
        counts.carried += 1
        try:
            async with broker, background_tasks() as tasks:
                tasks.start_soon(self._end_with_site, changed, connection)
                moved = partial(self._moved, connection)
                await carry(client, broker, self._patience, moved)
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

    async def _let_in(self, socket_stream: trio.SocketStream) -> trio.abc.Stream | None:
        """Return the client's connection in the clear, None for one that cannot agree on TLS."""
        if self._keys is None:
            return socket_stream
        stream = trio.SSLStream(
            socket_stream, self._keys.current(), server_side=True, https_compatible=True
        )
        try:
            with trio.fail_after(HANDSHAKE_TIMEOUT_S):
                await stream.do_handshake()
        except (trio.BrokenResourceError, trio.TooSlowError) as error:
            _LOG.debug("%s: TLS: %s", _peer(socket_stream), error.__cause__ or error)
            return None
        return stream

    async def _reach(self, cluster: ClusterConfig) -> trio.abc.Stream:
        addresses = list(cluster.bootstrap)
        random.shuffle(addresses)
        return await reach_broker(addresses, self._context(cluster))

    def _context(self, cluster: ClusterConfig) -> ssl.SSLContext | None:
        """Return how TLS is spoken to the cluster's brokers: as nobody (see `relay`).

        Raises AuthenticationFailed naming a file that cannot be used.
        """
        tls = cluster.security.tls
        if tls is None:
            return None
        if cluster.name not in self._contexts:
            as_nobody = replace(tls, certificate=None, key=None, key_password=None)
            try:
                renewed = RenewedContext(partial(make_context, as_nobody), tls.ca)
            except OSError as fault:
                why = reason_of(fault) if isinstance(fault, ssl.SSLError) else str(fault)
                raise AuthenticationFailed(f"clusters.{cluster.name}.ssl.ca: {why}") from fault
            self._contexts[cluster.name] = renewed
        return self._contexts[cluster.name].current()


def _peer(stream: trio.SocketStream) -> str:
    try:
        host, port, *_ = stream.socket.getpeername()
    except OSError:
        return "a client that has left"
    return f"{host}:{port}"


async def serve_bootstrap(
    configuration: Configuration,
    *,
    task_status: trio.TaskStatus[tuple[int, int]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until cancelled; report the ports of the listener and of the metrics.

    Raises AddressInUse, and ConfigurationError where the file has no endpoint.
    """
    bootstrap = configuration.failover.bootstrap
    if bootstrap is None:
        raise ConfigurationError(
            f"{configuration.file}: failover.bootstrap.listen is missing: it says where clients "
            "reach the endpoint"
        )
    allow_many_files()
    followed = FollowedSite()
    endpoint = Endpoint(configuration, bootstrap, followed)
    registry = CollectorRegistry()
    registry.register(endpoint.counts)
    metrics = configuration.metrics
    async with background_tasks() as tasks:
        follower = SiteFollower(configuration, followed)
        tasks.start_soon(keep_at_work, follower.run, FaultNote("following the active site"))
        metrics_port = await tasks.start(
            partial(
                serve_metrics,
                metrics.host,
                metrics.bootstrap_port,
                ready=lambda: followed.answer.site is not None,
                registry=registry,
                door=metrics.door,
            )
        )
        host, port = bootstrap.listen
        try:
            listeners = await trio.open_tcp_listeners(port, host=host)
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise AddressInUse(
                f"failover.bootstrap.listen: cannot listen on {host}:{port}: {reason}"
            ) from error
        port = int(listeners[0].socket.getsockname()[1])
        _LOG.info(
            "clients reach the active site at %s:%d; metrics at %s://%s:%d/metrics",
            host,
            port,
            metrics.door.scheme,
            metrics.host,
            metrics_port,
        )
        task_status.started((port, metrics_port))
        await trio.serve_listeners(endpoint.serve_client, listeners)
