"""Set aside what only the target has, behind a disaster, so that both sites end alike.

    dc1   |--aaaa--|--d d d--|         d: acknowledged by dc1, lost with it, and back with it
    dc2   |~~aaaa~~|--b--b--|          b: what dc2 has taken since

Before the flow from dc2 brings the first b to dc1, each d is saved on both sites and in a file.
Then the map of what came from dc1 says so: its seal passes behind the last d, so that the flow from
dc1 leaves them out when it runs again, and this flow has nothing to stop for any more.

Nothing is saved twice. The writers of a `.diverged` partition follow each other under the one id of
the mirror on that cluster, numbered through, and go on behind the last record that is there. The
file gets its name when it is whole, and the map its word at the very last.
"""

import logging
import os
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, Final
from uuid import UUID

import trio

from mirror.clusters.links import Links
from mirror.clusters.tail_reader import TailReader, topic_exists
from mirror.map.believed import believed
from mirror.map.map_log import MapLog, MapRecord, ensure_map_topic
from mirror.map.unbelieved_watch import told_unbelieved
from mirror.start.aside_log import NOBODY, AsideLog, Kept
from mirror.start.last_values import (
    TooManyKeys,
    is_compacted,
    last_of_keys,
    last_of_part,
    to_restore,
)
from mirror.start.start_position import OwnPart, Start, Stop
from mirror.state.interruptions import Interruptions
from mirror.state.live_config import LiveConfig
from mirror.state.partition import MirroredPartition
from mirror.state.reverse_flow import ReverseFlow
from offset_translation.map_records import map_topic_name, seal, set_aside
from offset_translation.map_state import MapState
from offset_translation.offset_map import OffsetMap
from offset_translation.renamed_keys import renamed
from offset_translation.topic_identity import NO_ID
from runtime.configuration.flow_section import FlowConfig, Policy
from runtime.configuration.topic_names import diverged_topic
from runtime.coordination.map_registry import append_to_map
from runtime.coordination.map_writers import UnbelievedRecords, Writers
from runtime.diverged import (
    KeyComparison,
    Origin,
    OwnRecords,
    is_restored,
    json_line,
)
from runtime.process.clock import now_ms
from wire.errors import ErrorCode
from wire.net.errors import NetworkFault, RequestRefused
from wire.net.operations import append, list_offsets
from wire.net.retries import code_of
from wire.record_batch import CorruptBatch, Record, build_batch
from wire.topic_partition import TopicPartition
from wire.values import frozen

_LOG = logging.getLogger(__name__)

TOGETHER_BYTES: Final = 512 * 1024
"""About so much goes in one request, and lies in memory."""
MOST_NAMED: Final = 100
"""So much of a topic's name stands in that of a file, of which file systems take 255 bytes."""
MOST_NEWER: Final = 5_000_000
"""So many records of the source are looked at to count keys."""


class CannotSetAside(Exception):
    """What only the target has stays where it is, and the partition stopped; says why."""


@frozen
class Quarantine:
    """Saves and leaves out what the target of one flow alone has."""

    config: LiveConfig
    reverse: ReverseFlow
    interruptions: Interruptions
    links: Links
    map_log: MapLog
    backward: Writers
    """The writers of the map of what came from the target, which lies on the source."""

    def is_to_set_aside(self, partition: MirroredPartition, stop: Stop) -> bool:
        """Whether a policy or a command has the cause of a stop set aside."""
        policy = self.interruptions.policy_for(partition, stop.state)
        return stop.own is not None and policy is Policy.QUARANTINE

    def is_to_keep(self, partition: MirroredPartition, stop: Stop) -> bool:
        """Whether a policy or a command keeps what a flow back has to be told of before.

        Where something came from the target already, the map of it tells where that ends.
        """
        policy = self.interruptions.policy_for(partition, stop.state)
        is_told = bool(self.reverse.arrived.maps.get(partition.topic_partition))
        is_wanted = policy is Policy.MERGE and self.config.current.has_way_back
        return stop.own is not None and is_wanted and not is_told

    def acts_on(self, partition: MirroredPartition, stop: Stop) -> bool:
        """Whether a stop is not to be shown, as something is done about its cause."""
        return self.is_to_set_aside(partition, stop) or self.is_to_keep(partition, stop)

    async def act_or_stop(self, partition: MirroredPartition, stop: Stop) -> None:
        """Do what a policy or a command wants of the cause of a stop; raises NetworkFault."""
        if self.is_to_set_aside(partition, stop):
            await self.set_aside_or_stop(partition, stop)
        else:
            await self._keep_or_stop(partition, stop)

    async def _keep_or_stop(self, partition: MirroredPartition, stop: Stop) -> None:
        """Say in the map of what came from the target that nothing from a part on ever did.

        By that a group's position does not pass over the part, and the flow back begins with it.
        """
        assert stop.own is not None, "there is something to keep"
        attempt, where = partition.attempt, partition.topic_partition
        try:
            target_end = await self._sealed_at(partition)
        except CannotSetAside as fault:
            reason = f"{stop.reason}; they could not be merged: {fault}"
            self.interruptions.stop(partition, stop.state, reason, now_ms())
            return
        if partition.attempt == attempt:
            await self._write_back([seal(*where, source_end=stop.own.start, target_end=target_end)])
            self.interruptions.interrupt(partition, f"{stop.reason}: kept", now_ms(), at_once=True)

    async def set_aside_or_stop(self, partition: MirroredPartition, stop: Stop) -> None:
        """Set aside what has stopped a partition, and have its place looked for again.

        Raises NetworkFault, behind which the same is to be tried again.
        """
        assert stop.own is not None, "there is something to set aside"
        try:
            own = await self._set_back(partition, stop)
            is_done = await self.set_aside(partition, own)
        except (CannotSetAside, TooManyKeys, CorruptBatch) as fault:
            reason = f"{stop.reason}; they could not be set aside: {fault}"
            self.interruptions.stop(partition, stop.state, reason, now_ms())
            return
        if is_done:
            reason = f"{stop.reason}: set aside"
            self.interruptions.interrupt(partition, reason, now_ms(), at_once=True)

    async def _set_back(self, partition: MirroredPartition, stop: Stop) -> OwnPart:
        """Have keys end with the source's values, and return the part, with the records of that.

        Only of a compacted topic: a reader of any other wants every record. May be repeated: what
        was set back ends alike. Raises NetworkFault, CorruptBatch and TooManyKeys.
        """
        own, key, links = stop.own, partition.topic_partition, self.links
        assert own is not None, "there is something to set aside"
        if not await is_compacted(links.target_admin, partition.target_topic):
            return own
        there = partition.target_partition
        part = OwnRecords(links.target_data, there, *own, self.map_log.state.producer_ids)
        mine = await last_of_part(part)
        begin = 0 if stop.skip_to is None else stop.skip_to.source
        mirrors = frozenset(self.reverse.arrived.producer_ids)
        theirs = await last_of_keys(links.source_admin, key, mine, begin, mirrors)
        restored = to_restore(mine, theirs)
        for some in in_parts(restored, TOGETHER_BYTES):
            batch = build_batch(one._replace(offset=number) for number, one in enumerate(some))
            answer = await append(links.target_admin, *there, batch)
            if answer.error_code != ErrorCode.NONE:
                raise RequestRefused(
                    f"{self.config.current.target} {there}", code_of(answer.error_code)
                )
            own = OwnPart(own.start, max(own.stop, answer.base_offset + len(some)))
        if restored:
            _LOG.warning(
                "%s: %d keys are set back to %s's values",
                key,
                len(restored),
                self.config.current.source,
            )
        return own

    async def say_what_was_merged(self, partition: MirroredPartition, start: Start) -> None:
        """Say how many keys end differently where the target's own records were kept."""
        own, config = start.merged, self.config.current
        if own is None:
            return
        kept = (
            f"{partition.topic_partition}: {config.target}'s own records at offsets {own.start} to"
            f" {own.stop - 1} stay, and are appended late on {config.source}"
        )
        try:
            keys = await self.count_keys(partition, own, start.source)
        except (NetworkFault, CorruptBatch) as fault:
            _LOG.warning("%s; which keys end differently could not be seen: %s", kept, fault)
        else:
            _LOG.warning("%s: %s", kept, keys)

    async def set_aside(self, partition: MirroredPartition, own: OwnPart) -> bool:
        """Save the records of a part, and have the map leave it out; return whether it is done.

        It is not where the partition was interrupted meanwhile. May be repeated at any time.
        Raises NetworkFault, CorruptBatch and CannotSetAside.
        """
        attempt = partition.attempt
        sealed_at = await self._sealed_at(partition)
        file = self._file(partition, own)
        try:
            count = await self._save(partition, own, file)
        except OSError as fault:
            why = f"{file} takes nothing: {fault.strerror or fault}; make room there, or set"
            raise CannotSetAside(
                f"{why} `diverged_folder` of the flow, and order it again"
            ) from fault
        if count is None or partition.attempt != attempt:
            return False
        await self._leave_out(partition, own, sealed_at)
        _LOG.warning(
            "%s: %d records of %s at offsets %d to %d are set aside, in %s and in %s",
            partition.topic_partition,
            count,
            self.config.current.target,
            own.start,
            own.stop - 1,
            _where_aside(partition, self.config.current),
            file,
        )
        return True

    async def _save(self, partition: MirroredPartition, own: OwnPart, file: Path) -> int | None:
        """Write the records of a part to both sites and a file, and return how many there are.

        The answer is None where the partition was interrupted meanwhile. Raises OSError, too.
        """
        attempt, count = partition.attempt, 0
        logs = await self._open_logs(partition)
        with _unfinished(file) as lines:
            async with aclosing(self._kept(partition, own)) as some:
                async for kept in some:
                    if partition.attempt != attempt:
                        return None
                    for log in logs:
                        await log.write(kept)
                    lost = [one for one in kept if not is_restored(one.record)]
                    lines.write(b"".join(json_line(partition.target_topic, *one) for one in lost))
                    count += len(lost)
            await trio.to_thread.run_sync(_finish, lines, file)
        return count

    async def count_keys(
        self, partition: MirroredPartition, own: OwnPart, source: int
    ) -> KeyComparison:
        """Return how the keys of a part end, behind what the source has from ``source`` on.

        Raises NetworkFault and CorruptBatch.
        """
        keys, seen = KeyComparison(), 0
        key = partition.topic_partition
        source_end = (await list_offsets(self.links.source_admin, [key]))[key]
        if isinstance(source_end, ErrorCode):
            raise RequestRefused(f"{self.config.current.source} {key}", source_end)
        mirrors = self.map_log.state.producer_ids
        async for _, records in OwnRecords(
            self.links.target_data, partition.target_partition, own.start, own.stop, mirrors
        ):
            for record in records:
                keys.take_diverged(record)
        mirrors = self.reverse.arrived.producer_ids
        async for _, records in OwnRecords(
            self.links.source_admin, key, source, source_end, mirrors
        ):
            for record in records:
                keys.take_newer(record)
            seen += len(records)
            if seen >= MOST_NEWER:
                keys.is_complete = False
                break
        return keys

    async def _sealed_at(self, partition: MirroredPartition) -> int:
        """Return where on the source what came from the target ends: 0 where nothing ever came.

        Without such a map its topic is made, as a flow back that begins later has to read in it
        what it leaves out. Raises CannotSetAside and NetworkFault.
        """
        config = self.config.current
        topic = map_topic_name(config.target)
        if config.has_way_back:
            arrived = self.reverse.arrived.maps.get(partition.topic_partition)
        else:
            arrived = await self._map_back(topic, partition.topic_partition)
        if arrived is not None and arrived.sealed_at is not None:
            return arrived.sealed_at
        if arrived:
            raise CannotSetAside(
                f"{topic} on {config.source} has no seal of it, so nobody can say there what is"
                " left out"
            )
        await ensure_map_topic(self.links.source_admin, topic, config.replication_factor)
        return 0

    async def _map_back(self, topic: str, where: TopicPartition) -> OffsetMap | None:
        """Read the map of what came from the target, which nobody follows without a way back.

        An earlier part that was set aside has made it. Raises NetworkFault.
        """
        if not await topic_exists(self.links.source_admin, topic):
            return None
        state, reader = MapState(), TailReader(self.links.source_admin, topic, is_map=True)
        foreign, names = UnbelievedRecords(), self.config.current.names
        async for record in believed(reader, self.backward, foreign):
            if (key := renamed(record.key, names.home)) is not None:
                state.replay(key, record.value)
        there = TopicPartition(names.on_target(where.topic), where.partition)
        if foreign.speaks_of(there) and not state.maps.get(where):
            raise CannotSetAside(
                "; ".join(told_unbelieved({topic: foreign}, self.config.current.topic_set))
            )
        end = (await list_offsets(self.links.source_admin, [where]))[where]
        if isinstance(end, ErrorCode):
            raise RequestRefused(f"{self.config.current.source} {where}", end)
        state.advance({where: end})
        return state.maps.get(where)

    async def _open_logs(self, partition: MirroredPartition) -> list[AsideLog]:
        topic, index = partition.target_partition
        links, config = self.links, self.config.current
        view = await links.target_admin.metadata([topic])
        count = max(index + 1, len(view.topics[topic].partitions))
        there = TopicPartition(diverged_topic(topic), index)
        here = TopicPartition(diverged_topic(partition.topic), index)
        back = self.reverse.arrived.producer or NOBODY
        logs = [
            AsideLog(links.target_admin, there, self.map_log.producer),
            AsideLog(links.source_admin, here, back),
        ]
        for log in logs:
            await log.find_end(count, config.replication_factor)
        return logs

    def _file(self, partition: MirroredPartition, own: OwnPart) -> Path:
        config = self.config.current
        topic_id = partition.target.topic_id or NO_ID
        return config.diverged_folder / file_name(
            config.target, partition.target_partition, own.start, topic_id
        )

    async def _kept(
        self, partition: MirroredPartition, own: OwnPart
    ) -> AsyncGenerator[Sequence[Kept], None]:
        """Yield the records that only the target has, in order, some at a time."""
        kept: list[Kept] = []
        size = 0
        async for header, records in OwnRecords(
            self.links.target_data,
            partition.target_partition,
            own.start,
            own.stop,
            self.map_log.state.producer_ids,
        ):
            for record in records:
                origin = Origin(
                    site=self.config.current.target,
                    topic_id=partition.target.topic_id or NO_ID,
                    partition=partition.index,
                    offset=record.offset,
                    leader_epoch=header.partition_leader_epoch,
                    timestamp_ms=record.timestamp_ms,
                    range_start=own.start,
                )
                kept.append(Kept(record, origin))
                size += len(record.key or b"") + len(record.value or b"")
                if size >= TOGETHER_BYTES:
                    yield kept
                    kept, size = [], 0
        if kept:
            yield kept

    async def _leave_out(self, partition: MirroredPartition, own: OwnPart, sealed_at: int) -> None:
        """Say in the map of what came from the target that its stream passes over the part."""
        where = partition.topic_partition
        records: list[MapRecord] = [
            set_aside(*where, source_start=own.start, source_end=own.stop),
            seal(*where, source_end=own.stop, target_end=sealed_at),
        ]
        await self._write_back(records)

    async def _write_back(self, records: Sequence[MapRecord]) -> None:
        """Write to the map of what came from the target, and know it at once."""
        topic, names = map_topic_name(self.config.current.target), self.config.current.names
        there = [(renamed(key, names.on_target) or key, value) for key, value in records]
        await append_to_map(self.links.source_admin, topic, there, self.backward)
        for key, value in records:
            self.reverse.replay(key, value)


def _where_aside(partition: MirroredPartition, config: FlowConfig) -> str:
    """Return the topics in which records are set aside, in words."""
    there, here = diverged_topic(partition.target_topic), diverged_topic(partition.topic)
    if there == here:
        return f"{here} on both sites"
    return f"{there} on {config.target}, {here} on {config.source}"


def file_name(site: str, where: TopicPartition, start: int, topic_id: UUID) -> str:
    """Return the name of the file of what was set aside from an offset of a site's log on.

    Of a topic's name that is too long for the name of a file the beginning stands there, and its
    digest.
    """
    topic, index = where
    if len(topic) > MOST_NAMED:
        topic = f"{topic[:MOST_NAMED]}~{blake2b(topic.encode(), digest_size=8).hexdigest()}"
    return f"{site}-{topic}-{index}-from-{start}-{topic_id.hex[-12:]}.jsonl"


def in_parts(records: Sequence[Record], most_bytes: int) -> Iterator[Sequence[Record]]:
    """Yield the records in order, about so many bytes at a time; one record at the least."""
    first, size = 0, 0
    for number, record in enumerate(records):
        size += len(record.key or b"") + len(record.value or b"")
        if size >= most_bytes:
            yield records[first : number + 1]
            first, size = number + 1, 0
    if first < len(records):
        yield records[first:]


@contextmanager
def _unfinished(file: Path) -> Iterator[BinaryIO]:
    """Give a file to write to, which does not have its name yet."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.with_suffix(".part").open("wb") as lines:
        yield lines


def _finish(lines: BinaryIO, file: Path) -> None:
    """Give a file its name, once all of it is on the disk."""
    lines.flush()
    os.fsync(lines.fileno())
    file.with_suffix(".part").replace(file)
