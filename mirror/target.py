"""Produce to one target broker: many requests in flight on one connection, never waiting for each.

A request holds at most one batch of a partition (brokers refuse more) and as many partitions as
are ready. Answers come in order. The first error of a partition stops it: what was sent behind is
refused or lies at other offsets, and where to go on is read off the log once all is answered.
"""

import logging
from collections import deque
from typing import Final, NamedTuple, TypeAlias

import trio

from mirror.flow_state import FlowState
from mirror.links import Links
from mirror.partition import MirroredPartition
from mirror.partition_state import PartitionState
from mirror.routing import Forward
from runtime.clock import now_ms
from wire.errors import ErrorCode
from wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from wire.net.connection import Pending
from wire.net.errors import NetworkFault
from wire.net.retries import code_of

_LOG = logging.getLogger(__name__)

REQUEST_BYTES: Final = 4 * 1024 * 1024
"""A request is closed when it holds this much."""
MAX_IN_FLIGHT_REQUESTS: Final = 2_000
TIMEOUT_MS: Final = 30_000
FAULT_PAUSE_S: Final = 0.1
DIVERGED_AFTER_MS: Final = 30_000
"""A sequence refused for this long without any progress is not an answer that was lost."""

STOPPING: Final[dict[ErrorCode, PartitionState]] = {
    ErrorCode.MESSAGE_TOO_LARGE: PartitionState.RECORD_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE: PartitionState.RECORD_TOO_LARGE,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: PartitionState.NOT_AUTHORISED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: PartitionState.NOT_AUTHORISED,
    ErrorCode.INVALID_RECORD: PartitionState.TARGET_REFUSED,
    ErrorCode.INVALID_TIMESTAMP: PartitionState.TARGET_REFUSED,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: PartitionState.TARGET_REFUSED,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: PartitionState.TARGET_REFUSED,
    ErrorCode.INVALID_PRODUCER_EPOCH: PartitionState.TARGET_DIVERGED,
}


class _Item(NamedTuple):
    """One batch on its way."""

    partition: MirroredPartition
    attempt: int
    forward: Forward
    arrived_ms: int


_Sent: TypeAlias = tuple[Pending[ProduceResponse], list[_Item]]


class TargetWriter:
    """The line of one target broker."""

    def __init__(self, node: int, flow: FlowState, links: Links) -> None:
        """Begin with nothing to send."""
        self._node = node
        self._flow = flow
        self._links = links
        self._ready: deque[MirroredPartition] = deque()
        self._has_ready = trio.Event()

    def put(self, partition: MirroredPartition) -> None:
        """Take a partition with batches in its queue into the line."""
        if partition.queued_at == self._node:
            return
        partition.queued_at = self._node
        self._ready.append(partition)
        self._has_ready.set()

    async def run(self) -> None:
        """Send and settle for ever; a fault ends the connection, not this."""
        while True:
            await self._has_ready.wait()
            try:
                await self._stream()
            except NetworkFault as fault:
                self._drop_line(f"target broker {self._node}: {fault}")
                self._flow.measurements.produce_errors[type(fault).__name__] += 1
                self._flow.refresh.wake()
                await trio.sleep(FAULT_PAUSE_S)

    async def _stream(self) -> None:
        """Send over one connection until it fails; return once all that was sent is settled."""
        connection = await self._links.target_data.connection(self._node)
        send, receive = trio.open_memory_channel[_Sent](MAX_IN_FLIGHT_REQUESTS)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._settle_all, receive)
            async with send:
                while connection.is_open:
                    items = self._next_request()
                    if not items:
                        self._has_ready = trio.Event()
                        await self._has_ready.wait()
                        continue
                    try:
                        pending = await connection.send(_request(items))
                    except NetworkFault as fault:
                        self._lose(items, fault)
                    else:
                        await send.send((pending, items))

    def _next_request(self) -> list[_Item]:
        """Take one batch of each partition in line, up to the size of a request."""
        items: list[_Item] = []
        size = 0
        for _ in range(len(self._ready)):
            if size >= REQUEST_BYTES:
                break
            partition = self._ready.popleft()
            if partition.queued_at != self._node:
                continue  # its leader moved while it was in line here
            partition.queued_at = None
            if not partition.queue:
                continue
            forward, arrived_ms = partition.queue.popleft()
            partition.sent_count += 1
            size += forward.size
            items.append(_Item(partition, partition.attempt, forward, arrived_ms))
            if partition.queue:
                self.put(partition)
        return items

    async def _settle_all(self, receive: trio.MemoryReceiveChannel[_Sent]) -> None:
        async with receive:
            async for pending, items in receive:
                try:
                    response = await pending.wait()
                except NetworkFault as fault:
                    self._lose(items, fault)
                else:
                    self._settle(items, response)
                self._flow.fetch_more.wake()
                self._flow.settled.wake()

    def _settle(self, items: list[_Item], response: ProduceResponse) -> None:
        answers = {
            (topic.name, answer.index): answer
            for topic in response.responses
            for answer in topic.partition_responses
        }
        now = now_ms()
        for item in items:
            answer = answers.get((item.partition.topic, item.partition.index))
            self._release(item)
            if item.attempt != item.partition.attempt:
                self._flow.position_more.wake()
            elif answer is None:
                self._flow.interrupt(item.partition, "target: no answer for the partition", now)
            elif answer.error_code != ErrorCode.NONE:
                self._refuse(item, answer, now)
            elif answer.base_offset != item.forward.target_base:
                self._diverge(item, answer.base_offset, now)
            else:
                self._acknowledge(item, now)

    def _release(self, item: _Item) -> None:
        item.partition.sent_count -= 1
        item.partition.in_flight_bytes -= item.forward.size
        self._flow.in_flight_bytes -= item.forward.size

    def _acknowledge(self, item: _Item, now: int) -> None:
        item.partition.acknowledged(item.forward, now)
        measurements = self._flow.measurements
        measurements.records += item.forward.record_count
        measurements.bytes += item.forward.size
        measurements.batches += 1
        measurements.note_latency(now, item.arrived_ms, item.forward.max_timestamp)

    def _diverge(self, item: _Item, base_offset: int, now: int) -> None:
        reason = (
            f"a batch for target offset {item.forward.target_base} was put at {base_offset}: "
            "somebody else writes there"
        )
        _LOG.error("%s-%d: %s", item.partition.topic, item.partition.index, reason)
        with self._flow.accounting(item.partition):
            item.partition.stop(PartitionState.TARGET_DIVERGED, reason, now)

    def _refuse(self, item: _Item, answer: PartitionProduceResponse, now: int) -> None:
        error = code_of(answer.error_code)
        partition = item.partition
        self._flow.measurements.produce_errors[error.name] += 1
        reason = f"target: {error.name}"
        if answer.error_message:
            reason += f": {answer.error_message}"
        state = STOPPING.get(error)
        if error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            if partition.refused_since_ms is None:
                partition.refused_since_ms = now
            if now - partition.refused_since_ms > DIVERGED_AFTER_MS:
                state = PartitionState.TARGET_DIVERGED
        if state is None:
            self._flow.interrupt(partition, reason, now)
            self._flow.refresh.wake()
            return
        at = f"target offset {item.forward.target_base}, {item.forward.size} bytes: {reason}"
        _LOG.error("%s-%d: %s: %s", partition.topic, partition.index, state.value, at)
        with self._flow.accounting(partition):
            partition.stop(state, at, now)

    def _lose(self, items: list[_Item], fault: NetworkFault) -> None:
        """No answer came; what became of the batches the log will tell."""
        now = now_ms()
        for item in items:
            self._release(item)
            if item.attempt == item.partition.attempt:
                self._flow.interrupt(item.partition, f"target broker {self._node}: {fault}", now)
            else:
                self._flow.position_more.wake()

    def _drop_line(self, reason: str) -> None:
        """Interrupt what waits in line: behind a lost batch nothing may be sent."""
        now = now_ms()
        while self._ready:
            partition = self._ready.popleft()
            if partition.queued_at != self._node:
                continue
            partition.queued_at = None
            if partition.queue:
                self._flow.interrupt(partition, reason, now)
        self._has_ready = trio.Event()


def _request(items: list[_Item]) -> ProduceRequest:
    topics: dict[str, list[PartitionProduceData]] = {}
    for item in items:
        topics.setdefault(item.partition.topic, []).append(
            PartitionProduceData(index=item.partition.index, records=item.forward.parts)
        )
    return ProduceRequest(
        acks=-1,
        timeout_ms=TIMEOUT_MS,
        topic_data=tuple(
            TopicProduceData(name=name, partition_data=tuple(data)) for name, data in topics.items()
        ),
    )
