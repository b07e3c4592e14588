"""Produce to one target broker: many requests in flight on a connection, never waiting for each.

A request holds at most one batch of a partition (brokers refuse more) and as many partitions as
are ready. Answers come in order. The first error of a partition stops it: what was sent behind is
refused or lies at other offsets, and where to go on is read off the log once all is answered.

The first batch of a partition goes alone, each time anew, over each new connection and behind a
long rest. A broker that has forgotten our producer id, as it does of old records when it restarts
and when nothing has come for a day, takes any sequence; if it refuses the first batch then, and
takes the next, there is a gap that nobody could fill.
"""

import logging
from collections import deque
from math import inf
from typing import Final, TypeAlias

import trio

from mirror.clusters.links import Links
from mirror.forward.acknowledgements import Settling
from mirror.forward.lanes import LEAST_TO_TARGET, count_lanes, lane_of
from mirror.forward.refusals import STOPPING, TAKEN_APART
from mirror.state.batches import Forward
from mirror.state.flow_state import SETTLE_LOOK_S, FlowState, Request
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from runtime.clock import now_ms
from wire.errors import ErrorCode
from wire.hot.produce import Appended, Batch, least_answer_bytes, read_answer, request_parts
from wire.messages.produce import ProduceRequest
from wire.net.errors import NetworkFault
from wire.net.pending import HALF_OF_MANY, Gathering
from wire.net.retries import code_of
from wire.primitives import Buffer
from wire.schema import Piece

_LOG = logging.getLogger(__name__)

REQUEST_BYTES: Final = 4 * 1024 * 1024
"""A request is closed when it holds this much."""
AT_ONCE_BYTES: Final = 4 * 1024 * 1024
"""Requests are composed until they hold this much together, and go to the socket in one call."""
MAX_IN_FLIGHT_REQUESTS: Final = 2_000
GATHERED_NEAR: Final = Gathering(2, 0.75)
"""From a broker nearby most answers are taken at once: 0.97 of the processor time. From afar what
they free would be filled late: 0.93 of the MB/s. Routing a chunk while the rest of its answer still
comes showed no gain, nor did no garbage collection (by turns, 1 %)."""
TIMEOUT_MS: Final = 30_000
FAULT_PAUSE_S: Final = 0.1
DIVERGED_AFTER_MS: Final = 30_000
"""A sequence refused for this long without any progress is not an answer that was lost."""


_Item: TypeAlias = tuple[MirroredPartition, int, Forward]
"""One batch on its way: of this partition, sent in this attempt of it."""
_Items: TypeAlias = dict[str, dict[int, _Item]]
"""Those of one request, by the target's topic and partition."""


class _Request:
    """One Produce under way, which the connection gives its answer."""

    __slots__ = ("_items", "_line", "_version", "correlation_id", "deadline", "least_bytes")

    def __init__(self, line: "_Line", items: _Items, version: int) -> None:
        self._line = line
        self._items = items
        self._version = version
        self.correlation_id = 0
        self.least_bytes = least_answer_bytes(items, version)
        self.deadline = 0.0

    def settle(self, frame: Buffer) -> None:
        """Take the answer; MalformedMessage if it is none."""
        self._line.settle(self._items, read_answer(frame, self._version))

    def fail(self, fault: NetworkFault) -> None:
        """Take note that no answer will come."""
        self._line.lose(self._items, fault)


class TargetWriter:
    """All that goes to one target broker, over two connections or as many as its distance wants."""

    def __init__(self, node: int, flow: FlowState, links: Links) -> None:
        """Begin with nothing to send, and not knowing how far it is."""
        self._node = node
        self._flow = flow
        self._links = links
        self._lines: list[_Line] = []
        self._early: list[MirroredPartition] = []
        self._has_early = Request()

    def put(self, partition: MirroredPartition) -> None:
        """Take a partition with batches in its queue into its line."""
        if self._lines:
            self._lines[lane_of(partition, len(self._lines))].put(partition)
        else:
            self._early.append(partition)
            self._has_early.wake()

    async def run(self) -> None:
        """Send and settle for ever."""
        while (count := await self._count_lines()) is None:
            await trio.sleep(FAULT_PAUSE_S)
            while not self._early:
                await self._has_early.wait(inf)
        is_far = count > 1
        if is_far:
            self._flow.budget.make_room_for_distance()
        self._lines = [
            _Line(self._node, lane, self._flow, self._links, is_far=is_far)
            for lane in range(max(count, LEAST_TO_TARGET))
        ]
        for partition in self._early:
            self.put(partition)
        self._early.clear()
        async with trio.open_nursery() as nursery:
            for line in self._lines:
                nursery.start_soon(line.run)

    async def _count_lines(self) -> int | None:
        """Return how many are wanted; None if the broker is away, which is said of who waits."""
        try:
            return await count_lanes(await self._links.target_data.connection(self._node))
        except NetworkFault as fault:
            now = now_ms()
            for partition in self._early:
                if partition.in_flight.queue and partition.leaders.target == self._node:
                    self._flow.fail(partition, f"target broker {self._node}", fault, now)
            self._early.clear()
            self._flow.measurements.produce_errors[type(fault).__name__] += 1
            self._flow.refresh.wake()
            return None


class _Line:
    """What goes over one connection."""

    def __init__(
        self, node: int, lane: int, flow: FlowState, links: Links, *, is_far: bool = False
    ) -> None:
        """Begin with nothing to send."""
        self._node = node
        self._lane = lane
        self._gathering = HALF_OF_MANY if is_far else GATHERED_NEAR
        self._flow = flow
        self._links = links
        self._ready: deque[MirroredPartition] = deque()
        self._has_ready = trio.Event()
        self._under_way = 0
        """Requests of whose answer nobody has been told yet."""
        self._answered = 0
        """Those of them that have got it."""
        self._settling = Settling(flow)

    def put(self, partition: MirroredPartition) -> None:
        """Take a partition with batches in its queue into the line."""
        if partition.in_flight.line_up(self._node):
            self._ready.append(partition)
            self._has_ready.set()

    async def run(self) -> None:
        """Send and settle for ever; a fault ends the connection, not this."""
        while True:
            await self._has_ready.wait()
            try:
                await self._stream()
            except NetworkFault as fault:
                self._drop_line(fault)
                self._flow.measurements.produce_errors[type(fault).__name__] += 1
                self._flow.refresh.wake()
                await trio.sleep(FAULT_PAUSE_S)

    async def _stream(self) -> None:
        """Send over one connection until it fails."""
        connection = await self._links.target_data.connection(self._node, self._lane)
        self._forget_what_was_taken()
        version = connection.version_of(ProduceRequest)
        connection.when_read = self._take_over
        connection.gathering = self._gathering
        while connection.is_open:
            if self._under_way >= MAX_IN_FLIGHT_REQUESTS:
                await self._flow.settled.wait(SETTLE_LOOK_S)
                continue
            requests = self._next_requests(version)
            if not requests:
                self._has_ready = trio.Event()
                await self._has_ready.wait()
                continue
            self._under_way += len(requests)
            try:
                await connection.post(ProduceRequest, version, requests)
            except NetworkFault as fault:
                for _, _, request in requests:
                    request.fail(fault)

    def _forget_what_was_taken(self) -> None:
        """A broker that we have just connected to may have restarted while nothing was under way.

        Then nothing was lost and nobody interrupted. A restart ends all its lines: with any of them
        all its partitions have to begin anew, and those of the others wait for an answer at most.
        """
        for partition in self._flow.partitions.values():
            if partition.leaders.target == self._node:
                partition.in_flight.forget_taken()

    def _next_requests(self, version: int) -> list[tuple[list[Piece], int, "_Request"]]:
        """Return what is ready, as a broker takes it: in many requests where batches are small.

        What a socket takes at once costs one system call, however many requests it is.
        """
        requests = []
        total = 0
        while total < AT_ONCE_BYTES and self._ready:
            items, batches = self._next_request()
            if items:
                body, size = request_parts(batches, version, acks=-1, timeout_ms=TIMEOUT_MS)
                requests.append((body, size, _Request(self, items, version)))
                total += size
        return requests

    def _next_request(self) -> tuple[_Items, dict[str, list[Batch]]]:
        """Take one batch of each partition in line, up to the size of a request."""
        items: _Items = {}
        batches: dict[str, list[Batch]] = {}
        total = 0
        now = now_ms()
        ready, node = self._ready, self._node
        for _ in range(len(ready)):
            if total >= REQUEST_BYTES:
                break
            partition = ready.popleft()
            in_flight = partition.in_flight
            if in_flight.queued_at != node:
                continue  # its leader moved while it was in line here
            topic, index = partition.target_topic, partition.index
            of_topic = items.get(topic)
            if of_topic is None or index not in of_topic:
                forward = in_flight.send_next(now)
                if forward is None:
                    continue
                if of_topic is None:
                    of_topic, batches[topic] = items.setdefault(topic, {}), []
                _, _, _, _, size, parts, _, _ = forward
                total += size
                of_topic[index] = (partition, partition.attempt, forward)
                batches[topic].append((index, size, parts))
            # else it moved away and back, and is in line twice
            if in_flight.queued_at is not None:
                ready.append(partition)
        return items, batches

    def settle(self, items: _Items, answer: list[tuple[str, list[Appended]]]) -> None:
        """Take what the broker says of each batch of one request."""
        taken = self._settling.batches
        for topic, partitions in answer:
            of_topic = items.get(topic, {})
            for appended in partitions:
                index, error_code, base_offset, _ = appended
                item = of_topic.pop(index, None)
                if item is None:
                    continue
                partition, attempt, forward = item
                if (
                    error_code
                    or attempt != partition.attempt
                    or base_offset != forward[0] + partition.target.shift
                ) and not self._is_displaced(item, appended):
                    self._release(item)
                else:
                    taken[partition].append(forward)
        for of_topic in items.values():
            for item in of_topic.values():
                self._take_over()
                self._release(item)
                self._flow.interrupt(item[0], "target: no answer for the partition", now_ms())
        self._answered += 1

    def _take_over(self) -> None:
        """Let everybody know what the answers so far have said."""
        for partition in self._settling.take_over(now_ms()):
            if partition.in_flight.queue and partition.in_flight.queued_at is None:
                self.put(partition)
        if self._answered:
            self._under_way -= self._answered
            self._answered = 0
            if self._flow.budget.has_room:
                self._flow.fetch_more.wake()
            self._flow.settled.wake()

    def _is_displaced(self, item: _Item, appended: Appended) -> bool:
        """Act on an answer that is not what was foretold.

        Return whether the batch is on the target nevertheless, behind records of others.
        """
        self._take_over()  # what the answers before it have said
        now = now_ms()
        partition, attempt, forward = item
        if attempt != partition.attempt:
            self._flow.position_more.wake()
        elif appended.error_code:
            self._refuse(partition, forward, appended, now)
        elif self._displace(partition, forward, appended.base_offset):
            return True
        else:
            self._diverge(partition, forward, appended.base_offset, now)
        return False

    def _displace(self, partition: MirroredPartition, forward: Forward, base_offset: int) -> bool:
        """Take note of where a batch lies behind records of others, where those may be."""
        may_be = self._flow.config.is_active_active and (
            base_offset > forward.target_base + partition.target.shift
        )
        if may_be:
            partition.displaced(forward, base_offset)
        return may_be

    def _release(self, item: _Item) -> None:
        partition, _, forward = item
        partition.in_flight.release(forward)

    def _diverge(
        self, partition: MirroredPartition, forward: Forward, base_offset: int, now: int
    ) -> None:
        reason = (
            f"a batch for target offset {forward.target_base + partition.target.shift} was put at "
            f"{base_offset}: "
            "somebody else writes there"
        )
        _LOG.error("%s-%d: %s", partition.topic, partition.index, reason)
        self._flow.stop(partition, PartitionState.TARGET_DIVERGED, reason, now)

    def _refuse(
        self, partition: MirroredPartition, forward: Forward, answer: Appended, now: int
    ) -> None:
        error = code_of(answer.error_code)
        self._flow.measurements.produce_errors[error.name] += 1
        reason = f"target: {error.name}"
        if answer.error_message:
            reason += f": {answer.error_message}"
        state = STOPPING.get(error)
        if state in TAKEN_APART and forward.joined > 1:
            # Alone each may be taken, as a joined batch may be larger than the target's limit
            # although no part of it is: a skip must leave out no more than what is refused.
            partition.retries.joins.refuse(now)
            state = None
        if (
            error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            and partition.retries.refuse_sequence(now) > DIVERGED_AFTER_MS
        ):
            state = PartitionState.TARGET_DIVERGED
        if state is None:
            self._flow.interrupt(partition, reason, now)
            self._flow.refresh.wake()
            return
        offset = forward.target_base + partition.target.shift
        at = f"target offset {offset}, {forward.size} bytes: {reason}"
        _LOG.error("%s-%d: %s: %s", partition.topic, partition.index, state.value, at)
        self._flow.stop(partition, state, at, now, source_end=forward.source_end)

    def lose(self, items: _Items, fault: NetworkFault) -> None:
        """No answer came; what became of the batches the log will tell."""
        now = now_ms()
        for of_topic in items.values():
            for item in of_topic.values():
                partition, attempt, _ = item
                self._release(item)
                if attempt == partition.attempt:
                    self._flow.fail(partition, f"target broker {self._node}", fault, now)
                else:
                    self._flow.position_more.wake()
        self._answered += 1
        self._take_over()

    def _drop_line(self, fault: NetworkFault) -> None:
        """Interrupt what waits in line: behind a lost batch nothing may be sent."""
        now = now_ms()
        while self._ready:
            partition = self._ready.popleft()
            if partition.in_flight.queued_at != self._node:
                continue
            partition.in_flight.leave_line()
            if partition.in_flight.queue:
                self._flow.fail(partition, f"target broker {self._node}", fault, now)
        self._has_ready = trio.Event()
