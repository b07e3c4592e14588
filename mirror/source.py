"""Fetch from one source broker, many partitions at a time, and route what comes."""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple
from uuid import UUID

import trio

from mirror.flow_state import FlowState
from mirror.links import Links
from mirror.map_log import MapLog, MapRecord
from mirror.partition import MirroredPartition
from mirror.partition_state import PartitionState
from mirror.routing import Aborted, Routed, route
from offset_translation.map_records import TopicPartition, piece_start
from runtime.clock import now_ms
from wire.errors import ErrorCode
from wire.messages.fetch import (
    FetchPartition,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from wire.net.errors import NetworkFault
from wire.net.retries import code_of

_LOG = logging.getLogger(__name__)

MAX_WAIT_MS: Final = 250
"""How long a broker holds a Fetch while there is nothing new."""
MAX_WAIT_WHEN_FULL_MS: Final = 10
"""The same while some partition waits for room in flight, and is therefore not asked for."""
READ_COMMITTED: Final = 1
GATHER_S: Final = 0.003
"""The least time from one Fetch to the next while answers are small: a request costs the same
however little it brings, so single records in quick succession gather for a moment."""
FULL_BYTES: Final = 128 * 1024
"""An answer of this size is worth its request; the next one is asked for at once."""
FAULT_PAUSE_S: Final = 0.1
CORRUPT_TRIES: Final = 3
"""A damaged batch is fetched again, in case the damage is of the way, not of the source's disk."""


class _Asked(NamedTuple):
    """A partition as it was when the request was made."""

    partition: MirroredPartition
    attempt: int
    offset: int


class SourceFetcher:
    """The loop of one source broker."""

    def __init__(
        self,
        node: int,
        flow: FlowState,
        links: Links,
        map_log: MapLog,
        forward: Callable[[MirroredPartition, Routed, int], None],
    ) -> None:
        """Fetch what ``node`` leads; hand routed batches on with their time of arrival."""
        self._node = node
        self._flow = flow
        self._links = links
        self._map_log = map_log
        self._forward = forward
        self._corrupt: defaultdict[TopicPartition, int] = defaultdict(int)

    async def run(self) -> None:
        """Fetch for ever."""
        while True:
            asked, is_complete = self._wanted()
            if not asked:
                await self._flow.fetch_more.wait(1.0)
                continue
            try:
                connection = await self._links.source_data.connection(self._node)
                sent_s = trio.current_time()
                response = await connection.request(self._request(asked, is_complete=is_complete))
                if await self._take(asked, response) < FULL_BYTES:
                    await trio.sleep_until(sent_s + GATHER_S)
            except NetworkFault as fault:
                self._fail(asked, fault)
                await trio.sleep(FAULT_PAUSE_S)

    def _wanted(self) -> tuple[list[_Asked], bool]:
        """Return what to ask for, and whether that is all that flows."""
        flow = self._flow
        if not flow.is_fetching or flow.in_flight_bytes >= flow.config.in_flight_bytes:
            return [], False
        limit = flow.config.partition_in_flight_bytes
        asked: list[_Asked] = []
        is_complete = True
        for partition in flow.led_at_source_by(self._node):
            if partition.cursor is None or partition.in_flight_bytes >= limit:
                is_complete = False
            else:
                asked.append(_Asked(partition, partition.attempt, partition.cursor.source))
        # A broker serves partitions in the order asked until the answer is full.
        asked.sort(key=lambda one: one.partition.in_flight_bytes)
        return asked, is_complete

    def _request(self, asked: Sequence[_Asked], *, is_complete: bool) -> FetchRequest:
        config = self._flow.config
        topics: defaultdict[tuple[str, UUID], list[FetchPartition]] = defaultdict(list)
        for one in asked:
            topics[one.partition.topic, one.partition.topic_id].append(
                FetchPartition(
                    partition=one.partition.index,
                    fetch_offset=one.offset,
                    partition_max_bytes=config.partition_fetch_bytes,
                )
            )
        room = max(
            config.in_flight_bytes - self._flow.in_flight_bytes, config.partition_fetch_bytes
        )
        return FetchRequest(
            max_wait_ms=MAX_WAIT_MS if is_complete else MAX_WAIT_WHEN_FULL_MS,
            min_bytes=1,
            max_bytes=min(config.fetch_max_bytes, room),
            isolation_level=READ_COMMITTED,
            topics=tuple(
                FetchTopic(topic=topic, topic_id=topic_id, partitions=tuple(partitions))
                for (topic, topic_id), partitions in topics.items()
            ),
        )

    async def _take(self, asked: Sequence[_Asked], response: FetchResponse) -> int:
        """Route every partition's chunk; those with holes wait until the map has them.

        Return the bytes of records that came.
        """
        arrived_ms = now_ms()
        by_place = {(one.partition.topic, one.partition.index): one for one in asked}
        if response.error_code != ErrorCode.NONE:
            self._refuse(asked, response.error_code)
            return 0
        waiting: list[tuple[_Asked, Routed]] = []
        size = 0
        for topic, data in _partitions(asked, response):
            one = by_place.get((topic, data.partition_index))
            if one is None or one.partition.attempt != one.attempt:
                continue
            records = self._accept(one, data, arrived_ms)
            if not records:
                continue
            size += len(records)
            routed = self._route(one.partition, data, records, arrived_ms)
            if routed.starts:
                waiting.append((one, routed))
            else:
                self._forward(one.partition, routed, arrived_ms)
        if waiting:
            await self._map_log.write(lambda: _announcements(waiting))
            for one, routed in waiting:
                if one.partition.attempt == one.attempt:
                    self._forward(one.partition, routed, arrived_ms)
                    one.partition.note_progress(now_ms())
        return size

    def _accept(self, one: _Asked, data: FetchPartitionData, now: int) -> memoryview | None:
        """Note what the source says of its end; return the records, if any came."""
        if data.error_code != ErrorCode.NONE:
            self._refuse([one], data.error_code)
            return None
        readable = data.last_stable_offset if data.last_stable_offset >= 0 else data.high_watermark
        one.partition.heard(source_end=data.high_watermark, readable_end=readable, now_ms=now)
        return one_view(data.records)

    def _route(
        self,
        partition: MirroredPartition,
        data: FetchPartitionData,
        records: memoryview,
        now: int,
    ) -> Routed:
        assert partition.cursor is not None, "a flowing partition has a cursor"
        routed = route(
            records,
            partition.cursor,
            aborted=[
                Aborted(producer_id=a.producer_id, first_offset=a.first_offset)
                for a in data.aborted_transactions or ()
            ],
            producer=self._map_log.producer,
            loop_ids=self._flow.loop_ids,
        )
        self._flow.measurements.rebuilt += routed.rebuilt
        self._flow.measurements.left_out += routed.left_out
        partition.cursor = routed.cursor
        if routed.corrupt is not None and not routed.forwards:
            # With batches before it, they go first: the next chunk begins with the damage.
            self._note_corrupt(partition, routed.corrupt, now)
        elif self._corrupt:
            self._corrupt.pop((partition.topic, partition.index), None)
        return routed

    def _note_corrupt(self, partition: MirroredPartition, fault: str, now: int) -> None:
        key = (partition.topic, partition.index)
        self._corrupt[key] += 1
        self._flow.measurements.fetch_errors["CORRUPT_MESSAGE"] += 1
        _LOG.error("%s-%d: source: %s", *key, fault)
        if self._corrupt[key] >= CORRUPT_TRIES:
            with self._flow.accounting(partition):
                partition.stop(PartitionState.SOURCE_CORRUPT, fault, now)
        else:
            self._flow.interrupt(partition, f"source: {fault}", now)

    def _refuse(self, asked: Sequence[_Asked], code: int) -> None:
        """Act on an error code: most pass by themselves; where to go on is worked out anew."""
        error = code_of(code)
        self._flow.measurements.fetch_errors[error.name] += 1
        now = now_ms()
        for one in asked:
            if one.partition.attempt != one.attempt:
                continue
            if error is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                with self._flow.accounting(one.partition):
                    one.partition.stop(
                        PartitionState.NOT_AUTHORISED, "to read from the source", now
                    )
            else:
                self._flow.interrupt(one.partition, f"source: {error.name}", now)
        self._flow.refresh.wake()

    def _fail(self, asked: Sequence[_Asked], fault: NetworkFault) -> None:
        self._flow.measurements.fetch_errors[type(fault).__name__] += 1
        now = now_ms()
        for one in asked:
            if one.partition.attempt == one.attempt and one.partition.is_flowing:
                self._flow.interrupt(one.partition, f"source broker {self._node}: {fault}", now)
        self._flow.refresh.wake()


def _announcements(waiting: Sequence[tuple[_Asked, Routed]]) -> list[MapRecord]:
    """Return the piece starts of partitions that nothing has interrupted since."""
    return [
        piece_start(one.partition.topic, one.partition.index, source_start=s, target_start=t)
        for one, routed in waiting
        if one.partition.attempt == one.attempt
        for s, t in routed.starts
    ]


def _partitions(
    asked: Sequence[_Asked], response: FetchResponse
) -> Iterator[tuple[str, FetchPartitionData]]:
    """Yield each partition's answer under its topic's name; since v13 topics travel by id."""
    names = {one.partition.topic_id: one.partition.topic for one in asked}
    for topic in response.responses:
        name = topic.topic or names.get(topic.topic_id)
        if name is not None:
            for data in topic.partitions:
                yield name, data


def one_view(records: object) -> memoryview | None:
    """Return a decoded records field, which is one view or null."""
    if records is None:
        return None
    assert isinstance(records, memoryview | bytes | bytearray), "decoded records are one view"
    return memoryview(records)
