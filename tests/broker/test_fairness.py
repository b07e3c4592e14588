"""A request that names much leaves all others their turn, wherever its time goes."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
import trio

from broker import outgoing
from broker.apis import fetch as fetching
from broker.apis.answers import FileAnswer
from broker.apis.table import APIS
from broker.context import Call, Node
from broker.fairness import AT_ONCE
from broker.long_messages import SHORT_ELEMENTS, LongMessages, is_long
from broker.replication.replica import Replica
from broker.replication.watching import Watcher
from tests.broker.rig import TOPIC_ID, LoneNode, batch, config, serving, view
from wire.errors import ErrorCode
from wire.headers import encode_response
from wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from wire.messages.update_metadata import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from wire.primitives import MalformedMessage
from wire.schema import TooManyElements, encode

MANY = 10 * AT_ONCE
LONG = 3 * SHORT_ELEMENTS


def produce(count: int) -> ProduceRequest:
    empty = tuple(PartitionProduceData(index=1, records=b"") for _ in range(count))
    topic = TopicProduceData(name="t", partition_data=empty)
    return ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=(topic,))


def update_metadata(count: int) -> UpdateMetadataRequest:
    states = tuple(
        UpdateMetadataPartitionState(
            partition_index=index,
            controller_epoch=1,
            leader=0,
            leader_epoch=1,
            isr=(0,),
            zk_version=0,
            replicas=(0,),
            offline_replicas=(),
        )
        for index in range(count)
    )
    topic = UpdateMetadataTopicState(topic_name="u", topic_id=TOPIC_ID, partition_states=states)
    return UpdateMetadataRequest(
        controller_id=0, controller_epoch=1, broker_epoch=-1, topic_states=(topic,), live_brokers=()
    )


def metadata(count: int) -> MetadataRequest:
    topics = tuple(MetadataRequestTopic(name=f"unknown-{number}") for number in range(count))
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False)


def list_offsets(count: int) -> ListOffsetsRequest:
    asked = tuple(ListOffsetsPartition(partition_index=0, timestamp=5) for _ in range(count))
    return ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name="t", partitions=asked),))


def fetch(count: int) -> FetchRequest:
    asked = tuple(
        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=100)
        for index in range(count)
    )
    topic = FetchTopic(topic="t", topic_id=TOPIC_ID, partitions=asked)
    return FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1_000, topics=(topic,))


def delete_records(count: int) -> DeleteRecordsRequest:
    asked = tuple(DeleteRecordsPartition(partition_index=0, offset=0) for _ in range(count))
    return DeleteRecordsRequest(
        timeout_ms=100, topics=(DeleteRecordsTopic(name="t", partitions=asked),)
    )


def ends_of_epochs(count: int) -> OffsetForLeaderEpochRequest:
    asked = tuple(OffsetForLeaderPartition(partition=0, leader_epoch=5) for _ in range(count))
    return OffsetForLeaderEpochRequest(topics=(OffsetForLeaderTopic(topic="t", partitions=asked),))


def describe_configs(count: int) -> DescribeConfigsRequest:
    one = DescribeConfigsResource(
        resource_type=2, resource_name="t", configuration_keys=("retention.ms",)
    )
    return DescribeConfigsRequest(resources=(one,) * count)


def all_of_a_topic(count: int) -> MetadataRequest:
    assert count
    return MetadataRequest(topics=(MetadataRequestTopic(name="large"),))


ASKED = (
    all_of_a_topic,
    delete_records,
    describe_configs,
    ends_of_epochs,
    fetch,
    list_offsets,
    metadata,
    produce,
    update_metadata,
)


class Turns:
    """How often somebody else had the loop."""

    count = 0

    async def take(self) -> None:
        while True:
            self.count += 1
            await trio.lowlevel.checkpoint()


@contextmanager
def lone_node(folder: Path) -> Iterator[LoneNode]:
    node = LoneNode(folder, config())
    node.metadata.put_partitions("large", TOPIC_ID, [view(index) for index in range(MANY)])
    yield node
    node.logs.close()


@pytest.mark.parametrize("asked", ASKED)
async def test_a_handler_leaves_the_others_their_turn(tmp_path: Path, asked: Any) -> None:
    request = asked(MANY)
    turns = Turns()
    with lone_node(tmp_path) as node:
        call = Call(
            node=cast("Node", node),
            api_version=11,
            client_id="client",
            client_host="127.0.0.1",
            is_broker=True,
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(turns.take)
            await APIS[request.API_KEY].handle(request, call)
            nursery.cancel_scope.cancel()
    assert turns.count >= MANY // AT_ONCE - 1


async def test_news_that_come_while_a_long_fetch_is_looked_at_are_told_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at = trio.Event()
    watch = Replica.watch

    def noted(replica: Replica, watcher: Watcher) -> None:
        watch(replica, watcher)
        looked_at.set()

    monkeypatch.setattr(Replica, "watch", noted)
    with lone_node(tmp_path) as node:
        call = Call(
            node=cast("Node", node), api_version=12, client_id="client", client_host="127.0.0.1"
        )
        partition = node.partitions.led("t", 0)
        assert partition is not None
        append = partial(partition.append_from_client, batch(b"news"), acks=1, is_fenced=False)

        async def append_when_looked_at() -> None:
            await looked_at.wait()
            append()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(append_when_looked_at)
            first = await fetching.handle(replace(fetch(MANY), session_epoch=0), call)
        assert isinstance(first, FileAnswer)
        assert isinstance(first.message, FetchResponse)
        session_id = first.message.session_id
        going_on = FetchRequest(
            max_wait_ms=0, min_bytes=1, session_id=session_id, session_epoch=1, topics=()
        )
        second = await fetching.handle(going_on, call)
        assert isinstance(second, FileAnswer)
        assert next(piece.length for piece in second.slices) == len(batch(b"news"))


async def test_a_long_request_is_read_beside_the_loop() -> None:
    request = metadata(LONG)
    api, turns = APIS[MetadataRequest.API_KEY], Turns()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turns.take)
        read = await LongMessages().decode(api, encode(request, 12), 12, 0)
        nursery.cancel_scope.cancel()
    assert read == (request, True)
    assert turns.count > 1


async def test_a_short_request_is_read_at_once() -> None:
    request = metadata(10)
    api = APIS[MetadataRequest.API_KEY]
    with trio.CancelScope() as scope:
        scope.cancel()
        assert await LongMessages().decode(api, encode(request, 12), 12, 0) == (request, False)


async def test_what_a_long_request_may_be_is_limited_as_before() -> None:
    api = replace(APIS[MetadataRequest.API_KEY], most_elements=2 * SHORT_ELEMENTS)
    with pytest.raises(TooManyElements):
        await LongMessages().decode(api, encode(metadata(LONG), 12), 12, 0)
    whole = APIS[MetadataRequest.API_KEY]
    with pytest.raises(MalformedMessage):
        await LongMessages().decode(whole, encode(metadata(LONG), 12)[:-9], 12, 0)


@pytest.mark.parametrize(("asked", "is_beside"), [(LONG, True), (10, False)])
async def test_a_long_answer_is_written_beside_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: int, *, is_beside: bool
) -> None:
    threads: list[int] = []

    def noted(*args: Any) -> Any:
        threads.append(threading.get_ident())
        return encode_response(*args)

    monkeypatch.setattr(outgoing, "encode_response", noted)
    async with serving(tmp_path) as rig, rig.connect() as client:
        views = [view(index) for index in range(asked)]
        rig.node.metadata.put_partitions("large", TOPIC_ID, views)
        answer = await client.ask(MetadataRequest(topics=(MetadataRequestTopic(name="large"),)))
        assert len(answer.topics[0].partitions) == asked
        assert (threads != [threading.get_ident()]) is is_beside
        refused = await client.ask(produce(LONG))
        errors = {one.error_code for one in refused.responses[0].partition_responses}
        assert errors == {ErrorCode.INVALID_RECORD}
        assert threads[-1] != threading.get_ident()


async def test_a_short_fetch_of_a_large_session_is_answered_beside_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []

    def noted(*args: Any) -> Any:
        threads.append(threading.get_ident())
        return encode_response(*args)

    monkeypatch.setattr(outgoing, "encode_response", noted)
    async with serving(tmp_path) as rig, rig.connect() as client:
        first = await client.ask(replace(fetch(LONG), session_epoch=0))
        going_on = FetchRequest(
            max_wait_ms=0, min_bytes=1, session_id=first.session_id, session_epoch=1, topics=()
        )
        answer = await client.ask(going_on)
        assert len(answer.responses[0].partitions) > SHORT_ELEMENTS
        assert threads[-1] != threading.get_ident()


def test_elements_count_wherever_they_are() -> None:
    assert is_long(metadata(SHORT_ELEMENTS + 1))
    assert not is_long(metadata(SHORT_ELEMENTS))
    assert is_long(update_metadata(SHORT_ELEMENTS))
    assert not is_long(update_metadata(SHORT_ELEMENTS - 1))
