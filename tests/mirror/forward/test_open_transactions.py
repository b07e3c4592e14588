"""An open transaction that holds records back is named by its producer."""

from uuid import UUID

from mirror.forward.open_transactions import (
    AT_ONCE,
    HELD_MS,
    OpenTransaction,
    OpenTransactions,
    told_transaction,
)
from mirror.state.batches import Cursor
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from tests.doubles.fake_cluster import FakeCluster
from tests.mirror.two_fakes import two_fakes
from wire.headers import RequestHeader
from wire.messages.describe_producers import (
    DescribeProducersPartitionResponse,
    DescribeProducersProducerState,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopicResponse,
)
from wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    ListTransactionsState,
)
from wire.topic_partition import TopicPartition

LATER = HELD_MS + 2_000


def held(index: int = 0) -> MirroredPartition:
    """A partition whose readable part is mirrored, with records of a transaction behind it."""
    offset_map = OffsetMap.from_starts([(0, 0)], 10)
    one = MirroredPartition("t", index, topic_id=UUID(int=1), offset_map=offset_map, now_ms=0)
    one.target.find_position()
    one.move(PartitionState.POSITIONING, 0)
    one.go_on(Cursor(10, Place(10), 0), 0)
    one.source.hear(10, 10, 10, 0)
    one.source.hear(50, 10, 10, 1_000)
    return one


def producer(producer_id: int, start: int) -> DescribeProducersProducerState:
    return DescribeProducersProducerState(
        producer_id=producer_id,
        producer_epoch=3,
        coordinator_epoch=0,
        current_txn_start_offset=start,
    )


def let_tell(fake: FakeCluster) -> None:
    """Have the source know three producers, and what the oldest open transaction is called."""

    async def producers(
        _: RequestHeader, request: DescribeProducersRequest
    ) -> DescribeProducersResponse:
        [asked] = request.topics
        told = DescribeProducersPartitionResponse(
            partition_index=asked.partition_indexes[0],
            error_code=0,
            active_producers=(producer(7, -1), producer(9, 12), producer(8, 10)),
        )
        topic = DescribeProducersTopicResponse(name=asked.name, partitions=(told,))
        return DescribeProducersResponse(topics=(topic,))

    async def listed(
        _: RequestHeader, request: ListTransactionsRequest
    ) -> ListTransactionsResponse:
        assert request.producer_id_filters == (8,)
        found = ListTransactionsState(
            transactional_id="billing\n1", producer_id=8, transaction_state="Ongoing"
        )
        return ListTransactionsResponse(error_code=0, transaction_states=(found,))

    for key, script in ((DescribeProducersRequest, producers), (ListTransactionsRequest, listed)):
        fake.versions[key.API_KEY] = key.VERSIONS
        fake.brokers[0].scripts[key.API_KEY] = script


async def test_the_oldest_open_transaction_is_named_while_it_holds_records_back() -> None:
    one = held()
    async with two_fakes() as (dc1, _, links):
        dc1.create_topic("t", 0)
        let_tell(dc1)
        transactions = OpenTransactions({one.topic_partition: one}, links.source_admin)
        await transactions.ask_about_held(HELD_MS)
        assert transactions.known == {}, "it is as young as it should be"
        await transactions.ask_about_held(LATER)
        known = transactions.known[one.topic_partition]
        assert known == OpenTransaction(
            producer_id=8, producer_epoch=3, transactional_id="billing\n1"
        )
        told = told_transaction(one, LATER, known)
        assert told == (
            "an open transaction of producer id 8, transactional id billing\\n1 at source offset 10"
            " has held back what is behind it for 11 s"
        )
        assert one.lag_ms(LATER) == LATER
        one.source.hear(50, 50, 10, LATER)
        await transactions.ask_about_held(LATER)
        assert transactions.known == {}
        assert told_transaction(one, LATER, None) is None


async def test_a_source_that_does_not_tell_whose_it_is_says_why() -> None:
    one = held()
    async with two_fakes() as (dc1, _, links):
        dc1.create_topic("t", 0)
        transactions = OpenTransactions({one.topic_partition: one}, links.source_admin)
        await transactions.ask_about_held(LATER)
        known = transactions.known[one.topic_partition]
    told = told_transaction(one, LATER, known) or ""
    assert "an open transaction (whose, the source does not tell: 127.0.0.1:" in told
    assert "API 61" in told or "DescribeProducers" in told


async def test_one_look_asks_about_few_of_many_and_the_next_about_others() -> None:
    many = {TopicPartition("t", index): held(index) for index in range(2 * AT_ONCE)}
    async with two_fakes() as (dc1, _, links):
        dc1.create_topic("t", *([0] * len(many)))
        let_tell(dc1)
        transactions = OpenTransactions(many, links.source_admin)
        for expected in (AT_ONCE, 2 * AT_ONCE):
            await transactions.ask_about_held(LATER)
            assert len(transactions.known) == expected
