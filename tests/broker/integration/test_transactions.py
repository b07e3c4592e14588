"""Transactional producers and read-committed readers, while brokers are killed."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import pytest
import trio
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker.integration.cluster_steps import live_brokers, produce_all, until
from tests.clusters import RunningCluster, run_cluster
from wire.consumer_offsets import partition_for
from wire.errors import ErrorCode
from wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersTopicRequest,
)
from wire.messages.describe_transactions import DescribeTransactionsRequest
from wire.messages.end_txn import EndTxnRequest
from wire.messages.init_producer_id import InitProducerIdRequest
from wire.messages.list_transactions import ListTransactionsRequest
from wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from wire.net import Cluster, open_cluster
from wire.record_batch import Record, build_batch

pytestmark = pytest.mark.integration

PARTITIONS = 3
STATE_PARTITIONS = 6
SETTINGS = {
    "zookeeper.session.timeout.ms": "3000",
    "offsets.topic.num.partitions": "6",
    "transaction.state.log.num.partitions": str(STATE_PARTITIONS),
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    folder = tmp_path_factory.mktemp("transactions")
    with run_cluster(folder, brokers=3, overrides=SETTINGS, shares_zookeeper=True) as running:
        yield running


LOOKS_AGAIN: Final[dict[str, Any]] = {"topic.metadata.refresh.interval.ms": 5_000}
"""A client that looks for leaders between a broker's death and the election of others believes the
dead one until its next look, which librdkafka takes after five minutes."""


def make_topic(cluster: RunningCluster, name: str, partitions: int = PARTITIONS) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    config = {"min.insync.replicas": "2"}
    admin.create_topics([NewTopic(name, partitions, 3, config=config)])[name].result(60)


def transactional(cluster: RunningCluster, transactional_id: str, **settings: Any) -> Producer:
    given = {"transaction.timeout.ms": 60_000, "log_level": 0, **LOOKS_AGAIN, **settings}
    made = Producer(
        {"bootstrap.servers": cluster.bootstrap, "transactional.id": transactional_id, **given}
    )
    made.init_transactions(60)
    return made


def reader(cluster: RunningCluster, group: str = "reader", **settings: Any) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": group,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            **LOOKS_AGAIN,
            **settings,
        }
    )


def read_committed(cluster: RunningCluster, topic: str, partitions: int = PARTITIONS) -> list[str]:
    """Read all that is committed, and make sure that nothing is open any more."""
    consumer = reader(cluster)
    values: list[str] = []
    try:
        for index in range(partitions):
            values += read_partition(cluster, consumer, TopicPartition(topic, index))
    finally:
        consumer.close()
    return values


def read_partition(cluster: RunningCluster, consumer: Consumer, name: TopicPartition) -> list[str]:
    until(lambda: end_of(consumer, name) == plain_end_of(cluster, name))
    end, values = end_of(consumer, name), list[str]()
    consumer.assign([TopicPartition(name.topic, name.partition, OFFSET_BEGINNING)])

    def has_read() -> bool:
        for one in consumer.consume(500, 0.1):
            if not one.error():
                values.append((one.value() or b"").decode())
        [at] = consumer.position([name])
        return end == 0 or at.offset >= end

    until(has_read)
    return values


def end_of(consumer: Consumer, name: TopicPartition) -> int:
    """Return the last stable offset: what the reader can reach."""
    return int(consumer.get_watermark_offsets(name, 30)[1])


def plain_end_of(cluster: RunningCluster, name: TopicPartition) -> int:
    consumer = reader(cluster, **{"isolation.level": "read_uncommitted"})
    try:
        return end_of(consumer, name)
    finally:
        consumer.close()


@dataclass(slots=True)
class Outcomes:
    """What a client was told of its transactions; `unsure` are those whose end it did not hear."""

    committed: list[str] = field(default_factory=list)
    aborted: list[str] = field(default_factory=list)
    unsure: list[list[str]] = field(default_factory=list)


def error_of(fault: KafkaException) -> KafkaError:
    error = fault.args[0]
    assert isinstance(error, KafkaError)
    return error


def persistently(act: Callable[[], object]) -> KafkaError | None:
    """Do it again while that may help; return what is wrong otherwise."""
    deadline = time.monotonic() + 90
    while True:
        try:
            act()
        except KafkaException as fault:
            error = error_of(fault)
            if not error.retriable() or time.monotonic() > deadline:
                return error
        else:
            return None


def run_transactions(
    cluster: RunningCluster, topic: str, count: int, between: Callable[[int], None]
) -> Outcomes:
    """Commit two of three transactions and abort the third, whatever happens in between."""
    told = Outcomes()
    client = transactional(cluster, topic)
    for number in range(count):
        between(number)
        values = [f"{number}-{index}" for index in range(6)]
        client.begin_transaction()
        for index, value in enumerate(values):
            client.produce(topic, value.encode(), partition=index % PARTITIONS)
        if number % 3 == 2:
            client.flush(60)
            error = persistently(partial(client.abort_transaction, 30))
            told.aborted += values
        else:
            error = persistently(partial(client.commit_transaction, 30))
            if error is None:
                told.committed += values
            elif error.txn_requires_abort():
                error = persistently(partial(client.abort_transaction, 30))
                told.aborted += values
            else:
                told.unsure.append(values)
        if error is not None:
            client = transactional(cluster, topic)
    return told


def check(told: Outcomes, read: list[str]) -> None:
    """Hold what was read against what was told."""
    assert len(read) == len(set(read)), "read twice"
    assert not set(told.aborted) & set(read), "an aborted record was read"
    assert set(told.committed) <= set(read), "a committed record is missing"
    for values in told.unsure:
        assert len(set(values) & set(read)) in {0, len(values)}, "half a transaction"


def coordinator_of(cluster: RunningCluster, transactional_id: str) -> int:
    index = partition_for(transactional_id, STATE_PARTITIONS)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    topic = admin.list_topics("__transaction_state", timeout=30).topics["__transaction_state"]
    return int(topic.partitions[index].leader)


def start_again(cluster: RunningCluster, broker: int) -> None:
    cluster.start_broker(broker)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    until(lambda: live_brokers(admin) == 3)


@pytest.mark.story
def test_committed_is_read_once_and_aborted_never_while_coordinators_are_killed(
    cluster: RunningCluster,
) -> None:
    make_topic(cluster, "tx")
    killed: list[int] = []

    def between(number: int) -> None:
        if number in {4, 12}:
            killed.append(coordinator_of(cluster, "tx"))
            cluster.kill_broker(killed[-1])
        if number in {9, 17}:
            start_again(cluster, killed[-1])

    told = run_transactions(cluster, "tx", 20, between)
    assert len(told.committed) > 50
    check(told, read_committed(cluster, "tx"))


@pytest.mark.story
def test_what_is_consumed_in_a_transaction_is_processed_once_while_a_broker_is_killed(
    cluster: RunningCluster,
) -> None:
    make_topic(cluster, "source", 1)
    make_topic(cluster, "sink")
    sent = [b"%d" % number for number in range(200)]
    assert len(produce_all(cluster.bootstrap, "source", sent)) == len(sent)
    consumer = reader(cluster, "worker")
    consumer.subscribe(["source"])
    client = transactional(cluster, "worker")
    done, killed = 0, list[int]()
    while done < len(sent):
        if done >= 100 and not killed:
            killed.append(coordinator_of(cluster, "worker"))
            cluster.kill_broker(killed[0])
        batch = [one for one in consumer.consume(20, 1.0) if not one.error()]
        if not batch:
            continue
        client.begin_transaction()
        for one in batch:
            client.produce("sink", one.value(), partition=int(one.value() or b"0") % PARTITIONS)
        positions = consumer.position(consumer.assignment())
        group = consumer.consumer_group_metadata()
        error = persistently(
            partial(client.send_offsets_to_transaction, positions, group, 30)
        ) or persistently(partial(client.commit_transaction, 30))
        if error is None:
            done += len(batch)
            continue
        persistently(partial(client.abort_transaction, 30))
        client = transactional(cluster, "worker")
        consumer.close()  # it goes on where the group's position is
        consumer = reader(cluster, "worker")
        consumer.subscribe(["source"])
        [committed] = consumer.committed([TopicPartition("source", 0)], 60)
        done = max(committed.offset, 0)
    [position] = consumer.committed([TopicPartition("source", 0)], 60)
    consumer.close()
    assert position.offset == len(sent)
    assert sorted(map(int, read_committed(cluster, "sink"))) == list(range(len(sent)))
    start_again(cluster, killed[0])


async def transactions_everywhere(cluster: RunningCluster, transactional_id: str) -> list[Any]:
    """Ask every broker what it coordinates (KIP-664), and describe that id where it is."""
    found: list[Any] = []
    async with open_cluster(cluster.addresses, client_id="test") as asked:
        for node in (await asked.metadata()).brokers:
            listed = await asked.request(ListTransactionsRequest(), node=node)
            assert listed.error_code == ErrorCode.NONE
            if any(one.transactional_id == transactional_id for one in listed.transaction_states):
                request = DescribeTransactionsRequest(transactional_ids=(transactional_id,))
                found += (await asked.request(request, node=node)).transaction_states
    return found


async def producers_of(cluster: RunningCluster, topic: str) -> list[Any]:
    async with open_cluster(cluster.addresses, client_id="test") as asked:
        request = DescribeProducersRequest(
            topics=(DescribeProducersTopicRequest(name=topic, partition_indexes=(0,)),)
        )
        answer = await asked.request_leader(topic, 0, request)
        return list(answer.topics[0].partitions[0].active_producers)


def test_a_transaction_that_nobody_ends_is_shown_and_aborted_when_its_time_is_over(
    cluster: RunningCluster,
) -> None:
    make_topic(cluster, "silent", 1)
    client = transactional(cluster, "silent", **{"transaction.timeout.ms": 4_000})
    client.begin_transaction()
    client.produce("silent", b"never")
    client.flush(30)
    [state] = trio.run(transactions_everywhere, cluster, "silent")
    assert (state.transaction_state, state.transaction_timeout_ms) == ("Ongoing", 4_000)
    assert [(one.topic, one.partitions) for one in state.topics] == [("silent", (0,))]
    [open_there] = trio.run(producers_of, cluster, "silent")
    assert open_there.current_txn_start_offset == 0
    assert open_there.producer_id == state.producer_id
    assert produce_all(cluster.bootstrap, "silent", [b"plain"]) == [b"plain"]
    assert read_committed(cluster, "silent", 1) == ["plain"]
    [state] = trio.run(transactions_everywhere, cluster, "silent")
    assert state.transaction_state == "CompleteAbort"
    with pytest.raises(KafkaException) as fault:
        client.commit_transaction(30)
    assert error_of(fault.value).code() in {KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH}


def test_a_newer_instance_fences_the_older_one_and_ends_its_transaction(
    cluster: RunningCluster,
) -> None:
    make_topic(cluster, "fenced", 1)
    older = transactional(cluster, "fenced")
    older.begin_transaction()
    older.produce("fenced", b"of a zombie")
    older.flush(30)
    newer = transactional(cluster, "fenced")
    with pytest.raises(KafkaException) as fault:
        older.commit_transaction(30)
    assert error_of(fault.value).fatal()
    newer.begin_transaction()
    newer.produce("fenced", b"of the newer")
    newer.commit_transaction(30)
    assert read_committed(cluster, "fenced", 1) == ["of the newer"]


@dataclass(slots=True)
class NewerClient:
    """A producer of transaction version 2: it writes and ends, and names no partitions."""

    cluster: Cluster
    transactional_id: str
    coordinator: int
    producer_id: int = -1
    epoch: int = -1

    async def init(self) -> None:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=60_000
        )
        answer = await self.cluster.request(request, node=self.coordinator)
        assert answer.error_code == ErrorCode.NONE
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch

    async def write(self, topic: str, value: bytes, *, epoch: int | None = None) -> ErrorCode:
        """Write the first record of a transaction."""
        batch = build_batch(
            [Record(0, 1, None, value, ())],
            producer_id=self.producer_id,
            producer_epoch=self.epoch if epoch is None else epoch,
            base_sequence=0,
            is_transactional=True,
        )
        data = PartitionProduceData(index=0, records=memoryview(batch))
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=30_000,
            topic_data=(TopicProduceData(name=topic, partition_data=(data,)),),
        )
        answer = await self.cluster.request_leader(topic, 0, request)
        return ErrorCode(answer.responses[0].partition_responses[0].error_code)

    async def commit_position(self, group: str, topic: str, offset: int) -> ErrorCode:
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=(TxnOffsetCommitRequestTopic(name=topic, partitions=(partition,)),),
        )
        answer = await self.cluster.request_coordinator(group, request)
        return ErrorCode(answer.topics[0].partitions[0].error_code)

    async def end(self, *, committed: bool) -> None:
        """End it twice, as a client does whose first answer is lost, and be who it says."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=committed,
        )
        first = await self.cluster.request(request, node=self.coordinator)
        assert first.error_code == ErrorCode.NONE
        while True:
            again = await self.cluster.request(request, node=self.coordinator)
            if again.error_code != ErrorCode.CONCURRENT_TRANSACTIONS:
                break
        assert again == first
        self.producer_id, self.epoch = first.producer_id, first.producer_epoch


def test_newer_clients_name_no_partitions_and_get_another_epoch_with_each_end(
    cluster: RunningCluster,
) -> None:
    make_topic(cluster, "newer", 1)

    async def run() -> list[ErrorCode]:
        async with open_cluster(cluster.addresses, client_id="test") as asked:
            client = NewerClient(asked, "newer", coordinator_of(cluster, "newer"))
            await client.init()
            told = [await client.write("newer", b"one")]
            told.append(await client.commit_position("newer", "newer", 1))
            await client.end(committed=True)
            told.append(await client.write("newer", b"late", epoch=client.epoch - 1))
            told.append(await client.write("newer", b"two"))
            await client.end(committed=False)
            told.append(await client.write("newer", b"three"))
            await client.end(committed=True)
            assert client.epoch == 3
            return told

    fine = ErrorCode.NONE
    assert trio.run(run) == [fine, fine, ErrorCode.INVALID_PRODUCER_EPOCH, fine, fine]
    assert read_committed(cluster, "newer", 1) == ["one", "three"]
    consumer = reader(cluster, "newer")
    [position] = consumer.committed([TopicPartition("newer", 0)], 60)
    consumer.close()
    assert position.offset == 1
