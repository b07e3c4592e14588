"""Produce, Fetch and their kin over a real socket and a real log."""

import struct
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import trio

from broker.apis.table import APIS
from broker.replication.partition import Partition
from broker.transactions.decisions import Producer
from tests.broker.rig import NOW_MS, batch, fetch, outcome, produce, serving, view
from wire.errors import ErrorCode
from wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from wire.messages.api_versions import ApiVersionsRequest
from wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from wire.messages.describe_cluster import DescribeClusterRequest
from wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from wire.messages.fetch import FetchPartitionData
from wire.messages.init_producer_id import InitProducerIdRequest
from wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from wire.record_batch import Record, build_batch, iterate_batches, iterate_records
from wire.topic_partition import TopicPartition


def only(response: object) -> FetchPartitionData:
    (topic,) = response.responses  # type: ignore[attr-defined]
    (partition,) = topic.partitions
    assert isinstance(partition, FetchPartitionData)
    return partition


def values(partition: FetchPartitionData) -> list[bytes | None]:
    assert isinstance(partition.records, memoryview)
    return [
        record.value
        for _, one in iterate_batches(partition.records)
        for record in iterate_records(one)
    ]


@pytest.mark.parametrize("version", range(4, 18))
async def test_what_was_produced_is_fetched_in_every_version(tmp_path: Path, version: int) -> None:
    async with serving(tmp_path) as rig, rig.connect() as client:
        await client.ask(produce(batch(b"a", b"b")), min(version, 11))
        await client.ask(produce(batch(b"c")), 3)
        data = only(await client.ask(fetch(0), version))
        assert (data.error_code, data.high_watermark) == (ErrorCode.NONE, 3)
        assert values(data) == [b"a", b"b", b"c"]
        assert values(only(await client.ask(fetch(2), version))) == [b"c"]


async def test_a_fetch_at_the_end_waits_for_the_next_record(tmp_path: Path) -> None:
    async with serving(tmp_path) as rig, rig.connect() as reader, rig.connect() as writer:
        await reader.send(fetch(0, max_wait_ms=600_000))
        await trio.sleep(0.05)
        await writer.ask(produce(batch(b"late")))
        with trio.fail_after(60):
            assert values(only(await reader.receive())) == [b"late"]


async def test_a_parked_fetch_answers_empty_when_its_wait_is_over(tmp_path: Path) -> None:
    async with serving(tmp_path) as rig, rig.connect() as client:
        started = trio.current_time()
        data = only(await client.ask(fetch(0, max_wait_ms=150)))
        assert trio.current_time() - started >= 0.14
        assert (data.error_code, values(data)) == (ErrorCode.NONE, [])


async def test_a_fetch_waits_for_as_many_bytes_as_it_asks_for(tmp_path: Path) -> None:
    async with serving(tmp_path) as rig, rig.connect() as reader, rig.connect() as writer:
        await reader.send(fetch(0, max_wait_ms=600_000, min_bytes=300))
        for value in (b"x" * 100, b"y" * 100):
            await writer.ask(produce(batch(value)))
            await trio.sleep(0.02)
        with trio.fail_after(60):
            assert values(only(await reader.receive())) == [b"x" * 100, b"y" * 100]


async def test_a_fetch_that_waits_learns_at_once_of_a_new_leader(tmp_path: Path) -> None:
    async with serving(tmp_path) as rig, rig.connect() as client:
        await client.send(fetch(0, max_wait_ms=600_000, epoch=5))
        await trio.sleep(0.05)
        rig.node.lead(0, leader=1, epoch=6)
        with trio.fail_after(60):
            data = only(await client.receive())
        assert data.error_code == ErrorCode.FENCED_LEADER_EPOCH


async def test_the_first_batch_comes_whole_however_small_the_limit(tmp_path: Path) -> None:
    async with serving(tmp_path) as rig, rig.connect() as client:
        for value in (b"a" * 1000, b"b" * 1000):
            await client.ask(produce(batch(value)))
        data = only(await client.ask(fetch(0, max_bytes=1, partition_max_bytes=1)))
        assert values(data) == [b"a" * 1000]


async def test_what_cannot_be_fetched_is_said(tmp_path: Path) -> None:
    async with serving(tmp_path) as rig, rig.connect() as client:
        beyond = only(await client.ask(fetch(5)))
        assert (beyond.error_code, beyond.high_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, 0)
        elsewhere = only(await client.ask(fetch(0, partition=2)))
        assert elsewhere.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert elsewhere.current_leader.leader_id == 1
        absent = only(await client.ask(fetch(0, partition=9)))
        assert absent.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        old = only(await client.ask(fetch(0, epoch=4)))
        assert old.error_code == ErrorCode.FENCED_LEADER_EPOCH
        future = only(await client.ask(fetch(0, epoch=6)))
        assert future.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


async def test_a_fetch_session_says_only_what_is_new(tmp_path: Path) -> None:
    async with serving(tmp_path) as rig, rig.connect() as client:
        first = await client.ask(fetch(0, session_epoch=0))
        assert first.session_id > 0
        session = {"session_id": first.session_id, "session_epoch": 1}
        nothing = replace(fetch(0, **session), topics=())
        assert (await client.ask(nothing)).responses == ()
        await client.ask(produce(batch(b"new")))
        session["session_epoch"] = 2
        assert values(only(await client.ask(replace(nothing, **session)))) == [b"new"]
        stale = await client.ask(replace(nothing, **session))
        assert stale.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        unknown = await client.ask(fetch(0, session_id=first.session_id ^ 1, session_epoch=3))
        assert unknown.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


async def test_produce_refuses_with_kafkas_codes(tmp_path: Path) -> None:
    async with serving(tmp_path) as rig, rig.connect() as client:
        good = batch(b"a")
        broken = good[:-1] + b"?"
        assert outcome(await client.ask(produce(broken))) == (ErrorCode.CORRUPT_MESSAGE, -1)
        assert (
            outcome(await client.ask(produce(good, acks=7)))[0] == ErrorCode.INVALID_REQUIRED_ACKS
        )
        assert outcome(await client.ask(produce(good, partition=9)))[0] == (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
        answer = await client.ask(produce(good, partition=2))
        assert answer.responses[0].partition_responses[0].current_leader.leader_id == 1
        assert outcome(await client.ask(produce(b"")))[0] == ErrorCode.INVALID_RECORD
        assert outcome(await client.ask(produce(good))) == (ErrorCode.NONE, 0)


async def test_a_transaction_without_its_id_is_refused_with_all_that_came_along(
    tmp_path: Path,
) -> None:
    ours = batch(b"a", producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)
    both = replace(
        produce(b""),
        topic_data=produce(batch(b"b")).topic_data + produce(ours, partition=1).topic_data,
    )
    async with serving(tmp_path) as rig, rig.connect() as client:
        answer = await client.ask(both)
        assert [topic.partition_responses[0].error_code for topic in answer.responses] == [
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        ] * 2
        with_id = replace(produce(ours), transactional_id="x")
        assert outcome(await client.ask(with_id, 10)) == (ErrorCode.INVALID_TXN_STATE, -1)
        assert only(await client.ask(fetch(0))).records == b""


@pytest.mark.parametrize(
    ("said", "version", "told"),
    [
        (ErrorCode.INVALID_TXN_STATE, 10, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.INVALID_TXN_STATE, 11, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.PRODUCER_FENCED, 11, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, 11, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ErrorCode.NOT_COORDINATOR, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.PRODUCER_FENCED, 12, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 12, ErrorCode.NOT_ENOUGH_REPLICAS),
    ],
)
async def test_a_batch_begins_a_transaction_only_where_its_coordinator_knows_of_it(
    tmp_path: Path, said: ErrorCode, version: int, told: ErrorCode
) -> None:
    async with serving(tmp_path) as rig, rig.connect() as client:
        verifier = rig.node.verifier
        verifier.error = said
        assert outcome(await client.ask(transactional(0), version)) == (told, -1)
        verifier.error = ErrorCode.NONE
        assert outcome(await client.ask(transactional(0), version)) == (ErrorCode.NONE, 0)
        assert verifier.asked == [("x", Producer(producer_id=5, epoch=0))] * 2
        assert verifier.added == [version >= 12] * 2, "newer clients name no partitions beforehand"
        assert only(await client.ask(fetch(0))).last_stable_offset == 0


@pytest.mark.parametrize("version", [11, 12])
async def test_a_batch_that_was_refused_is_not_overtaken_by_the_one_behind_it(
    tmp_path: Path, version: int
) -> None:
    """Older clients go on with their sequences; a broker may know none of them any more."""
    async with serving(tmp_path) as rig, rig.connect() as client:
        verifier = rig.node.verifier
        verifier.error = ErrorCode.NOT_COORDINATOR
        refused = outcome(await client.ask(transactional(0), version))
        assert refused == (ErrorCode.NOT_ENOUGH_REPLICAS, -1)
        verifier.error = ErrorCode.NONE
        behind = outcome(await client.ask(transactional(1), version))
        if version < 12:
            assert behind == (ErrorCode.NONE, 0)
            return
        assert behind == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
        for sequence in (0, 1):
            in_order = outcome(await client.ask(transactional(sequence), version))
            assert in_order == (ErrorCode.NONE, sequence)


def transactional(sequence: int) -> ProduceRequest:
    """Return a Produce of one record in a transaction."""
    fields = {"producer_id": 5, "producer_epoch": 0, "is_transactional": True}
    ours = batch(b"a", base_sequence=sequence, **fields)
    return replace(produce(ours), transactional_id="x")


async def test_acks_all_needs_enough_replicas_in_sync(tmp_path: Path) -> None:
    async with serving(tmp_path, min_insync_replicas=2) as rig, rig.connect() as client:
        assert outcome(await client.ask(produce(batch(b"a"))))[0] == ErrorCode.NOT_ENOUGH_REPLICAS
        assert outcome(await client.ask(produce(batch(b"a"), acks=1))) == (ErrorCode.NONE, 0)


async def test_an_idempotent_batch_sent_twice_is_there_once(tmp_path: Path) -> None:
    async with serving(tmp_path) as rig, rig.connect() as client:
        sent = batch(b"a", producer_id=4, producer_epoch=0, base_sequence=0)
        assert outcome(await client.ask(produce(sent))) == (ErrorCode.NONE, 0)
        assert outcome(await client.ask(produce(sent))) == (ErrorCode.NONE, 0)
        skipping = batch(b"b", producer_id=4, producer_epoch=0, base_sequence=5)
        assert outcome(await client.ask(produce(skipping)))[0] == (
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        )


async def test_the_fence_comes_after_duplicates_and_before_everything_else(tmp_path: Path) -> None:
    fence = {"write.fence.topics": "t,other", "write.fence.allowed.client.ids": "mirror-a-b"}
    async with serving(tmp_path) as rig, rig.connect() as client:
        sent = batch(b"a", producer_id=4, producer_epoch=0, base_sequence=0)
        corrupt = batch(b"probe")[:-1] + b"?"
        assert outcome(await client.ask(produce(sent))) == (ErrorCode.NONE, 0)
        assert outcome(await client.ask(produce(corrupt)))[0] == ErrorCode.CORRUPT_MESSAGE
        rig.node.dynamic.set_default_broker(fence)
        assert outcome(await client.ask(produce(sent))) == (ErrorCode.NONE, 0)
        for refused in (batch(b"new"), corrupt):
            assert outcome(await client.ask(produce(refused)))[0] == ErrorCode.NOT_ENOUGH_REPLICAS
        mirrored = await client.ask(produce(batch(b"m")), client_id="mirror-a-b")
        assert outcome(mirrored) == (ErrorCode.NONE, 1)
        rig.node.dynamic.set_default_broker({})
        assert outcome(await client.ask(produce(batch(b"new")))) == (ErrorCode.NONE, 2)


def topic_named(name: str) -> MetadataRequestTopic:
    return MetadataRequestTopic(name=name)


SENDS_AWAY = {
    "write.fence.topics": "t",
    "write.fence.allowed.client.ids": "mirror-a-b",
    "write.fence.rebootstrap": "true",
}


@pytest.mark.parametrize(
    ("wanted", "version", "client_id", "is_sent_away"),
    [
        (("t",), 13, "app", True),
        (("other", "t"), 13, "app", True),
        (("t",), 12, "app", False),
        (("t",), 13, "mirror-a-b", False),
        (("other",), 13, "app", False),
        ((), 13, "app", False),
        (None, 13, "app", False),
    ],
    ids=["its topic", "one of them", "older", "the mirror", "another topic", "none", "all"],
)
async def test_a_fence_sends_those_away_who_want_its_topics_and_understand(
    tmp_path: Path, wanted: tuple[str, ...] | None, version: int, client_id: str, is_sent_away: bool
) -> None:
    topics = None if wanted is None else tuple(map(topic_named, wanted))
    asked = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    async with serving(tmp_path) as rig, rig.connect() as client:
        before = await client.ask(asked, version, client_id=client_id)
        assert before.error_code == ErrorCode.NONE
        rig.node.dynamic.set_default_broker(SENDS_AWAY)
        answer = await client.ask(asked, version, client_id=client_id)
        if not is_sent_away:
            assert answer == before
            return
        assert answer.error_code == ErrorCode.REBOOTSTRAP_REQUIRED
        assert (answer.brokers, answer.topics) == ((), ())
        rig.node.dynamic.set_default_broker({**SENDS_AWAY, "write.fence.rebootstrap": "false"})
        assert await client.ask(asked, version, client_id=client_id) == before


async def test_whoever_wants_a_closed_topic_by_its_id_is_sent_away_too(tmp_path: Path) -> None:
    async with serving(tmp_path) as rig, rig.connect() as client:
        rig.node.dynamic.set_default_broker(SENDS_AWAY)
        rig.node.metadata.put_partitions("t", UUID(int=7), [view(0)])
        by_id = MetadataRequestTopic(topic_id=UUID(int=7), name=None)
        answer = await client.ask(MetadataRequest(topics=(by_id,)), 13)
        assert answer.error_code == ErrorCode.REBOOTSTRAP_REQUIRED


async def test_old_message_formats_are_refused(tmp_path: Path) -> None:
    message_set = struct.pack(">qi", 0, 14) + struct.pack(">IbbiI", 0, 1, 0, -1, 0)
    async with serving(tmp_path) as rig, rig.connect() as client:
        error, _ = outcome(await client.ask(produce(message_set + bytes(60)), 2))
        assert error == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(
    ("timestamp", "found"),
    [
        (-1, (-1, 3)),
        (-2, (-1, 0)),
        (-3, (NOW_MS, 0)),
        (NOW_MS - 5, (NOW_MS, 0)),
        (NOW_MS + 1, (-1, -1)),
    ],
)
async def test_offsets_are_listed(tmp_path: Path, timestamp: int, found: tuple[int, int]) -> None:
    request = ListOffsetsRequest(
        replica_id=-1,
        topics=(
            ListOffsetsTopic(
                name="t", partitions=(ListOffsetsPartition(partition_index=0, timestamp=timestamp),)
            ),
        ),
    )
    async with serving(tmp_path) as rig, rig.connect() as client:
        await client.ask(produce(batch(b"a", b"b", b"c")))
        for version in APIS[ListOffsetsRequest.API_KEY].versions[1:]:
            (topic,) = (await client.ask(request, version)).topics
            (partition,) = topic.partitions
            assert partition.error_code == ErrorCode.NONE
            assert (partition.timestamp, partition.offset) == found


async def test_a_timestamp_without_a_meaning_is_refused(tmp_path: Path) -> None:
    asked = ListOffsetsPartition(partition_index=0, timestamp=-9)
    topics = (ListOffsetsTopic(name="t", partitions=(asked,)),)
    async with serving(tmp_path) as rig, rig.connect() as client:
        (topic,) = (await client.ask(ListOffsetsRequest(replica_id=-1, topics=topics))).topics
    assert topic.partitions[0].error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    ("timestamp", "most", "offsets"),
    [
        (-1, 9, (3, 2, 1, 0)),
        (-1, 1, (3,)),
        (-1, 0, ()),
        (-2, 9, (0,)),
        (NOW_MS, 9, ()),
        (NOW_MS + 1, 2, (2, 1)),
    ],
)
async def test_the_oldest_version_lists_where_segments_begin(
    tmp_path: Path, timestamp: int, most: int, offsets: tuple[int, ...]
) -> None:
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp, max_num_offsets=most)
    topics = (ListOffsetsTopic(name="t", partitions=(asked,)),)
    async with serving(tmp_path, log_segment_bytes=100) as rig, rig.connect() as client:
        for value in (b"a", b"b", b"c"):
            await client.ask(produce(batch(value)))
        (topic,) = (await client.ask(ListOffsetsRequest(replica_id=-1, topics=topics), 0)).topics
    (partition,) = topic.partitions
    assert (partition.error_code, partition.old_style_offsets) == (ErrorCode.NONE, offsets)


async def test_records_are_deleted_up_to_an_offset(tmp_path: Path) -> None:
    def request(offset: int) -> DeleteRecordsRequest:
        partition = DeleteRecordsPartition(partition_index=0, offset=offset)
        topics = (DeleteRecordsTopic(name="t", partitions=(partition,)),)
        return DeleteRecordsRequest(topics=topics, timeout_ms=1_000)

    async with serving(tmp_path) as rig, rig.connect() as client:
        for _ in range(3):
            await client.ask(produce(batch(b"a")))
        (topic,) = (await client.ask(request(2))).topics
        assert topic.partitions[0].low_watermark == 2
        assert only(await client.ask(fetch(1))).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        (topic,) = (await client.ask(request(9))).topics
        assert topic.partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_log_folders_are_described_with_the_partitions_that_are_asked_for(
    tmp_path: Path,
) -> None:
    asked = DescribableLogDirTopic(topic="t", partitions=(0, 7))
    async with serving(tmp_path) as rig, rig.connect() as client:
        await client.ask(produce(batch(b"a")))
        (all_,) = (await client.ask(DescribeLogDirsRequest(topics=None))).results
        (some,) = (await client.ask(DescribeLogDirsRequest(topics=(asked,)))).results
        (none,) = (await client.ask(DescribeLogDirsRequest(topics=()))).results
    assert (all_.error_code, all_.log_dir) == (ErrorCode.NONE, str(tmp_path / "logs"))
    assert 0 < all_.usable_bytes < all_.total_bytes
    (topic,) = all_.topics
    assert [(one.partition_index, one.offset_lag) for one in topic.partitions] == [(0, 0), (1, 0)]
    assert [one.partition_size for one in topic.partitions] == [len(batch(b"a")), 0]
    assert [one.partitions for one in some.topics] == [topic.partitions[:1]]
    assert none.topics == ()


def moving(path: Path) -> AlterReplicaLogDirsRequest:
    topics = (
        AlterReplicaLogDirTopic(name="t", partitions=(0, 7)),
        AlterReplicaLogDirTopic(name="strange", partitions=(0,)),
    )
    return AlterReplicaLogDirsRequest(dirs=(AlterReplicaLogDir(path=str(path), topics=topics),))


def outcomes(answer: Any) -> list[ErrorCode]:
    return [one.error_code for topic in answer.results for one in topic.partitions]


async def test_a_replica_is_moved_nowhere_but_to_the_folder_that_it_lies_in(tmp_path: Path) -> None:
    async with serving(tmp_path) as rig, rig.connect() as client:
        stays = await client.ask(moving(tmp_path / "logs"))
        unknown = await client.ask(moving(tmp_path / "elsewhere"))
        log = rig.node.logs.logs[TopicPartition("t", 0)]
        rig.node.logs.blame(log, OSError(5, "the disk is gone"))
        offline = await client.ask(moving(tmp_path / "logs"))
    nowhere = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert outcomes(stays) == [ErrorCode.NONE, nowhere, nowhere]
    assert outcomes(unknown) == [ErrorCode.LOG_DIR_NOT_FOUND] * 3
    assert outcomes(offline) == [ErrorCode.KAFKA_STORAGE_ERROR] * 3


async def test_a_log_folder_that_failed_is_told_as_offline(tmp_path: Path) -> None:
    async with serving(tmp_path) as rig, rig.connect() as client:
        log = rig.node.logs.logs[TopicPartition("t", 0)]
        rig.node.logs.blame(log, OSError(5, "the disk is gone"))
        (folder,) = (await client.ask(DescribeLogDirsRequest(topics=None))).results
    assert (folder.error_code, folder.topics) == (ErrorCode.KAFKA_STORAGE_ERROR, ())


EVERY_VERSION: list[tuple[Any, set[ErrorCode]]] = [
    (MetadataRequest(topics=(MetadataRequestTopic(name="t"),)), {ErrorCode.LEADER_NOT_AVAILABLE}),
    (ApiVersionsRequest(), set()),
    (
        DescribeConfigsRequest(
            resources=(
                DescribeConfigsResource(
                    resource_type=2, resource_name="t", configuration_keys=None
                ),
                DescribeConfigsResource(
                    resource_type=4, resource_name="0", configuration_keys=None
                ),
                DescribeConfigsResource(
                    resource_type=4, resource_name="7", configuration_keys=None
                ),
            )
        ),
        {ErrorCode.INVALID_REQUEST},
    ),
    (DescribeLogDirsRequest(topics=None), set()),
    (AlterReplicaLogDirsRequest(dirs=()), set()),
    (DescribeClusterRequest(include_cluster_authorized_operations=True), set()),
    (InitProducerIdRequest(transaction_timeout_ms=1), set()),
    (
        OffsetForLeaderEpochRequest(
            topics=(
                OffsetForLeaderTopic(
                    topic="t", partitions=(OffsetForLeaderPartition(partition=0, leader_epoch=5),)
                ),
            )
        ),
        set(),
    ),
    (
        CreateTopicsRequest(
            topics=(
                CreatableTopic(
                    name="n", num_partitions=1, replication_factor=1, assignments=(), configs=()
                ),
            )
        ),
        {ErrorCode.NOT_CONTROLLER},
    ),
    (produce(batch(b"a")), set()),
    (produce(batch(b"a"), partition=2), {ErrorCode.NOT_LEADER_OR_FOLLOWER}),
]
"""Requests, and the errors in their answers: what is asked for is there, or for a reason not."""


def errors_in(answer: object) -> set[ErrorCode]:
    """Return every error code of an answer, at whatever depth."""
    if is_dataclass(answer):
        found = set()
        for one in fields(answer):
            value = getattr(answer, one.name)
            if one.name == "error_code":
                found.add(ErrorCode(value))
            else:
                found |= errors_in(value)
        return found - {ErrorCode.NONE}
    if isinstance(answer, tuple | list):
        return set().union(*map(errors_in, answer))
    return set()


@pytest.mark.parametrize(
    ("request_", "errors"), EVERY_VERSION, ids=[type(one).__name__ for one, _ in EVERY_VERSION]
)
async def test_every_version_that_is_listed_is_answered(
    tmp_path: Path, request_: ProduceRequest, errors: set[ErrorCode]
) -> None:
    async with serving(tmp_path) as rig, rig.connect() as client:
        for version in APIS[request_.API_KEY].versions:
            assert errors_in(await client.ask(request_, version)) == errors, version


async def test_what_old_librdkafka_looks_for_is_listed() -> None:
    """Up to 2.8 it switches features off unless these versions lie in the ranges."""
    for key, versions in {
        0: (0, 3, 7),
        1: (4, 10),
        2: (1,),
        8: (1, 2),
        9: (1,),
        10: (0,),
        11: (0,),
        12: (0,),
        13: (0,),
        14: (0,),
        18: (0,),
        22: (0,),
    }.items():
        for version in versions:
            assert version in APIS[key].versions


async def test_only_the_admin_client_writes_to_internal_topics(tmp_path: Path) -> None:
    data = PartitionProduceData(index=0, records=batch(b"garbage"))
    topic = TopicProduceData(name="__consumer_offsets", partition_data=(data,))
    request = ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=(topic,))
    async with serving(tmp_path) as rig, rig.connect() as client:
        assert outcome(await client.ask(request)) == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)
        admin = await client.ask(request, client_id="__admin_client")
        assert outcome(admin) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


async def test_a_producer_hears_which_records_are_to_blame(tmp_path: Path) -> None:
    """A client can fail those and send the others again (KIP-467)."""
    times = (NOW_MS, NOW_MS - 3_600_000)
    records = [Record(place, time_ms, b"k", b"v") for place, time_ms in enumerate(times)]
    async with serving(tmp_path) as rig, rig.connect() as client:
        led = rig.node.led("t", 0)
        assert isinstance(led, Partition)
        led.log.config = led.log.config.with_overrides({"message.timestamp.before.max.ms": "60000"})
        answer = await client.ask(produce(build_batch(records)))
        [told] = answer.responses[0].partition_responses
        assert told.error_code == ErrorCode.INVALID_TIMESTAMP
        assert [one.batch_index for one in told.record_errors] == [1]
        assert "1 of the batch's records are refused" in (told.error_message or "")
        older = (await client.ask(produce(build_batch(records)), 7)).responses[0]
        assert older.partition_responses[0].error_code == ErrorCode.INVALID_TIMESTAMP
        assert outcome(await client.ask(produce(build_batch(records[:1])))) == (ErrorCode.NONE, 0)
