"""MirrorMaker 2's own topics, for its clients and dashboards: heartbeats and offset syncs.

The mirror keeps checkpoints, the third kind, anyway (mirror.groups.sync). This project never reads
any of these topics.
"""

from collections.abc import Sequence
from typing import Final, TypeAlias

import trio

from mirror.clusters.links import Links
from mirror.state.flow_partitions import FlowPartitions
from mirror.state.live_config import LiveConfig
from mirror.state.wakeups import FlowGate
from offset_translation import heartbeat, offset_sync
from offset_translation.heartbeat import Heartbeat
from offset_translation.offset_sync import syncs_since
from runtime.configuration.flow_section import OffsetSyncs
from runtime.configuration.topic_names import HEARTBEATS
from runtime.process.clock import wall_ms
from runtime.process.fault_note import FaultNote
from wire.errors import ErrorCode
from wire.net.cluster import Cluster
from wire.net.errors import NetworkFault, RequestRefused
from wire.net.operations import append
from wire.net.retries import code_of
from wire.net.topic_creation import ensure_topic
from wire.record_batch import Record, build_batch
from wire.topic_partition import TopicPartition

KeyValue: TypeAlias = tuple[bytes, bytes]

SYNCS_A_BATCH: Final = 1_000


class MirrorMakerTopics:
    """The task of one flow; a fault is told and the next interval tries again."""

    def __init__(
        self, config: LiveConfig, partitions: FlowPartitions, gate: FlowGate, links: Links
    ) -> None:
        self.fault = FaultNote(f"{config.current.name}: MirrorMaker's topics")
        self._config = config
        self._partitions = partitions
        self._gate = gate
        self._links = links
        self._ensured: set[str] = set()
        self._told: dict[TopicPartition, int] = {}
        """The mirrored target end of each partition when its last sync was written."""

    async def run(self) -> None:
        """Write every interval while the flow may write; return at once where nothing is wanted."""
        config = self._config.current.mirrormaker
        while config.heartbeats or config.offset_syncs is not OffsetSyncs.OFF:
            if self._gate.is_open:
                await self._tell()
            await trio.sleep(config.interval_ms / 1000)

    async def _tell(self) -> None:
        config = self._config.current
        if config.mirrormaker.heartbeats:
            beat = Heartbeat(source=config.source, target=config.target, time_ms=wall_ms())
            await self._write(self._links.source_admin, HEARTBEATS, [heartbeat.encode(beat)])
        match config.mirrormaker.offset_syncs:
            case OffsetSyncs.SOURCE:
                topic = config.names.offset_syncs_topic(config.target)
                await self._tell_syncs(self._links.source_admin, topic)
            case OffsetSyncs.TARGET:
                topic = config.names.offset_syncs_topic(config.source)
                await self._tell_syncs(self._links.target_admin, topic)
            case OffsetSyncs.OFF:
                pass

    async def _tell_syncs(self, cluster: Cluster, topic: str) -> None:
        telling: dict[TopicPartition, int] = {}
        records: list[KeyValue] = []
        for topic_partition, partition in self._partitions.known.items():
            end = partition.offset_map.mirrored_target_end
            if partition.target.is_positioned and end is not None:
                known = self._told.get(topic_partition)
                syncs = syncs_since(*topic_partition, partition.offset_map, known)
                records += [offset_sync.encode(sync) for sync in syncs]
                telling[topic_partition] = end
        if await self._write(cluster, topic, records):
            self._told.update(telling)

    async def _write(self, cluster: Cluster, topic: str, records: Sequence[KeyValue]) -> bool:
        """Append records to a topic of one partition; return whether they are there."""
        try:
            if topic not in self._ensured:
                await ensure_topic(
                    cluster,
                    topic,
                    replication_factor=self._config.current.replication_factor,
                    configs={"cleanup.policy": "compact"},
                )
                self._ensured.add(topic)
            for first in range(0, len(records), SYNCS_A_BATCH):
                await _append(cluster, topic, records[first : first + SYNCS_A_BATCH])
        except NetworkFault as fault:
            self.fault.note(f"{topic}: {fault}", topic)
            self._ensured.discard(topic)
            return False
        self.fault.clear(topic)
        return True


async def _append(cluster: Cluster, topic: str, records: Sequence[KeyValue]) -> None:
    stamp = wall_ms()
    batch = build_batch(
        [Record(number, stamp, key, value) for number, (key, value) in enumerate(records)]
    )
    answer = await append(cluster, topic, 0, batch)
    if answer.error_code != ErrorCode.NONE:
        raise RequestRefused("to write", code_of(answer.error_code))
