"""The coordinator over a real log: nothing is told or marked before it is safe, and ends go on."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.led_partition import TRANSACTION_STATE
from broker.log.config import LogConfig
from broker.log.log_manager import LogManager
from broker.metadata_cache import BrokerEndpoint, MetadataCache, PartitionView
from broker.replication.in_sync import IsrRules
from broker.replication.leadership import Leadership
from broker.replication.partition import Partition, Surroundings
from broker.transactions.coordinator import InitProducer, TransactionCoordinator
from broker.transactions.decisions import Producer
from broker.transactions.ending import EndAsked
from broker.transactions.marking import TransactionEnd
from tests.broker.groups.rig import BROKER, FOLLOWER, TOPIC_ID, TrioClock
from tests.broker.rig import config
from wire.errors import ErrorCode
from wire.record_batch import Record, build_batch
from wire.topic_partition import TopicPartition
from wire.transaction_state import TransactionMetadata, TransactionStatus

ID = "orders"
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
HOUR_MS = 3_600_000


@dataclass(slots=True)
class Markers:
    """Where ends are sent to; while `held_back` is there, none arrives until it is set."""

    sent: list[tuple[TransactionEnd, frozenset[TopicPartition]]] = field(default_factory=list)
    held_back: trio.Event | None = None
    answer: bool = True

    async def send(self, ended: TransactionEnd, partitions: frozenset[TopicPartition]) -> bool:
        self.sent.append((ended, partitions))
        if self.held_back is not None:
            await self.held_back.wait()
        return self.answer


@dataclass(slots=True)
class Node:
    """What the coordinator uses of its node."""

    metadata: MetadataCache
    config: Any
    clock: TrioClock = field(default_factory=TrioClock)
    next_id: int = 1_000

    async def next_producer_id(self) -> int:
        self.next_id += 1
        return self.next_id


@dataclass(slots=True)
class Rig:
    """One broker that leads the only partition of `__transaction_state`."""

    node: Node
    markers: Markers
    transactions: TransactionCoordinator
    partition: Partition

    def set_in_sync(self, *brokers: int) -> None:
        known = self.partition.leadership
        self.partition.take(replace(known, isr=brokers, partition_epoch=known.partition_epoch + 1))

    def lead_again(self) -> None:
        """Let another broker lead, and then this one: it reads its log anew."""
        self.transactions.on_resigned(TRANSACTION_STATE, 0)
        self.transactions.on_leader(self.partition)

    async def init(self, expected: Producer | None = None) -> Producer | ErrorCode:
        asked = InitProducer(transactional_id=ID, timeout_ms=60_000, expected=expected)
        return await self.transactions.init_producer(asked)

    async def begin(self) -> Producer:
        """Open a transaction with two partitions."""
        producer = await self.init()
        assert isinstance(producer, Producer)
        added = await self.transactions.add_partitions(ID, producer, frozenset({T0, T1}))
        assert added is ErrorCode.NONE
        return producer

    async def end(
        self, producer: Producer, *, is_commit: bool, bumps_epoch: bool = False
    ) -> Producer | ErrorCode:
        asked = EndAsked(producer=producer, is_commit=is_commit, bumps_epoch=bumps_epoch)
        return await self.transactions.end(ID, asked)

    async def status(self) -> TransactionStatus:
        await self.wait_loaded()
        found = await self.transactions.describe(ID)
        assert isinstance(found, TransactionMetadata)
        return found.status

    async def wait_loaded(self) -> None:
        while await self.transactions.list_all() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            await trio.lowlevel.checkpoint()


@asynccontextmanager
async def open_rig(folder: Path, **settings: Any) -> AsyncIterator[Rig]:
    metadata = MetadataCache("cluster")
    view = PartitionView(index=0, leader=BROKER, leader_epoch=0, replicas=(BROKER,), isr=(BROKER,))
    metadata.put_partitions(TRANSACTION_STATE, TOPIC_ID, [view])
    metadata.set_brokers(BROKER, [BrokerEndpoint(broker_id=BROKER, host="h", port=1)])
    node, markers = Node(metadata, config(**settings)), Markers()
    logs = LogManager.open(
        [folder], broker_id=BROKER, cluster_id="c", config_of=lambda _: LogConfig(), now_ms=0
    )
    log = logs.create(TRANSACTION_STATE, 0, topic_id=TOPIC_ID.bytes, config=LogConfig(), now_ms=0)
    leadership = Leadership(
        topic=TRANSACTION_STATE,
        index=0,
        topic_id=TOPIC_ID,
        controller_epoch=1,
        leader=BROKER,
        leader_epoch=4,
        isr=(BROKER,),
        replicas=(BROKER, FOLLOWER),
        partition_epoch=0,
    )
    rules = IsrRules(lag_time_max_ms=10**9, is_alive=lambda _: True)
    partition = Partition(
        BROKER, log, leadership, node.clock, surroundings=Surroundings(rules=rules)
    )
    partition.take(leadership)
    transactions = TransactionCoordinator(node, markers)
    async with trio.open_nursery() as nursery:
        await nursery.start(transactions.run)
        transactions.on_leader(partition)
        rig = Rig(node, markers, transactions, partition)
        await rig.wait_loaded()
        yield rig
        nursery.cancel_scope.cancel()
    logs.close()


async def test_an_end_is_marked_everywhere_and_then_complete(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        producer = await rig.begin()
        assert await rig.end(producer, is_commit=True) == producer
        await wait_all_tasks_blocked()
        ended = TransactionEnd(
            producer_id=producer.producer_id,
            producer_epoch=0,
            is_commit=True,
            coordinator_epoch=4,
        )
        assert rig.markers.sent == [(ended, frozenset({T0, T1}))]
        assert await rig.status() is TransactionStatus.COMPLETE_COMMIT


async def test_a_newer_client_is_told_its_next_epoch_and_the_markers_have_it(
    tmp_path: Path,
) -> None:
    async with open_rig(tmp_path) as rig:
        producer = await rig.begin()
        told = await rig.end(producer, is_commit=True, bumps_epoch=True)
        assert told == Producer(producer_id=producer.producer_id, epoch=1)
        await wait_all_tasks_blocked()
        [(ended, _)] = rig.markers.sent
        assert ended.producer_epoch == 1
        rig.lead_again()
        await rig.wait_loaded()
        assert await rig.end(producer, is_commit=True, bumps_epoch=True) == told
        assert await rig.end(producer, is_commit=True) is ErrorCode.PRODUCER_FENCED


async def test_nothing_is_told_or_marked_before_it_is_safe(
    tmp_path: Path,
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    async with open_rig(tmp_path) as rig:
        producer = await rig.begin()
        rig.set_in_sync(BROKER, FOLLOWER)
        with trio.move_on_after(1) as waiting:
            await rig.end(producer, is_commit=True)
        assert waiting.cancelled_caught, "a decision that a failover would take back was told"
        with trio.move_on_after(1) as waiting:
            await rig.transactions.verify(ID, producer, T0)
        assert waiting.cancelled_caught, "what rests on it was told"
        assert rig.markers.sent == []
        error = await rig.end(producer, is_commit=True)
        assert error is ErrorCode.COORDINATOR_NOT_AVAILABLE, "in the end it is to be asked again"
        rig.set_in_sync(BROKER)
        await trio.sleep(10)
        assert len(rig.markers.sent) == 1
        assert await rig.status() is TransactionStatus.COMPLETE_COMMIT


async def test_the_next_coordinator_goes_on_with_an_end(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        rig.markers.held_back = trio.Event()
        producer = await rig.begin()
        assert await rig.end(producer, is_commit=False) == producer
        await wait_all_tasks_blocked()
        rig.lead_again()
        rig.markers.held_back = None
        assert await rig.status() in {
            TransactionStatus.PREPARE_ABORT,
            TransactionStatus.COMPLETE_ABORT,
        }
        await wait_all_tasks_blocked()
        assert [ended.is_commit for ended, _ in rig.markers.sent] == [False, False]
        assert await rig.status() is TransactionStatus.COMPLETE_ABORT


async def test_a_replaced_coordinator_completes_nothing(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        rig.markers.answer = False
        producer = await rig.begin()
        await rig.end(producer, is_commit=True)
        await wait_all_tasks_blocked()
        assert await rig.status() is TransactionStatus.PREPARE_COMMIT


async def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced(
    tmp_path: Path,
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    async with open_rig(tmp_path) as rig:
        producer = await rig.begin()
        await trio.sleep(50)
        assert await rig.status() is TransactionStatus.ONGOING
        await trio.sleep(25)
        assert await rig.status() is TransactionStatus.COMPLETE_ABORT
        [(ended, _)] = rig.markers.sent
        assert (ended.is_commit, ended.producer_epoch) == (False, producer.epoch + 1)
        assert await rig.end(producer, is_commit=True) is ErrorCode.PRODUCER_FENCED


async def test_ids_are_forgotten_when_they_have_rested_long_enough(
    tmp_path: Path,
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    async with open_rig(tmp_path, transactional_id_expiration_ms=10 * HOUR_MS) as rig:
        await rig.init()
        await trio.sleep(9 * 3_600)
        assert await rig.status() is TransactionStatus.EMPTY
        await trio.sleep(2 * 3_600)
        assert await rig.transactions.describe(ID) is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        rig.lead_again()
        await rig.wait_loaded()
        assert await rig.transactions.describe(ID) is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


async def test_what_cannot_be_asked_here_is_said(tmp_path: Path) -> None:
    async with open_rig(tmp_path, transaction_max_timeout_ms=1_000) as rig:
        transactions = rig.transactions
        too_long = InitProducer(transactional_id=ID, timeout_ms=1_001)
        assert await transactions.init_producer(too_long) is ErrorCode.INVALID_TRANSACTION_TIMEOUT
        for name in ("", "x" * 40_000):
            asked = InitProducer(transactional_id=name, timeout_ms=1)
            assert await transactions.init_producer(asked) is ErrorCode.INVALID_REQUEST
        rig.lead_again()
        assert await transactions.describe(ID) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        transactions.on_resigned(TRANSACTION_STATE, 0)
        assert await transactions.describe(ID) is ErrorCode.NOT_COORDINATOR


async def test_a_record_that_cannot_be_read_is_left_out_by_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_rig(tmp_path) as rig:
        await rig.init()
        garbage = build_batch([Record(0, 0, b"\0\0\0\1x", b"\0\7", ())])
        rig.partition.append_own(garbage)
        rig.lead_again()
        assert await rig.status() is TransactionStatus.EMPTY
        assert "__transaction_state-0 offset 1 cannot be read and is left out" in caplog.text


async def test_a_group_of_producers_each_gets_an_id_of_its_own(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        given = [
            await rig.transactions.init_producer(
                InitProducer(transactional_id=f"x{number}", timeout_ms=1)
            )
            for number in range(3)
        ]
        ids = {one.producer_id for one in given if isinstance(one, Producer)}
        assert len(ids) == 3
