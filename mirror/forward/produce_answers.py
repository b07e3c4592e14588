"""The answers of a target broker to the batches sent to it over one connection.

    the connection reads ─► ProduceAttempt.settle ─► what is as foretold gathers in Acknowledgements
                        ─► answers_read, once all that had come is given out ─► taken over

The first error of a partition stops it: batches sent behind it are refused or lie at other offsets.
The position to go on at is read off the log once all is answered.
"""

import logging
from typing import Final, TypeAlias

from mirror.forward.acknowledgements import Acknowledgements
from mirror.forward.flow_parts import ProduceParts
from mirror.forward.ready_line import ReadyLine
from mirror.forward.refusals import STOPPING, TAKEN_APART, describe_records
from mirror.state.batches import Forward
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from runtime.process.clock import now_ms
from wire.errors import ErrorCode
from wire.hot.produce import Appended, least_answer_bytes, read_answer
from wire.net.errors import NetworkFault
from wire.net.pending import AnswerListener
from wire.net.retries import code_of
from wire.primitives import Buffer

_LOG = logging.getLogger(__name__)

DIVERGED_AFTER_MS: Final = 30_000
"""A sequence refused for this long without any progress is not an answer that was lost."""


SentBatch: TypeAlias = tuple[MirroredPartition, int, Forward]
"""One batch on its way: of this partition, sent in this attempt of it."""
Sent: TypeAlias = dict[str, dict[int, SentBatch]]
"""Those of one request, by the target's topic and partition."""


class ProduceAttempt:
    """One Produce under way, which the connection gives its answer."""

    __slots__ = (
        "_answers",
        "_sent",
        "_version",
        "correlation_id",
        "deadline",
        "least_bytes",
        "sent_through",
    )

    def __init__(self, answers: "ProduceAnswers", sent: Sent, version: int) -> None:
        """Have the answer to these batches taken."""
        self._answers = answers
        self._sent = sent
        self._version = version
        self.correlation_id = 0
        self.least_bytes = least_answer_bytes(sent, version)
        self.sent_through = 0
        self.deadline = 0.0

    def settle(self, frame: Buffer) -> None:
        """Take the answer; MalformedMessage if it is none."""
        self._answers.settle(self._sent, read_answer(frame, self._version))

    def fail(self, fault: NetworkFault) -> None:
        """Take note that no answer will come."""
        self._answers.lose(self._sent, fault)


class ProduceAnswers(AnswerListener):
    """Acts on the answers of one connection; partitions with more to send go back in line."""

    def __init__(self, node: int, parts: ProduceParts, ready: ReadyLine) -> None:
        """Begin with no request under way to this broker."""
        self._node = node
        self._parts = parts
        self._interruptions = parts.interruptions
        self._ready = ready
        self._acknowledged = Acknowledgements(parts.measurements, parts.progress)
        self.awaited = 0
        """Requests of whose answer nobody has been told yet."""
        self._answered = 0
        """Those of them that have got it."""

    def expect(self, requests: int) -> None:
        """Await the answers of so many more requests."""
        self.awaited += requests

    def settle(self, items: Sent, answer: list[tuple[str, list[Appended]]]) -> None:
        """Act on the broker's answer for each batch of one request."""
        taken = self._acknowledged.batches
        for topic, partitions in answer:
            of_topic = items.get(topic, {})
            for appended in partitions:
                index, error_code, base_offset, _, _ = appended
                item = of_topic.pop(index, None)
                if item is None:
                    continue
                partition, attempt, forward = item
                if (
                    error_code
                    or attempt != partition.attempt
                    or base_offset != forward[0] + partition.target.shift
                ) and not self._is_there_nevertheless(item, appended):
                    self._release(item)
                else:
                    taken[partition].append(forward)
        for of_topic in items.values():
            for item in of_topic.values():
                self.answers_read()
                self._release(item)
                self._interruptions.interrupt(
                    item[0], "target: no answer for the partition", now_ms()
                )
        self._answered += 1

    def answers_read(self) -> None:
        """Pass on the outcome of the answers so far."""
        for partition in self._acknowledged.take_over(now_ms()):
            if partition.in_flight.queue and partition.in_flight.queued_at is None:
                self._ready.put(partition)
        while self._acknowledged.failed:
            partition, fault = self._acknowledged.failed.pop()
            self._interruptions.stop_as_failed(partition, "what the target has acknowledged", fault)
        if self._answered:
            self.awaited -= self._answered
            self._answered = 0
            if self._parts.budget.has_room:
                self._parts.wakeups.fetch_more.wake()
            self._parts.wakeups.settled.wake()

    def _is_there_nevertheless(self, item: SentBatch, appended: Appended) -> bool:
        """Return what `_is_displaced` does; an error of ours stops this partition alone."""
        try:
            return self._is_displaced(item, appended)
        except Exception as fault:  # noqa: BLE001 - what is unforeseen has no type
            self._interruptions.stop_as_failed(item[0], "the target's answer", fault)
            return False

    def _is_displaced(self, item: SentBatch, appended: Appended) -> bool:
        """Act on an answer that is not what was foretold.

        Return whether the batch is on the target nevertheless, behind records of others.
        """
        self.answers_read()  # what the answers before it have said
        now = now_ms()
        partition, attempt, forward = item
        if attempt != partition.attempt:
            self._parts.wakeups.position_more.wake()
        elif appended.error_code:
            self._refuse(partition, forward, appended, now)
        elif self._displace(partition, forward, appended.base_offset):
            return True
        else:
            self._diverge(partition, forward, appended.base_offset, now)
        return False

    def _displace(self, partition: MirroredPartition, forward: Forward, base_offset: int) -> bool:
        """Take note of where a batch lies behind records of others, where those may be."""
        may_be = self._parts.config.current.is_active_active and (
            base_offset > forward.place + partition.target.shift
        )
        if may_be:
            partition.displaced(forward, base_offset)
        return may_be

    def _release(self, item: SentBatch) -> None:
        partition, _, forward = item
        partition.in_flight.release(forward)

    def _diverge(
        self, partition: MirroredPartition, forward: Forward, base_offset: int, now: int
    ) -> None:
        reason = (
            f"a batch for target offset {forward.place + partition.target.shift} was put at "
            f"{base_offset}: "
            "somebody else writes there"
        )
        _LOG.error("%s-%d: %s", partition.topic, partition.index, reason)
        self._interruptions.stop(partition, PartitionState.TARGET_DIVERGED, reason, now)

    def _refuse(
        self, partition: MirroredPartition, forward: Forward, answer: Appended, now: int
    ) -> None:
        error = code_of(answer.error_code)
        self._parts.measurements.count_produce_error(error.name)
        reason = f"target: {error.name}"
        if answer.error_message:
            reason += f": {answer.error_message}"
        if answer.record_errors:
            first = partition.offset_map.source_of_place(forward.place)
            # With a hole among its records, or behind them, an index says no source offset.
            is_whole = first is not None and first + forward.record_count == forward.source_end
            begin = first if is_whole else None
            records = describe_records(answer.record_errors, forward.record_count, begin)
            reason += f" ({records})" if records else ""
        state = STOPPING.get(error)
        if state in TAKEN_APART and forward.joined > 1:
            # Alone each may be taken, as a joined batch may be larger than the target's limit
            # although no part of it is: a skip must leave out no more than what is refused.
            partition.retries.joins.refuse(now)
            state = None
        begin = self._begin_of(partition, forward) if state in TAKEN_APART else None
        if state is PartitionState.RECORD_TOO_LARGE and begin is not None:
            # Nothing is given up by that: a record that is too large alone stops the partition.
            partition.skips.take_apart(begin, forward.source_end, is_given_up=False)
            self._interruptions.interrupt(partition, f"{reason}: split", now, at_once=True)
            return
        if (
            error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            and partition.retries.refuse_sequence(now) > DIVERGED_AFTER_MS
        ):
            state = PartitionState.TARGET_DIVERGED
        if state is None:
            self._interruptions.interrupt(partition, reason, now)
            self._parts.wakeups.refresh.wake()
            return
        offset = forward.place + partition.target.shift
        at = f"target offset {offset}, {forward.size} bytes: {reason}"
        _LOG.error("%s-%d: %s: %s", partition.topic, partition.index, state.value, at)
        end = forward.source_end
        self._interruptions.stop(partition, state, at, now, source_end=end, source_begin=begin)

    def _begin_of(self, partition: MirroredPartition, forward: Forward) -> int | None:
        """Return where a batch of several records begins on the source; None if it has one only."""
        if forward.record_count == 1 or partition.skips.gives_up(forward.source_end):
            return None
        return partition.offset_map.source_of_place(forward.place)

    def lose(self, items: Sent, fault: NetworkFault) -> None:
        """Interrupt the partitions of an unanswered request: the log will tell their fate."""
        now = now_ms()
        for of_topic in items.values():
            for item in of_topic.values():
                partition, attempt, _ = item
                self._release(item)
                if attempt == partition.attempt:
                    self._interruptions.fail(partition, f"target broker {self._node}", fault, now)
                else:
                    self._parts.wakeups.position_more.wake()
        self._answered += 1
        self.answers_read()
