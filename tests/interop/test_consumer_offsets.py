"""`__consumer_offsets` of Apache Kafka, read by our decoder: what its own tools say, we say too."""

from pathlib import Path
from typing import Final

import pytest
import trio

from tests.interop.client_calls import create_topic
from tests.interop.peers import KafkaCluster, run_tool
from tests.interop.peers.child import start_child
from tests.interop.peers.java_program import JavaProgram
from tests.interop.peers.tools import GROUPS, VERIFIABLE_CONSUMER, VERIFIABLE_PRODUCER
from wire.consumer_offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetKey,
    OffsetValue,
    decode_group_value,
    decode_key,
    decode_offset_value,
    partition_for,
)
from wire.net import Cluster, open_cluster
from wire.net.operations import LATEST, fetch_group_offsets, list_offsets, read_partition
from wire.record_batch import iterate_records
from wire.topic_partition import TopicPartition

pytestmark = pytest.mark.matrix(subject="Our protocol client (wire) against Apache Kafka")

TOPIC: Final = "__consumer_offsets"
GROUP: Final = "verifiable"
PATIENCE_S: Final = 120


async def test_positions_and_members_are_read_from_the_offsets_topic(
    kafka: KafkaCluster, tmp_path: Path
) -> None:
    version = kafka.kind.version
    async with open_cluster(kafka.addresses, client_id="interop") as cluster:
        await create_topic(cluster, "events", partitions=2)
        run_tool(
            version,
            VERIFIABLE_PRODUCER,
            *("--bootstrap-server", kafka.bootstrap, "--topic", "events"),
            *("--max-messages", "500", "--repeating-keys", "50"),
        )
        program = JavaProgram(version=version, main_class=VERIFIABLE_CONSUMER, heap_mb=256)
        arguments = ["--bootstrap-server", kafka.bootstrap, "--topic", "events"]
        arguments += ["--group-id", GROUP, "--reset-policy", "earliest"]
        consumer = start_child(
            "VerifiableConsumer", program.command(tmp_path, *arguments), log=tmp_path / "out"
        )
        try:
            with trio.fail_after(PATIENCE_S):
                await _wait_committed(cluster, 500)
            offsets, groups = await _replay(cluster)
        finally:
            consumer.stop(patience_s=PATIENCE_S)
        stored = await fetch_group_offsets(cluster, GROUP)
        left_offsets, left_groups = await _replay(cluster)
        run_tool(
            version,
            GROUPS,
            *("--bootstrap-server", kafka.bootstrap, "--delete", "--group", GROUP),
        )
        gone_offsets, gone_groups = await _replay(cluster)

    (member,) = groups[GROUP].members
    assert (groups[GROUP].protocol_type, groups[GROUP].protocol) == ("consumer", "range")
    assert member.client_id.startswith("consumer-")
    assert b"events" in member.subscription
    assert b"events" in member.assignment
    assert {key.partition for key in offsets} == {0, 1}
    assert left_groups[GROUP].members == ()
    assert {(key.topic, key.partition): value.offset for key, value in left_offsets.items()} == {
        place: position.offset for place, position in stored.items()
    }
    assert sum(value.offset for value in left_offsets.values()) == 500
    assert (gone_offsets, gone_groups) == ({}, {})


async def _wait_committed(cluster: Cluster, total: int) -> None:
    while True:
        stored = await fetch_group_offsets(cluster, GROUP)
        if sum(position.offset for position in stored.values()) >= total:
            return
        await trio.sleep(0.2)


async def _replay(
    cluster: Cluster,
) -> tuple[dict[OffsetKey, OffsetValue], dict[str, GroupMetadataValue]]:
    """Return what the topic says of GROUP, and check that each group is in its own partition."""
    offsets: dict[OffsetKey, OffsetValue] = {}
    groups: dict[str, GroupMetadataValue] = {}
    view = await cluster.metadata((TOPIC,), refresh=True)
    count = len(view.topics[TOPIC].partitions)
    ends = await list_offsets(
        cluster, [TopicPartition(TOPIC, partition) for partition in range(count)], LATEST
    )
    for (_, partition), end in ends.items():
        async for header, batch in read_partition(cluster, TOPIC, partition, 0, end):
            for record in () if header.is_control else iterate_records(batch):
                assert record.key is not None
                key = decode_key(record.key)
                assert isinstance(key, OffsetKey | GroupMetadataKey)
                assert partition_for(key.group, count) == partition
                if key.group != GROUP:
                    continue
                if isinstance(key, OffsetKey):
                    offsets.pop(key, None)
                    if record.value is not None:
                        offsets[key] = decode_offset_value(record.value)
                else:
                    groups.pop(key.group, None)
                    if record.value is not None:
                        groups[key.group] = decode_group_value(record.value)
    return offsets, groups
