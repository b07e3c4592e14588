"""A connection to a broker of the active site, for one client.

A client that is refused waits longer each time before it comes again, up to some seconds. So while
no broker of the site answers, as when it is lost, a client is held for a while: until one answers,
or another site is active. Where others of the site answer, one broker alone is away, and the client
is let go at once: its cluster tells it who leads instead.
"""

import random
import ssl
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

import trio

from failover.bootstrap.active_site import FollowedSite
from failover.bootstrap.endpoint_metrics import NO_SITE, UNREACHABLE
from failover.bootstrap.relay import reach_broker
from failover.bootstrap.sites.broker_addresses import BrokerAddresses
from failover.bootstrap.sites.shared_look import SharedLook
from runtime.configuration.config import ClusterConfig
from runtime.process.fault_note import FaultNote
from runtime.process.tasks import background_tasks
from wire.net.errors import AuthenticationFailed, BrokerUnreachable
from wire.net.tls_context import RenewedContext, make_context, reason_of
from wire.net.transport import Address

HELD_FOR_S: Final = 5.0
"""Less than clients wait for a first answer: of librdkafka and franz-go these are 10 s."""
TRY_AGAIN_S: Final = 0.5


class NoBroker(Exception):
    """A client for which there is no broker; `reason` is one of the metric's."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ReachedBroker(NamedTuple):
    """A connection to a broker of a site."""

    broker: trio.abc.Stream
    site: str
    changed: trio.Event
    """Set once another site is active."""


class BrokerReach:
    """Reaches brokers of whichever site is active."""

    def __init__(
        self,
        clusters: Mapping[str, ClusterConfig],
        followed: FollowedSite,
        addresses: BrokerAddresses | None,
    ) -> None:
        """`addresses` are those of single brokers, None where any broker will do."""
        self._clusters = clusters
        self._followed = followed
        self._addresses = addresses
        self._answering = SharedLook(self._answers)
        self._contexts: dict[str, RenewedContext] = {}
        self._faults = FaultNote("brokers of the active site")

    async def find(self, node_id: int | None) -> ReachedBroker:
        """Return a connection to this broker, or to any where none in particular is meant.

        Raises NoBroker, for a site that does not answer only after HELD_FOR_S.
        """
        deadline = trio.current_time() + HELD_FOR_S
        while True:
            site, changed = self._followed.answer.site, self._followed.changed
            if site is not None:
                try:
                    broker = await self._reach_until(changed, site, node_id)
                except AuthenticationFailed as fault:
                    self._faults.note(f"{site}: {fault}", site)
                    raise NoBroker(UNREACHABLE) from fault
                except BrokerUnreachable as fault:
                    self._faults.note(f"{site}: {fault}", site)
                else:
                    if broker is None:
                        continue
                    self._faults.clear(site)
                    return ReachedBroker(broker, site, changed)
            if changed.is_set():
                continue
            with trio.move_on_at(deadline) as limit:
                if site is not None and await self._answering.at(site):
                    raise NoBroker(UNREACHABLE)
                await self._wait_answer(site, changed)
            if limit.cancelled_caught:
                raise NoBroker(NO_SITE if site is None else UNREACHABLE)

    async def _wait_answer(self, site: str | None, changed: trio.Event) -> None:
        """Return once a broker of the site answers, or another site is active."""
        while not changed.is_set():
            with trio.move_on_after(TRY_AGAIN_S):
                await changed.wait()
            if site is not None and await self._answering.at(site):
                return

    async def _answers(self, site: str) -> bool:
        """Tell whether somebody takes connections where brokers of the site are."""
        try:
            stream = await reach_broker(self._clusters[site].bootstrap, None)
        except BrokerUnreachable:
            return False
        await trio.aclose_forcefully(stream)
        return True

    async def _reach_until(
        self, changed: trio.Event, site: str, node_id: int | None
    ) -> trio.abc.Stream | None:
        """Return a connection; None once another site is active, and raises what reaching raises.

        A lost site may take long to say nothing.
        """
        broker = None
        try:
            async with background_tasks() as tasks:
                with trio.CancelScope() as scope:
                    tasks.start_soon(_cancel_with, changed, scope)
                    broker = await self._reach(site, node_id)
        except BaseException:
            if broker is not None:
                await trio.aclose_forcefully(broker)
            raise
        return broker

    async def _reach(self, site: str, node_id: int | None) -> trio.abc.Stream:
        cluster = self._clusters[site]
        if self._addresses is None:
            addresses: list[Address] = list(cluster.bootstrap)
            random.shuffle(addresses)
            return await reach_broker(addresses, self._context(cluster))
        addresses = await self._addresses.find(site, node_id)
        try:
            return await reach_broker(addresses, self._context(cluster))
        except BrokerUnreachable:
            self._addresses.forget(site)
            raise

    def _context(self, cluster: ClusterConfig) -> ssl.SSLContext | None:
        """Return how TLS is spoken to the cluster's brokers: as nobody (see `relay`).

        Raises AuthenticationFailed naming a file that cannot be used.
        """
        tls = cluster.security.tls
        if tls is None:
            return None
        if cluster.name not in self._contexts:
            as_nobody = replace(tls, certificate=None, key=None, key_password=None, keystore=None)
            try:
                renewed = RenewedContext(
                    partial(make_context, as_nobody), tls.ca, *as_nobody.store_files
                )
            except OSError as fault:
                why = reason_of(fault) if isinstance(fault, ssl.SSLError) else str(fault)
                raise AuthenticationFailed(f"clusters.{cluster.name}.ssl.ca: {why}") from fault
            self._contexts[cluster.name] = renewed
        return self._contexts[cluster.name].current()


async def _cancel_with(changed: trio.Event, scope: trio.CancelScope) -> None:
    await changed.wait()
    scope.cancel()
