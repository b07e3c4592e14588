"""The composed calls: what they return, what they try again, what they give up on."""

from contextlib import AbstractAsyncContextManager

import pytest
import trio

from tests.doubles.fake_cluster import FakeCluster, FakeTopic, run_fake_cluster
from wire.errors import ErrorCode
from wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
)
from wire.messages.list_groups import ListGroupsResponse
from wire.messages.offset_fetch import OffsetFetchRequest
from wire.net import (
    BrokerUnreachable,
    Cluster,
    ConnectionClosed,
    RequestRefused,
    open_cluster,
    partition_operations,
)
from wire.net.operations import (
    EARLIEST,
    GroupOffset,
    append,
    commit_group_offsets,
    commit_offsets_of,
    describe_groups,
    fetch_group_offsets,
    fetch_offsets_of,
    list_groups,
    list_offsets,
    read_partition,
)
from wire.record_batch import CorruptBatch, Record, build_batch, parse_header
from wire.topic_partition import TopicPartition


def batch(count: int, *, hole_behind: int = 0) -> bytes:
    records = [Record(number, 1_000, None, b"v" * 10) for number in range(count)]
    return build_batch(records, last_offset_delta=count - 1 + hole_behind)


def client(fake: FakeCluster) -> AbstractAsyncContextManager[Cluster]:
    return open_cluster(fake.bootstrap, client_id="test")


async def test_offsets_come_from_each_partitions_leader() -> None:
    async with run_fake_cluster(3) as fake, client(fake) as cluster:
        topic = fake.create_topic("orders", 0, 1, 2, -1)
        for index in range(3):
            topic.partitions[index].end = 10 + index
        topic.partitions[1].start = 5
        places = [TopicPartition("orders", index) for index in range(5)] + [
            TopicPartition("nowhere", 0)
        ]
        assert await list_offsets(cluster, places) == {
            ("orders", 0): 10,
            ("orders", 1): 11,
            ("orders", 2): 12,
            ("orders", 3): ErrorCode.LEADER_NOT_AVAILABLE,
            ("orders", 4): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("nowhere", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert await list_offsets(cluster, {TopicPartition("orders", 1)}, EARLIEST) == {
            ("orders", 1): 5
        }
        assert await list_offsets(cluster, ()) == {}


async def test_offsets_follow_a_leader_that_moved() -> None:
    async with run_fake_cluster(2) as fake, client(fake) as cluster:
        topic = fake.create_topic("orders", 0)
        topic.partitions[0].end = 7
        assert await list_offsets(cluster, {TopicPartition("orders", 0)}) == {("orders", 0): 7}
        topic.partitions[0].leader = 1
        assert await list_offsets(cluster, {TopicPartition("orders", 0)}) == {("orders", 0): 7}


async def test_an_offset_that_is_the_number_of_a_code_is_asked_for_once() -> None:
    async with run_fake_cluster(1) as fake, client(fake) as cluster:
        fake.create_topic("orders", 0).partitions[0].end = ErrorCode.NOT_LEADER_OR_FOLLOWER.value
        assert await list_offsets(cluster, {TopicPartition("orders", 0)}) == {("orders", 0): 6}
        asked = [header for header, _ in fake.brokers[0].asked if header.api_key == 2]
        assert len(asked) == 1


async def test_offsets_of_an_unreachable_leader_are_named_unknown() -> None:
    async with run_fake_cluster(2) as fake, client(fake) as cluster:
        topic = fake.create_topic("orders", 0, 1)
        topic.partitions[0].end = 7
        fake.brokers[1].stop()
        assert await list_offsets(
            cluster, {TopicPartition("orders", 0), TopicPartition("orders", 1)}
        ) == {
            ("orders", 0): 7,
            ("orders", 1): ErrorCode.NETWORK_EXCEPTION,
        }
        fake.brokers[0].stop()
        with pytest.raises(BrokerUnreachable):
            await list_offsets(cluster, {TopicPartition("orders", 0), TopicPartition("orders", 1)})


async def test_what_was_appended_is_read_back_batch_by_batch() -> None:
    async with run_fake_cluster(2) as fake, client(fake) as cluster:
        fake.create_topic("orders", 1)
        for count in (3, 4, 5):
            answer = await append(cluster, "orders", 0, batch(count))
            assert answer.error_code == ErrorCode.NONE
        assert answer.base_offset == 7
        read = [header async for header, _ in read_partition(cluster, "orders", 0, 0, 12)]
        assert [(header.base_offset, header.record_count) for header in read] == [
            (0, 3),
            (3, 4),
            (7, 5),
        ]
        inside = [header async for header, _ in read_partition(cluster, "orders", 0, 4, 7)]
        assert [header.base_offset for header in inside] == [3]
        assert [_ async for _ in read_partition(cluster, "orders", 0, 5, 5)] == []


async def test_a_batch_in_parts_is_one_batch() -> None:
    async with run_fake_cluster() as fake, client(fake) as cluster:
        topic = fake.create_topic("orders", 0)
        whole = batch(3)
        answer = await append(cluster, "orders", 0, (whole[:61], memoryview(whole)[61:]))
        assert answer.base_offset == 0
        assert parse_header(topic.partitions[0].batches[0]).record_count == 3


async def test_an_append_reports_what_the_broker_says() -> None:
    async with run_fake_cluster() as fake, client(fake) as cluster:
        topic = fake.create_topic("orders", 0)
        await cluster.leader("orders", 0)
        topic.partitions[0].leader = 5
        answer = await append(cluster, "orders", 0, batch(1))
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("newest_fetch", [4, 12, 17])
async def test_reading_ends_behind_a_hole_at_the_logs_end(newest_fetch: int) -> None:
    async with run_fake_cluster() as fake, client(fake) as cluster:
        fake.versions[1] = range(newest_fetch + 1)
        topic = fake.create_topic("orders", 0)
        await append(cluster, "orders", 0, batch(3))
        topic.partitions[0].end = 9  # compaction took what lay behind
        read = [header async for header, _ in read_partition(cluster, "orders", 0, 0, 9)]
        assert [header.next_offset for header in read] == [3]


async def test_reading_waits_for_what_is_not_there_yet() -> None:
    async with (
        run_fake_cluster() as fake,
        client(fake) as cluster,
        trio.open_nursery() as nursery,
    ):
        fake.create_topic("orders", 0)
        read: list[int] = []

        async def follow() -> None:
            async for header, _ in read_partition(cluster, "orders", 0, 0, 4):
                read.append(header.next_offset)

        nursery.start_soon(follow)
        for _ in range(2):
            await append(cluster, "orders", 0, batch(2))
    assert read == [2, 4]


async def test_reading_follows_a_leader_that_moved() -> None:
    async with run_fake_cluster(2) as fake, client(fake) as cluster:
        topic = fake.create_topic("orders", 0)
        await append(cluster, "orders", 0, batch(1))
        topic.partitions[0].leader = 1
        read = [header async for header, _ in read_partition(cluster, "orders", 0, 0, 1)]
        assert len(read) == 1


async def test_a_throttled_answer_is_not_the_end() -> None:
    async with run_fake_cluster() as fake, client(fake) as cluster:
        topic = fake.create_topic("orders", 0)
        await append(cluster, "orders", 0, batch(1))

        async def throttle(_: object, __: object) -> FetchResponse:
            del fake.brokers[0].scripts[FetchRequest.API_KEY]
            data = FetchPartitionData(
                partition_index=0, error_code=0, high_watermark=1, records=b""
            )
            named = FetchableTopicResponse(topic_id=topic.topic_id, partitions=(data,))
            return FetchResponse(throttle_time_ms=100, responses=(named,))

        fake.brokers[0].scripts[FetchRequest.API_KEY] = throttle
        assert len([_ async for _ in read_partition(cluster, "orders", 0, 0, 1)]) == 1


def no_records(topic: FakeTopic) -> FetchResponse:
    """Return the answer of a broker whose tiered storage takes too long."""
    data = FetchPartitionData(partition_index=0, error_code=0, high_watermark=1, records=b"")
    named = FetchableTopicResponse(topic_id=topic.topic_id, partitions=(data,))
    return FetchResponse(responses=(named,))


async def test_what_comes_late_from_tiered_storage_is_not_the_end() -> None:
    """A rebuilt map would else take it for a hole."""
    async with run_fake_cluster() as fake, client(fake) as cluster:
        topic = fake.create_topic("orders", 0)
        await append(cluster, "orders", 0, batch(1))
        topic.partitions[0].tiered = 1
        late = 3

        async def hesitate(_: object, __: object) -> FetchResponse:
            nonlocal late
            late -= 1
            if not late:
                del fake.brokers[0].scripts[FetchRequest.API_KEY]
            return no_records(topic)

        fake.brokers[0].scripts[FetchRequest.API_KEY] = hesitate
        assert len([_ async for _ in read_partition(cluster, "orders", 0, 0, 1)]) == 1


async def test_what_never_comes_from_tiered_storage_is_a_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(partition_operations, "PATIENCE_S", 0.3)
    async with run_fake_cluster() as fake, client(fake) as cluster:
        topic = fake.create_topic("orders", 0)
        await append(cluster, "orders", 0, batch(1))
        topic.partitions[0].tiered = 1

        async def never(_: object, __: object) -> FetchResponse:
            return no_records(topic)

        fake.brokers[0].scripts[FetchRequest.API_KEY] = never
        with pytest.raises(RequestRefused, match="OFFSET_NOT_AVAILABLE"):
            await anext(read_partition(cluster, "orders", 0, 0, 1))


@pytest.mark.parametrize(
    ("topic", "start", "code"),
    [
        ("orders", 5, ErrorCode.OFFSET_OUT_OF_RANGE),
        ("nowhere", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
async def test_reading_where_nothing_can_be_read_is_refused(
    topic: str, start: int, code: ErrorCode
) -> None:
    async with run_fake_cluster() as fake, client(fake) as cluster:
        fake.create_topic("orders", 0)
        with pytest.raises(RequestRefused, match=code.name):
            await anext(read_partition(cluster, topic, 0, start, 9))


async def test_reading_damaged_batches_says_so() -> None:
    async with run_fake_cluster() as fake, client(fake) as cluster:
        topic = fake.create_topic("orders", 0)
        await append(cluster, "orders", 0, batch(1))
        good = topic.partitions[0].batches[0]

        async def damage(_: object, __: object) -> FetchResponse:
            data = FetchPartitionData(
                partition_index=0,
                error_code=0,
                high_watermark=1,
                records=good[:8] + b"\xff\xff\xff\xff" + good[12:],
            )
            named = FetchableTopicResponse(topic_id=topic.topic_id, partitions=(data,))
            return FetchResponse(responses=(named,))

        fake.brokers[0].scripts[FetchRequest.API_KEY] = damage
        with pytest.raises(CorruptBatch):
            await anext(read_partition(cluster, "orders", 0, 0, 1))


@pytest.mark.parametrize("newest_fetch", [5, 7, 9])
async def test_positions_are_stored_and_told(newest_fetch: int) -> None:
    async with run_fake_cluster(2) as fake, client(fake) as cluster:
        fake.versions[OffsetFetchRequest.API_KEY] = range(newest_fetch + 1)
        fake.coordinators["g"] = 1
        codes = await commit_group_offsets(
            cluster, "g", {TopicPartition("a", 0): (7, ""), TopicPartition("b", 3): (0, "m")}
        )
        assert codes == {("a", 0): ErrorCode.NONE, ("b", 3): ErrorCode.NONE}
        assert await fetch_group_offsets(cluster, "g") == {
            ("a", 0): GroupOffset(offset=7),
            ("b", 3): GroupOffset(offset=0, metadata="m"),
        }
        assert await fetch_group_offsets(cluster, "unheard of") == {}


async def test_positions_follow_a_coordinator_that_moved() -> None:
    async with run_fake_cluster(2) as fake, client(fake) as cluster:
        fake.coordinators["g"] = 1
        await commit_group_offsets(cluster, "g", {TopicPartition("a", 0): (7, "")})
        fake.coordinators["g"] = 0
        assert await fetch_group_offsets(cluster, "g") == {("a", 0): GroupOffset(offset=7)}
        fake.coordinators["g"] = 1
        codes = await commit_group_offsets(cluster, "g", {TopicPartition("a", 0): (8, "")})
        assert codes == {("a", 0): ErrorCode.NONE}


async def test_a_coordinator_that_comes_late_is_waited_for() -> None:
    async with (
        run_fake_cluster() as fake,
        client(fake) as cluster,
        trio.open_nursery() as nursery,
    ):
        fake.coordinators["g"] = -1

        async def elect() -> None:
            await trio.sleep(0.15)
            fake.coordinators["g"] = 0

        nursery.start_soon(elect)
        assert await fetch_group_offsets(cluster, "g") == {}


async def test_groups_are_listed_from_all_brokers_and_described() -> None:
    async with run_fake_cluster(2) as fake, client(fake) as cluster:
        fake.coordinators |= {"g": 1, "h": 0}
        await commit_group_offsets(cluster, "g", {TopicPartition("a", 0): (7, "")})
        await commit_group_offsets(cluster, "h", {TopicPartition("a", 0): (7, "")})
        assert set(await list_groups(cluster)) == {"g", "h"}
        described = await describe_groups(cluster, ["g", "h", "i"])
        assert {group: found.state for group, found in described.items()} == {
            "g": "Empty",
            "h": "Empty",
            "i": "Dead",
        }


async def test_groups_cannot_be_listed_while_a_broker_is_away() -> None:
    async with run_fake_cluster(2) as fake, client(fake) as cluster:
        fake.brokers[1].stop()
        with pytest.raises(BrokerUnreachable):
            await list_groups(cluster)


async def test_a_refused_listing_is_not_an_empty_one() -> None:
    async with run_fake_cluster() as fake, client(fake) as cluster:

        async def refuse(_: object, __: object) -> ListGroupsResponse:
            return ListGroupsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, groups=())

        fake.brokers[0].scripts[16] = refuse
        with pytest.raises(RequestRefused, match="groups of broker 0: CLUSTER_AUTHORIZATION"):
            await list_groups(cluster)


@pytest.mark.parametrize("newest_fetch", [7, 9])
async def test_positions_of_many_groups_are_stored_and_told_at_once(newest_fetch: int) -> None:
    async with run_fake_cluster(2) as fake, client(fake) as cluster:
        fake.versions[OffsetFetchRequest.API_KEY] = range(newest_fetch + 1)
        names = [f"g{number}" for number in range(250)]
        fake.coordinators |= {name: number % 2 for number, name in enumerate(names)}
        stored = {name: {TopicPartition("a", 0): (number, "")} for number, name in enumerate(names)}
        codes = await commit_offsets_of(cluster, stored)
        assert codes == {name: {("a", 0): ErrorCode.NONE} for name in names}
        assert await fetch_offsets_of(cluster, [*names, "unheard of"]) == {
            "unheard of": {},
            **{name: {("a", 0): GroupOffset(offset=n)} for n, name in enumerate(names)},
        }
        asked = [header.api_key for broker in fake.brokers.values() for header, _ in broker.asked]
        questions = asked.count(OffsetFetchRequest.API_KEY)
        assert questions == (251 if newest_fetch == 7 else 4)


async def test_of_many_groups_only_those_that_moved_are_missing_until_asked_again() -> None:
    async with run_fake_cluster(2) as fake, client(fake) as cluster:
        fake.coordinators |= {"moves": 1, "stays": 1, "lost": -1}
        commits = {name: {TopicPartition("a", 0): (7, "")} for name in ("moves", "stays")}
        await commit_offsets_of(cluster, commits)
        fake.coordinators["moves"] = 0
        for ask in (
            lambda: fetch_offsets_of(cluster, ["moves", "stays", "lost"]),
            lambda: commit_offsets_of(cluster, commits),
        ):
            fake.coordinators["moves"] ^= 1
            await fetch_offsets_of(cluster, ["moves"])
            await fetch_offsets_of(cluster, ["moves"])
            fake.coordinators["moves"] ^= 1
            first = await ask()
            assert isinstance(first["moves"], RequestRefused)
            assert first["moves"].code is ErrorCode.NOT_COORDINATOR
            assert not isinstance(first["stays"], RequestRefused)
            assert not isinstance((await ask())["moves"], RequestRefused)
        assert isinstance((await fetch_offsets_of(cluster, ["lost"]))["lost"], RequestRefused)


async def test_a_coordinator_that_dies_leaves_the_groups_of_others_answered() -> None:
    async with run_fake_cluster(2) as fake, client(fake) as cluster:
        fake.coordinators |= {"g": 0, "h": 1}
        await fetch_offsets_of(cluster, ["g", "h"])
        fake.brokers[1].stop()
        found = await fetch_offsets_of(cluster, ["g", "h"])
        assert found["g"] == {}
        assert isinstance(found["h"], ConnectionClosed | BrokerUnreachable)
    async with run_fake_cluster() as gone:
        address = gone.bootstrap
    async with open_cluster(address, client_id="test") as cluster:
        found = await fetch_offsets_of(cluster, ["g", "h"])
        assert {type(one) for one in found.values()} == {BrokerUnreachable}
