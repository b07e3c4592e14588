"""The source's group positions, read from ``__consumer_offsets`` as a stream from its beginning.

Where the mirror may not read that topic the reader says so, and ``mirror.groups.group_polling``
takes over.

Transactional commits are read committed; a record without value takes its position back. Old
commits look like rewinds, so the reader holds a partition's commits back until it has reached the
end that the partition had when reading began. A partition that cannot be read holds up its own
groups alone.
"""

import logging
from collections.abc import Sequence
from typing import Final

import trio

from mirror.clusters.links import Links
from mirror.groups.source_groups import OFFSETS_TOPIC, Held, SourceGroups
from runtime.configuration.config import FlowConfig
from runtime.process.fault_note import FaultNote
from wire.consumer_offsets import partition_for
from wire.errors import ErrorCode
from wire.hot.fetch import (
    FetchedPartition,
    FetchLimits,
    Session,
    Wanted,
    read_answer,
    request_body,
    version_for,
)
from wire.messages.fetch import FetchRequest
from wire.net.errors import NetworkFault
from wire.net.metadata import TopicView
from wire.net.operations import EARLIEST, LATEST, READ_COMMITTED, list_offsets
from wire.net.retries import code_of
from wire.record_batch import CorruptBatch, crc_is_valid, iterate_batches, iterate_records
from wire.record_batch.committed import Aborted, CommittedFilter
from wire.topic_partition import TopicPartition

_LOG = logging.getLogger(__name__)

MAX_WAIT_MS: Final = 500
PARTITION_BYTES: Final = 256 * 1024
FETCH_BYTES: Final = 2 * 1024 * 1024
LIMITS: Final = FetchLimits(MAX_WAIT_MS, 1, FETCH_BYTES, READ_COMMITTED)
LOOK_S: Final = 5.0
ABSENT_LOOK_S: Final = 0.5
PAUSE_S: Final = 0.2
GATHER_S: Final = 0.05
"""Groups commit one by one, and an answer of many commits costs little more than one of one: a
reader that asks again at once sends a request for each commit, and costs more than twice as
much."""


class GroupReader:
    """Reads all partitions of the offsets topic, at each broker those that it leads."""

    def __init__(self, config: FlowConfig, links: Links, groups: SourceGroups) -> None:
        self._name = config.name
        self._links = links
        self._groups = groups
        self._topic: TopicView | None = None
        self._next: dict[int, int] = {}
        self._first_ends: dict[int, int] = {}
        """The end that each partition had when reading it began."""
        self._read_again: set[int] = set()
        """Partitions that are read from their beginning once more."""
        self._held: dict[int, Held] = {}
        """The commits of partitions that have not been read to that end."""
        self._nodes: set[int] = set()
        self._damaged: dict[int, int] = {}
        """By partition the offset of the damaged batch that was counted last."""
        self._stepped_to: dict[int, int] = {}
        """By partition how far a batch has been stepped over that has not even a header."""
        self.fault = FaultNote(f"{config.name}: {OFFSETS_TOPIC}")
        self.refusal: str | None = None
        """Why the topic cannot be read by us, whatever we try; None while it can."""

    async def run(self) -> None:
        """Read for ever."""
        async with trio.open_nursery() as nursery:
            while True:
                is_known = await self._look()
                for node in self._leaders() - self._nodes:
                    self._nodes.add(node)
                    nursery.start_soon(self._read_node, node)
                is_there = self._topic is not None or self.refusal is not None
                pause_s = LOOK_S if is_there else ABSENT_LOOK_S
                await trio.sleep(pause_s if is_known else PAUSE_S)

    def _leaders(self) -> set[int]:
        if self._topic is None:
            return set()
        return {view.leader for view in self._topic.partitions.values() if view.leader >= 0}

    async def _look(self) -> bool:
        """Learn the leaders, and where reading begins; return whether that could be."""
        try:
            await self._learn()
        except NetworkFault as fault:
            self.fault.note(str(fault))
            return False
        self.fault.clear()
        return True

    async def _learn(self) -> None:
        view = await self._links.source_groups.metadata([OFFSETS_TOPIC], refresh=True)
        topic = view.topics.get(OFFSETS_TOPIC)
        if topic is None or topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return
        if topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            self._refuse()
            return
        self._topic = topic
        new = [
            TopicPartition(OFFSETS_TOPIC, index)
            for index in topic.partitions
            if index not in self._next
        ]
        if new:
            cluster = self._links.source_groups
            starts = await list_offsets(cluster, new, EARLIEST)
            # The log's end may lie behind a transaction that nobody ends.
            ends = await list_offsets(cluster, new, LATEST, isolation_level=READ_COMMITTED)
            for topic_partition in new:
                start, end, index = (
                    starts[topic_partition],
                    ends[topic_partition],
                    topic_partition[1],
                )
                where = f"partition {index}"
                codes = [one.name for one in (start, end) if isinstance(one, ErrorCode)]
                if codes:
                    self.fault.note(f"{where}: {codes[0]}", where)
                    continue
                self.fault.clear(where)
                if index not in self._next:
                    self._next[index] = start
                    self._first_ends[index] = end
                    self._held[index] = {}
                    self._note_read(index)

    def _note_read(self, index: int) -> None:
        """Let what a partition has said be known once its end is reached."""
        if index in self._held and self._next[index] >= self._first_ends[index]:
            held = self._held.pop(index)
            if index in self._read_again and self._topic is not None:
                self._read_again.discard(index)
                count = len(self._topic.partitions)
                self._groups.release(held, lambda group: partition_for(group, count) == index)
            else:
                self._groups.release(held)
            self._groups.news.wake()

    def _refuse(self) -> None:
        """Take note that the source does not let us read the topic.

        When it does again, what was polled is newer than where reading has stopped.
        """
        self._next.clear()
        self._held.clear()
        if self.refusal is None:
            self.refusal = f"no right to read {OFFSETS_TOPIC}"
            _LOG.warning("%s: %s: group positions are polled", self._name, self.refusal)

    def _allow(self) -> None:
        if self.refusal is not None:
            self.refusal = None
            _LOG.info("%s: %s can be read again", self._name, OFFSETS_TOPIC)

    async def _read_node(self, node: int) -> None:
        """Read what this broker leads."""
        while True:
            wanted = self._wanted(node)
            if not wanted or self._topic is None:
                self.fault.clear(f"broker {node}")  # what it led others do, if anybody
                await trio.sleep(PAUSE_S)
                continue
            key = OFFSETS_TOPIC, self._topic.topic_id
            try:
                connection = await self._links.source_groups.connection(node)
                version = version_for(connection.version_of(FetchRequest), (key[1],))
                body = request_body(version, LIMITS, Session(), {key: wanted}, {}, "")
                answer = await connection.ask(FetchRequest, version, [body], read_answer)
            except NetworkFault as fault:
                self.fault.note(str(fault), f"broker {node}")
                await trio.sleep(PAUSE_S)
                continue
            codes = [await self._take(node, one) for _, found in answer.topics for one in found]
            if any(code is not ErrorCode.NONE for code in (*codes, code_of(answer.error_code))):
                await trio.sleep(PAUSE_S)
            else:
                self.fault.clear(f"broker {node}")
                await trio.sleep(GATHER_S)

    def _wanted(self, node: int) -> list[Wanted]:
        if self._topic is None:
            return []
        return [
            Wanted(index, self._next[index], PARTITION_BYTES)
            for index, view in self._topic.partitions.items()
            if view.leader == node and index in self._next
        ]

    async def _take(self, node: int, data: FetchedPartition) -> ErrorCode:
        code = code_of(data.error_code)
        if code is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            self._refuse()
            await trio.sleep(LOOK_S)
            return code
        if code is ErrorCode.OFFSET_OUT_OF_RANGE and data.partition in self._next:
            del self._next[data.partition]  # compaction went by, or it was cut: begin again
            self._read_again.add(data.partition)
        if code is not ErrorCode.NONE:
            self.fault.note(f"partition {data.partition}: {code.name}", f"broker {node}")
            await self._look()
            return code
        if data.partition not in self._next:
            return code  # asked for before reading was to begin again
        self._allow()
        if data.records:
            aborted = [
                Aborted(producer_id=producer_id, first_offset=first)
                for producer_id, first in data.aborted
            ]
            self._replay(data.partition, data.records, aborted)
            self._groups.news.wake()
        self._note_read(data.partition)
        return code

    def _replay(self, index: int, records: memoryview, aborted: Sequence[Aborted]) -> None:
        """Take the batches over; one that is damaged is stepped over, offset by offset.

        Where it ends is under the checksum that failed: the next batch says so, or the broker,
        by not sending it again.
        """
        committed = CommittedFilter(aborted)
        at = self._next[index]
        try:
            for header, batch in iterate_batches(records):
                is_left_out = committed.is_left_out(header)
                if header.next_offset <= at:
                    continue
                if not crc_is_valid(batch):
                    self._note_damage(index, header.base_offset, "wrong checksum")
                    self._next[index] = max(at, header.base_offset) + 1
                    continue
                if not is_left_out:
                    self._replay_batch(index, batch, at)
                self._next[index] = header.next_offset
        except CorruptBatch as fault:
            if self._next[index] != self._stepped_to.get(index):
                self._note_damage(index, self._next[index], str(fault))
            self._next[index] += 1
            self._stepped_to[index] = self._next[index]

    def _replay_batch(self, index: int, batch: memoryview, first: int) -> None:
        """Take over the records from an offset on, as far as they are records."""
        held = self._held.get(index)
        try:
            for record in iterate_records(batch):
                if record.offset >= first:
                    self._groups.replay(record, held)
        except CorruptBatch as fault:
            self._note_damage(index, self._next[index], str(fault))

    def _note_damage(self, index: int, offset: int, what: str) -> None:
        """Count a damaged batch once, however often it comes."""
        if self._damaged.get(index, -1) < offset:
            self._damaged[index] = offset
            self._groups.odd.note(f"partition {index}, batch at {offset}: {what}")
