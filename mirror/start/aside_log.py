"""One partition of a `.diverged` topic, as the mirror writes it: each record once.

All writers of a partition, one behind the other, use the mirror's one producer id on that cluster,
and number their records through. A new one goes on behind the last record that is there. What a
dead one has sent last may still arrive: it has a number that is taken, or that the next write has.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from mirror.clusters.admin import GrowTopic, SetConfigs, apply, topic_configs
from offset_translation.map_records import MirrorProducer
from runtime.diverged import Origin, origin_of, with_origin
from wire.errors import ErrorCode
from wire.net.cluster import Cluster
from wire.net.errors import RequestRefused
from wire.net.operations import EARLIEST, LATEST, append, list_offsets, read_partition
from wire.net.retries import code_of
from wire.net.topic_creation import TopicRefused, ensure_topic
from wire.record_batch import Record, build_batch, iterate_records
from wire.record_batch.header import SEQUENCES
from wire.topic_partition import TopicPartition

_LOG = logging.getLogger(__name__)

SETTINGS: Final = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "max.message.bytes": str(1 << 30),
    "message.timestamp.type": "CreateTime",
    "unclean.leader.election.enable": "false",
}
"""Kept until somebody deletes it: for some of these records it is the only place. A consumer that
asks for the topic before there is any may have made it, with the brokers' defaults: they delete
records by their age, which is that of the originals."""
KEEPING: Final = ("cleanup.policy", "retention.ms", "retention.bytes", "max.message.bytes")
"""The settings without which a record that is set aside is refused, or deleted soon."""
NOBODY: Final = MirrorProducer(producer_id=-1, producer_epoch=-1)
"""A writer without a number: a cluster where no mirror has an id yet."""


class Kept(NamedTuple):
    """One record with its origin."""

    record: Record
    origin: Origin


def lacking(own: Mapping[str, str]) -> dict[str, str]:
    """Return what a topic with settings of its own needs to keep what is set aside."""
    return {
        name: SETTINGS[name]
        for name in KEEPING
        if name not in own or (name == "cleanup.policy" and "compact" in own[name])
    }


class AsideLog:
    """One partition of a `.diverged` topic on one site, written by the mirror alone."""

    def __init__(self, cluster: Cluster, where: TopicPartition, producer: MirrorProducer) -> None:
        """Know where it is; `find_end` asks what is there."""
        self._cluster = cluster
        self._where = where
        self._producer = producer
        self._sequence = 0
        self._last: Origin | None = None

    async def find_end(self, partition_count: int, replication_factor: int | None) -> None:
        """Make the topic if need be, and find the last record; raises NetworkFault."""
        topic, _ = self._where
        await ensure_topic(
            self._cluster, topic, replication_factor=replication_factor, configs=SETTINGS
        )
        view = await self._cluster.metadata([topic], refresh=True)
        if len(view.topics[topic].partitions) < partition_count:
            await apply(self._cluster, GrowTopic(topic=topic, partition_count=partition_count))
            await ensure_topic(
                self._cluster, topic, replication_factor=replication_factor, configs=SETTINGS
            )
        await self._set_right(topic)
        start, end = [await self._offset(edge) for edge in (EARLIEST, LATEST)]
        if start < end and not await self._take_from(end - 1, end):
            await self._take_from(start, end)  # somebody else has written behind

    async def _set_right(self, topic: str) -> None:
        """Have a topic that somebody else has made keep what is set aside; raises TopicRefused.

        What a person has set on it stays, except compaction. A cluster that does not show the
        topic's settings is believed.
        """
        own = (await topic_configs(self._cluster, [topic])).get(topic)
        wrong = {} if own is None else lacking(own)
        if not wrong:
            return
        told = ",".join(f"{name}={value}" for name, value in sorted(wrong.items()))
        try:
            await apply(self._cluster, SetConfigs(topic=topic, configs=wrong))
        except TopicRefused as refused:
            reason = (
                f"it would not keep what is set aside without {told}, and setting that is refused:"
                f" {refused.reason}; set it with `kafka-configs.sh --alter --topic {topic}"
                f" --add-config {told}`"
            )
            raise TopicRefused(topic, refused.code, reason) from refused
        _LOG.warning("%s: was there without %s: set", topic, told)

    async def _offset(self, edge: int) -> int:
        found = (await list_offsets(self._cluster, [self._where], edge))[self._where]
        if isinstance(found, ErrorCode):
            raise RequestRefused(f"{self._where}", found)
        return found

    async def _take_from(self, start: int, end: int) -> bool:
        """Note the mirror's last batch in a part of the log; return whether it ends the part."""
        is_last = False
        async for header, batch in read_partition(self._cluster, *self._where, start, end):
            is_last = header.producer_id == self._producer.producer_id
            if is_last and not header.is_control:
                last = header.base_sequence + header.last_offset_delta
                self._sequence = (last + 1) % SEQUENCES
                for record in iterate_records(batch):
                    self._last = origin_of(record) or self._last
        return is_last

    def lacks(self, origin: Origin) -> bool:
        """Whether a record is still to be written: those of one range go in their order."""
        last = self._last
        is_same_range = last is not None and (
            (last.site, last.topic_id, last.range_start)
            == (origin.site, origin.topic_id, origin.range_start)
        )
        return last is None or not is_same_range or last.offset < origin.offset

    async def write(self, kept: Sequence[Kept]) -> None:
        """Append those that are not there; raises NetworkFault, behind which `find_end` tells."""
        fresh = [one for one in kept if self.lacks(one.origin)]
        if not fresh:
            return
        topic, index = self._where
        is_numbered = self._producer.producer_id >= 0
        batch = build_batch(
            (
                with_origin(one.record, one.origin)._replace(offset=number)
                for number, one in enumerate(fresh)
            ),
            producer_id=self._producer.producer_id,
            producer_epoch=self._producer.producer_epoch,
            base_sequence=self._sequence if is_numbered else -1,
        )
        answer = await append(self._cluster, topic, index, batch)
        if answer.error_code != ErrorCode.NONE:
            raise RequestRefused(f"{topic}-{index}", code_of(answer.error_code))
        self._sequence = (self._sequence + len(fresh)) % SEQUENCES
        self._last = fresh[-1].origin
