"""Produce to one target broker: many requests in flight on a connection, never waiting for each.

A request holds at most one batch of a partition (brokers refuse more) and as many partitions as are
ready. Answers come in order. The first error of a partition stops it: batches sent behind it are
refused or lie at other offsets. The position to go on at is read off the log once all is answered.

The first batch of a partition goes alone, each time anew, over each new connection and behind a
long rest. A broker that has forgotten our producer id, as it does of old records when it restarts
and when nothing has come for a day, takes any sequence; if it refuses the first batch then, and
takes the next, there is a gap that nobody could fill.
"""

import logging
from math import inf
from typing import Final

import trio

from mirror.clusters.links import Links
from mirror.forward.flow_parts import ProduceParts
from mirror.forward.lanes import LEAST_TO_TARGET, count_lanes, lane_of
from mirror.forward.produce_answers import ProduceAnswers, ProduceAttempt, Sent
from mirror.forward.ready_line import ReadyLine
from mirror.state.partition import MirroredPartition
from mirror.state.wakeups import SETTLE_LOOK_S, KeptWakeup
from runtime.process.clock import now_ms
from runtime.process.unforeseen import described
from wire.hot.produce import Batch, request_parts
from wire.messages.produce import ProduceRequest
from wire.net.errors import NetworkFault
from wire.net.pending import HALF_OF_MANY, AnswerGathering
from wire.schema import Piece

_LOG = logging.getLogger(__name__)

REQUEST_BYTES: Final = 4 * 1024 * 1024
"""A request is closed when it holds this much."""
AT_ONCE_BYTES: Final = 4 * 1024 * 1024
"""Requests are composed until they hold this much together, and go to the socket in one call."""
MAX_IN_FLIGHT_REQUESTS: Final = 2_000
GATHERED_NEAR: Final = AnswerGathering(2, 0.75)
"""From a broker nearby most answers are taken at once: 0.97 of the processor time. From afar what
they free would be filled late: 0.93 of the MB/s. Routing a chunk while the rest of its answer still
comes showed no gain, nor did no garbage collection (by turns, 1 %)."""
TIMEOUT_MS: Final = 30_000
FAULT_PAUSE_S: Final = 0.1


class TargetWriter:
    """The writer of one target broker, over two connections or as many as its distance wants."""

    def __init__(self, node: int, parts: ProduceParts, links: Links) -> None:
        """Begin with nothing to send, and not knowing how far it is."""
        self._node = node
        self._parts = parts
        self._interruptions = parts.interruptions
        self._links = links
        self._lanes: list[TargetLane] = []
        self._early: list[MirroredPartition] = []
        self._has_early = KeptWakeup()

    def put(self, partition: MirroredPartition) -> None:
        """Take a partition with batches in its queue into its line."""
        if self._lanes:
            self._lanes[lane_of(partition, len(self._lanes))].put(partition)
        else:
            self._early.append(partition)
            self._has_early.wake()

    async def run(self) -> None:
        """Send and settle for ever."""
        while (count := await self._count_lanes()) is None:
            await trio.sleep(FAULT_PAUSE_S)
            while not self._early:
                await self._has_early.wait(inf)
        is_far = count > 1
        if is_far:
            self._parts.budget.make_room_for_distance()
        self._lanes = [
            TargetLane(self._node, lane, self._parts, self._links, is_far=is_far)
            for lane in range(max(count, LEAST_TO_TARGET))
        ]
        for partition in self._early:
            self.put(partition)
        self._early.clear()
        async with trio.open_nursery() as nursery:
            for lane in self._lanes:
                nursery.start_soon(lane.run)

    async def _count_lanes(self) -> int | None:
        """Return how many are wanted; None if the broker is away, which is said of who waits."""
        try:
            return await count_lanes(await self._links.target_data.connection(self._node))
        except NetworkFault as fault:
            now = now_ms()
            for partition in self._early:
                if partition.in_flight.queue and partition.leaders.target == self._node:
                    self._interruptions.fail(partition, f"target broker {self._node}", fault, now)
            self._early.clear()
            self._parts.measurements.count_produce_error(type(fault).__name__)
            self._parts.wakeups.refresh.wake()
            return None


class TargetLane:
    """The batches that go over one connection."""

    def __init__(
        self, node: int, lane: int, parts: ProduceParts, links: Links, *, is_far: bool = False
    ) -> None:
        """Begin with nothing to send."""
        self._node = node
        self._lane = lane
        self._gathering = HALF_OF_MANY if is_far else GATHERED_NEAR
        self._parts = parts
        self._interruptions = parts.interruptions
        self._links = links
        self._ready = ReadyLine(node)
        self._answers = ProduceAnswers(node, parts, self._ready)

    def put(self, partition: MirroredPartition) -> None:
        """Take a partition with batches in its queue into the line."""
        self._ready.put(partition)

    async def run(self) -> None:
        """Send and settle for ever; a fault ends the connection, not this."""
        while True:
            await self._ready.wait()
            try:
                await self._stream()
            except NetworkFault as fault:
                self._drop_line(fault)
                self._parts.measurements.count_produce_error(type(fault).__name__)
                self._parts.wakeups.refresh.wake()
                await trio.sleep(FAULT_PAUSE_S)
            except Exception as fault:  # noqa: BLE001 - what is unforeseen has no type
                _LOG.exception("target broker %d: the writer begins anew", self._node)
                self._drop_line(fault)
                self._parts.measurements.count_produce_error("unforeseen")
                await trio.sleep(FAULT_PAUSE_S)

    async def _stream(self) -> None:
        """Send over one connection until it fails."""
        connection = await self._links.target_data.connection(self._node, self._lane)
        self._forget_what_was_taken()
        version = connection.version_of(ProduceRequest)
        connection.listen(self._answers, self._gathering)
        while connection.is_open:
            if self._answers.awaited >= MAX_IN_FLIGHT_REQUESTS:
                await self._parts.wakeups.settled.wait(SETTLE_LOOK_S)
                continue
            requests = self._next_requests(version)
            if not requests:
                await self._ready.wait_more()
                continue
            self._answers.expect(len(requests))
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
        for partition in self._parts.partitions.own.values():
            if partition.leaders.target == self._node:
                partition.in_flight.forget_taken()

    def _next_requests(self, version: int) -> list[tuple[list[Piece], int, ProduceAttempt]]:
        """Return what is ready, as a broker takes it: in many requests where batches are small.

        What a socket takes at once costs one system call, however many requests it is.
        """
        requests = []
        total = 0
        while total < AT_ONCE_BYTES and self._ready.line:
            items, batches = self._next_request()
            if items:
                try:
                    body, size = request_parts(batches, version, acks=-1, timeout_ms=TIMEOUT_MS)
                except Exception:  # noqa: BLE001 - which batch it is, is seen one by one
                    self._sort_out(items, batches, version)
                    continue
                requests.append((body, size, ProduceAttempt(self._answers, items, version)))
                total += size
        return requests

    def _sort_out(self, items: Sent, batches: dict[str, list[Batch]], version: int) -> None:
        """Stop the partitions whose batches no request can hold; the others begin anew."""
        for topic, of_topic in batches.items():
            for batch in of_topic:
                partition, _, forward = items[topic][batch[0]]
                partition.in_flight.release(forward)
                try:
                    request_parts({topic: [batch]}, version, acks=-1, timeout_ms=TIMEOUT_MS)
                except Exception as fault:  # noqa: BLE001 - what is unforeseen has no type
                    self._interruptions.stop_as_failed(partition, "a Produce request", fault)
                else:
                    reason = "a batch of another partition could not be sent"
                    self._interruptions.interrupt(partition, reason, now_ms(), at_once=True)

    def _next_request(self) -> tuple[Sent, dict[str, list[Batch]]]:
        """Take one batch of each partition in line, up to the size of a request."""
        items: Sent = {}
        batches: dict[str, list[Batch]] = {}
        total = 0
        now = now_ms()
        ready, node = self._ready.line, self._node
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

    def _drop_line(self, fault: Exception) -> None:
        """Interrupt what waits in line: behind a lost batch nothing may be sent."""
        now, where = now_ms(), f"target broker {self._node}"
        for partition in self._ready.clear():
            if isinstance(fault, NetworkFault):
                self._interruptions.fail(partition, where, fault, now)
            else:
                self._interruptions.interrupt(partition, f"{where}: {described(fault)}", now)
