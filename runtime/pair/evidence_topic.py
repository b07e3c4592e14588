"""The evidence topic of one cluster: read whole, and written one record at a time."""

import logging
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from runtime.pair.evidence import TOPIC, Evidence, EvidenceGarbled, decode_evidence
from wire.errors import ErrorCode, describe
from wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from wire.net import Cluster, NetworkFault, RequestRefused
from wire.net.operations import EARLIEST, LATEST, append, list_offsets, read_partition
from wire.net.retries import code_of
from wire.net.topic_creation import TopicRefused, ensure_topic
from wire.record_batch import (
    BatchHeader,
    CorruptBatch,
    Record,
    build_batch,
    crc_is_valid,
    iterate_records,
)
from wire.topic_partition import TopicPartition

_LOG = logging.getLogger(__name__)

TOPIC_RESOURCE: Final = 2
SET: Final = 0
"""As DescribeConfigs and AlterConfigs number them."""
PARTITION: Final = TopicPartition(TOPIC, 0)
SETTINGS: Final = {"cleanup.policy": "compact", "unclean.leader.election.enable": "false"}
"""Evidence that lost its last record would agree with a witness that did."""


class EvidenceUnreadable(NetworkFault):
    """The topic is there, and does not tell what it holds; the message says why."""


class PairsEvidence(NamedTuple):
    """What one cluster carries: the newest evidence of each pair."""

    newest: Sequence[Evidence] = ()
    has_lost: bool = False
    """Whether records of the topic are gone, and none with the key that was asked for is left."""


async def read_evidence(cluster: Cluster, key: bytes) -> PairsEvidence:
    """Return the newest evidence of each pair that the cluster carries; none without the topic.

    Newest is what has the latest epoch and number, for as long as the cleaner keeps it: whoever
    writes something older behind it hides nothing. A record that is not understood is passed over,
    unless it is the last one with this pair's key. Raises NetworkFault, also where the topic may
    not be read.
    """
    view = (await cluster.metadata([TOPIC], refresh=True)).topics.get(TOPIC)
    if view is None or view.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return PairsEvidence()
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
    carried, has_records = CarriedEvidence(key), False
    try:
        async for header, batch in read_partition(cluster, *PARTITION, start, end):
            for record_key, value in _key_values(header, batch):
                carried.replay(record_key, value)
                has_records = True
    except CorruptBatch as fault:
        raise EvidenceUnreadable(f"{TOPIC}: {fault}") from fault
    # A cleaner leaves the last record of each key, and the log's start where it is.
    has_lost = not carried.has_met_ours and (start > 0 or (end > 0 and not has_records))
    return PairsEvidence(carried.newest(), has_lost)


def _key_values(header: BatchHeader, batch: memoryview) -> Iterator[tuple[bytes, bytes]]:
    """Yield the records of a batch that have a key, in order; raises CorruptBatch."""
    if not crc_is_valid(batch):
        raise CorruptBatch(0, "wrong checksum")
    if header.is_control:
        return
    for record in iterate_records(batch):
        if record.key is not None:
            yield record.key, record.value or b""


class CarriedEvidence:
    """What a topic says that is replayed record by record."""

    def __init__(self, ours: bytes) -> None:
        """Know the key of the pair whose evidence has to be understood."""
        self._ours: Final = ours
        self._newest: dict[bytes, Evidence] = {}
        self._fault: EvidenceGarbled | None = None
        self.has_met_ours = False
        """Whether any record had the pair's key."""

    def replay(self, key: bytes, value: bytes) -> None:
        """Take the next record."""
        if key == self._ours:
            self._fault, self.has_met_ours = None, True
        try:
            found = decode_evidence(key, value)
        except EvidenceGarbled as fault:
            if key == self._ours:
                self._fault = fault
            return
        known = self._newest.get(key)
        if known is None or known.age <= found.age:
            self._newest[key] = found

    def newest(self) -> list[Evidence]:
        """Return the newest of each pair; raises EvidenceUnreadable where our last is garbled."""
        if self._fault is not None:
            raise EvidenceUnreadable(
                f"{TOPIC} holds for {self._ours!r} {self._fault}"
            ) from self._fault
        return [*self._newest.values()]


async def write_evidence(
    cluster: Cluster, evidence: Evidence, now_ms: int, *, sets_right: bool = False
) -> None:
    """Return once the evidence is durable on the cluster, which gets the topic if it has none.

    With `sets_right` a topic that somebody else has made, or changed, gets its settings first: with
    others its records expire. That takes as long as asking for them. Raises NetworkFault.
    """
    await ensure_topic(cluster, TOPIC, replication_factor=None, configs=SETTINGS)
    if sets_right:
        await set_right(cluster)
    key, value = evidence.encode()
    batch = build_batch([Record(0, now_ms, key, value)])
    answer = await append(cluster, *PARTITION, batch)
    if answer.error_code != ErrorCode.NONE:
        cluster.forget(TOPIC)
        raise RequestRefused(f"writing to {TOPIC}", code_of(answer.error_code))


async def set_right(cluster: Cluster) -> None:
    """Give the topic the settings that keep its records; raises TopicRefused, naming them."""
    resource = DescribeConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=TOPIC, configuration_keys=tuple(SETTINGS)
    )
    [told] = (await cluster.request(DescribeConfigsRequest(resources=(resource,)))).results
    if told.error_code != ErrorCode.NONE:
        _LOG.warning("%s: its settings are not known: %s", TOPIC, describe(told.error_code))
        return
    own = {one.name: one.value for one in told.configs}
    wrong = {name: value for name, value in SETTINGS.items() if own.get(name) != value}
    if not wrong:
        return
    changes = tuple(
        IncrementalAlterConfigsAlterableConfig(name=name, config_operation=SET, value=value)
        for name, value in sorted(wrong.items())
    )
    altered = IncrementalAlterConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=TOPIC, configs=changes
    )
    answer = await cluster.request(
        IncrementalAlterConfigsRequest(resources=(altered,), validate_only=False)
    )
    listed = ",".join(f"{name}={value}" for name, value in sorted(wrong.items()))
    [done] = answer.responses
    if done.error_code != ErrorCode.NONE:
        reason = (
            f"evidence is not kept without {listed}, and setting that is refused:"
            f" {done.error_message or describe(done.error_code)}; set it with `kafka-configs.sh"
            f" --alter --topic {TOPIC} --add-config {listed}`"
        )
        raise TopicRefused(TOPIC, done.error_code, reason)
    _LOG.warning("%s: was there without %s: set", TOPIC, listed)
