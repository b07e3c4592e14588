"""One connection: order, pipelining, and every way in which it can end."""

import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.doubles.fake_answers import ANSWERS
from tests.doubles.fake_cluster import FakeBroker, Raw, framed, run_fake_cluster
from tests.doubles.memory_transport import (
    SETTINGS,
    connected_in_memory,
)
from wire.headers import RequestHeader, encode_response
from wire.messages.describe_groups import DescribeGroupsRequest
from wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from wire.messages.metadata import MetadataRequest, MetadataResponse
from wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from wire.net.connecting import ConnectionSettings, connect
from wire.net.connection import Connection
from wire.net.errors import (
    ConnectionClosed,
    RequestTimedOut,
    UnsupportedApi,
)
from wire.record_batch import Record, build_batch

METADATA = MetadataRequest(topics=())


@asynccontextmanager
async def connected(
    settings: ConnectionSettings = SETTINGS,
) -> AsyncIterator[tuple[FakeBroker, Connection]]:
    """Give a broker over TCP and a connection to it."""
    async with run_fake_cluster() as cluster, trio.open_nursery() as nursery:
        broker = cluster.brokers[0]
        yield broker, await connect(nursery, broker.address, settings)
        nursery.cancel_scope.cancel()


def produce(value: bytes, acks: int = -1) -> ProduceRequest:
    batch = memoryview(build_batch([Record(0, 0, None, value)]))
    data = TopicProduceData(
        name="t", partition_data=(PartitionProduceData(index=0, records=batch),)
    )
    return ProduceRequest(acks=acks, timeout_ms=1_000, topic_data=(data,))


async def test_a_request_is_answered_in_the_version_both_speak() -> None:
    async with connected() as (broker, connection):
        answer = await connection.request(METADATA)
        assert answer.cluster_id == "fake"
        header, _ = broker.asked[-1]
        assert (header.api_version, header.client_id) == (13, "test")
        assert connection.version_of(MetadataRequest) == 13


@pytest.mark.parametrize(("count", "most"), [(1, 1), (3, 3), (64, 8)])
async def test_half_of_the_answers_to_many_requests_are_waited_for_at_once(
    count: int, most: int
) -> None:
    async with connected_in_memory() as (broker, connection, transport):
        may_answer = trio.Event()

        async def answer(header: RequestHeader, request: MetadataRequest) -> MetadataResponse:
            await may_answer.wait()
            await wait_all_tasks_blocked()  # each answer comes by itself
            found: MetadataResponse = ANSWERS[header.api_key](broker, header.api_version, request)
            return found

        found = await connection.request(METADATA)
        size = sum(map(len, encode_response(0, found, connection.version_of(METADATA))))
        broker.scripts[MetadataRequest.API_KEY] = answer
        asked = [await connection.send(METADATA) for _ in range(count)]
        for pending in asked:
            pending.least_bytes = size
        await wait_all_tasks_blocked()
        before = transport.receptions
        may_answer.set()
        for pending in asked:
            assert (await pending.wait()).cluster_id == "fake"
        assert transport.receptions - before <= most


async def test_an_older_broker_is_spoken_to_in_its_version() -> None:
    async with run_fake_cluster() as cluster, trio.open_nursery() as nursery:
        cluster.versions[3] = range(2, 6)
        del cluster.versions[15]
        cluster.versions[16] = range(90, 99)
        connection = await connect(nursery, cluster.brokers[0].address, SETTINGS)
        await connection.request(METADATA)
        assert cluster.brokers[0].asked[-1][0].api_version == 5
        with pytest.raises(UnsupportedApi, match="API 15: we speak 0-5, the broker none"):
            await connection.request(DescribeGroupsRequest(groups=()))
        with pytest.raises(UnsupportedApi, match="API 16: we speak 0-5, the broker 90-98"):
            await connection.request(ListGroupsRequest())
        nursery.cancel_scope.cancel()


async def test_a_broker_without_api_versions_3_is_asked_in_version_0() -> None:
    async with run_fake_cluster() as cluster, trio.open_nursery() as nursery:
        cluster.versions[18] = range(3)
        connection = await connect(nursery, cluster.brokers[0].address, SETTINGS)
        assert [header.api_version for header, _ in cluster.brokers[0].asked] == [3, 0]
        assert connection.version_of(MetadataRequest) == 13
        nursery.cancel_scope.cancel()


async def test_many_tasks_ask_at_once_and_each_gets_its_own_answer() -> None:
    async with connected() as (broker, connection):

        async def by_filter(_: RequestHeader, request: ListGroupsRequest) -> ListGroupsResponse:
            listed = ListedGroup(group_id=request.states_filter[0], protocol_type="")
            return ListGroupsResponse(error_code=0, groups=(listed,))

        broker.scripts[ListGroupsRequest.API_KEY] = by_filter
        answers: dict[int, str] = {}

        async def ask(number: int) -> None:
            answer = await connection.request(ListGroupsRequest(states_filter=(str(number),)))
            answers[number] = answer.groups[0].group_id

        async with trio.open_nursery() as nursery:
            for number in range(200):
                nursery.start_soon(ask, number)
        assert answers == {number: str(number) for number in range(200)}


async def test_requests_are_on_their_way_before_the_first_answer() -> None:
    async with connected() as (broker, connection):
        broker.cluster.create_topic("t", 0)
        pending = [await connection.send(produce(b"%d" % number)) for number in range(5)]
        answers = [await one.wait() for one in pending]
        bases = [answer.responses[0].partition_responses[0].base_offset for answer in answers]
        assert bases == [0, 1, 2, 3, 4]


async def test_large_requests_arrive_whole_while_the_socket_is_full() -> None:
    async with connected() as (broker, connection):
        topic = broker.cluster.create_topic("t", 0)
        values = [bytes([number]) * 3_000_000 for number in range(6)]
        async with trio.open_nursery() as nursery:
            for value in values:
                nursery.start_soon(connection.request, produce(value))
        batches = topic.partitions[0].batches
        assert sorted(batch[-10] for batch in batches) == [0, 1, 2, 3, 4, 5]
        assert topic.partitions[0].end == 6


async def test_a_request_of_very_many_parts_arrives_whole() -> None:
    async with connected() as (broker, connection):
        topic = broker.cluster.create_topic("t", 0)
        batch = build_batch([Record(0, 0, None, bytes(4_000))])
        parts = tuple(memoryview(batch)[place : place + 1] for place in range(len(batch)))
        data = PartitionProduceData(index=0, records=parts)
        topics = (TopicProduceData(name="t", partition_data=(data,)),)
        await connection.request(ProduceRequest(acks=-1, timeout_ms=1, topic_data=topics))
        assert topic.partitions[0].batches == [batch[:12] + bytes(4) + batch[16:]]


async def test_a_caller_cancelled_in_the_middle_of_a_frame_harms_nobody(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    async with connected_in_memory() as (broker, connection, transport):
        topic = broker.cluster.create_topic("t", 0)
        transport.room = 10
        with trio.CancelScope() as scope:
            scope.cancel()
            await connection.send(produce(b"x" * 100))
        assert scope.cancelled_caught
        answer = await connection.request(produce(b"y"))
        assert answer.responses[0].partition_responses[0].base_offset == 1
        assert topic.partitions[0].end == 2


async def test_an_answer_nobody_waits_for_any_more_is_dropped() -> None:
    async with connected() as (broker, connection):
        with trio.CancelScope() as scope:
            scope.cancel()
            await connection.request(METADATA)
        assert scope.cancelled_caught
        assert (await connection.request(METADATA)).cluster_id == "fake"
        assert connection.is_open
        assert len(broker.asked) == 3


async def test_answers_larger_than_the_read_buffer_arrive_whole() -> None:
    async with connected() as (broker, connection):
        listed = tuple(ListedGroup(group_id="g" * 1_000, protocol_type="") for _ in range(1_000))

        async def many(_: RequestHeader, __: object) -> ListGroupsResponse:
            return ListGroupsResponse(error_code=0, groups=listed)

        broker.scripts[ListGroupsRequest.API_KEY] = many
        assert (await connection.request(ListGroupsRequest())).groups == listed
        assert (await connection.request(ListGroupsRequest())).groups == listed


async def test_an_overdue_answer_ends_the_connection(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    settings = ConnectionSettings(client_id="test", request_timeout_ms=5_000)
    async with connected_in_memory(settings) as (broker, connection, _):

        async def never(_: RequestHeader, __: object) -> None:
            await trio.sleep_forever()

        broker.scripts[MetadataRequest.API_KEY] = never
        await trio.sleep(1_000)  # an idle connection is never overdue
        started = trio.current_time()
        first = await connection.send(METADATA)
        await trio.sleep(3)
        second = await connection.send(METADATA)
        with pytest.raises(RequestTimedOut, match="no answer in time"):
            await first.wait()
        assert trio.current_time() - started == pytest.approx(5)
        with pytest.raises(ConnectionClosed) as fault:
            await second.wait()
        assert not isinstance(fault.value, RequestTimedOut)
        assert not connection.is_open


@pytest.mark.parametrize("moves_until_s", [60, 20])
async def test_a_request_is_overdue_only_while_nothing_moves(
    moves_until_s: int,
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    """Half a megabyte a second and 32 MB under way: no request is out within its time-out."""
    settings = ConnectionSettings(client_id="test", request_timeout_ms=5_000)
    async with connected_in_memory(settings) as (broker, connection, transport):

        async def slowly(_: RequestHeader, __: object) -> ListGroupsResponse:
            transport.unacknowledged_bytes = 600
            for _second in range(moves_until_s):
                await trio.sleep(1)
                transport.unacknowledged_bytes -= 10
            await trio.sleep(60 - moves_until_s)
            return ListGroupsResponse(error_code=0, groups=())

        broker.scripts[ListGroupsRequest.API_KEY] = slowly
        started = trio.current_time()
        pending = await connection.send(ListGroupsRequest())
        if moves_until_s == 60:
            assert (await pending.wait()).groups == ()
        else:
            with pytest.raises(RequestTimedOut, match="no answer in time"):
                await pending.wait()
            assert 5 <= trio.current_time() - started - moves_until_s <= 7


async def test_a_line_on_which_nothing_moves_is_given_up_soon(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    settings = ConnectionSettings(client_id="test", request_timeout_ms=5_000)
    async with connected_in_memory(settings) as (broker, connection, transport):

        async def never(_: RequestHeader, __: object) -> None:
            transport.unacknowledged_bytes = 600
            await trio.sleep_forever()

        broker.scripts[MetadataRequest.API_KEY] = never
        started = trio.current_time()
        with pytest.raises(RequestTimedOut, match="no answer in time"):
            await connection.request(METADATA)
        assert trio.current_time() - started == pytest.approx(5 * 1.25)


async def test_a_request_may_be_given_more_time(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    async with connected_in_memory() as (broker, connection, _):

        async def slowly(_: RequestHeader, __: object) -> ListGroupsResponse:
            await trio.sleep(300)
            return ListGroupsResponse(error_code=0, groups=())

        broker.scripts[ListGroupsRequest.API_KEY] = slowly
        answer = await connection.request(ListGroupsRequest(), timeout_ms=301_000)
        assert answer.groups == ()


async def half_a_frame(header: RequestHeader, _: object) -> Raw:
    whole = framed(header, ListGroupsResponse(error_code=0, groups=()))
    return Raw(whole[:-3], cut=True)


async def half_a_large_frame(_: RequestHeader, __: object) -> Raw:
    return Raw(struct.pack(">i", 1_000_000) + bytes(300_000), cut=True)


async def half_a_size(_: RequestHeader, __: object) -> Raw:
    return Raw(b"\x00\x00", cut=True)


async def too_large(_: RequestHeader, __: object) -> Raw:
    return Raw(struct.pack(">i", 2**31 - 1))


async def negative(_: RequestHeader, __: object) -> Raw:
    return Raw(struct.pack(">i", -5))


async def nothing_inside(_: RequestHeader, __: object) -> Raw:
    return Raw(struct.pack(">i", 0))


async def of_another_request(header: RequestHeader, _: object) -> Raw:
    other = RequestHeader(
        api_key=header.api_key,
        api_version=header.api_version,
        correlation_id=header.correlation_id + 1,
        client_id=None,
    )
    return Raw(framed(other, ListGroupsResponse(error_code=0, groups=())))


async def garbled(header: RequestHeader, _: object) -> Raw:
    return Raw(struct.pack(">ii", 9, header.correlation_id) + b"\xff" * 5)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (half_a_frame, "closed by the broker"),
        (half_a_large_frame, "closed by the broker|reset"),
        (half_a_size, "closed by the broker"),
        (too_large, "a frame of 2147483647 bytes"),
        (negative, "a frame of -5 bytes"),
        (nothing_inside, "needs 4 bytes, 0 are left"),
        (of_another_request, "not the oldest unanswered one"),
        (garbled, "garbled answer: header: "),
    ],
)
async def test_a_broken_answer_ends_the_connection_with_its_reason(
    script: Any, reason: str
) -> None:
    async with connected() as (broker, connection):
        broker.scripts[ListGroupsRequest.API_KEY] = script
        with pytest.raises(ConnectionClosed, match=reason):
            await connection.request(ListGroupsRequest())
        assert not connection.is_open
        with pytest.raises(ConnectionClosed, match=reason):
            await connection.request(ListGroupsRequest())


async def test_all_pending_requests_fail_when_the_connection_is_cut() -> None:
    async with connected() as (broker, connection):

        async def never(_: RequestHeader, __: object) -> None:
            await trio.sleep_forever()

        broker.scripts[MetadataRequest.API_KEY] = never
        pending = [await connection.send(METADATA) for _ in range(3)]
        await broker.cut_connections()
        for one in pending:
            with pytest.raises(ConnectionClosed, match=broker.address[0]):
                await one.wait()


async def test_senders_in_wait_fail_when_the_connection_is_cut() -> None:
    async with connected_in_memory() as (_, connection, transport):
        transport.room = 0
        faults: list[ConnectionClosed] = []

        async def send() -> None:
            with pytest.raises(ConnectionClosed, match="over") as fault:
                await connection.send(METADATA)
            faults.append(fault.value)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            nursery.start_soon(send)
            await trio.testing.wait_all_tasks_blocked()
            connection.close("over")
        assert len(faults) == 2


async def test_who_may_not_send_any_more_does_not_complete_a_request_either() -> None:
    async with connected_in_memory() as (broker, connection, transport):
        transport.room = 100
        left = iter([True] * 5)
        connection.may_send = lambda: next(left, False)
        with pytest.raises(ConnectionClosed, match="the right to send has run out"):
            await connection.request(produce(b"x" * 10_000))
        with pytest.raises(ConnectionClosed, match="the right to send has run out"):
            await connection.request(METADATA)
        assert [header.api_key for header, _ in broker.asked] == [18]
