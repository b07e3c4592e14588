"""Finds foreign records on a target that is the mirror's alone by its settings.

    target  |--aaaaaaaa--|xx|--bbb--|xxx|      a, b: the mirror's batches     x: others' ("foreign")

Such a log's end is taken for the mirrored end, and by that end the x would count as mirrored: as
many records of the source would never be brought. The last batch tells whether somebody else has
written there. Only then the log is scanned, from a place on of which the map is sure.

A log behind that place without any batch of a mirror may be a copy that MirrorMaker has made. Its
first record is compared with the source's: another record is foreign, and so is all behind it.

A topic that was made again has nothing of what was mirrored to the former one, also where the
mirror wrote its next batch before it heard of that: the batch lies where the map expects it, if
others have written as many records before it. Such a log is looked at from its beginning.
"""

from collections.abc import Collection, Mapping
from typing import Final

import trio

from mirror.clusters.links import Links
from mirror.clusters.log_ends import Ends, LogEnds
from mirror.start.last_record_check import ONE_BATCH_BYTES, UNTOLD, first_held, held_at, is_another
from mirror.state.partition import MirroredPartition
from offset_translation.map_records import Reached
from offset_translation.map_state import MapState
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from offset_translation.tail import (
    SEQUENCES,
    Tail,
    TailGarbled,
    place_if_expected,
    sure_place,
)
from offset_translation.target_scan import (
    Mixed,
    TargetScan,
    UnmirroredPart,
    is_written_by,
    offsets_to_try,
)
from wire.net.errors import RequestRefused
from wire.net.operations import read_partition
from wire.net.side_by_side import ask_each, or_refusal
from wire.record_batch import BatchHeader, CorruptBatch
from wire.topic_partition import TopicPartition
from wire.values import frozen

AT_ONCE: Final = 64
"""A single batch of each, of thousands of partitions when a broker has gone."""
SCANS_AT_ONCE: Final = 8
"""Each holds some megabytes; only logs that others have written to are scanned."""

Found = Mapping[TopicPartition, Mixed | TailGarbled | RequestRefused]
"""What is wrong, of partitions with which something is; a refusal concerns its partition alone."""


@frozen
class Looked:
    """A partition whose target is looked at, and why."""

    partition: MirroredPartition
    is_odd: bool
    """Its end may not be the mirrored end: a log that cannot be told apart must not go on."""
    was_returned: bool
    """Something came into the source from there: the last run is the mirror's own word."""


async def find_foreign_records(
    links: Links, looked: Collection[Looked], source: Ends, target: Ends, state: MapState
) -> Found:
    """Return where others have written, and what cannot be told; raises NetworkFault."""
    looks: dict[TopicPartition, _Look] = {}
    scans = trio.CapacityLimiter(SCANS_AT_ONCE)
    for one in looked:
        key = one.partition.topic_partition
        source_ends, target_ends = source[key], target[key]
        if not isinstance(source_ends, LogEnds) or not isinstance(target_ends, LogEnds):
            continue
        look = _Look(links, one, source_ends, target_ends, state)
        if look.has_something:
            looks[key] = look

    async def look_at(key: TopicPartition) -> Mixed | TailGarbled | None:
        return await looks[key].result(scans)

    answers = await ask_each(looks, or_refusal(look_at), at_once=AT_ONCE)
    return {key: answer for key, answer in answers.items() if answer is not None}


class _Look:
    """The look at one target."""

    def __init__(
        self, links: Links, looked: Looked, source: LogEnds, target: LogEnds, state: MapState
    ) -> None:
        self._links = links
        self._looked = looked
        # By the log's end, others' records would count as mirrored meanwhile.
        self._map: OffsetMap = looked.partition.offset_map.copy()
        self._map.advance(target.end)
        self._where = TopicPartition(looked.partition.target_topic, looked.partition.index)
        self._source = source
        self._target = target
        self._state = state
        self._sure = sure_place(self._map, target.end)

    @property
    def has_something(self) -> bool:
        """Whether the log holds anything behind the sure place that a mirror should have written.

        Behind a seal the log is the target's own, and positioning holds it against the other map.
        """
        return (
            len(self._map) > 0
            and self._map.sealed_at is None
            and max(self._sure[1], self._target.start) < self._target.end
        )

    async def result(self, scans: trio.CapacityLimiter) -> Mixed | TailGarbled | None:
        """Return what is wrong, None if nothing is or nobody can tell.

        Raises NetworkFault, of which RequestRefused is one.
        """
        try:
            last = await self._batch_at(self._target.end - 1)
            is_new = self._looked.partition.target.is_new
            if last is None or (self._is_as_foretold(last) and not is_new):
                return None
            async with scans:
                return await self._scanned(last)
        except TailGarbled as garbled:
            return garbled
        except CorruptBatch as fault:
            what = f"a batch near the target's end is damaged: {fault}"
            return TailGarbled(what) if self._looked.is_odd else None
        except RequestRefused as refused:
            if self._looked.is_odd or refused.code not in UNTOLD:
                raise
            return None

    async def _scanned(self, last: BatchHeader) -> Mixed | TailGarbled | None:
        """Return what the batches from a sure place on tell; raises TailGarbled."""
        producer = self._state.producer
        ours = None if producer is None else producer.producer_id
        scan = TargetScan(self._map, ours, self._state.producer_ids)
        is_new = self._looked.partition.target.is_new
        place, begin = self._first if is_new else await self._begin(ours)
        tail = Tail(self._map, place)
        async for header, _ in read_partition(
            self._links.target_data, *self._where, begin, self._target.end
        ):
            if header.next_offset > begin:
                if is_new and not tail.has_seen and is_written_by(ours, header):
                    self._require_whole(place, header)
                scan.take(tail, header)
        if scan.has_seen_mirror:
            reached, runs = tail.reached, scan.new_runs(tail)
            return Mixed(reached=reached, runs=runs, foreign=scan.foreign) if scan.foreign else None
        return await self._without_a_mirror(place, begin, last)

    async def _without_a_mirror(
        self, place: Place, begin: int, last: BatchHeader
    ) -> Mixed | TailGarbled | None:
        """Return what a log tells that holds no batch of a mirror from a place on."""
        is_copy = await self._is_copied_at(place) if begin == self._sure[1] else None
        end = self._map.runs.end_of(place)
        if is_copy is False:
            part = UnmirroredPart(begin, self._target.end)
            return Mixed(reached=Reached(place=place, target_end=end), runs=(), foreign=(part,))
        is_unsure = self._looked.was_returned and is_copy is None
        if is_unsure or (self._looked.is_odd and not self._looked.was_returned):
            return TailGarbled(
                f"the batch at target offset {last.base_offset} is no mirror's: somebody else "
                "writes there"
            )
        return None

    async def _is_copied_at(self, place: Place) -> bool | None:
        """Whether the target has the source's first record from a sure place on.

        None if nobody can tell: the source deleted what was there, or has nothing left of it.
        """
        offset = self._map.source_of_place(place)
        if offset is None:
            return None
        if offset >= self._source.end:
            return False
        key, links = self._looked.partition.topic_partition, self._links
        source = (links.source_admin, links.source_data)
        theirs = await first_held(*source, key, max(offset, self._source.start), self._source.end)
        if theirs is None or theirs.record is None:
            return None
        beside = self._map.place_of_source(theirs.record.offset)
        if beside is None or beside >= self._map.place_end:
            return None
        target = (links.target_admin, links.target_data, self._where)
        mine = await held_at(*target, self._map.runs.start_of(beside))
        return None if mine is None else not is_another(mine, theirs)

    def _is_as_foretold(self, last: BatchHeader) -> bool:
        """Whether a mirror has written a batch, and nobody else before it since the last run."""
        if not any(is_written_by(one, last) for one in self._state.producer_ids):
            return False
        producer = self._state.producer
        is_ours = producer is not None and last.producer_id == producer.producer_id
        return not is_ours or self._place_of(last) is not None

    def _place_of(self, header: BatchHeader) -> Place | None:
        return place_if_expected(self._map, header.base_offset, header.base_sequence)

    @property
    def _first(self) -> tuple[Place, int]:
        """The sure place, and where the log begins behind it."""
        place, sure = self._sure
        return place, max(sure, self._target.start)

    def _require_whole(self, place: Place, first: BatchHeader) -> None:
        """Raise TailGarbled where the mirror's first batch in a new log is not that of a place."""
        if first.base_sequence == place % SEQUENCES:
            return
        made_for = self._state.target_ids.get(self._looked.partition.topic_partition)
        raise TailGarbled(
            f"the target topic was made again (topic id {self._looked.partition.target.topic_id},"
            f" not {made_for}): it has what was mirrored from target offset {first.base_offset} on,"
            " and nothing of what was mirrored before"
        )

    async def _begin(self, producer_id: int | None) -> tuple[Place, int]:
        """Return a place and its offset before which nobody but a mirror has written."""
        place, sure = self._sure
        for offset in offsets_to_try(max(sure, self._target.start), self._target.end):
            header = await self._batch_at(offset)
            if header is not None and is_written_by(producer_id, header):
                expected = self._place_of(header)
                if expected is not None and expected >= place:
                    return expected, header.base_offset
        return self._first

    async def _batch_at(self, offset: int) -> BatchHeader | None:
        """Return the header of the batch at an offset, None without one."""
        reader = read_partition(self._links.target_data, *self._where, offset, offset + 1)
        reader.fetch_bytes = ONE_BATCH_BYTES
        async for header, _ in reader:
            return header
        return None
