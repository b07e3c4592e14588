"""Send a record a second along one flow, and look for each on the other site."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import trio

from failover.canary.ledger import CanaryLedger
from failover.canary.overdue import Overdue
from runtime.configuration.canary_section import CanaryConfig
from runtime.configuration.config import FlowConfig
from runtime.process.clock import monotonic_ms, wall_ms
from runtime.untrusted_json import read_json, text, whole_number
from wire.errors import ErrorCode
from wire.net import Cluster, NetworkFault, RequestRefused
from wire.net.operations import EARLIEST, LATEST, append, list_offsets, read_partition
from wire.net.retries import code_of
from wire.net.topic_creation import ensure_topic
from wire.record_batch import CorruptBatch, Record, build_batch, crc_is_valid, iterate_records
from wire.topic_partition import TopicPartition

SETTINGS: Final = {"retention.ms": "3600000", "cleanup.policy": "delete"}
LOOK_S: Final = 0.05
"""So often the other site is looked at while a record is on its way."""
IDLE_S: Final = 0.5

Works: TypeAlias = Callable[[], None]
"""Hears after each round that went well."""


class ReadingFailed(NetworkFault):
    """The other site's log could not be read on; the message says why."""


@dataclass(slots=True)
class FlowCanary:
    """The canary of one flow."""

    flow: FlowConfig
    config: CanaryConfig
    may_send: Callable[[], bool | None]
    """Tells whether the source takes writes by our word; None while that is not known."""
    told: Callable[[int], None]
    """Hears how long each record took, in ms."""
    ledger: CanaryLedger = field(default_factory=CanaryLedger)
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Tells this canary's records from those of others, and of earlier runs."""
    _position: int | None = None
    _overdue: Overdue = field(init=False)

    def __post_init__(self) -> None:
        self._overdue = Overdue(late_after_ms=self.config.late_after_ms)

    @property
    def copy(self) -> TopicPartition:
        """The partition on the flow's target."""
        return TopicPartition(self.flow.names.on_target(self.config.topic), 0)

    async def send(self, source: Cluster, works: Works) -> None:
        """Send again and again while the source is active; raises NetworkFault."""
        while True:
            takes_writes = self.may_send()
            self._overdue.see_source(takes_writes, monotonic_ms())
            if takes_writes:
                await self._send_one(source)
            elif self._overdue.is_over:
                self.ledger.give_up()
            works()
            await trio.sleep(self.config.interval_ms / 1_000)

    async def _send_one(self, source: Cluster) -> None:
        topic = self.config.topic
        await ensure_topic(source, topic, replication_factor=None, configs=SETTINGS)
        number = self.ledger.send(monotonic_ms())
        value = f'{{"run":"{self.run_id}","number":{number}}}'.encode()
        batch = build_batch([Record(0, wall_ms(), self.flow.source.encode(), value)])
        is_taken = False
        try:
            answer = await append(source, topic, 0, batch, timeout_ms=self.config.late_after_ms)
            is_taken = answer.error_code == ErrorCode.NONE
            if not is_taken:
                source.forget(topic)
                raise RequestRefused(f"writing to {topic}", code_of(answer.error_code))
        finally:
            if is_taken:
                self.ledger.acknowledge(number)
            else:
                self.ledger.refuse(number)

    async def read(self, target: Cluster, works: Works) -> None:
        """Look for what was sent, again and again; raises NetworkFault."""
        while True:
            began_ms = monotonic_ms()
            end = await self._end(target)
            if end is not None:
                await self._read_up_to(target, end)
                self._overdue.see_copy(began_ms)
            works()
            await trio.sleep(LOOK_S if self.ledger.is_waiting else IDLE_S)

    async def _end(self, target: Cluster) -> int | None:
        """Return where the copy ends; None where there is none yet. Raises NetworkFault."""
        end = (await list_offsets(target, [self.copy], LATEST))[self.copy]
        if not isinstance(end, ErrorCode):
            return end
        target.forget(self.copy.topic)
        if end is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return None
        raise RequestRefused(f"the end of {self.copy}", end)

    async def _read_up_to(self, target: Cluster, end: int) -> None:
        if self._position is None or self._position > end:
            await self._begin(target, end)
        assert self._position is not None, "it was just found"
        if self._position == end:
            return
        try:
            async for header, batch in read_partition(target, *self.copy, self._position, end):
                if not crc_is_valid(batch):
                    raise ReadingFailed(f"{self.copy}: wrong checksum at {header.base_offset}")
                self._take(batch, self._position)
                self._position = max(self._position, header.next_offset)
        except CorruptBatch as fault:
            raise ReadingFailed(f"{self.copy}: {fault}") from fault
        except RequestRefused as refused:
            if refused.code is ErrorCode.OFFSET_OUT_OF_RANGE:
                self._position = None
                self.ledger.forget()
            raise
        self._position = max(self._position, end)

    async def _begin(self, target: Cluster, end: int) -> None:
        """Begin at the log's start, where this run's first record may already be."""
        if self._position is not None:  # the log ends before it: it was cut, or made again
            self.ledger.forget()
        start = (await list_offsets(target, [self.copy], EARLIEST))[self.copy]
        is_first = not isinstance(start, ErrorCode) and not self.ledger.arrived
        self._position = start if is_first else end

    def _take(self, batch: memoryview, begin: int) -> None:
        now = monotonic_ms()
        for record in iterate_records(batch):
            number = self._number_of(record.value)
            if number is None or record.offset < begin:
                continue
            took_ms = self.ledger.arrive(number, now)
            if took_ms is not None:
                self.told(took_ms)

    def _number_of(self, value: bytes | None) -> int | None:
        """Return a record's number, None for a record of somebody else's."""
        try:
            found = read_json(value or b"")
            is_ours = text(found["run"]) == self.run_id
            return whole_number(found["number"]) if is_ours else None
        except (ValueError, KeyError, TypeError):
            return None
