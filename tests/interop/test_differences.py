"""The bundled broker and Apache Kafka 3.9, asked the same odd things: the answers are compared."""

import dataclasses
from operator import itemgetter
from typing import Any, Final

import pytest
import trio

from tests.clusters import RunningCluster, run_cluster
from tests.interop.client_calls import create_topic
from tests.interop.odd_requests import GROUP, ODD_REQUESTS, TOPIC
from tests.interop.peers import KAFKA_3_ZOOKEEPER, KafkaCluster, run_kafka
from wire.errors import ErrorCode
from wire.net import Cluster, NetworkFault, open_cluster
from wire.net.operations import append, commit_group_offsets
from wire.record_batch import Record, build_batch
from wire.topic_partition import TopicPartition

pytestmark = pytest.mark.matrix(
    subject="The bundled broker answers like Apache Kafka", against=str(KAFKA_3_ZOOKEEPER)
)

OVERRIDES: Final = {
    "offsets.topic.num.partitions": "4",
    "num.partitions": "3",
    "default.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "0",
}
OWN: Final = frozenset(
    {
        "brokers",
        "cluster_id",
        "controller_id",
        "error_message",
        "batch_index_error_message",
        "host",
        "leader_epoch",
        "log_append_time_ms",
        "member_id",
        "node_id",
        "port",
        "session_id",
        "throttle_time_ms",
        "topic_id",
    }
)
"""What may differ: names and numbers of its own, and the wording of errors."""

_APPEND_ERROR: Final = ["log_start_offset"]
"""Apache tells the log's start with errors that it finds while appending."""
HARMLESS: Final = {
    "produce: a control batch": _APPEND_ERROR,
    "produce: a hole at the end": _APPEND_ERROR,
    "produce: a hole, compressed": _APPEND_ERROR,
    "produce: a producer id without sequence": _APPEND_ERROR,
    "produce: an older epoch": _APPEND_ERROR,
    "produce: a newer epoch not from 0": _APPEND_ERROR,
    "produce: half a batch": ["error_code"],
    "fetch: a diverging epoch": ["high_watermark", "log_start_offset"],
    "fetch: behind the end": ["high_watermark", "log_start_offset"],
    "fetch: before the start": ["high_watermark", "log_start_offset"],
    "fetch: an unknown topic id": ["aborted_transactions"],
    "fetch: an unknown partition": ["aborted_transactions"],
    "fetch: a leader epoch to come": ["leader_id"],
}
"""Differences that no client acts on. An entry that is no longer true fails the test."""


def api_of(name: str) -> str:
    """Return what stands before the colon."""
    return name.partition(":")[0]


APIS: Final = tuple(dict.fromkeys(api_of(name) for name in ODD_REQUESTS))


@pytest.fixture(scope="module")
def answers(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What both say to every odd request, in the same order."""
    with run_kafka(
        tmp_path_factory.mktemp("apache"), KAFKA_3_ZOOKEEPER, overrides=OVERRIDES
    ) as apache:
        theirs = trio.run(ask_all, apache)
    with run_cluster(tmp_path_factory.mktemp("bundled"), overrides=OVERRIDES) as bundled:
        ours = trio.run(ask_all, bundled)
    return theirs, ours


@pytest.mark.parametrize("api", APIS)
def test_odd_requests_are_answered_alike(
    answers: tuple[dict[str, Any], dict[str, Any]], api: str
) -> None:
    theirs, ours = answers
    asked = [name for name in ODD_REQUESTS if api_of(name) == api]
    differences = {name: found for name in asked if (found := difference(theirs[name], ours[name]))}
    told = {name: sorted(found) for name, found in differences.items()}
    assert told == {name: HARMLESS[name] for name in asked if name in HARMLESS}


async def ask_all(broker: RunningCluster | KafkaCluster) -> dict[str, Any]:
    """Prepare the topic and the group, then ask everything, one after the other."""
    said: dict[str, Any] = {}
    async with open_cluster(broker.addresses, client_id="interop") as cluster:
        await create_topic(cluster, TOPIC, partitions=2)
        records = [
            Record(offset=n, timestamp_ms=1_000 + n, key=b"k", value=b"v") for n in range(10)
        ]
        answer = await append(cluster, TOPIC, 0, build_batch(records))
        assert answer.error_code == ErrorCode.NONE
        await commit_group_offsets(cluster, GROUP, {TopicPartition(TOPIC, 0): (3, "here")})
        topic_id = (await cluster.metadata((TOPIC,))).topics[TOPIC].topic_id
        for name, build in ODD_REQUESTS.items():
            said[name] = await ask(cluster, build(topic_id))
    return said


async def ask(cluster: Cluster, request: Any) -> Any:
    """Return the comparable part of an answer, or how the connection ended."""
    try:
        answer = await (await cluster.any_connection()).request(request, timeout_ms=10_000)
    except NetworkFault as fault:
        return type(fault).__name__
    return comparable(answer)


def comparable(value: Any) -> Any:
    """Return a message as plain values without what each broker has of its own."""
    if dataclasses.is_dataclass(value):
        return {
            field.name: comparable(getattr(value, field.name))
            for field in dataclasses.fields(value)
            if field.name not in OWN
        }
    if isinstance(value, tuple):
        return [comparable(item) for item in value]
    return bytes(value) if isinstance(value, memoryview) else value


def difference(theirs: Any, ours: Any, field: str = "") -> set[str]:
    """Return the names of the fields that differ; settings have no order."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return {name for key in theirs for name in difference(theirs[key], ours.get(key), key)}
    if isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        if field == "configs":
            theirs, ours = (sorted(one, key=itemgetter("name")) for one in (theirs, ours))
        pairs = zip(theirs, ours, strict=True)
        return {name for their, our in pairs for name in difference(their, our, field)}
    return set() if theirs == ours else {field}
