"""The offset map as it lies on the target, followed from outside the mirror.

The logs' ends are read before the map: a piece is announced before its first record is produced,
so a map that is at least as new as the ends accounts for every record below them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from types import MappingProxyType
from typing import Final, TypeAlias
from uuid import UUID

from failover.sites.site import Site, SiteUnclear
from offset_translation.map_records import (
    Begun,
    RunStartKey,
    SealKey,
    lost_head,
    map_topic_name,
    partition_of,
    run_start,
    seal,
    withdrawal,
)
from offset_translation.map_state import MapState
from offset_translation.offset_map import OffsetMap
from offset_translation.renamed_keys import Renaming, renamed
from offset_translation.runs import Place
from offset_translation.topic_identity import NO_ID, is_recreated
from runtime.coordination.map_registry import Anybody, MapNotWritten, append_to_map
from runtime.coordination.map_writers import MapReading, UnbelievedRecords, Writers, note_unbelieved
from runtime.set_option import set_option
from wire.errors import ErrorCode
from wire.net import RequestRefused
from wire.net.operations import read_partition
from wire.record_batch import BatchHeader, CorruptBatch, crc_is_valid, iterate_records
from wire.topic_partition import TopicPartition

WRITERS_NAMED: Final = 5

KeyValue: TypeAlias = tuple[bytes, bytes | None]


class MapFollower:
    """The maps of one flow, up to date as of the last refresh()."""

    def __init__(  # noqa: PLR0913 - what is followed and how, each with its name
        self,
        target: Site,
        source_name: str,
        writers: Writers,
        concerned: Callable[[str], bool] = lambda _: True,
        *,
        topic_set: str | None = None,
        names: Renaming | None = None,
        may_be_gone: bool = False,
    ) -> None:
        """Follow the map of what comes from `source_name`; nothing is read yet.

        With `names` topics go by those, and others are left out; such a map is not written to. One
        that `may_be_gone` counts as empty then; the caller tells what that leaves open.

        Records of producers that are not among its `writers` are passed over, and counted in
        `unbelieved` unless they speak only of topics that nobody is `concerned` with.
        """
        self.target: Final = target
        self.source_name: Final = source_name
        self.unbelieved_records: Final = UnbelievedRecords(concerned)
        self.topic_set: Final = topic_set
        self._writers = writers
        self._may_be_gone = may_be_gone
        self._names = names
        self._topic = map_topic_name(source_name)
        self._next = 0
        self._topic_id = NO_ID
        self._state = MapState()
        self.target_ends: Mapping[TopicPartition, int] = {}

    @property
    def target_name(self) -> str:
        """Return the name of the site that the map lies on."""
        return self.target.name

    @property
    def unbelieved(self) -> str | None:
        """Return what of the map was left out, whose it is and what to do; None if nothing was."""
        if not self.unbelieved_records.count:
            return None
        writers = self.unbelieved_records.describe()
        more = len(writers) - WRITERS_NAMED
        named = "; ".join([*writers[:WRITERS_NAMED], *([f"and {more} more"] if more > 0 else [])])
        return (
            f"{self.target_name} {self._topic} holds {self.unbelieved_records.count} records that"
            f" are not believed, as the witness does not know their writers ({named}); if they are"
            " the mirror's own, the witness is an old copy:"
            f" `failover recover --believe-maps{set_option(self.topic_set)}`"
            " shows whose they are, and has them believed with --write"
        )

    def doubtful(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return those of which others' records say anything: of none where another pair's map is.

        Of all, where no mirror is believed to have announced itself.
        """
        if not self.unbelieved_records.count:
            return []
        is_of_all = self._state.producer is None
        return sorted(
            one for one in partitions if is_of_all or self.unbelieved_records.speaks_of(one)
        )

    @property
    def topic_ids(self) -> Mapping[str, UUID]:
        """Return the ids of the source topics that were mirrored, where topics have ids."""
        return self._state.topic_ids

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """Return every partition the map knows, in order."""
        return tuple(sorted(self._state.maps))

    @property
    def maps(self) -> Mapping[TopicPartition, OffsetMap]:
        """Return the maps, advanced to the target's ends as of the last refresh()."""
        return self._state.maps

    @property
    def target_ids(self) -> Mapping[TopicPartition, UUID]:
        """Return the ids of the target topics that hold the copies, of those that are known."""
        return self._state.target_ids

    @property
    def set_aside(self) -> Mapping[TopicPartition, Mapping[int, int]]:
        """Return the source offsets, by start their end, whose records were set aside."""
        return self._state.set_aside

    def begun(self, partition: TopicPartition) -> Begun | None:
        """Return where a partition was begun by the flow's `start`; None at its first record."""
        known = self._state.topic_ids.get(partition.topic, NO_ID)
        return self._state.begins.of(partition, known)

    @property
    def producer_id(self) -> int | None:
        """Return the producer id of the mirrored records; None if no mirror was announced."""
        producer = self._state.producer
        return None if producer is None else producer.producer_id

    @property
    def producer_ids(self) -> Set[int]:
        """Return every producer id that a mirror has used on the target."""
        return self._state.producer_ids

    def lacking(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return those of which records that are not believed speak, and no other."""
        return sorted(
            one
            for one in partitions
            if self.unbelieved_records.speaks_of(one) and not self.knows(one)
        )

    def knows(self, partition: TopicPartition) -> bool:
        """Tell whether anything was ever announced of a partition."""
        return bool(self._state.maps.get(partition))

    def is_told_by_end(self, partition: TopicPartition) -> bool:
        """Tell whether it is the target's log end that says how far a partition is mirrored."""
        offset_map = self._state.maps.get(partition)
        if not offset_map or partition in self._state.reached:
            return False
        return offset_map.sealed_at is None

    def mirrored_end(self, partition: TopicPartition) -> int | None:
        """Return the source offset below which everything is on the target; None if not known."""
        offset_map = self._state.maps.get(partition)
        return None if offset_map is None else offset_map.mirrored_source_end

    def writing_end(self, partition: TopicPartition) -> int:
        """Return the target offset behind all that is mirrored, which a seal bounds."""
        offset_map = self._state.maps.get(partition)
        known = self.target_ends.get(partition, 0)
        return known if offset_map is None else min(known, offset_map.writing_end)

    def bounded(self, partition: TopicPartition) -> OffsetMap | None:
        """Return the map of a partition that others may write to, if its mirrored end is known."""
        return self._state.bounded(partition)

    async def refresh(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Read the target's ends, then what is new in the map.

        Without `partitions` the ends of all partitions that the map knows are read. Raises
        NetworkFault, LogUnavailable when an end is not told, SiteUnclear when the map contradicts
        itself or is damaged.
        """
        if partitions is None:
            await self._read()
            partitions = self.partitions
        ends = await self.target.known_ends(partitions)
        await self._read()
        self._state.advance(ends)
        self.target_ends = ends

    async def as_if_all_were_believed(self) -> "MapFollower":
        """Return a follower that has read as much as this one, and left out nobody's records.

        Raises what refresh() raises: with them the map may contradict itself.
        """
        everybody = MapFollower(
            self.target,
            self.source_name,
            Anybody("nobody is asked"),
            topic_set=self.topic_set,
            names=self._names,
        )
        await everybody.read_until(self._next, self.target_ends)
        return everybody

    async def read_until(self, end: int, target_ends: Mapping[TopicPartition, int]) -> None:
        """Read the map up to an offset, as of a time when the target's logs ended there."""
        await self._read_to(end)
        self._state.advance(target_ends)
        self.target_ends = target_ends

    async def seal(
        self,
        ends: Mapping[TopicPartition, tuple[int, int]],
        runs: Iterable[tuple[TopicPartition, Place, int]] = (),
    ) -> None:
        """Write durably where the mirrored part ends: (source end, target end) by partition.

        `runs`, (partition, place, target offset), begin behind what others wrote before that.
        """
        await self._append(
            [
                *(
                    run_start(*partition, place=place, target_start=target)
                    for partition, place, target in runs
                ),
                *(
                    seal(*partition, source_end=source_end, target_end=target_end)
                    for partition, (source_end, target_end) in sorted(ends.items())
                ),
            ]
        )

    async def unseal(
        self,
        partitions: Iterable[TopicPartition],
        runs_at: Mapping[TopicPartition, Set[int]] = MappingProxyType({}),
    ) -> None:
        """Take back the seals of these partitions that lie at the end of the target's log.

        Behind any other seal lie records of the target's own, and without it they would count as
        mirrored. Such a seal may be an earlier promotion's and have the same key as ours, where
        nothing was mirrored since. With a seal go the runs that it has brought, by the target
        offset at which they begin: the mirror has to stop there once more.
        """
        wanted = sorted(partitions)
        await self.refresh(wanted)
        keys: list[SealKey | RunStartKey] = []
        for partition in wanted:
            at = self._sealed_at(partition)
            if at is None or at != self.target_ends.get(partition, 0):
                continue
            topic, index = partition
            keys += [
                RunStartKey(topic=topic, partition=index, place=place)
                for place, target in self._state.maps[partition].runs
                if target in runs_at.get(partition, ())
            ]
            keys.append(SealKey(topic=topic, partition=index, target_end=at))
        await self._append([withdrawal(key) for key in keys])

    def _sealed_at(self, partition: TopicPartition) -> int | None:
        offset_map = self._state.maps.get(partition)
        return None if offset_map is None else offset_map.sealed_at

    async def _read(self) -> None:
        """Replay what the map topic has got since the last time; nothing where none was written.

        What was read of a topic that has lost it is not believed: the next time begins anew.
        """
        topic_id = (await self.target.topic_ids([self._topic])).get(self._topic, NO_ID)
        ends = await self.target.known_ends([TopicPartition(self._topic, 0)])
        end = ends.get(TopicPartition(self._topic, 0), 0)
        is_another = is_recreated(self._topic_id, topic_id)
        if end < self._next or (self._next and is_another):
            read, self._next, self._state = self._next, 0, MapState()
            now = f"is another topic than was read up to {read}: it was made again"
            if end < read:
                now = (
                    f"ends at {end}, and was read up to {read}: it was deleted, or has lost its end"
                )
            raise SiteUnclear(
                f"{self.target.name} {self._topic} {now}; restart `mirror run`, and see"
                " `mirror status`"
            )
        self._topic_id = topic_id
        if not end and not self._may_be_gone:
            is_there = TopicPartition(self._topic, 0) in ends
            await self._writers.require_unwritten(is_there=is_there)
        await self._read_to(end)

    async def _read_to(self, end: int) -> None:
        """Replay the map topic from where it was read to up to an offset."""
        if end == self._next:
            return
        cluster = self.target.cluster
        batches = read_partition(cluster, self._topic, 0, self._next, end)
        reading = MapReading(topic_id=self._topic_id, end=end)
        try:
            async for header, batch in batches:
                await self._replay(header, batch, reading)
                self._next = header.next_offset
        except RequestRefused as refused:
            if refused.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            where = TopicPartition(self._topic, 0)
            start = (await self.target.starts([where]))[where]
            raise SiteUnclear(f"{self.target.name} {self._topic}: {lost_head(start)}") from refused
        except CorruptBatch as corrupt:
            log = f"{self.target.name} {self._topic}-0"
            raise SiteUnclear(f"{log}: damaged batch at {self._next}: {corrupt}") from corrupt
        if self._state.contradictions:
            raise SiteUnclear(f"{self.target.name} {self._topic}: {self._state.contradictions[0]}")

    async def _replay(self, header: BatchHeader, batch: memoryview, reading: MapReading) -> None:
        """Take a batch over, from the next record on; raises CorruptBatch, WritersUnknown."""
        if not crc_is_valid(batch):
            raise CorruptBatch(0, "wrong checksum")
        if header.is_control:
            return
        believes = self._writers.believes
        is_believed = await believes(header.producer_id, header.base_offset, reading)
        for record in iterate_records(batch):
            if record.offset < self._next:
                continue
            key = record.key if self._names is None else renamed(record.key, self._names)
            if key is None and record.key is not None:
                continue  # of a topic that has no name here
            if is_believed:
                self._state.replay(key, record.value)
            else:
                about = partition_of(key)
                await note_unbelieved(
                    self._writers, self.unbelieved_records, header.producer_id, record, about
                )

    async def _append(self, records: Sequence[KeyValue]) -> None:
        """Write records under a producer id of our own; raises NetworkFault."""
        assert self._names is None, "a map is written by its own names"
        if records:
            try:
                await append_to_map(self.target.cluster, self._topic, records, self._writers)
            except MapNotWritten as fault:
                raise SiteUnclear(f"{self.target.name} {fault}") from fault
