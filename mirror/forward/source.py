"""Fetch from one source broker, many partitions at a time, and route what comes."""

import logging
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import inf
from typing import Final, NamedTuple

import trio

from mirror.clusters.links import Links
from mirror.forward.damage import behind_damage
from mirror.forward.fetch_plan import AskedPartition, FetchPlan, Updated, partition_key_of
from mirror.forward.fetch_session import SESSION_LOST, FetchSession, Question
from mirror.forward.flow_parts import FetchParts
from mirror.forward.lanes import Lane, count_lanes, lanes_to_broker
from mirror.forward.routing import Routed, join_limit, route
from mirror.forward.writers import TargetWriters
from mirror.map.map_log import RECORDS_A_WRITE, MapLog, MapRecord
from mirror.map.reverse_map import ReverseMapReader
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from mirror.state.wakeups import KeptWakeup
from offset_translation.map_records import piece_start
from runtime.configuration.flow_section import MOST_FETCH_BYTES
from runtime.process.clock import now_ms
from runtime.process.unforeseen import described
from wire.errors import ErrorCode
from wire.hot.fetch import (
    Fetched,
    FetchedPartition,
    FetchLimits,
    Wanted,
    read_answer,
    request_body,
    version_for,
)
from wire.kernel.chosen import Walker, walker
from wire.messages.fetch import FetchRequest
from wire.net.connection import Connection
from wire.net.errors import ConnectionClosed, NetworkFault
from wire.net.retries import code_of
from wire.record_batch.committed import Aborted
from wire.topic_partition import TopicPartition

_LOG = logging.getLogger(__name__)

MAX_WAIT_MS: Final = 250
"""How long a broker holds a Fetch while there is nothing new."""
MAX_WAIT_WHEN_FULL_MS: Final = 10
"""The same while some partition waits for room in flight, and is therefore not asked for."""
NO_REPLICA: Final = -1
GATHER_S: Final = 0.003
"""The least time from one Fetch to the next while answers are small: a request costs the same
however little it brings, so single records in quick succession gather for a moment."""
FULL_BYTES: Final = 128 * 1024
"""An answer of this size is worth its request; the next one is asked for at once."""
FAULT_PAUSE_S: Final = 0.1
UNWANTED_LOOK_S: Final = 1.0
IDLE_WAIT_S: Final = 1.0
HEARD_EVERY_MS: Final = 1_000
"""A session's answers leave out what has nothing new; so often that is noted as heard, too."""
BESIDE: Final = trio.CapacityLimiter(1)
"""Of the process: each thread that computes takes a share of the interpreter from the loop."""
ONLY_LANE: Final = Lane()
CORRUPT_TRIES: Final = 3
"""A damaged batch is fetched again, in case the damage is of the way, not of the source's disk."""


class RecordWay(NamedTuple):
    """The parts that a fetched chunk passes, in this order."""

    reverse_map: ReverseMapReader
    """Tells mirrors from other producers, where both directions run."""
    map_log: MapLog
    """Takes the holes, before the data behind them."""
    writers: TargetWriters
    """Send the batches."""


async def fetch_from(node: int, parts: FetchParts, links: Links, way: RecordWay) -> None:
    """Fetch for ever the partitions that one source broker leads, or is named as a replica of.

    The broker's distance decides how many connections are used; it is known once it was reached.
    """
    while (count := await _lanes_to(node, parts, links)) is None:
        await trio.sleep(FAULT_PAUSE_S)
        while not any(parts.partitions.fetched_from(node)):
            await parts.wakeups.fetch_more.wait(UNWANTED_LOOK_S)
    if count > 1:
        parts.budget.make_room_for_distance()
    async with trio.open_nursery() as nursery:
        for lane in lanes_to_broker(count):
            fetcher = SourceFetcher(node, parts, links, way, lane)
            nursery.start_soon(fetcher.run)


async def _lanes_to(node: int, parts: FetchParts, links: Links) -> int | None:
    """Return how many; None if it cannot be reached, which is said of its partitions."""
    try:
        return await count_lanes(await links.source_data.connection(node))
    except NetworkFault as fault:
        fail_source(parts, node, list(parts.partitions.fetched_from(node)), fault)
        return None


def fail_source(
    parts: FetchParts, node: int, partitions: Iterable[MirroredPartition], fault: NetworkFault
) -> None:
    """Interrupt partitions of a source broker that does not answer."""
    parts.measurements.count_fetch_error(type(fault).__name__)
    now = now_ms()
    for partition in partitions:
        partition.target.lose_anchor()
        parts.interruptions.fail(partition, f"source broker {node}", fault, now)
    parts.wakeups.refresh.wake()


class _Waiting(NamedTuple):
    """A routed chunk that waits until its holes are in the map."""

    one: AskedPartition
    routed: Routed
    announcements: list[MapRecord]


class _Heavy(NamedTuple):
    """A chunk that takes long to route: its partition is held back meanwhile."""

    one: AskedPartition
    route: Callable[[], Routed]
    records: memoryview


class SourceFetcher:
    """The loop of one connection to a source broker."""

    def __init__(
        self,
        node: int,
        parts: FetchParts,
        links: Links,
        way: RecordWay,
        lane: Lane = ONLY_LANE,
    ) -> None:
        """Fetch what ``node`` leads and the lane carries."""
        self._node = node
        self._lane = lane
        self._parts = parts
        self._interruptions = parts.interruptions
        self._links = links
        self._reverse_map, self._map_log, self._writers = way
        self._corrupt: defaultdict[TopicPartition, int] = defaultdict(int)
        self._session = FetchSession()
        self._plan = FetchPlan(parts, node, lane)
        self._tells_all = False
        """Of what was updated since the last request, not all is known any more.

        A partition that stopped meanwhile, perhaps while an answer with its records was under way,
        must still be named as forgotten: otherwise the broker answers at once, for ever, with
        records that nobody takes.
        """
        self._named: set[int] = set()
        """Replicas that the broker has sent us to."""
        self._connection: Connection | None = None
        """The one that the session goes over."""
        self._answered_ms = 0
        self._noted_ms = 0
        self._heavy: deque[_Heavy] = deque()
        self._has_heavy = KeptWakeup()

    async def run(self) -> None:
        """Fetch for ever."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._route_beside)
            await self._fetch_for_ever()

    async def _fetch_for_ever(self) -> None:
        while True:
            may_ask = self._may_ask()
            updated = self._plan.update() if may_ask else {}
            if not may_ask or not self._plan.asked:
                self._tells_all |= may_ask
                await self._parts.wakeups.fetch_more.wait(self._wait_s())
                continue
            try:
                sent_s = trio.current_time()
                answer = await self._fetch(updated)
                if await self._take(answer) < FULL_BYTES:
                    await trio.sleep_until(sent_s + GATHER_S)
            except NetworkFault as fault:
                self._begin_anew()
                self._fail(fault)
                await trio.sleep(FAULT_PAUSE_S)
            except Exception as fault:  # noqa: BLE001 - what is unforeseen has no type
                _LOG.exception("source broker %d: the fetcher begins anew", self._node)
                self._begin_anew()
                self._interrupt_all(f"source broker {self._node}: {described(fault)}")
                await trio.sleep(FAULT_PAUSE_S)

    def _begin_anew(self) -> None:
        """Forget the connection, as all that was asked for over it is positioned anew."""
        self._session.end()
        self._connection = None

    def _wait_s(self) -> float:
        """Return how long to wait for a wake-up, in seconds: while throttled, until it is over."""
        throttle = self._parts.throttle
        if throttle.is_idle:
            return IDLE_WAIT_S
        topics = {topic for topic, _ in self._parts.partitions.own}
        return min(IDLE_WAIT_S, throttle.wait_s(topics, now_ms()))

    def _chunk_bytes(self) -> tuple[int, int]:
        """Return what to ask for at once, in all and of each partition.

        From afar its share of all that may be under way: the next chunk takes a round trip to come.
        """
        parts, config = self._parts, self._parts.config.current
        if self._lane.count == 1:
            return config.fetch_max_bytes, config.partition_fetch_bytes
        whole, each = parts.budget.most_bytes, parts.budget.most_bytes_each
        shares = self._lane.share(self._plan.behind, whole, each)
        most, each = (
            min(MOST_FETCH_BYTES, max(config.partition_fetch_bytes, share)) for share in shares
        )
        return most, each

    def _may_ask(self) -> bool:
        parts = self._parts
        may_spend = parts.throttle.is_idle or parts.throttle.wait_ms(None, now_ms()) <= 0
        return parts.gate.is_open and parts.budget.has_room and may_spend

    async def _fetch(self, updated: Updated | None) -> Fetched:
        """Ask for all, in words that say only what has changed; raises NetworkFault.

        A connection that broke between two requests fails none. The broker may have started again
        since, with a log that was cut and under the epoch of before: it is a fault all the same.
        """
        connection = await self._links.source_data.connection(self._node, self._lane.number)
        if self._connection is not None and connection is not self._connection:
            raise ConnectionClosed("the connection was closed between two requests")
        self._connection = connection
        config, throttle = self._parts.config.current, self._parts.throttle
        budget = self._parts.budget
        room = max(budget.most_bytes - budget.total, config.partition_fetch_bytes)
        most, each = self._chunk_bytes()
        limits = FetchLimits(
            MAX_WAIT_MS if self._plan.is_complete else MAX_WAIT_WHEN_FULL_MS,
            1,
            min(throttle.chunk_bytes(None, most), room),
            config.isolation_level,
        )
        question = self._question(updated, each)
        version = version_for(connection.version_of(FetchRequest), self._plan.topic_ids)
        body = request_body(version, limits, *question, config.client_rack or "")
        return await connection.ask(FetchRequest, version, [body], read_answer)

    def _question(self, updated: Updated | None, each: int) -> Question:
        """Say what was updated, or everything: where the broker does not know the rest."""
        throttle = self._parts.throttle

        def wish(one: AskedPartition) -> Wanted:
            partition = one.partition
            size = throttle.chunk_bytes(partition.topic, each)
            # With the epoch that discovery knows: a fetch without one is not told that the leader
            # changed, since a follower serves it too, and goes on in a log that was cut meanwhile.
            return Wanted(partition.index, one.offset, size, partition.leaders.source_epoch)

        if updated is None or self._tells_all or not self._session.is_open:
            self._tells_all = False
            asked = self._plan.asked
            return self._session.ask(
                {partition_key: wish(one) for partition_key, one in asked.items()}
            )
        return self._session.ask_some(
            {partition_key: one and wish(one) for partition_key, one in updated.items()}
        )

    async def _take(self, answer: Fetched) -> int:
        """Route every partition's chunk; those with holes wait until the map has them.

        Return the bytes of records that came.
        """
        arrived_ms = now_ms()
        if answer.error_code != ErrorCode.NONE:
            self._session.end()
            if answer.error_code not in SESSION_LOST:
                self._refuse(self._plan.asked.values(), answer.error_code)
            return 0
        self._session.answered(answer.session_id)
        waiting: list[_Waiting] = []
        size = 0
        partitions = sum(len(of_topic) for _, of_topic in answer.topics)
        limit = join_limit(partitions, is_native=self._walker.is_native)
        for one, data in self._plan.match(answer):
            if not one.is_current or one.partition.is_announcing:
                self._session.say_again(partition_key_of(one.partition))
                continue
            try:
                size += self._take_one(one, data, arrived_ms, limit, waiting)
            except Exception as fault:  # noqa: BLE001 - `contained` costs too much here
                self._interruptions.stop_as_failed(one.partition, "what was fetched", fault)
        if waiting:
            await self._forward_behind_holes(waiting)
        if self._parts.reverse.meets_unknown:
            await self._reverse_map.catch_up()
        self._note_heard(arrived_ms)
        return size

    def _take_one(
        self,
        one: AskedPartition,
        data: FetchedPartition,
        arrived_ms: int,
        join_records: int,
        waiting: list["_Waiting"],
    ) -> int:
        """Route one partition's chunk, to go on or to be held back; return its bytes."""
        records = self._accept(one, data, arrived_ms)
        if not records:
            return 0
        if not self._parts.throttle.is_idle:
            self._parts.throttle.spend(one.partition.topic, len(records), arrived_ms)
        decide = self._routing_of(one.partition, data, records, arrived_ms, join_records)
        routed = decide(leaves_heavy=True)
        if routed.is_heavy:
            one.partition.hold_back(one.attempt)
            self._heavy.append(_Heavy(one, decide, records))
            self._has_heavy.wake()
            return len(records)
        self._take_over(one.partition, routed, records, arrived_ms)
        if routed.starts:
            waiting.append(_Waiting(one, routed, _announcements(one, routed)))
            one.partition.hold_back(one.attempt)
        else:
            self._writers.forward(one.partition, routed)
        return len(records)

    async def _route_beside(self) -> None:
        """Route heavy chunks in a thread for ever, while this and other partitions flow."""
        while True:
            while not self._heavy:
                await self._has_heavy.wait(inf)
            heavy = self._heavy.popleft()
            partition = heavy.one.partition
            if not heavy.one.is_current:
                continue
            try:
                await self._route_heavy(heavy)
            except NetworkFault as fault:
                self._interruptions.fail(partition, "holes of what was fetched", fault, now_ms())
            except Exception as fault:  # noqa: BLE001 - what is unforeseen has no type
                self._interruptions.stop_as_failed(partition, "what was fetched", fault)

    async def _route_heavy(self, heavy: _Heavy) -> None:
        """Route a chunk in a thread, of which there is one; nothing, once it was interrupted."""
        one = heavy.one
        routed = await trio.to_thread.run_sync(heavy.route, limiter=BESIDE, abandon_on_cancel=True)
        if one.is_current:
            self._take_over(one.partition, routed, heavy.records, now_ms())
            await self._forward_behind_holes([_Waiting(one, routed, _announcements(one, routed))])
            self._parts.wakeups.fetch_more.wake()

    async def _forward_behind_holes(self, waiting: Sequence["_Waiting"]) -> None:
        records = [(held.one, record) for held in waiting for record in held.announcements]
        for first in range(0, len(records), RECORDS_A_WRITE):
            some = records[first : first + RECORDS_A_WRITE]
            await self._map_log.write(partial(_still_wanted, some))
        for one, routed, _ in waiting:
            if one.is_current:
                one.partition.let_through()
                with self._interruptions.contained(one.partition, "what was fetched"):
                    self._writers.forward(one.partition, routed)
                    one.partition.note_progress(now_ms())
        self._parts.progress.tell(one.partition for one, _, _ in waiting)

    def _note_heard(self, arrived_ms: int) -> None:
        """Take what a session's answers leave out for unchanged, every now and then."""
        self._answered_ms = arrived_ms
        if arrived_ms - self._noted_ms < HEARD_EVERY_MS:
            return
        self._noted_ms = arrived_ms
        for one in self._plan.asked.values():
            if one.is_current:
                one.partition.heard_nothing_new(arrived_ms)

    def _accept(self, one: AskedPartition, data: FetchedPartition, now: int) -> memoryview | None:
        """Note what the source says of its end; return the records, if any came."""
        if data.error_code != ErrorCode.NONE:
            self._refuse([one], data.error_code)
            return None
        # Left out of the answers before, it was where it had been.
        one.partition.heard_nothing_new(self._answered_ms)
        if data.preferred_read_replica != NO_REPLICA:
            self._read_from(one, data.preferred_read_replica, now)
            return None
        is_all_readable = (
            self._parts.config.current.reads_uncommitted or data.last_stable_offset < 0
        )
        readable = data.high_watermark if is_all_readable else data.last_stable_offset
        one.partition.heard(source_end=data.high_watermark, readable_end=readable, now_ms=now)
        return None if data.records is None else self._sendable(one, data.records, now)

    def _sendable(self, one: AskedPartition, records: memoryview, now: int) -> memoryview | None:
        """Return the records before those of which it is not known whose they are."""
        reverse = self._parts.reverse
        if reverse.unbelieved.name_producers:
            records, doubtful = reverse.undoubted_part(records)
            if doubtful is not None and not records:
                if one.partition.in_flight.is_settled:  # else what lies before it goes first
                    reason = self._reverse_map.told_doubt(doubtful)
                    self._interruptions.interrupt(one.partition, reason, now)
                return None
        if self._parts.config.current.is_active_active:
            return reverse.known_part(records)
        return records

    def _read_from(self, one: AskedPartition, replica: int, now: int) -> None:
        """Let another fetcher go on: the leader has named a replica and sent no records."""
        if replica not in self._named:
            self._named.add(replica)
            config = self._parts.config.current
            name, rack = config.name, config.client_rack
            told = "%s: source broker %d has replica %d fetched from, of rack %s"
            _LOG.info(told, name, self._node, replica, rack)
        one.partition.leaders.read_from(replica, now)
        self._session.say_again(partition_key_of(one.partition))
        self._parts.wakeups.position_more.wake()
        self._parts.wakeups.fetch_anew()

    @property
    def _walker(self) -> Walker:
        return walker(may_be_native=self._parts.config.current.has_chunk_kernel)

    def _routing_of(
        self,
        partition: MirroredPartition,
        data: FetchedPartition,
        records: memoryview,
        now: int,
        join_records: int,
    ) -> "partial[Routed]":
        """Return the decision about a chunk, which changes nothing and may be made in a thread."""
        assert partition.cursor is not None, "a flowing partition has a cursor"
        return partial(
            route,
            partition.in_flight.copied_if_stuck(records, now),
            partition.cursor,
            aborted=[
                Aborted(producer_id=producer_id, first_offset=first_offset)
                for producer_id, first_offset in data.aborted
            ],
            producer=self._map_log.producer,
            loop_ids=self._parts.reverse.loop_ids,
            join_records=join_records if partition.retries.joins.are_allowed(now) else 0,
            arrived_ms=now,
            apart_until=0 if partition.skips.apart is None else partition.skips.apart.end,
            walker=self._walker,
        )

    def _take_over(
        self, partition: MirroredPartition, routed: Routed, records: memoryview, now: int
    ) -> None:
        """Move the partition on to where its chunk was routed, or stop it at what is damaged."""
        self._parts.measurements.note_routed(rebuilt=routed.rebuilt, left_out=routed.left_out)
        partition.skips.leave_out_looped(routed.looped)
        partition.advance(routed.cursor)
        if routed.corrupt is not None and not routed.forwards:
            # With batches before it, they go first: the next chunk begins with the damage.
            end = behind_damage(records, routed.cursor.source, partition.source.readable_end or 0)
            self._note_corrupt(partition, routed.corrupt, end, now)
        elif routed.unforeseen is not None and not routed.forwards:
            end, doing = routed.behind_fault, f"source offset {routed.cursor.source}"
            self._interruptions.stop_as_failed(partition, doing, routed.unforeseen, source_end=end)
        elif self._corrupt:
            self._corrupt.pop(partition.topic_partition, None)

    def _note_corrupt(
        self, partition: MirroredPartition, fault: str, source_end: int | None, now: int
    ) -> None:
        key = partition.topic_partition
        self._corrupt[key] += 1
        self._parts.measurements.count_fetch_error("CORRUPT_MESSAGE")
        _LOG.error("%s: source: %s", key, fault)
        if self._corrupt[key] >= CORRUPT_TRIES:
            state = PartitionState.SOURCE_CORRUPT
            self._interruptions.stop(partition, state, fault, now, source_end=source_end)
        else:
            self._interruptions.interrupt(partition, f"source: {fault}", now)

    def _refuse(self, asked: Iterable[AskedPartition], code: int) -> None:
        """Act on an error code: most pass by themselves; where to go on is worked out anew."""
        error = code_of(code)
        self._parts.measurements.count_fetch_error(error.name)
        now = now_ms()
        for one in asked:
            if not one.is_current:
                continue
            one.partition.target.lose_anchor()
            if error is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                self._interruptions.stop(
                    one.partition, PartitionState.NOT_AUTHORISED, f"source: {error.name}", now
                )
            else:
                self._interruptions.interrupt(one.partition, f"source: {error.name}", now)
        self._parts.wakeups.refresh.wake()

    def _fail(self, fault: NetworkFault) -> None:
        fail_source(self._parts, self._node, self._flowing(), fault)

    def _flowing(self) -> list[MirroredPartition]:
        asked = self._plan.asked.values()
        return [one.partition for one in asked if one.is_current and one.partition.is_flowing]

    def _interrupt_all(self, reason: str) -> None:
        """Begin anew with all that was asked for: which partition it was, nobody can tell."""
        self._parts.measurements.count_fetch_error("unforeseen")
        for partition in self._flowing():
            self._interruptions.interrupt(partition, reason, now_ms())


def _announcements(one: AskedPartition, routed: Routed) -> list[MapRecord]:
    """Return the map's records of the piece starts of a chunk."""
    topic_partition = one.partition.topic_partition
    return [
        piece_start(*topic_partition, source_start=source, place=place)
        for source, place in routed.starts
    ]


def _still_wanted(records: Iterable[tuple[AskedPartition, MapRecord]]) -> list[MapRecord]:
    """Return the records of partitions that nothing has interrupted since."""
    return [record for one, record in records if one.is_current]
