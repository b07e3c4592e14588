"""A coordinator over a real partition log in a temporary folder, without server or ZooKeeper."""

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import trio

from broker.ages import Ages
from broker.apis import list_groups
from broker.config import BrokerConfig
from broker.context import Call, Node
from broker.groups.coordinator import GroupCoordinator
from broker.led_partition import CONSUMER_OFFSETS
from broker.log.config import LogConfig
from broker.log.log_manager import LogManager
from broker.log.results import StorageError
from broker.metadata_cache import BrokerEndpoint, MetadataCache, PartitionView
from broker.replication.in_sync import IsrRules
from broker.replication.leadership import Leadership
from broker.replication.partition import Partition, Surroundings
from wire.errors import ErrorCode
from wire.messages.list_groups import ListGroupsRequest
from wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

BROKER = 1
FOLLOWER = 2
TOPIC_ID = UUID(int=7)
WALL_MS = 1_700_000_000_000
TOPIC = "orders"


@dataclass(slots=True)
class TrioClock:
    """Both clocks on trio's, which a test may let jump."""

    set_by_ms: int = 0
    """By how much somebody has set the wall clock."""
    _ages: Ages = field(default_factory=Ages)

    def now_ms(self) -> int:
        return WALL_MS + self.monotonic_ms()

    def wall_ms(self) -> int:
        return self.now_ms() + self.set_by_ms

    def age_ms(self) -> int:
        return self._ages.at(self.now_ms(), self.wall_ms())

    def monotonic_ms(self) -> int:
        return int(trio.current_time() * 1000)


@dataclass(slots=True)
class LoneNode:
    """A node that has nothing but what the group coordinator and its handlers use."""

    config: BrokerConfig
    clock: TrioClock = field(default_factory=TrioClock)
    metadata: MetadataCache = field(default_factory=lambda: MetadataCache("cluster"))
    broker_id: int = BROKER
    created: list[str] = field(default_factory=list)
    creation_error: ErrorCode = ErrorCode.NONE
    _groups: GroupCoordinator | None = None

    @property
    def groups(self) -> GroupCoordinator:
        if self._groups is None:
            self._groups = GroupCoordinator(self)
        return self._groups

    async def wait_metadata(self) -> None:
        await trio.lowlevel.checkpoint()

    async def ensure_internal_topic(self, name: str) -> ErrorCode:
        await trio.lowlevel.checkpoint()
        self.created.append(name)
        return self.creation_error


@dataclass(slots=True)
class Rig:
    """One node that leads the only partition of `__consumer_offsets`."""

    node: LoneNode
    partition: Partition

    @property
    def groups(self) -> GroupCoordinator:
        return self.node.groups

    def call(self, api_version: int) -> Call:
        """Return what surrounds a request of this version."""
        return Call(
            node=cast("Node", self.node),
            api_version=api_version,
            client_id="client",
            client_host="127.0.0.1",
        )

    def set_in_sync(self, *brokers: int) -> None:
        """Let these brokers be in sync; another one than this holds the high watermark back."""
        known = self.partition.leadership
        self.partition.take(replace(known, isr=brokers, partition_epoch=known.partition_epoch + 1))

    async def group_states(self) -> Counter[str]:
        """Return how many groups are in each state, as ListGroups tells it."""
        answer = await list_groups.handle(ListGroupsRequest(), self.call(5))
        assert answer.error_code == ErrorCode.NONE
        return Counter(group.group_state for group in answer.groups)

    async def wait_loaded(self) -> None:
        """Wait until the groups have been loaded."""
        while await self.groups.ask_all(_nothing) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            await trio.lowlevel.checkpoint()


class FailingOnce:
    """A led partition whose disk cannot be read the first time."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._has_failed = False

    def __getattr__(self, name: str) -> object:
        return getattr(self._partition, name)

    def read(self, offset: int, max_bytes: int) -> bytes:
        if not self._has_failed:
            self._has_failed = True
            raise StorageError(Path("/disk"), "input/output error")
        return self._partition.read(offset, max_bytes)


def _nothing(*_: object) -> list[Any]:
    return []


@asynccontextmanager
async def open_rig(
    folder: Path, settings: Mapping[str, Any] | None = None, *, is_led: bool = True
) -> AsyncIterator[Rig]:
    """Run a coordinator over the log in `folder`; opening again is a restart of the broker."""
    folder.mkdir(exist_ok=True)
    logs = LogManager.open(
        [folder],
        broker_id=BROKER,
        cluster_id="cluster",
        config_of=lambda _: LogConfig(),
        now_ms=WALL_MS,
    )
    log = logs.get(CONSUMER_OFFSETS, 0) or logs.create(
        CONSUMER_OFFSETS, 0, topic_id=TOPIC_ID.bytes, config=LogConfig(), now_ms=WALL_MS
    )
    leadership = Leadership(
        topic=CONSUMER_OFFSETS,
        index=0,
        topic_id=TOPIC_ID,
        controller_epoch=1,
        leader=BROKER,
        leader_epoch=0,
        isr=(BROKER,),
        replicas=(BROKER, FOLLOWER),
        partition_epoch=0,
    )
    chosen = {"broker_id": BROKER, "zookeeper_connect": "localhost:1", **(settings or {})}
    node = LoneNode(config=BrokerConfig(**chosen))
    rules = IsrRules(lag_time_max_ms=30_000, is_alive=lambda broker: broker == BROKER)
    partition = Partition(
        BROKER, log, leadership, node.clock, surroundings=Surroundings(rules=rules)
    )
    partition.take(leadership)
    _announce(node.metadata)
    async with trio.open_nursery() as nursery:
        await nursery.start(node.groups.run)
        rig = Rig(node=node, partition=partition)
        if is_led:
            node.groups.on_leader(partition)
            await rig.wait_loaded()
        yield rig
        nursery.cancel_scope.cancel()
    logs.close()


def _announce(metadata: MetadataCache) -> None:
    view = PartitionView(index=0, leader=BROKER, leader_epoch=0, replicas=(BROKER,), isr=(BROKER,))
    metadata.set_brokers(BROKER, [BrokerEndpoint(broker_id=BROKER, host="kafka", port=9092)])
    metadata.put_partitions(CONSUMER_OFFSETS, TOPIC_ID, [view])
    metadata.put_partitions(TOPIC, UUID(int=8), [view, replace(view, index=1)])


def commit_request(
    group_id: str, offset: int, *, topic: str = TOPIC, index: int = 0
) -> OffsetCommitRequest:
    """Return a commit from outside the group."""
    partition = OffsetCommitRequestPartition(
        partition_index=index, committed_offset=offset, committed_metadata="note"
    )
    return OffsetCommitRequest(
        group_id=group_id, topics=(OffsetCommitRequestTopic(name=topic, partitions=(partition,)),)
    )
