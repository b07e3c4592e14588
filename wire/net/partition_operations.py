"""Ends, reads and appends of single partitions, at whichever broker leads them.

Codes of single partitions are results: `isinstance(result, ErrorCode)` tells them from offsets
(an ErrorCode is an int too). An offset can be the same number as a code, so ask for the type before
the value.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Self, TypeAlias

import trio

from wire.errors import ErrorCode
from wire.hot.list_offsets import question_body, read_listed
from wire.messages.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from wire.messages.list_offsets import ListOffsetsRequest
from wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from wire.net.cluster import Cluster
from wire.net.errors import ConnectionClosed, NetworkFault, RequestRefused
from wire.net.retries import LEADER_MOVED, PATIENCE_S, code_of
from wire.primitives import ZERO_UUID, Buffer
from wire.record_batch import BatchHeader, CorruptBatch, iterate_batches
from wire.topic_partition import TopicPartition

Offsets: TypeAlias = dict[TopicPartition, int | ErrorCode]

LATEST: Final = -1
EARLIEST: Final = -2
EARLIEST_LOCAL: Final = -4
"""Brokers before ListOffsets 8, which know nothing of tiers, take it for the earliest time."""
READ_COMMITTED: Final = 1
LIST_TRIES: Final = 3
FETCH_BYTES: Final = 4 * 1024 * 1024
FETCH_WAIT_MS: Final = 500
SHORT_S: Final = 30.0
"""For so long a log may be shorter than it was said to be: a new leader knows what is committed
when its followers have fetched, or are no longer in sync (replica.lag.time.max.ms)."""
LAST_FETCH_BY_NAME: Final = 12
"""From version 13 on Fetch names topics by id, which brokers before 2.8 do not give."""


def _has_moved(answer: int | ErrorCode) -> bool:
    """Tell whether the answer is a code for a moved leader: an offset may be the same number."""
    return isinstance(answer, ErrorCode) and answer in LEADER_MOVED


async def list_offsets(
    cluster: Cluster,
    partitions: Iterable[TopicPartition],
    timestamp: int = LATEST,
    *,
    isolation_level: int = 0,
) -> Offsets:
    """Return for each partition the first offset at or after `timestamp` (ms), -1 if there is none.

    `timestamp` may be LATEST or EARLIEST: the end or the start of the log; LATEST with
    READ_COMMITTED is the last stable offset. A partition that could not be asked gets an
    ErrorCode, NETWORK_EXCEPTION when its leader is out of reach. Raises NetworkFault when nobody
    could be asked. Moved leaders are looked up again, a few times.
    """
    question = _OffsetQuestion(cluster, timestamp, isolation_level)
    wanted = list(dict.fromkeys(partitions))
    for attempt in range(LIST_TRIES):
        if attempt:
            await cluster.pause(attempt)
        await question.ask(wanted)
        wanted = [place for place in wanted if _has_moved(question.offsets[place])]
        if not wanted:
            break
        for topic in {topic for topic, _ in wanted}:
            cluster.forget(topic)
    codes = set(question.offsets.values())
    if question.fault is not None and codes == {ErrorCode.NETWORK_EXCEPTION}:
        raise question.fault
    return question.offsets


class _OffsetQuestion:
    """Offsets found so far, and the last fault met on the way."""

    def __init__(self, cluster: Cluster, timestamp: int, isolation_level: int) -> None:
        self.offsets: Offsets = {}
        self.fault: NetworkFault | None = None
        self._cluster = cluster
        self._timestamp = timestamp
        self._isolation_level = isolation_level

    async def ask(self, partitions: Sequence[TopicPartition]) -> None:
        """Ask the leaders of the partitions, all at once; every one of them has a result then."""
        topics = sorted({topic for topic, _ in partitions})
        try:
            view = await self._cluster.metadata(topics)
        except NetworkFault as fault:
            self._not_reached(partitions, fault)
            return
        by_leader: defaultdict[int, list[TopicPartition]] = defaultdict(list)
        for place in partitions:
            try:
                by_leader[view.partition(*place).leader].append(place)
            except RequestRefused as refused:
                self.offsets[place] = refused.code
        async with trio.open_nursery() as nursery:
            for leader, places in by_leader.items():
                nursery.start_soon(self._ask_leader, leader, places)

    async def _ask_leader(self, leader: int, places: Sequence[TopicPartition]) -> None:
        try:
            connection = await self._cluster.connection(leader)
            version = connection.version_of(ListOffsetsRequest)
            body = question_body(places, self._timestamp, self._isolation_level, version)
            listed = await connection.ask(ListOffsetsRequest, version, [body], read_listed)
        except NetworkFault as fault:
            self._not_reached(places, fault)
            return
        self.offsets |= dict.fromkeys(places, ErrorCode.UNKNOWN_SERVER_ERROR)
        for place, found in listed.items():
            self.offsets[place] = code_of(found.error_code) if found.error_code else found.offset

    def _not_reached(self, places: Sequence[TopicPartition], fault: NetworkFault) -> None:
        self.fault = fault
        self.offsets |= dict.fromkeys(places, ErrorCode.NETWORK_EXCEPTION)


class EpochEnd(NamedTuple):
    """The largest epoch of a log not above the one asked for, and the offset behind its last."""

    epoch: int
    offset: int


async def log_ends(cluster: Cluster, partitions: Iterable[TopicPartition]) -> Offsets:
    """Return for each partition where its leader's log ends, be that committed or not yet.

    A partition whose leader does not say, or is not known, gets an ErrorCode; nothing is tried
    again. Raises NetworkFault.
    """
    ends = await epoch_ends(cluster, dict.fromkeys(partitions))
    return {place: end.offset if isinstance(end, EpochEnd) else end for place, end in ends.items()}


async def epoch_ends(
    cluster: Cluster, epochs: Mapping[TopicPartition, int | None]
) -> dict[TopicPartition, EpochEnd | ErrorCode]:
    """Return for each partition where an epoch of its log ended (KIP-101, KIP-279).

    None asks for the present leader's. A partition whose leader does not say, or is not known, gets
    an ErrorCode; nothing is tried again. Raises NetworkFault.
    """
    view = await cluster.metadata(sorted({topic for topic, _ in epochs}))
    found: dict[TopicPartition, EpochEnd | ErrorCode] = dict.fromkeys(
        epochs, ErrorCode.UNKNOWN_SERVER_ERROR
    )
    by_leader: defaultdict[int, defaultdict[str, list[OffsetForLeaderPartition]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for (topic, index), epoch in epochs.items():
        try:
            lives = view.partition(topic, index)
        except RequestRefused as refused:
            found[TopicPartition(topic, index)] = refused.code
            continue
        by_leader[lives.leader][topic].append(
            OffsetForLeaderPartition(
                partition=index,
                current_leader_epoch=lives.leader_epoch,
                leader_epoch=lives.leader_epoch if epoch is None else epoch,
            )
        )
    for leader, topics in by_leader.items():
        request = OffsetForLeaderEpochRequest(
            topics=tuple(
                OffsetForLeaderTopic(topic=topic, partitions=tuple(asked))
                for topic, asked in topics.items()
            )
        )
        answer = await cluster.request(request, node=leader)
        for answered in answer.topics:
            for end in answered.partitions:
                code = code_of(end.error_code)
                is_told = code is ErrorCode.NONE
                found[TopicPartition(answered.topic, end.partition)] = (
                    EpochEnd(end.leader_epoch, end.end_offset) if is_told else code
                )
    return found


async def append(
    cluster: Cluster,
    topic: str,
    partition: int,
    batch: Buffer | tuple[Buffer, ...],
    *,
    acks: int = -1,
    timeout_ms: int = 30_000,
) -> PartitionProduceResponse:
    """Produce one batch, whole or in parts, once; what the broker said of it is the result.

    Raises NetworkFault; after ConnectionClosed nobody knows whether it was appended, which is why
    nothing is tried again here.
    """
    answer = await cluster.request_leader(
        topic,
        partition,
        ProduceRequest(
            acks=acks,
            timeout_ms=timeout_ms,
            topic_data=(
                TopicProduceData(
                    name=topic,
                    partition_data=(PartitionProduceData(index=partition, records=batch),),
                ),
            ),
        ),
    )
    return answer.responses[0].partition_responses[0]


def read_partition(
    cluster: Cluster,
    topic: str,
    partition: int,
    start: int,
    stop: int,
    *,
    isolation_level: int = 0,
) -> "PartitionReader":
    """Return an iterator over the batches with offsets in [start, stop), as they lie in the log.

    The first may begin before `start` and the last end behind `stop`. Ends when nothing up to
    `stop` is left, holes included; while the log is not that long yet, it waits, SHORT_S at most
    from what it has last brought: its end may have been cut.

    Iterating raises RequestRefused (OFFSET_OUT_OF_RANGE, OFFSET_NOT_AVAILABLE of a log that stays
    too short, an unknown topic, or a leader that stays away for long), other NetworkFaults, and
    CorruptBatch. Checksums are the caller's.
    """
    return PartitionReader(cluster, TopicPartition(topic, partition), start, stop, isolation_level)


class PartitionReader:
    """The iterator of `read_partition`; may be left at any batch."""

    fetch_bytes = FETCH_BYTES
    """At a time, about; one whole batch at the least."""

    def __init__(
        self,
        cluster: Cluster,
        place: TopicPartition,
        start: int,
        stop: int,
        isolation_level: int,
    ) -> None:
        self.position = start
        self.leader_epoch = -1
        """Of the leader to be asked: another one refuses, and is looked up again. -1 for any."""
        self.aborted: Sequence[AbortedTransaction] = ()
        """Read committed: the transactions to leave out of the batches that come now."""
        self._cluster = cluster
        self._place = place
        self._stop = stop
        self._isolation_level = isolation_level
        self._batches: Iterator[tuple[BatchHeader, memoryview]] = iter(())
        self._give_up_at: float | None = None
        self._failures = 0
        """Answers in a row that brought nothing."""
        self._brought_nothing_at: int | None = None
        """Where records have come, until one of them is from there on."""
        self._short_until: float | None = None
        """When a log that is too short is waited for no longer."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> tuple[BatchHeader, memoryview]:
        while self.position < self._stop:
            for header, batch in self._batches:
                if header.next_offset <= self.position:
                    continue
                if header.base_offset >= self._stop:
                    raise StopAsyncIteration
                self.position = header.next_offset
                return header, batch
            if self.position == self._brought_nothing_at:
                raise CorruptBatch(0, f"what comes does not reach offset {self.position}")
            await self._fetch()
        raise StopAsyncIteration

    async def _fetch(self) -> None:
        """Get the next batches, or move the position to the stop if none can come before it."""
        answer = await self._ask()
        partitions = [found for topic in answer.responses for found in topic.partitions]
        # A fetch without a session is answered by one code for all, or by the partition.
        code = code_of(partitions[0].error_code if partitions else answer.error_code)
        if code is not ErrorCode.NONE or not partitions:
            await self._look_again_after(code)
            return
        found = partitions[0]
        records = found.records if isinstance(found.records, memoryview) else memoryview(b"")
        readable_end = (
            found.last_stable_offset
            if self._isolation_level == READ_COMMITTED
            else found.high_watermark
        )
        # A throttled broker answers without records whether there are any or not.
        if not records and not answer.throttle_time_ms and readable_end >= self._stop:
            if await self._is_tiered():
                await self._look_again_after(ErrorCode.OFFSET_NOT_AVAILABLE)
                return
            self.position = self._stop
        if records or readable_end >= self._stop:
            self._short_until = None
        elif not answer.throttle_time_ms:
            self._wait_while_short(readable_end)
        self._give_up_at = None
        self._brought_nothing_at = self.position if records else None
        self._batches = iterate_batches(records)
        self.aborted = tuple(found.aborted_transactions or ())

    async def _ask(self) -> FetchResponse:
        topic, partition = self._place
        leader = await self._cluster.leader(topic, partition)
        view = await self._cluster.metadata((topic,))
        topic_id = view.topics[topic].topic_id
        version = leader.version_of(FetchRequest)
        if topic_id == ZERO_UUID:
            version = min(version, LAST_FETCH_BY_NAME)
        asked = FetchPartition(
            partition=partition,
            current_leader_epoch=self.leader_epoch,
            fetch_offset=self.position,
            partition_max_bytes=self.fetch_bytes,
        )
        request = FetchRequest(
            max_wait_ms=FETCH_WAIT_MS,
            min_bytes=1,
            max_bytes=self.fetch_bytes,
            isolation_level=self._isolation_level,
            topics=(FetchTopic(topic=topic, topic_id=topic_id, partitions=(asked,)),),
        )
        try:
            return await leader.request(request, version=version)
        except ConnectionClosed:
            self._cluster.forget(topic)
            raise

    def _wait_while_short(self, readable_end: int) -> None:
        """Ask on for a while behind an answer with nothing, of a log that does not reach as far."""
        topic, partition = self._place
        now = trio.current_time()
        if self._short_until is None:
            self._short_until = now + SHORT_S
        if now >= self._short_until:
            what = f"fetch of {topic}-{partition} at {self.position}, which ends at {readable_end}"
            raise RequestRefused(
                f"{what} and not at {self._stop}, where it did", ErrorCode.OFFSET_NOT_AVAILABLE
            )

    async def _is_tiered(self) -> bool:
        """Say whether the records here are to come from tiered storage (KIP-405).

        A broker answers with no records, and without an error, when tiered ones come too late.
        """
        local = (await list_offsets(self._cluster, [self._place], EARLIEST_LOCAL))[self._place]
        return not isinstance(local, ErrorCode) and self.position < local

    async def _look_again_after(self, code: ErrorCode) -> None:
        topic, partition = self._place
        now = trio.current_time()
        if self._give_up_at is None:
            self._give_up_at, self._failures = now + PATIENCE_S, 0
        if code not in LEADER_MOVED or now >= self._give_up_at:
            raise RequestRefused(f"fetch of {topic}-{partition} at {self.position}", code)
        self._cluster.forget(topic)
        self._failures += 1
        await self._cluster.pause(self._failures)
