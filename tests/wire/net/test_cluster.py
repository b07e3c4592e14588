"""Routing: bootstrap, leaders, controller, coordinators, and brokers that come and go."""

from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
import trio

from tests.doubles.fake_answers import ANSWERS
from tests.doubles.fake_cluster import FakeCluster, Raw, run_fake_cluster
from wire.errors import ErrorCode
from wire.headers import RequestHeader
from wire.messages.describe_groups import DescribeGroupsRequest
from wire.messages.find_coordinator import FindCoordinatorRequest
from wire.messages.list_groups import ListGroupsRequest
from wire.messages.metadata import MetadataRequest
from wire.net import (
    BrokerUnreachable,
    Cluster,
    Connection,
    ConnectionClosed,
    RequestRefused,
    open_cluster,
)

METADATA = MetadataRequest(topics=())


def open_client(fake: FakeCluster, *brokers: int) -> AbstractAsyncContextManager[Cluster]:
    """Open a client that knows only these brokers at first."""
    return open_cluster([fake.brokers[broker].address for broker in brokers], client_id="test")


def asked_for_metadata(fake: FakeCluster) -> int:
    return sum(
        header.api_key == MetadataRequest.API_KEY
        for broker in fake.brokers.values()
        for header, _ in broker.asked
    )


async def test_opening_does_not_connect() -> None:
    async with run_fake_cluster() as fake, open_client(fake, 0):
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert fake.brokers[0].accepted == 0


async def test_faults_come_out_of_the_block_plain() -> None:
    with pytest.raises(BrokerUnreachable, match=r"127\.0\.0\.1:1: "):
        async with open_cluster([("127.0.0.1", 1)], client_id="test") as cluster:
            await cluster.request(METADATA)
    with pytest.raises(BrokerUnreachable, match="no bootstrap address"):
        async with open_cluster([], client_id="test") as cluster:
            await cluster.request(METADATA)
    with pytest.raises(KeyError, match="ours"):
        async with open_cluster([], client_id="test"):
            raise KeyError("ours")


async def test_a_fault_comes_out_plain_even_while_everything_is_cancelled() -> None:
    async def fail(fake: FakeCluster, scope: trio.CancelScope) -> None:
        async with open_client(fake, 0) as cluster:
            await cluster.request(METADATA)
            scope.cancel()
            raise BrokerUnreachable("ours")

    async with run_fake_cluster() as fake:
        with trio.CancelScope() as scope:
            with pytest.raises(BrokerUnreachable, match="ours"):
                await fail(fake, scope)
            with pytest.raises(trio.Cancelled):
                await fail(fake, scope)
            await trio.lowlevel.checkpoint()
        assert scope.cancelled_caught


async def test_any_broker_that_can_be_reached_will_do() -> None:
    async with run_fake_cluster(2) as fake:
        bootstrap = [("127.0.0.1", 1), fake.brokers[1].address]
        async with open_cluster(bootstrap, client_id="test") as cluster:
            assert (await cluster.request(METADATA)).cluster_id == "fake"


async def test_a_snapshot_names_brokers_topics_and_leaders() -> None:
    async with run_fake_cluster(2) as fake, open_client(fake, 0) as cluster:
        topic = fake.create_topic("orders", 1, 0, -1)
        view = await cluster.metadata(["orders", "nowhere"])
        assert view.cluster_id == "fake"
        assert {node: broker.address for node, broker in view.brokers.items()} == {
            0: fake.brokers[0].address,
            1: fake.brokers[1].address,
        }
        orders = view.topics["orders"]
        assert orders.topic_id == topic.topic_id
        assert [orders.partitions[index].leader for index in range(3)] == [1, 0, -1]
        assert orders.partitions[2].error_code == ErrorCode.LEADER_NOT_AVAILABLE
        assert view.topics["nowhere"].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert set((await cluster.metadata()).topics) == {"orders"}


async def test_what_is_known_is_not_asked_again_until_forgotten() -> None:
    async with run_fake_cluster(2) as fake, open_client(fake, 0) as cluster:
        topic = fake.create_topic("orders", 0)
        for _ in range(5):
            await cluster.leader("orders", 0)
            await cluster.metadata(["orders"])
        assert asked_for_metadata(fake) == 1
        topic.partitions[0].leader = 1
        cluster.forget("orders")
        leader = await cluster.leader("orders", 0)
        assert leader is await cluster.connection(1)
        assert asked_for_metadata(fake) == 2
        await cluster.metadata(["orders"], refresh=True)
        assert asked_for_metadata(fake) == 3


async def test_tasks_that_need_the_same_leaders_share_one_question() -> None:
    async with run_fake_cluster() as fake, open_client(fake, 0) as cluster:
        fake.create_topic("orders", *[0] * 20)
        async with trio.open_nursery() as nursery:
            for partition in range(20):
                nursery.start_soon(cluster.leader, "orders", partition)
        assert asked_for_metadata(fake) == 1


@pytest.mark.parametrize(
    ("topic", "partition", "code"),
    [
        ("nowhere", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("orders", 7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("orders", 1, ErrorCode.LEADER_NOT_AVAILABLE),
    ],
)
async def test_without_a_leader_the_request_is_refused(
    topic: str, partition: int, code: ErrorCode
) -> None:
    async with run_fake_cluster() as fake, open_client(fake, 0) as cluster:
        fake.create_topic("orders", 0, -1)
        with pytest.raises(RequestRefused, match=f"{topic}-{partition}: {code.name}") as fault:
            await cluster.leader(topic, partition)
        assert fault.value.code is code


async def test_a_leader_elected_later_is_found() -> None:
    async with run_fake_cluster() as fake, open_client(fake, 0) as cluster:
        topic = fake.create_topic("orders", -1)
        with pytest.raises(RequestRefused):
            await cluster.leader("orders", 0)
        topic.partitions[0].leader = 0
        assert (await cluster.leader("orders", 0)).is_open


async def test_the_controller_is_looked_up_each_time() -> None:
    async with run_fake_cluster(2) as fake, open_client(fake, 0) as cluster:
        await cluster.request_controller(ListGroupsRequest())
        fake.controller = 1
        await cluster.request_controller(ListGroupsRequest())
        assert [len(broker.asked) for broker in fake.brokers.values()] == [4, 2]
        fake.controller = -1
        with pytest.raises(RequestRefused, match="BROKER_NOT_AVAILABLE"):
            await cluster.request_controller(ListGroupsRequest())


@pytest.mark.parametrize("newest_find", [2, 6])
async def test_a_coordinator_is_remembered_until_forgotten(newest_find: int) -> None:
    async with run_fake_cluster(2) as fake, open_client(fake, 0) as cluster:
        fake.versions[10] = range(newest_find + 1)
        fake.coordinators["g"] = 1
        request = DescribeGroupsRequest(groups=("g",))
        for _ in range(3):
            answer = await cluster.request_coordinator("g", request)
            assert answer.groups[0].error_code == ErrorCode.NONE
        lookups = [header for header, _ in fake.brokers[0].asked if header.api_key == 10]
        assert [header.api_version for header in lookups] == [newest_find]
        fake.coordinators["g"] = 0
        answer = await cluster.request_coordinator("g", request)
        assert answer.groups[0].error_code == ErrorCode.NOT_COORDINATOR
        cluster.forget_coordinator("g")
        answer = await cluster.request_coordinator("g", request)
        assert answer.groups[0].error_code == ErrorCode.NONE


async def test_a_coordinator_forgotten_while_others_are_looked_up_is_no_mistake() -> None:
    async with run_fake_cluster() as fake, open_client(fake, 0) as cluster:

        async def forget(header: RequestHeader, request: FindCoordinatorRequest) -> Any:
            cluster.forget_coordinator("known")  # another task has found it gone
            return ANSWERS[header.api_key](fake.brokers[0], header.api_version, request)

        there = await cluster.coordinators(["known"])
        fake.brokers[0].scripts[FindCoordinatorRequest.API_KEY] = forget
        found = await cluster.coordinators(["known", "new"])
        assert found == {**there, "new": fake.brokers[0].address}


async def test_a_group_without_a_coordinator_is_refused() -> None:
    async with run_fake_cluster() as fake, open_client(fake, 0) as cluster:
        fake.coordinators["g"] = -1
        with pytest.raises(RequestRefused, match="COORDINATOR_NOT_AVAILABLE"):
            await cluster.coordinator("g")


async def test_a_broker_that_comes_back_elsewhere_is_found_there() -> None:
    async with (
        trio.open_nursery() as nursery,
        run_fake_cluster(2) as fake,
        open_client(fake, 0) as cluster,
    ):
        fake.create_topic("orders", 1)
        before = await cluster.leader("orders", 0)
        fake.brokers[1].stop()
        await wait_closed(before)
        with pytest.raises(BrokerUnreachable):
            await cluster.request_leader("orders", 0, METADATA)
        await nursery.start(fake.brokers[1].listen)
        with trio.fail_after(60):
            after = await _leader_again(cluster)
        assert after is not before
        assert after.name.endswith(f":{fake.brokers[1].address[1]}")
        nursery.cancel_scope.cancel()


async def wait_closed(connection: Connection) -> None:
    with trio.fail_after(60):
        while connection.is_open:  # noqa: ASYNC110 - it has no event, and needs none elsewhere
            await trio.sleep(0.001)


async def _leader_again(cluster: Cluster) -> Connection:
    while True:
        try:
            return await cluster.leader("orders", 0)
        except BrokerUnreachable:
            await trio.sleep(0.02)


async def test_a_cut_connection_is_made_anew_by_the_next_request() -> None:
    async with run_fake_cluster() as fake, open_client(fake, 0) as cluster:
        fake.create_topic("orders", 0)
        before = await cluster.leader("orders", 0)
        await fake.brokers[0].cut_connections()
        await wait_closed(before)
        await cluster.request_leader("orders", 0, METADATA)
        assert fake.brokers[0].accepted == 2


async def test_closing_the_client_fails_what_is_pending() -> None:
    async with run_fake_cluster() as fake, trio.open_nursery() as nursery:

        async def never(_: object, __: object) -> None:
            await trio.sleep_forever()

        fake.brokers[0].scripts[ListGroupsRequest.API_KEY] = never

        async def ask(cluster: Cluster) -> None:
            with pytest.raises(ConnectionClosed, match="the client is closed"):
                await cluster.request(ListGroupsRequest())

        async with open_client(fake, 0) as cluster:
            await cluster.request(METADATA)
            nursery.start_soon(ask, cluster)
            await trio.testing.wait_all_tasks_blocked(0.01)


@pytest.mark.parametrize("to", ["leader", "coordinator"])
async def test_a_request_that_got_no_answer_makes_the_next_one_look_again(to: str) -> None:
    async with run_fake_cluster(2) as fake, open_client(fake, 0) as cluster:
        topic = fake.create_topic("orders", 1)
        fake.coordinators["g"] = 1

        async def ask() -> None:
            if to == "leader":
                await cluster.request_leader("orders", 0, ListGroupsRequest())
            else:
                await cluster.request_coordinator("g", ListGroupsRequest())

        async def hang_up(_: object, __: object) -> Raw:
            topic.partitions[0].leader = 0
            fake.coordinators["g"] = 0
            return Raw(b"", cut=True)

        fake.brokers[1].scripts[ListGroupsRequest.API_KEY] = hang_up
        with pytest.raises(ConnectionClosed):
            await ask()
        await ask()
        assert fake.brokers[0].asked[-1][0].api_key == ListGroupsRequest.API_KEY


async def test_a_handshake_given_up_leaves_no_connection_behind() -> None:
    async with run_fake_cluster() as fake, open_client(fake, 0) as cluster:
        scope = trio.CancelScope()

        async def never(_: object, __: object) -> None:
            scope.cancel()
            await trio.sleep_forever()

        answering = fake.brokers[0].scripts.pop(18)
        fake.brokers[0].scripts[18] = never
        with scope:
            await cluster.request(METADATA)
        assert scope.cancelled_caught
        fake.brokers[0].scripts[18] = answering
        assert (await cluster.request(METADATA)).cluster_id == "fake"
        assert fake.brokers[0].accepted == 2


async def test_a_node_that_is_not_in_the_cluster_is_unreachable() -> None:
    async with run_fake_cluster() as fake, open_client(fake, 0) as cluster:
        with pytest.raises(BrokerUnreachable, match="no broker 9 in the cluster"):
            await cluster.request(METADATA, node=9)
