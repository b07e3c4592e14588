"""One Kafka cluster as a client sees it: ask any broker, a leader, the controller, a coordinator.

Opening does not connect: brokers that are down are found out by the request that needs them.
Faults come as plain `NetworkFault`s. Nothing is tried twice behind the caller's back, and nothing
waits for a leader or coordinator to appear: `RequestRefused` says there is none now.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, TypeVar

import trio

from wire.errors import ErrorCode
from wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from wire.net.any_answer import first_answer
from wire.net.backoff import Backoff
from wire.net.client_settings import SYSTEMS_OWN, UNSET, ClientSettings
from wire.net.connecting import ConnectionSettings
from wire.net.connection import DEFAULT_REQUEST_TIMEOUT_MS, Connection, MaySend, always
from wire.net.errors import (
    AuthenticationFailed,
    BrokerUnreachable,
    ConnectionClosed,
    NetworkFault,
    RequestRefused,
)
from wire.net.metadata import ClusterView, MetadataCache, read_metadata, with_second_opinion
from wire.net.pool import ConnectionPool
from wire.net.retries import code_of
from wire.net.security import PLAINTEXT, Security
from wire.net.tls import TlsDial
from wire.net.transport import Address, Dial, dial_tcp
from wire.net.turns import BrokerTurns, Question, question, question_of_groups
from wire.schema import Request

R = TypeVar("R")

SEVERAL_COORDINATORS_SINCE: Final = 4
"""The version of FindCoordinator that takes several groups at once, in a field of its own."""
NEWEST_METADATA: Final = 12
"""Brokers may send those who ask by a later one to their bootstrap servers (KIP-1102). We name the
cluster that we mean, also one that is closed to others."""


@asynccontextmanager
async def open_cluster(  # noqa: PLR0913 - settings, each with its default
    bootstrap: Sequence[Address],
    *,
    client_id: str,
    request_timeout_ms: int = DEFAULT_REQUEST_TIMEOUT_MS,
    name: str = "",
    security: Security = PLAINTEXT,
    dial: Dial | None = None,
    may_send: MaySend = always,
    undelivered_ms: int = SYSTEMS_OWN,
) -> AsyncIterator["Cluster"]:
    """Give a cluster whose connections live as long as the block.

    Faults say `name` before the address. `dial` is for tests: it takes the place of TCP and TLS.
    `may_send` is asked before anything is handed to a socket; its no closes the connection. What a
    broker's host has not taken after `undelivered_ms` the system takes back (`connect_socket`).
    `request_timeout_ms` is for where `security.client` has none.
    """
    client = security.client
    sockets = client.sockets(undelivered_ms)
    plain = partial(dial_tcp, settings=sockets)
    settings = ConnectionSettings(
        client_id=client_id,
        cluster_name=name,
        sasl=security.sasl,
        request_timeout_ms=client.request_timeout_ms or request_timeout_ms,
        dial=dial or (plain if security.tls is None else TlsDial(security.tls, sockets)),
        may_send=may_send,
        backoff=Backoff(pauses=client.reconnect),
    )
    try:
        async with trio.open_nursery() as nursery:
            pool = ConnectionPool(nursery, settings)
            try:
                yield Cluster(pool, bootstrap, client)
            finally:
                pool.close("the client is closed")
                nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        # The connections' tasks raise nothing but their cancellation, so the one exception that
        # is something else is what the block raised.
        causes = [each for each in group.exceptions if not isinstance(each, trio.Cancelled)]
        if len(causes) > 1:
            raise
        cause = causes[0] if causes else group.exceptions[0]
        raise cause from cause.__cause__


class Cluster:
    """Routes requests. Any number of tasks may use it at once."""

    def __init__(
        self,
        pool: ConnectionPool,
        bootstrap: Sequence[Address],
        settings: ClientSettings = UNSET,
    ) -> None:
        self._pool = pool
        self._retry = settings.retry
        self._bootstrap = tuple(bootstrap)
        self._cache = MetadataCache()
        self._turns = BrokerTurns()
        self._one_refresh = trio.Lock()
        self._failed_refreshes = 0
        self._refused: str | None = None
        self._doubted: set[int] = set()
        self._coordinators: dict[str, Address] = {}

    async def request(self, message: Request[R], *, node: int | None = None) -> R:
        """Ask one broker, or without `node` any that can be reached."""
        connection = await (self.any_connection() if node is None else self.connection(node))
        return await connection.request(message)

    async def request_controller(self, message: Request[R]) -> R:
        """Ask the controller, looked up anew each time; it may still answer NOT_CONTROLLER."""
        return await (await self.controller()).request(message)

    async def request_leader(self, topic: str, partition: int, message: Request[R]) -> R:
        """Ask a partition's leader. A fault forgets the leaders of that topic.

        An answer of NOT_LEADER_OR_FOLLOWER is for the caller to see, who then calls `forget`.
        """
        connection = await self.leader(topic, partition)
        try:
            return await connection.request(message)
        except ConnectionClosed:
            self.forget(topic)
            raise

    async def request_coordinator(self, group_id: str, message: Request[R]) -> R:
        """Ask a group's coordinator. A fault forgets it.

        An answer of NOT_COORDINATOR is for the caller to see: then `forget_coordinator`.
        """
        connection = await self.coordinator(group_id)
        try:
            return await connection.request(message)
        except ConnectionClosed:
            self.forget_coordinator(group_id)
            raise

    async def metadata(
        self, topics: Sequence[str] | None = None, *, refresh: bool = False
    ) -> ClusterView:
        """Return a snapshot with these topics, or with all; asked for anew if old or on `refresh`.

        Topics that do not exist are there with their error code. None is created by asking.
        """
        if refresh or not self._cache.is_fresh(topics, trio.current_time()):
            await self._refresh(topics, even_if_fresh=refresh)
        return self._cache.view(topics)

    async def wait_answer(self) -> None:
        """Return once any broker answers, though others hang.

        They are asked one soon after the other, and the first answer ends it. Raises
        AuthenticationFailed where none answers and some broker does not believe us, and
        BrokerUnreachable, with each reason, once none is left.
        """
        addresses = self._pool.soonest_first((*self._known(), *self._bootstrap))
        answer = await first_answer([partial(self._ask_at, address) for address in addresses])
        self._cache.learn(answer, trio.current_time(), of_all_topics=False)

    def forget(self, topic: str) -> None:
        """Drop the cached leaders of a topic, after NOT_LEADER_OR_FOLLOWER and its like."""
        self._cache.forget(topic)

    def forget_coordinator(self, group_id: str) -> None:
        """Drop the cached coordinator of a group, after NOT_COORDINATOR and its like."""
        self._coordinators.pop(group_id, None)

    async def pause(self, failures: int) -> None:
        """Wait before the next try, after so many in a row that were answered `not now`."""
        await trio.sleep(self._retry.after_s(failures))

    async def any_connection(self) -> Connection:
        """Return a connection to any broker; BrokerUnreachable, with each reason, if none is.

        Where some broker did not believe us, AuthenticationFailed.
        """
        _, connection = await self._any()
        return connection

    async def _any(self) -> tuple[Address, Connection]:
        faults: list[BrokerUnreachable] = []
        for address in self._pool.soonest_first((*self._known(), *self._bootstrap)):
            try:
                return address, await self._pool.connection(address)
            except BrokerUnreachable as fault:
                faults.append(fault)
        reasons = "; ".join(map(str, faults)) or "no bootstrap address was given"
        if any(isinstance(fault, AuthenticationFailed) for fault in faults):
            raise AuthenticationFailed(reasons)
        raise BrokerUnreachable(reasons)

    async def connection(self, node: int, lane: int = 0) -> Connection:
        """Return a connection to one broker; BrokerUnreachable if it is unknown or away.

        Each `lane` is a connection of its own.
        """
        if node not in self._cache.brokers or node in self._doubted:
            await self._refresh((), even_if_fresh=True)
            self._doubted.discard(node)
        broker = self._cache.brokers.get(node)
        if broker is None:
            raise BrokerUnreachable(f"no broker {node} in the cluster")
        try:
            return await self._pool.connection(broker.address, lane)
        except BrokerUnreachable:
            self._doubted.add(node)  # it may have come back at another address
            raise

    async def controller(self) -> Connection:
        """Return the connection to the controller; RequestRefused while there is none."""
        await self._refresh((), even_if_fresh=True)
        node = self._cache.controller_id
        if node < 0:
            raise RequestRefused("no controller", ErrorCode.BROKER_NOT_AVAILABLE)
        return await self.connection(node)

    async def leader(self, topic: str, partition: int) -> Connection:
        """Return the connection to a partition's leader.

        Raises RequestRefused with UNKNOWN_TOPIC_OR_PARTITION, LEADER_NOT_AVAILABLE or what else
        the brokers said, and BrokerUnreachable.
        """
        view = (await self.metadata((topic,))).partition(topic, partition)
        try:
            return await self.connection(view.leader)
        except BrokerUnreachable:
            self.forget(topic)
            raise

    async def coordinator(self, group_id: str) -> Connection:
        """Return the connection to a group's coordinator.

        Raises RequestRefused, with COORDINATOR_NOT_AVAILABLE while there is none, and
        BrokerUnreachable.
        """
        address = (await self.coordinators((group_id,)))[group_id]
        if isinstance(address, ErrorCode):
            raise RequestRefused(f"coordinator of group {group_id}", address)
        try:
            return await self._pool.connection(address)
        except BrokerUnreachable:
            self.forget_coordinator(group_id)
            raise

    async def coordinators(self, group_ids: Iterable[str]) -> dict[str, Address | ErrorCode]:
        """Return where each group's coordinator is, or why there is none. Raises NetworkFault.

        A caller that asks again is told by another broker, as in `_look_up`.
        """
        asked = list(dict.fromkeys(group_ids))
        # Another task may forget one of them while the others are looked up.
        places: dict[str, Address | ErrorCode] = {
            group: self._coordinators[group] for group in asked if group in self._coordinators
        }
        unknown = [group for group in asked if group not in places]
        if unknown:
            connection = await self._next_in_turn(question_of_groups(unknown))
            found = await _find_coordinators(connection, unknown)
            for group, place in found.items():
                if not isinstance(place, ErrorCode):
                    self._coordinators[group] = place
            places |= found
        return {group: places[group] for group in asked}

    async def _refresh(self, topics: Iterable[str] | None, *, even_if_fresh: bool = False) -> None:
        asked_for = None if topics is None else tuple(topics)
        failures = self._failed_refreshes
        async with self._one_refresh:
            # Whoever held the lock may have asked for the same, or found that nobody answers.
            if not even_if_fresh and self._cache.is_fresh(asked_for, trio.current_time()):
                return
            if self._failed_refreshes > failures and self._refused is not None:
                raise AuthenticationFailed(self._refused)
            if self._failed_refreshes > failures:
                raise BrokerUnreachable("no broker answered the lookup under way")
            try:
                answer = await self._look_up(asked_for)
            except NetworkFault as fault:
                self._failed_refreshes += 1
                self._refused = str(fault) if isinstance(fault, AuthenticationFailed) else None
                raise
            self._cache.learn(answer, trio.current_time(), of_all_topics=asked_for is None)

    async def _look_up(self, topics: tuple[str, ...] | None) -> ClusterView:
        """Ask another broker than the last time, if one is open.

        A broker that is cut off from its controller alone goes on to answer with what was, and one
        that has just started does not know every topic: of those that were there before, and would
        now be gone, another one is asked too.
        """
        asked = question(topics)
        connection = await self._next_in_turn(asked)
        answer = await _ask_metadata(connection, topics)
        lost = self._cache.lost(answer, of_all_topics=topics is None)
        others = self._open_others(asked)
        if not lost or not others:
            return answer
        other = await self._pool.connection(others[0])
        return with_second_opinion(answer, await _ask_metadata(other, lost))

    async def _next_in_turn(self, asked: Question) -> Connection:
        others = self._open_others(asked)
        if others:
            address, connection = others[0], await self._pool.connection(others[0])
        else:
            self._pool.prepare(self._turns.others(asked, self._known()))
            address, connection = await self._any()
        self._turns.note(asked, address)
        return connection

    async def _ask_at(self, address: Address) -> ClusterView:
        return await _ask_metadata(await self._pool.connection(address), ())

    def _open_others(self, asked: Question) -> list[Address]:
        known = self._turns.others(asked, self._known())
        return [address for address in known if self._pool.is_open(address)]

    def _known(self) -> list[Address]:
        return [broker.address for broker in self._cache.brokers.values()]


async def _ask_metadata(connection: Connection, topics: Sequence[str] | None) -> ClusterView:
    request = _metadata_request(topics)
    version = min(connection.version_of(request), NEWEST_METADATA)
    pending = await connection.send(request, version=version)
    return await pending.wait_read(read_metadata)


def _metadata_request(topics: Sequence[str] | None) -> MetadataRequest:
    return MetadataRequest(
        topics=None
        if topics is None
        else tuple(MetadataRequestTopic(name=name) for name in topics),
        allow_auto_topic_creation=False,
    )


async def _find_coordinators(
    connection: Connection, groups: Sequence[str]
) -> dict[str, Address | ErrorCode]:
    found: dict[str, Address | ErrorCode] = dict.fromkeys(groups, ErrorCode.UNKNOWN_SERVER_ERROR)
    if connection.version_of(FindCoordinatorRequest) >= SEVERAL_COORDINATORS_SINCE:
        answer = await connection.request(FindCoordinatorRequest(coordinator_keys=tuple(groups)))
        found |= {each.key: _place(each) for each in answer.coordinators}
    else:
        for group in groups:
            found[group] = _place(await connection.request(FindCoordinatorRequest(key=group)))
    return found


def _place(found: Coordinator | FindCoordinatorResponse) -> Address | ErrorCode:
    code = code_of(found.error_code)
    return (found.host, found.port) if code is ErrorCode.NONE else code
