"""Every version of the APIs that clients use, asked of Apache Kafka: each answer says the same."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest

from tests.clusters import RunningCluster, run_cluster
from tests.interop.client_calls import allocate_producer, create_topic
from tests.interop.peers import KAFKA_3_ZOOKEEPER, KafkaCluster
from wire.errors import ErrorCode
from wire.messages.api_versions import ApiVersionsRequest
from wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from wire.messages.describe_cluster import DescribeClusterRequest
from wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from wire.messages.describe_groups import DescribeGroupsRequest
from wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from wire.messages.find_coordinator import FindCoordinatorRequest
from wire.messages.init_producer_id import InitProducerIdRequest
from wire.messages.list_groups import ListGroupsRequest
from wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from wire.net import Cluster, open_cluster
from wire.net.operations import append, commit_group_offsets
from wire.record_batch import Record, build_batch, iterate_batches, iterate_records
from wire.topic_partition import TopicPartition

pytestmark = pytest.mark.matrix(subject="Our protocol client (wire) against Apache Kafka")

TOPIC: Final = "versions"
GROUP: Final = "versions-group"
BATCH: Final = build_batch(
    [Record(offset=n, timestamp_ms=1_700_000_000_000 + n, key=b"k", value=b"v") for n in range(3)]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A request in each version, and what its answer must say whatever the version."""

    ask: Callable[[int, UUID], Any]
    told: Callable[[Any, int], Any]
    expected: Any
    versions: range = range(100)
    """Versions outside were never given to this question, although the API has them."""


def _fetch(version: int, topic_id: UUID) -> FetchRequest:
    place = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topic = (
        FetchTopic(topic=TOPIC, partitions=(place,))
        if version <= 12
        else FetchTopic(topic_id=topic_id, partitions=(place,))
    )
    return FetchRequest(max_wait_ms=100, min_bytes=1, topics=(topic,))


def _fetched(answer: Any, _version: int) -> Any:
    place = answer.responses[0].partitions[0]
    records = [
        record.value
        for _, batch in iterate_batches(place.records)
        for record in iterate_records(batch)
    ]
    return place.error_code, place.high_watermark, records


def _find_coordinator(version: int, _topic_id: UUID) -> FindCoordinatorRequest:
    if version < 4:
        return FindCoordinatorRequest(key=GROUP)
    return FindCoordinatorRequest(coordinator_keys=(GROUP,))


def _coordinator(answer: Any, version: int) -> Any:
    found = answer if version < 4 else answer.coordinators[0]
    return found.error_code, found.host


def _offset_fetch(version: int, _topic_id: UUID) -> OffsetFetchRequest:
    if version < 8:
        topic = OffsetFetchRequestTopic(name=TOPIC, partition_indexes=(0,))
        return OffsetFetchRequest(group_id=GROUP, topics=(topic,))
    topics = (OffsetFetchRequestTopics(name=TOPIC, partition_indexes=(0,)),)
    return OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=GROUP, topics=topics),))


def _committed(answer: Any, version: int) -> Any:
    found = answer if version < 8 else answer.groups[0]
    place = found.topics[0].partitions[0]
    return found.topics[0].name, place.committed_offset, place.metadata, place.error_code


def _list_offsets(_version: int, _topic_id: UUID) -> ListOffsetsRequest:
    place = ListOffsetsPartition(partition_index=0, timestamp=1_700_000_000_001)
    return ListOffsetsRequest(
        replica_id=-1, topics=(ListOffsetsTopic(name=TOPIC, partitions=(place,)),)
    )


def _offset_commit(_version: int, _topic_id: UUID) -> OffsetCommitRequest:
    place = OffsetCommitRequestPartition(partition_index=0, committed_offset=2)
    return OffsetCommitRequest(
        group_id="other-group",
        topics=(OffsetCommitRequestTopic(name=TOPIC, partitions=(place,)),),
    )


def _produce(_version: int, _topic_id: UUID) -> ProduceRequest:
    data = (PartitionProduceData(index=1, records=BATCH),)
    return ProduceRequest(
        acks=-1,
        timeout_ms=10_000,
        topic_data=(TopicProduceData(name=TOPIC, partition_data=data),),
    )


def _produced(answer: Any, _version: int) -> Any:
    place = answer.responses[0].partition_responses[0]
    return place.index, place.error_code, place.base_offset % 3


def _leader_epoch(_version: int, _topic_id: UUID) -> OffsetForLeaderEpochRequest:
    place = OffsetForLeaderPartition(partition=0, leader_epoch=0)
    return OffsetForLeaderEpochRequest(
        topics=(OffsetForLeaderTopic(topic=TOPIC, partitions=(place,)),)
    )


def _create(_version: int, _topic_id: UUID) -> CreateTopicsRequest:
    topic = CreatableTopic(
        name=TOPIC, num_partitions=1, replication_factor=1, assignments=(), configs=()
    )
    return CreateTopicsRequest(topics=(topic,), timeout_ms=5_000)


def _describe_configs(_version: int, _topic_id: UUID) -> DescribeConfigsRequest:
    keys = ("cleanup.policy", "retention.ms")
    resource = DescribeConfigsResource(
        resource_type=2, resource_name=TOPIC, configuration_keys=keys
    )
    return DescribeConfigsRequest(resources=(resource,))


QUESTIONS: Final = {
    "Produce": Question(
        ask=_produce, told=_produced, expected=(1, ErrorCode.NONE, 0), versions=range(3, 100)
    ),
    "Fetch": Question(
        ask=_fetch,
        told=_fetched,
        expected=(ErrorCode.NONE, 3, [b"v"] * 3),
        versions=range(4, 100),
    ),
    "ListOffsets": Question(
        ask=_list_offsets,
        told=lambda answer, _: [
            (place.error_code, place.offset) for place in answer.topics[0].partitions
        ],
        expected=[(ErrorCode.NONE, 1)],
        versions=range(1, 100),
    ),
    "Metadata": Question(
        ask=lambda _v, _i: MetadataRequest(topics=(MetadataRequestTopic(name=TOPIC),)),
        told=lambda answer, _: [
            (topic.name, topic.error_code, len(topic.partitions)) for topic in answer.topics
        ],
        expected=[(TOPIC, ErrorCode.NONE, 2)],
    ),
    "OffsetCommit": Question(
        ask=_offset_commit,
        told=lambda answer, _: answer.topics[0].partitions[0].error_code,
        expected=ErrorCode.NONE,
        versions=range(1, 100),
    ),
    "OffsetFetch": Question(
        ask=_offset_fetch,
        told=_committed,
        expected=(TOPIC, 2, "here", ErrorCode.NONE),
        versions=range(1, 100),
    ),
    "FindCoordinator": Question(
        ask=_find_coordinator, told=_coordinator, expected=(ErrorCode.NONE, "127.0.0.1")
    ),
    "DescribeGroups": Question(
        ask=lambda _v, _i: DescribeGroupsRequest(groups=(GROUP,)),
        told=lambda answer, _: [(group.group_id, group.group_state) for group in answer.groups],
        expected=[(GROUP, "Empty")],
    ),
    "ListGroups": Question(
        ask=lambda _v, _i: ListGroupsRequest(),
        told=lambda answer, _: GROUP in {group.group_id for group in answer.groups},
        expected=True,
    ),
    "ApiVersions": Question(
        ask=lambda version, _i: (
            ApiVersionsRequest()
            if version < 3
            else ApiVersionsRequest(client_software_name="t", client_software_version="1")
        ),
        told=lambda answer, _: {18, 3, 1, 0} <= {api.api_key for api in answer.api_keys},
        expected=True,
    ),
    "CreateTopics": Question(
        ask=_create,
        told=lambda answer, _: answer.topics[0].error_code,
        expected=ErrorCode.TOPIC_ALREADY_EXISTS,
    ),
    "InitProducerId": Question(
        ask=lambda _v, _i: InitProducerIdRequest(transaction_timeout_ms=60_000),
        told=lambda answer, _: (answer.error_code, answer.producer_epoch),
        expected=(ErrorCode.NONE, 0),
    ),
    "OffsetForLeaderEpoch": Question(
        ask=_leader_epoch,
        told=lambda answer, _: answer.topics[0].partitions[0].end_offset,
        expected=3,
    ),
    "DescribeConfigs": Question(
        ask=_describe_configs,
        told=lambda answer, _: {config.name: config.value for config in answer.results[0].configs},
        expected={"cleanup.policy": "delete", "retention.ms": "-1"},
    ),
    "DescribeCluster": Question(
        ask=lambda _v, _i: DescribeClusterRequest(include_cluster_authorized_operations=False),
        told=lambda answer, _: len(answer.brokers),
        expected=1,
    ),
}


async def test_every_common_version_of_every_api_is_answered_alike(kafka: KafkaCluster) -> None:
    await _ask_every_version(kafka)


@pytest.mark.matrix(
    subject="The bundled broker answers like Apache Kafka", against=str(KAFKA_3_ZOOKEEPER)
)
async def test_every_version_of_fifteen_apis_is_answered_as_apache_kafka_does(
    tmp_path: Path,
) -> None:
    with run_cluster(tmp_path) as bundled:
        await _ask_every_version(bundled)


async def _ask_every_version(broker: KafkaCluster | RunningCluster) -> None:
    async with open_cluster(broker.addresses, client_id="interop") as cluster:
        topic_id = await _prepare(cluster)
        connection = await cluster.any_connection()
        told: dict[str, dict[int, Any]] = {}
        for name, question in QUESTIONS.items():
            told[name] = {}
            for version in await _common_versions(cluster, question.ask(99, topic_id)):
                if version in question.versions:
                    answer = await connection.request(
                        question.ask(version, topic_id), version=version
                    )
                    told[name][version] = question.told(answer, version)
    wrong = {
        f"{name} v{version}": said
        for name, question in QUESTIONS.items()
        for version, said in told[name].items()
        if said != question.expected
    }
    assert wrong == {}
    assert all(told.values())


async def _prepare(cluster: Cluster) -> UUID:
    await create_topic(cluster, TOPIC, partitions=2)
    answer = await append(cluster, TOPIC, 0, BATCH)
    assert answer.error_code == ErrorCode.NONE
    await commit_group_offsets(cluster, GROUP, {TopicPartition(TOPIC, 0): (2, "here")})
    await allocate_producer(cluster)
    return (await cluster.metadata((TOPIC,))).topics[TOPIC].topic_id


async def _common_versions(cluster: Cluster, request: Any) -> range:
    connection = await cluster.any_connection()
    answer = await connection.request(ApiVersionsRequest(), version=0)
    theirs = {api.api_key: api for api in answer.api_keys}[request.API_KEY]
    ours = request.VERSIONS
    return range(max(ours.start, theirs.min_version), min(ours.stop, theirs.max_version + 1))
