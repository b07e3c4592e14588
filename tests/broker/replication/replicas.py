"""Replicas of one partition under crashes, delays and losses: what was acknowledged stays.

The real `Partition` on logs that are lists, a controller of a few lines, and messages that arrive
late, twice or never. A crash takes the process, not its files.
"""

from dataclasses import replace
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from broker.log.config import LogConfig
from broker.log.results import AppendResult
from broker.replication.in_sync import IsrRules
from broker.replication.leadership import NO_LEADER, Leadership
from broker.replication.partition import ALL_IN_SYNC, Partition, Surroundings
from broker.replication.truncation import (
    UnknownEpoch,
    find_divergence,
    truncation_offset,
)
from tests.broker.replication.clocks import HandClock
from tests.broker.replication.list_log import ListLog
from tests.broker.replication.messages import Asked, Broker, Fate, Fetch, Fetched
from tests.broker.rig import batch
from wire.errors import ErrorCode

BROKERS = (0, 1, 2)
LAG_TIME_MAX_MS = 10
MOST_FETCHED = 2


class Replicas(RuleBasedStateMachine):
    """Each rule is one thing that happens somewhere; nothing happens by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = HandClock()
        self.brokers: list[Broker] = []
        self.live: set[int] = set(BROKERS)
        self.said: list[Leadership] = []
        self.state: Leadership
        self.asked: list[Asked] = []
        self.answers: list[tuple[int, Leadership]] = []
        self.waiting: list[tuple[Partition, int, int, bytes]] = []
        self.committed: dict[int, bytes] = {}
        self.written = 0

    @initialize(min_insync=st.integers(1, 3))
    def start(self, min_insync: int) -> None:
        self.state = Leadership(
            topic="t",
            index=0,
            topic_id=UUID(int=1),
            controller_epoch=1,
            leader=0,
            leader_epoch=0,
            isr=BROKERS,
            replicas=BROKERS,
            partition_epoch=0,
        )
        self.said.append(self.state)
        config = LogConfig(min_insync_replicas=min_insync)
        self.brokers = [Broker(ListLog(config)) for _ in BROKERS]
        for number in BROKERS:
            self._boot(number)
            self.hear(number, again=False)

    def _boot(self, number: int) -> None:
        broker = self.brokers[number]

        def ask(partition: Partition) -> None:
            assert partition.isr_change is not None
            self.asked.append(Asked(number, partition.isr_change))

        broker.partition = Partition(
            number,
            broker.log,  # type: ignore[arg-type]
            self.state,
            self.clock,
            high_watermark=broker.saved_high_watermark,
            surroundings=Surroundings(
                rules=IsrRules(
                    lag_time_max_ms=LAG_TIME_MAX_MS, is_alive=lambda other: other in self.live
                ),
                ask_for_isr=ask,
            ),
        )
        broker.inbox.append(self.state)

    # -- the controller ---------------------------------------------------------------------------

    def _decide(self, *, leader: int, isr: tuple[int, ...]) -> None:
        self.state = replace(
            self.state,
            leader=leader,
            isr=isr,
            leader_epoch=self.state.leader_epoch + 1,
            partition_epoch=self.state.partition_epoch + 1,
        )
        self.said.append(self.state)
        for number in self.live:
            self.brokers[number].inbox.append(self.state)

    @rule(number=st.sampled_from(BROKERS))
    def elect(self, number: int) -> None:
        """Move leadership to another in-sync replica, as a preferred-leader election does."""
        if number in self.live and number in self.state.isr:
            self._decide(leader=number, isr=self.state.isr)

    @rule(number=st.sampled_from(BROKERS))
    def crash(self, number: int) -> None:
        broker = self.brokers[number]
        if broker.partition is None:
            return
        self.waiting = [entry for entry in self.waiting if entry[0] is not broker.partition]
        broker.partition = broker.request = broker.answer = None
        broker.inbox.clear()
        self.live.remove(number)
        if number in self.state.isr:
            left = tuple(other for other in self.state.isr if other in self.live)
            self._decide(leader=left[0] if left else NO_LEADER, isr=left or self.state.isr)

    @rule(number=st.sampled_from(BROKERS))
    def crash_controller(self, number: int) -> None:
        """Crash the broker that is the controller: what it had not told yet nobody hears.

        The next one tells everybody what is, as each does when it begins.
        """
        for broker in self.brokers:
            broker.inbox.clear()
        self.crash(number)
        for live in self.live:
            self.brokers[live].inbox.append(self.state)

    @rule(number=st.sampled_from(BROKERS))
    def restart(self, number: int) -> None:
        if number in self.live:
            return
        self.live.add(number)
        if self.state.leader == NO_LEADER and number in self.state.isr:
            self._decide(leader=number, isr=(number,))
        self._boot(number)

    @precondition(lambda self: self.asked)
    @rule(which=st.integers(0, 99), fate=st.sampled_from(Fate))
    def alter_partition(self, which: int, fate: Fate) -> None:
        """Let something become of one request for an ISR, maybe of one that was given up."""
        one = self.asked[-1 - which % len(self.asked)]
        partition = self.brokers[one.number].partition
        if fate is not Fate.LATE:
            self.asked.remove(one)
        error = self._alter(one) if fate in {Fate.ANSWERED, Fate.ANSWER_LOST} else None
        if partition is None or not one.is_awaited or partition.isr_change is not one.change:
            return
        match error:
            case _ if fate is not Fate.ANSWERED:
                one.is_awaited = False
                partition.isr_unanswered(one.change)
                self.asked.append(Asked(one.number, one.change))  # it asks again
            case ErrorCode.NONE:
                self.answers.append((one.number, self.state))
            case ErrorCode.INELIGIBLE_REPLICA:
                partition.isr_refused(one.change)
            case ErrorCode.INVALID_UPDATE_VERSION:
                partition.isr_outdated(one.change)
            case _:
                pass  # it hears of a new leader

    def _alter(self, one: Asked) -> ErrorCode:
        """Do and answer as `broker.controller.requests` does."""
        state, change = self.state, one.change
        if (one.number, change.leader_epoch) != (state.leader, state.leader_epoch):
            return ErrorCode.FENCED_LEADER_EPOCH
        if change.partition_epoch < state.partition_epoch:
            is_so = set(change.isr) == set(state.isr)
            return ErrorCode.NONE if is_so else ErrorCode.INVALID_UPDATE_VERSION
        if not set(change.isr) - set(state.isr) <= self.live:
            return ErrorCode.INELIGIBLE_REPLICA
        self.state = replace(state, isr=change.isr, partition_epoch=state.partition_epoch + 1)
        return ErrorCode.NONE

    @precondition(lambda self: self.answers)
    @rule(which=st.integers(0, 99))
    def isr_confirmed(self, which: int) -> None:
        number, state = self.answers[-1 - which % len(self.answers)]
        partition = self.brokers[number].partition
        if partition is not None:
            partition.isr_confirmed(state)

    @rule(number=st.sampled_from(BROKERS), again=st.booleans())
    def hear(self, number: int, *, again: bool) -> None:
        """Let the controller's oldest unheard word arrive, or one that was heard long ago."""
        broker = self.brokers[number]
        if broker.partition is not None and again:
            broker.partition.take(self.said[len(self.said) // 2])
        elif broker.partition is not None and broker.inbox:
            broker.partition.take(broker.inbox.popleft())

    # -- the brokers ------------------------------------------------------------------------------

    @rule(number=st.sampled_from(BROKERS), acks=st.sampled_from([1, ALL_IN_SYNC]))
    def produce(self, number: int, acks: int) -> None:
        partition = self.brokers[number].partition
        if partition is None or not partition.is_led_here:
            return
        self.written += 1
        record = batch(b"%d" % self.written)
        appended = partition.append_from_client(record, acks=acks, is_fenced=False)
        if isinstance(appended, AppendResult) and acks == ALL_IN_SYNC:
            term = partition.term
            self.waiting.append((partition, term, appended.base_offset, record))

    @rule(number=st.sampled_from(BROKERS))
    def ask(self, number: int) -> None:
        """Send a fetch; another answer, if one is on its way, is not waited for."""
        broker = self.brokers[number]
        partition = broker.partition
        if partition is None or partition.is_stopped or partition.is_led_here:
            return
        known = partition.leadership
        if known.leader != NO_LEADER:
            broker.request = Fetch(
                known.leader,
                known.leader_epoch,
                partition.log_end_offset,
                broker.log.latest_leader_epoch,
            )

    @rule(number=st.sampled_from(BROKERS))
    def serve(self, number: int) -> None:
        """Let a fetch arrive at its leader, as `broker.apis.fetching` reads it."""
        broker = self.brokers[number]
        request, broker.request = broker.request, None
        if request is None:
            return
        leader = self.brokers[request.leader].partition
        if leader is None or not leader.is_led_here or leader.leader_epoch != request.leader_epoch:
            return
        log = self.brokers[request.leader].log
        try:
            divergence = find_divergence(log, request.offset, request.last_epoch)
        except UnknownEpoch:
            broker.answer = Fetched(request, ends_at=log.log_end_offset)
            return
        if divergence is None and request.offset > log.log_end_offset:
            broker.answer = Fetched(request, ends_at=log.log_end_offset)
            return
        if divergence is None:
            entries = tuple(log.entries[request.offset : request.offset + MOST_FETCHED])
            leader.fetched_by(number, request.offset, 0)
            broker.answer = Fetched(request, entries, leader.high_watermark)
        else:
            broker.answer = Fetched(request, divergence=divergence)

    @rule(number=st.sampled_from(BROKERS), is_lost=st.booleans())
    def take_answer(self, number: int, *, is_lost: bool) -> None:
        """Let an answer arrive, as `broker.replication.fetcher` takes it."""
        broker = self.brokers[number]
        answer, broker.answer = broker.answer, None
        partition = broker.partition
        if answer is None or partition is None or is_lost or partition.is_led_here:
            return
        asked = answer.to
        if (asked.leader_epoch, asked.offset) != (
            partition.leader_epoch,
            partition.log_end_offset,
        ):
            return
        now_ms = self.clock.now_ms()
        if answer.divergence is not None:
            offset = truncation_offset(broker.log, answer.divergence)
            partition.truncate_to(offset, now_ms=now_ms)
        elif answer.ends_at is not None:
            partition.truncate_to(answer.ends_at, now_ms=now_ms)
        else:
            partition.append_fetched(
                answer.entries,  # type: ignore[arg-type]
                high_watermark=answer.high_watermark,
                log_start_offset=0,
                now_ms=now_ms,
            )

    @rule(number=st.sampled_from(BROKERS), times=st.integers(1, 3))
    def replicate(self, number: int, times: int) -> None:
        """Let a follower hear and fetch without trouble, so that all gets on at times."""
        broker = self.brokers[number]
        while broker.partition is not None and broker.inbox:
            broker.partition.take(broker.inbox.popleft())
        for _ in range(times):
            self.ask(number)
            self.serve(number)
            self.take_answer(number, is_lost=False)

    @rule(number=st.sampled_from(BROKERS), passed_ms=st.integers(0, 2 * LAG_TIME_MAX_MS))
    def look_after_isr(self, number: int, passed_ms: int) -> None:
        self.clock.passed_ms += passed_ms
        partition = self.brokers[number].partition
        if partition is not None:
            partition.look_after_isr()

    @rule(number=st.sampled_from(BROKERS))
    def save_high_watermark(self, number: int) -> None:
        broker = self.brokers[number]
        if broker.partition is not None:
            broker.saved_high_watermark = broker.partition.high_watermark

    def heal(self) -> None:
        """Let everybody come back, and everything arrive, until all are in sync."""
        for number in (*self.state.isr, *BROKERS):
            self.restart(number)
        self.asked = [one for one in self.asked if one.is_awaited]
        for _ in range(60):
            for number in BROKERS:
                self.replicate(number, 3)
            if self.asked:
                self.alter_partition(0, Fate.ANSWERED)
            if self.answers:
                self.isr_confirmed(0)
            self.look_after_isr(self.state.leader, 0)

    def who_lead(self) -> list[int]:
        """Return the brokers that believe that they lead; there may be several."""
        return [
            number
            for number, broker in enumerate(self.brokers)
            if broker.partition is not None and broker.partition.is_led_here
        ]

    # -- what must hold ---------------------------------------------------------------------------

    @invariant()
    def what_consumers_may_have_read_never_changes(self) -> None:
        """No two replicas ever show different records at one offset below a high watermark."""
        for broker in self.brokers:
            if broker.partition is None:
                continue
            for offset in range(broker.partition.high_watermark):
                record = broker.log.entries[offset].batch
                assert self.committed.setdefault(offset, record) == record

    @invariant()
    def whoever_may_be_elected_has_all_that_is_committed(self) -> None:
        """Every in-sync replica, in the controller's view, holds what any consumer has read."""
        for number in self.state.isr if self.brokers else ():
            entries = self.brokers[number].log.entries
            for offset, record in self.committed.items():
                assert offset < len(entries), f"broker {number} lacks {offset}"
                assert entries[offset].batch == record

    @invariant()
    def what_was_acknowledged_is_committed(self) -> None:
        """A producer with acks=all hears of success only about records that stay."""
        still_waiting = []
        for entry in self.waiting:
            partition, term, offset, record = entry
            if not partition.is_led_here or partition.term != term:
                continue
            if partition.high_watermark > offset:
                assert self.committed[offset] == record
            else:
                still_waiting.append(entry)
        self.waiting = still_waiting
