"""The controller's word to the brokers: one queue per broker, in order, until it has been heard."""

import logging
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import trio

from broker.controller.announcements import Announcement, ControlRequest
from broker.controller.cluster import PartitionAndReplica
from broker.zookeeper.tree import BrokerRegistration
from wire.errors import ErrorCode
from wire.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from wire.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from wire.messages.update_metadata import UpdateMetadataResponse
from wire.net.connecting import ConnectionSettings
from wire.net.errors import NetworkFault
from wire.net.pool import ConnectionPool

_LOG = logging.getLogger(__name__)

RETRY_S: Final = 0.1

ControlResponse = LeaderAndIsrResponse | StopReplicaResponse | UpdateMetadataResponse


class Deposed(Exception):
    """Another controller rules: everything this one still wants to do is void."""


class AnnouncementDelivery:
    """The announcements of one decision: complete when each was heard, or its broker is gone."""

    __slots__ = ("_complete", "_open")

    def __init__(self) -> None:
        self._open = 0
        self._complete = trio.Event()

    def expect(self) -> None:
        """Count one more announcement."""
        self._open += 1

    def arrived(self) -> None:
        """Note that one was heard, or never will be."""
        self._open -= 1
        if not self._open:
            self._complete.set()

    async def wait(self) -> None:
        """Wait until all are heard; the caller owns the timeout."""
        if self._open:
            await self._complete.wait()


class _Letter(NamedTuple):
    request: ControlRequest
    delivery: AnnouncementDelivery


@dataclass(slots=True)
class _Channel:
    broker: BrokerRegistration
    """As it was last seen: in one life, a broker may come to be reached elsewhere."""
    queue: trio.MemorySendChannel[_Letter]
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)


class BrokerChannels:
    """Queues to the live brokers.

    on_deleted  hears which copies a broker has deleted
    on_failed   hears which copies a broker was told of, and which of them its disk does not give
    """

    def __init__(
        self,
        nursery: trio.Nursery,
        connections: ConnectionSettings,
        on_deleted: Callable[[frozenset[PartitionAndReplica]], None],
        on_failed: Callable[[frozenset[PartitionAndReplica], frozenset[PartitionAndReplica]], None],
    ) -> None:
        self._nursery = nursery
        self._pool = ConnectionPool(nursery, connections)
        self._on_deleted = on_deleted
        self._on_failed = on_failed
        self._channels: dict[int, _Channel] = {}

    def follow(self, live: Mapping[int, BrokerRegistration]) -> None:
        """Open a queue to each broker new or reborn, and drop those to brokers that are gone."""
        for broker, channel in list(self._channels.items()):
            if broker not in live or live[broker].epoch != channel.broker.epoch:
                channel.scope.cancel()
                del self._channels[broker]
        for broker, registration in live.items():
            if broker in self._channels:
                self._channels[broker].broker = registration
            else:
                # Unbounded: what is queued describes one cluster, and a broker that takes nothing
                # loses its session, and its queue with it.
                send, receive = trio.open_memory_channel[_Letter](math.inf)
                channel = self._channels[broker] = _Channel(registration, send)
                self._nursery.start_soon(self._deliver, channel, receive)

    def send(self, announcements: Iterable[Announcement]) -> AnnouncementDelivery:
        """Queue the requests; a broker that is gone by now needs none."""
        delivery = AnnouncementDelivery()
        for announcement in announcements:
            channel = self._channels.get(announcement.broker_id)
            if channel is not None:
                delivery.expect()
                channel.queue.send_nowait(_Letter(announcement.request, delivery))
        return delivery

    async def _deliver(
        self, channel: _Channel, letters: trio.MemoryReceiveChannel[_Letter]
    ) -> None:
        with channel.scope:
            async for request, delivery in letters:
                try:
                    answer = await self._ask(channel, request)
                finally:
                    delivery.arrived()
                self._take(channel.broker.broker_id, request, answer)
        while letters.statistics().current_buffer_used:
            letters.receive_nowait().delivery.arrived()

    def _take(self, broker: int, request: ControlRequest, answer: ControlResponse) -> None:
        if isinstance(request, StopReplicaRequest) and isinstance(answer, StopReplicaResponse):
            self._on_deleted(_deleted(broker, request, answer))
        if isinstance(request, LeaderAndIsrRequest) and isinstance(answer, LeaderAndIsrResponse):
            self._on_failed(*_failed(broker, request, answer))

    async def _ask(self, channel: _Channel, request: ControlRequest) -> ControlResponse:
        """Ask until the broker has obeyed. Raises Deposed when it obeys somebody newer."""
        while True:
            broker = channel.broker
            try:
                connection = await self._pool.connection((broker.host, broker.port))
                answer: ControlResponse = await connection.request(request)
            except NetworkFault as fault:
                _LOG.debug("broker %s: %s; trying again", broker.broker_id, fault)
                await trio.sleep(RETRY_S)
                continue
            if answer.error_code == ErrorCode.STALE_CONTROLLER_EPOCH:
                raise Deposed(f"broker {broker.broker_id} obeys a newer controller")
            if answer.error_code == ErrorCode.NONE:
                return answer
            await trio.sleep(RETRY_S)


def _deleted(
    broker: int, request: StopReplicaRequest, answer: StopReplicaResponse
) -> frozenset[PartitionAndReplica]:
    """Return the copies that the broker has deleted."""
    failed = {
        (error.topic_name, error.partition_index)
        for error in answer.partition_errors
        if error.error_code != ErrorCode.NONE
    }
    return frozenset(
        PartitionAndReplica(topic.topic_name, state.partition_index, broker)
        for topic in request.topic_states
        for state in topic.partition_states
        if state.delete_partition and (topic.topic_name, state.partition_index) not in failed
    )


def _failed(
    broker: int, request: LeaderAndIsrRequest, answer: LeaderAndIsrResponse
) -> tuple[frozenset[PartitionAndReplica], frozenset[PartitionAndReplica]]:
    """Return the copies that the broker was told of, and those whose disk has failed."""
    names = {topic.topic_id: topic.topic_name for topic in request.topic_states}
    told = frozenset(
        PartitionAndReplica(topic.topic_name, state.partition_index, broker)
        for topic in request.topic_states
        for state in topic.partition_states
    )
    failed = frozenset(
        PartitionAndReplica(names[topic.topic_id], error.partition_index, broker)
        for topic in answer.topics
        for error in topic.partition_errors
        if error.error_code == ErrorCode.KAFKA_STORAGE_ERROR and topic.topic_id in names
    )
    return told, failed
