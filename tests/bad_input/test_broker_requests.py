"""Well-formed requests for what cannot be: an error code each, and nothing left behind."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bad_input.asking import ask
from tests.clusters import RunningCluster, run_cluster
from tests.failover.two_sites import create_topic, produce, read_all, values_of
from tests.fuzz.processes import resident_bytes
from tests.mirror.daemon import wait_until
from wire.errors import ErrorCode
from wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from wire.messages.find_coordinator import FindCoordinatorRequest
from wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

pytestmark = pytest.mark.integration

ESCAPING = ("../x", "", "x" * 250, ".", "..", "a/b", "/etc", "nul\0", "é", "line\nfeed", "a\\b")
GROUPS = ("группа", "グループ", "\U0001f4a5", "a/b", "../x", "nul\0", "\u202etxet", "g" * 10_000)
MEGABYTE = 2**20


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    with run_cluster(tmp_path_factory.mktemp("requests"), shares_zookeeper=True) as running:
        create_topic(running, "t")
        produce(running, "t", range(10))
        wait_until("a coordinator", lambda: join(running, "first") is ErrorCode.NONE)
        yield running
        assert values_of(read_all(running, "t")) == list(range(10))
        said = (running.data / "broker-0" / "broker.log").read_text()
        assert "Traceback" not in said


def files_of(cluster: RunningCluster) -> set[Path]:
    """Return every folder that a topic's name could have made."""
    found = {path for path in cluster.data.parent.rglob("*") if path.is_dir()}
    return {path for path in found if "zookeeper" not in path.parts}


def create(cluster: RunningCluster, name: str, **fields: object) -> ErrorCode:
    topic = CreatableTopic(
        name=name,
        **{
            "num_partitions": 1,
            "replication_factor": 1,
            "assignments": (),
            "configs": (),
            **fields,
        },  # type: ignore[arg-type]
    )
    answer = ask(cluster, CreateTopicsRequest(topics=(topic,), timeout_ms=5_000))
    return ErrorCode(answer.topics[0].error_code)


@pytest.mark.parametrize("name", ESCAPING, ids=repr)
def test_a_topic_name_that_could_leave_the_folder_is_refused_everywhere(
    cluster: RunningCluster, name: str
) -> None:
    before = files_of(cluster)
    assert create(cluster, name) is ErrorCode.INVALID_TOPIC_EXCEPTION
    asked = MetadataRequest(topics=(MetadataRequestTopic(name=name),))
    assert ask(cluster, asked).topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    data = PartitionProduceData(index=0, records=b"x" * 61)
    produced = ProduceRequest(
        acks=-1,
        timeout_ms=1_000,
        topic_data=(TopicProduceData(name=name, partition_data=(data,)),),
    )
    [topic] = ask(cluster, produced).responses
    assert topic.partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    fetched = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        topics=(
            FetchTopic(
                topic=name,
                partitions=(FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=100),),
            ),
        ),
    )
    [topic] = ask(cluster, fetched, 12).responses
    assert topic.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert files_of(cluster) == before


@pytest.mark.parametrize("count", [0, -2, -(2**31), 100_001, 2**31 - 1])
def test_absurd_partition_counts_are_refused(cluster: RunningCluster, count: int) -> None:
    assert create(cluster, "absurd", num_partitions=count) is ErrorCode.INVALID_PARTITIONS


@pytest.mark.parametrize("factor", [0, -2, -(2**15), 2, 2**15 - 1])
def test_absurd_replication_factors_are_refused(cluster: RunningCluster, factor: int) -> None:
    code = create(cluster, "absurd", replication_factor=factor)
    assert code is ErrorCode.INVALID_REPLICATION_FACTOR


@pytest.mark.parametrize(
    "brokers", [(), (7,), (0, 0), (-1,), tuple(range(1_000))], ids=lambda brokers: str(brokers[:3])
)
def test_assignments_to_nobody_are_refused(
    cluster: RunningCluster, brokers: tuple[int, ...]
) -> None:
    assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=brokers)
    code = create(
        cluster,
        "absurd",
        num_partitions=-1,
        replication_factor=-1,
        assignments=(assignment,),
    )
    assert code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def join(cluster: RunningCluster, group: str, **fields: object) -> ErrorCode:
    """Have a member join; who asks for the coordinator first has its topic made."""
    ask(cluster, FindCoordinatorRequest(key=group), 1)
    request = JoinGroupRequest(
        **{
            "group_id": group,
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 10_000,
            "member_id": "",
            "protocol_type": "consumer",
            "protocols": (JoinGroupRequestProtocol(name="range", metadata=b"m"),),
            **fields,
        }  # type: ignore[arg-type]
    )
    return ErrorCode(ask(cluster, request, 3).error_code)


@pytest.mark.parametrize("session_ms", [0, -1, -(2**31), 5_999, 1_800_001, 2**31 - 1])
def test_absurd_session_timeouts_are_refused(cluster: RunningCluster, session_ms: int) -> None:
    code = join(cluster, "absurd", session_timeout_ms=session_ms)
    assert code is ErrorCode.INVALID_SESSION_TIMEOUT


@pytest.mark.parametrize("group", GROUPS, ids=ascii)
def test_a_group_may_have_any_name(cluster: RunningCluster, group: str) -> None:
    assert join(cluster, group) is ErrorCode.NONE


def commit(cluster: RunningCluster, metadata: str) -> ErrorCode:
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=5, committed_metadata=metadata
    )
    topic = OffsetCommitRequestTopic(name="t", partitions=(partition,))
    answer = ask(cluster, OffsetCommitRequest(group_id="committing", topics=(topic,)), 8)
    return ErrorCode(answer.topics[0].partitions[0].error_code)


def test_metadata_of_megabytes_is_refused_and_costs_no_memory(cluster: RunningCluster) -> None:
    assert commit(cluster, "note") is ErrorCode.NONE
    before = resident_bytes(cluster.pids[0])
    for _ in range(20):
        assert commit(cluster, "x" * MEGABYTE) is ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert resident_bytes(cluster.pids[0]) < before + 50 * MEGABYTE
