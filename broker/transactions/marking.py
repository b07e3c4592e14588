"""The ends of transactions: markers in each partition, written by whoever leads it."""

import logging
from collections.abc import Iterable, Mapping
from typing import Final, Protocol

import trio

from broker.groups.coordinator import GroupCoordinator
from broker.led_partition import CONSUMER_OFFSETS, NotLeader
from broker.log.markers import Marker, build_marker
from broker.log.results import StorageError
from broker.metadata_cache import BrokerEndpoint, MetadataCache
from broker.replication.partition import OwnBatchRefused, Partition
from wire.errors import ErrorCode
from wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from wire.net.errors import NetworkFault
from wire.net.pool import ConnectionPool
from wire.topic_partition import TopicPartition
from wire.transaction_state import by_topic
from wire.values import frozen

_LOG = logging.getLogger(__name__)

RETRY_S: Final = 0.1
COMMITTED_WITHIN_S: Final = 10.0
"""How long the replicas have; a marker that is written twice ends nothing twice."""
ASKED_WITHIN_S: Final = 5.0
"""A leader that is cut off may be one no longer: then another one is asked. The request is not
taken back: asked again, the same leader gets both in their order, on the same connection."""
REPLACED: Final = frozenset(
    {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED}
)
"""A later coordinator has spoken: whatever is left to do is its."""


@frozen
class TransactionEnd:
    """How a producer's transaction ends, in the word of a coordinator of that epoch."""

    producer_id: int
    producer_epoch: int
    is_commit: bool
    coordinator_epoch: int


class Leaders(Protocol):
    """The part of a node that writes markers."""

    @property
    def broker_id(self) -> int: ...
    @property
    def clock(self) -> "WallClock": ...
    @property
    def metadata(self) -> MetadataCache: ...
    @property
    def groups(self) -> GroupCoordinator: ...
    def led(self, topic: str, index: int) -> Partition | ErrorCode: ...


class WallClock(Protocol):
    """The time of day."""

    def wall_ms(self) -> int: ...


async def write_markers(
    node: Leaders, ended: TransactionEnd, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    """Write an end into partitions led here; return each one's outcome once it is committed.

    Positions that a group has committed in the transaction count, or are forgotten, in the same
    step in which the marker is written.
    """
    outcomes: dict[TopicPartition, ErrorCode] = {}
    waiting: list[tuple[TopicPartition, Partition, int]] = []
    for name in partitions:
        led = node.led(*name)
        written = led if isinstance(led, ErrorCode) else _write(node, ended, led)
        if isinstance(led, ErrorCode) or isinstance(written, ErrorCode):
            assert isinstance(written, ErrorCode)
            outcomes[name] = written
        else:
            waiting.append((name, led, written))
    deadline = trio.current_time() + COMMITTED_WITHIN_S
    for name, led, offset in waiting:
        outcomes[name] = await _wait_committed(led, offset, deadline)
    return outcomes


def _write(node: Leaders, ended: TransactionEnd, led: Partition) -> int | ErrorCode:
    """Append one marker and return its offset."""
    is_of_groups = led.topic == CONSUMER_OFFSETS
    if is_of_groups and not node.groups.has_loaded(led.index):
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS  # what is being read might miss it
    batch = build_marker(
        Marker(is_abort=not ended.is_commit, coordinator_epoch=ended.coordinator_epoch),
        producer_id=ended.producer_id,
        producer_epoch=ended.producer_epoch,
        wall_ms=node.clock.wall_ms(),
    )
    try:
        offset = led.append_own(batch)
    except NotLeader:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    except OwnBatchRefused as refused:
        return refused.error
    except StorageError:
        return ErrorCode.KAFKA_STORAGE_ERROR
    if is_of_groups:
        node.groups.transaction_ended(
            led.index, offset, ended.producer_id, is_commit=ended.is_commit
        )
    return offset


async def _wait_committed(led: Partition, offset: int, deadline: float) -> ErrorCode:
    with trio.move_on_at(deadline):
        try:
            await led.wait_committed(offset)
        except NotLeader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        except StorageError:
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE
    return ErrorCode.REQUEST_TIMED_OUT


class MarkerSender:
    """Has ends written in all partitions of a transaction, wherever they are led."""

    def __init__(self, node: Leaders, pool: ConnectionPool) -> None:
        self._node = node
        self._pool = pool

    async def send(self, ended: TransactionEnd, partitions: frozenset[TopicPartition]) -> bool:
        """Return once every partition that is there has the marker; False when replaced."""
        left = partitions
        while True:
            left = frozenset(name for name in left if not self._is_deleted(name))
            outcomes = await self._send_once(ended, left)
            refused = [name for name, error in outcomes.items() if error in REPLACED]
            if refused:
                code = outcomes[refused[0]].name
                _LOG.warning(
                    "the end of producer %d's transaction is not written to %s: %s",
                    ended.producer_id,
                    refused[0],
                    code,
                )
                return False
            left = frozenset(name for name in left if outcomes.get(name) is not ErrorCode.NONE)
            if not left:
                return True
            with trio.move_on_after(RETRY_S):
                await self._node.metadata.wait_changed()

    def _is_deleted(self, name: TopicPartition) -> bool:
        """Say whether the controller has spoken, and not of this partition."""
        metadata = self._node.metadata
        view = metadata.topic(name.topic)
        return bool(metadata.brokers) and (view is None or name.partition not in view.partitions)

    async def _send_once(
        self, ended: TransactionEnd, partitions: frozenset[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Ask each leader once; what nobody leads, or nobody answers for, has no outcome."""
        by_leader: dict[int, list[TopicPartition]] = {}
        leaders: dict[int, BrokerEndpoint] = {}
        for name in sorted(partitions):
            leader = self._node.metadata.leader_of(*name)
            if leader is not None:
                leaders[leader.broker_id] = leader
                by_leader.setdefault(leader.broker_id, []).append(name)
        outcomes: dict[TopicPartition, ErrorCode] = {}

        async def ask(leader: BrokerEndpoint, names: list[TopicPartition]) -> None:
            if leader.broker_id == self._node.broker_id:
                outcomes.update(await write_markers(self._node, ended, names))
            else:
                outcomes.update(await self._ask(leader, ended, names))

        async with trio.open_nursery() as nursery:
            for broker_id, names in by_leader.items():
                nursery.start_soon(ask, leaders[broker_id], names)
        return outcomes

    async def _ask(
        self, leader: BrokerEndpoint, ended: TransactionEnd, names: list[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]:
        marker = WritableTxnMarker(
            producer_id=ended.producer_id,
            producer_epoch=ended.producer_epoch,
            transaction_result=ended.is_commit,
            topics=tuple(
                WritableTxnMarkerTopic(name=topic, partition_indexes=indexes)
                for topic, indexes in by_topic(frozenset(names)).items()
            ),
            coordinator_epoch=ended.coordinator_epoch,
        )
        request = WriteTxnMarkersRequest(markers=(marker,))
        with trio.move_on_after(ASKED_WITHIN_S):
            try:
                connection = await self._pool.connection((leader.host, leader.port))
                return _outcomes(await connection.request(request))
            except NetworkFault as fault:
                _LOG.debug("broker %d writes no marker: %s", leader.broker_id, fault)
        return {}


def _outcomes(answer: WriteTxnMarkersResponse) -> Mapping[TopicPartition, ErrorCode]:
    return {
        TopicPartition(topic.name, one.partition_index): ErrorCode(one.error_code)
        for result in answer.markers
        for topic in result.topics
        for one in topic.partitions
    }
