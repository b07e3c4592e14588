"""The evidence topic of one cluster: read whole, and written one record at a time."""

from collections.abc import Mapping, Sequence
from typing import Final

import trio

from runtime.pair.evidence import TOPIC, Evidence, EvidenceGarbled, decode_evidence
from wire.errors import ErrorCode, describe
from wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from wire.net import Cluster, NetworkFault, RequestRefused
from wire.net.operations import EARLIEST, LATEST, append, list_offsets, read_partition
from wire.net.retries import code_of
from wire.record_batch import (
    BatchHeader,
    CorruptBatch,
    Record,
    build_batch,
    crc_is_valid,
    iterate_records,
)
from wire.topic_partition import TopicPartition

PARTITION: Final = TopicPartition(TOPIC, 0)
SETTINGS: Final = {"cleanup.policy": "compact", "unclean.leader.election.enable": "false"}
"""Evidence that lost its last record would agree with a witness that did."""
REPLICAS: Final = 3
"""At most; fewer where there are fewer brokers."""
TIMEOUT_MS: Final = 15_000
LEADER_TIMEOUT_S: Final = 15.0
LOOK_AGAIN_S: Final = 0.05


class EvidenceUnreadable(NetworkFault):
    """The topic is there, and does not tell what it holds; the message says why."""


async def read_evidence(cluster: Cluster, key: bytes) -> Sequence[Evidence]:
    """Return the last evidence of each pair that the cluster carries; none without the topic.

    A record that is not understood is passed over, unless it has this pair's key. Raises
    NetworkFault, also where the topic may not be read.
    """
    view = (await cluster.metadata([TOPIC], refresh=True)).topics.get(TOPIC)
    if view is None or view.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return ()
    if view.error_code != ErrorCode.NONE:
        raise EvidenceUnreadable(f"{TOPIC}: {describe(view.error_code)}")
    start = (await list_offsets(cluster, [PARTITION], EARLIEST))[PARTITION]
    end = (await list_offsets(cluster, [PARTITION], LATEST))[PARTITION]
    for bound in (start, end):
        if isinstance(bound, ErrorCode):
            cluster.forget(TOPIC)
            raise EvidenceUnreadable(f"{TOPIC}: {bound.name}")
    assert isinstance(start, int), "checked above"
    assert isinstance(end, int), "checked above"
    records: dict[bytes, bytes] = {}
    try:
        async for header, batch in read_partition(cluster, *PARTITION, start, end):
            records |= _key_values(header, batch)
    except CorruptBatch as fault:
        raise EvidenceUnreadable(f"{TOPIC}: {fault}") from fault
    return _understood(records, key)


def _key_values(header: BatchHeader, batch: memoryview) -> dict[bytes, bytes]:
    """Return the last value of each key in a batch; raises CorruptBatch."""
    if not crc_is_valid(batch):
        raise CorruptBatch(0, "wrong checksum")
    if header.is_control:
        return {}
    return {
        record.key: record.value or b""
        for record in iterate_records(batch)
        if record.key is not None
    }


def _understood(records: Mapping[bytes, bytes], ours: bytes) -> list[Evidence]:
    """Return what is evidence; raises EvidenceUnreadable where the pair's own is none."""
    found: list[Evidence] = []
    for key, value in records.items():
        try:
            found.append(decode_evidence(key, value))
        except EvidenceGarbled as fault:
            if key == ours:
                raise EvidenceUnreadable(f"{TOPIC} holds for {ours!r} {fault}") from fault
    return found


async def write_evidence(cluster: Cluster, evidence: Evidence, now_ms: int) -> None:
    """Return once the evidence is durable on the cluster, which gets the topic if it has none.

    Raises NetworkFault.
    """
    await _ensure_topic(cluster)
    key, value = evidence.encode()
    batch = build_batch([Record(0, now_ms, key, value)])
    answer = await append(cluster, *PARTITION, batch)
    if answer.error_code != ErrorCode.NONE:
        cluster.forget(TOPIC)
        raise RequestRefused(f"writing to {TOPIC}", code_of(answer.error_code))


async def _ensure_topic(cluster: Cluster) -> None:
    """Return when the topic exists and has a leader."""
    with trio.move_on_after(LEADER_TIMEOUT_S):
        while True:
            view = await cluster.metadata([TOPIC], refresh=True)
            found = view.topics.get(TOPIC)
            if found is not None and found.error_code == ErrorCode.NONE:
                if all(partition.leader >= 0 for partition in found.partitions.values()):
                    return
            else:
                await _create(cluster, max(1, min(REPLICAS, len(view.brokers))))
            await trio.sleep(LOOK_AGAIN_S)
    raise RequestRefused(f"creating {TOPIC}", ErrorCode.LEADER_NOT_AVAILABLE)


async def _create(cluster: Cluster, replicas: int) -> None:
    topic = CreatableTopic(
        name=TOPIC,
        num_partitions=1,
        replication_factor=replicas,
        assignments=(),
        configs=tuple(
            CreatableTopicConfig(name=name, value=value) for name, value in sorted(SETTINGS.items())
        ),
    )
    answer = await cluster.request_controller(
        CreateTopicsRequest(topics=(topic,), timeout_ms=TIMEOUT_MS, validate_only=False)
    )
    code = code_of(answer.topics[0].error_code)
    if code not in {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}:
        raise RequestRefused(f"creating {TOPIC}", code)
