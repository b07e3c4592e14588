"""The progress of a flow's other workers, for the worker that translates group positions."""

from typing import Final
from uuid import UUID

import trio

from mirror.clusters.links import Links
from mirror.map.map_log import MapLog
from mirror.state.flow_partitions import FlowPartitions
from mirror.state.live_config import LiveConfig
from mirror.state.mirrored_progress import MirroredProgress
from mirror.state.partition import MirroredPartition
from mirror.state.work_share import WorkShare
from runtime.process.clock import now_ms
from runtime.process.fault_note import FaultNote
from wire.errors import ErrorCode
from wire.net.errors import NetworkFault
from wire.net.operations import LATEST, list_offsets
from wire.topic_partition import TopicPartition

LOOK_S: Final = 0.2
ALONE_LOOK_S: Final = 1.0
"""While there is no partition of another worker."""
REST: Final = 10
"""Between looks, this many times as long as a look takes."""


class PeerProgress:
    """Keeps ``FlowPartitions.peers`` up to date while this worker leads."""

    def __init__(
        self,
        config: LiveConfig,
        *,
        partitions: FlowPartitions,
        share: WorkShare,
        progress: MirroredProgress,
        links: Links,
        map_log: MapLog,
    ) -> None:
        self.fault = FaultNote(f"{config.current.name}: other workers' partitions")
        self._config = config
        self._partitions = partitions
        self._share = share
        self._progress = progress
        self._links = links
        self._map_log = map_log
        self._told: dict[MirroredPartition, tuple[bool, int | None]] = {}
        """Of each, whether its map is true and its mirrored end, as it was told last."""

    async def run(self) -> None:
        """Look again and again."""
        while True:
            began_s = trio.current_time()
            await self.read_progress()
            least_s = LOOK_S if self._partitions.peers else ALONE_LOOK_S
            await trio.sleep(max(least_s, REST * (trio.current_time() - began_s)))

    async def read_progress(self) -> None:
        """Read the progress of the others, and the source's ends; a failure is noted as a fault."""
        for step, where in (
            (self._read_target_progress, "target"),
            (self._read_source_ends, "source"),
        ):
            try:
                await step()
            except NetworkFault as fault:
                self.fault.note(str(fault), where)
            else:
                self.fault.clear(where)

    async def _read_source_ends(self) -> None:
        peers = self._partitions.peers
        ends = await list_offsets(self._links.source_admin, set(peers), LATEST)
        for topic_partition, end in ends.items():
            if topic_partition in peers and not isinstance(end, ErrorCode):
                peers[topic_partition].heard(source_end=end, readable_end=end, now_ms=now_ms())

    async def _read_target_progress(self) -> None:
        """Read the target's ends before the map, so that no piece is missing for them."""
        partitions = self._partitions
        topic_partitions = self._share.seen - partitions.own.keys()
        for topic_partition in partitions.peers.keys() - topic_partitions:
            gone = partitions.forget_peer(topic_partition)
            if gone is not None:
                self._told.pop(gone, None)
        if not topic_partitions:
            return
        names = self._config.current.names
        on_target = {
            TopicPartition(
                names.on_target(topic_partition.topic), topic_partition.partition
            ): topic_partition
            for topic_partition in topic_partitions
        }
        ends = await list_offsets(self._links.target_admin, on_target, LATEST)
        await self._map_log.catch_up()
        for target_partition, end in ends.items():
            topic_partition = on_target[target_partition]
            if isinstance(end, ErrorCode) or topic_partition in partitions.own:
                continue
            peer = partitions.peers.get(topic_partition)
            if peer is None:
                peer = MirroredPartition(
                    *topic_partition,
                    topic_id=UUID(int=0),
                    offset_map=self._map_log.state.map_of(topic_partition),
                    now_ms=now_ms(),
                    target_topic=target_partition.topic,
                )
                partitions.meet_peer(peer)
            peer.target.vouch(is_vouched=topic_partition in self._share.vouched)
            self._map_log.state.advance({topic_partition: end})
            known = peer.has_true_map, peer.offset_map.mirrored_source_end
            if self._told.get(peer) != known:
                self._told[peer] = known
                self._progress.tell((peer,))
