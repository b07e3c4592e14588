"""Find where each partition goes on: at the start, and after every interruption.

The place is read off the target's log end and the map (see start_position), after everything that
was sent has been answered.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Final

import trio

from mirror.clusters.links import Links
from mirror.clusters.log_ends import Ends, LogEnds
from mirror.map.map_log import RECORDS_A_WRITE, MapLog, MapRecord
from mirror.map.reached import place_records
from mirror.start.begins import due_begin, known_begin, settled_due, why_not_yet
from mirror.start.doubts import Doubts
from mirror.start.log_readings import BothLogs, LogReadings, Tried
from mirror.start.quarantine import Quarantine
from mirror.start.start_position import (
    Situation,
    Start,
    Stop,
    decide_start,
    passing_over,
    unless_own_is_unknown,
    unless_untold,
)
from mirror.start.start_records import ALONG, map_records_of, needless_of
from mirror.state.batches import Cursor
from mirror.state.flow_partitions import FlowPartitions
from mirror.state.interruptions import Interruptions
from mirror.state.live_config import LiveConfig
from mirror.state.mirrored_progress import MirroredProgress
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import ASKED_AGAIN_MS, PartitionState
from mirror.state.reverse_flow import ReverseFlow
from mirror.state.wakeups import FlowGate, FlowWakeups
from offset_translation.map_records import (
    Reached,
    ReachedKey,
    run_start,
    target_topic,
    withdrawal,
)
from offset_translation.runs import Place
from offset_translation.tail import Tail, TailGarbled
from offset_translation.target_scan import Mixed
from offset_translation.topic_identity import is_recreated
from runtime.configuration.flow_section import Policy
from runtime.coordination import map_writers
from runtime.process.clock import now_ms
from runtime.set_option import set_option
from wire.errors import ErrorCode
from wire.net.errors import AuthenticationFailed, NetworkFault, RequestRefused
from wire.values import frozen

_LOG = logging.getLogger(__name__)

LOOK_S: Final = 0.1
REST_LOOK_S: Final = 1.0
"""Nothing waits for a place: whoever makes something wait wakes us."""
TOGETHER: Final = 300
"""So many partitions begin in one write of the map: each takes a handful of records."""
DUE: Final = frozenset({PartitionState.DISCOVERING, PartitionState.WAITING, *ASKED_AGAIN_MS})

UNPLACED: Final = DUE | {PartitionState.POSITIONING}


@frozen
class PositioningParts:
    """The parts of a flow's state that positioning uses."""

    config: LiveConfig
    partitions: FlowPartitions
    gate: FlowGate
    reverse: ReverseFlow
    interruptions: Interruptions
    progress: MirroredProgress
    wakeups: FlowWakeups


class Positioning:
    """Takes partitions from discovered or interrupted to flowing."""

    def __init__(
        self, parts: PositioningParts, links: Links, map_log: MapLog, backward: map_writers.Writers
    ) -> None:
        """Take the flow's parts; ``backward`` are the writers of the other direction's map."""
        self._parts = parts
        self._interruptions = parts.interruptions
        self._links = links
        self._map_log = map_log
        self._doubts = Doubts(config=parts.config, reverse=parts.reverse, map_log=map_log)
        self._logs = BothLogs(
            config=parts.config,
            reverse=parts.reverse,
            links=links,
            map_log=map_log,
            doubts=self._doubts,
        )
        self._quarantine = Quarantine(
            config=parts.config,
            reverse=parts.reverse,
            interruptions=parts.interruptions,
            links=links,
            map_log=map_log,
            backward=backward,
        )

    async def run(self) -> None:
        """Position partitions that are due, those with the same two leaders together.

        A broker that is away must not hold up the partitions of those that answer.
        """
        async with trio.open_nursery() as nursery:
            while True:
                for together in self._due():
                    for partition in together:
                        partition.move(PartitionState.POSITIONING, now_ms())
                    nursery.start_soon(self._position, [Tried(p, p.attempt) for p in together])
                await self._parts.wakeups.position_more.wait(self._rest_s())

    def _rest_s(self) -> float:
        """Return how long to the next look: soon while something may be due by then."""
        partitions = self._parts.partitions.own.values()
        return (
            LOOK_S if any(partition.state in UNPLACED for partition in partitions) else REST_LOOK_S
        )

    def _due(self) -> Iterable[list[MirroredPartition]]:
        if not self._parts.gate.is_open:
            return ()
        now, ids = now_ms(), self._map_log.state.topic_ids
        groups: defaultdict[tuple[int, int], list[MirroredPartition]] = defaultdict(list)
        for partition in self._parts.partitions.own.values():
            leaders = (partition.leaders.source, partition.leaders.target)
            if (
                partition.state in DUE
                and partition.in_flight.is_settled
                and partition.retries.at_ms <= now
                and min(leaders) >= 0
                and not is_recreated(ids.get(partition.topic), partition.source.topic_id)
                and self._interruptions.may_go_on(partition, now)
            ):
                groups[leaders].append(partition)
        return groups.values()

    async def _position(self, tries: Sequence[Tried]) -> None:
        try:
            await self._map_log.settle()
            readings = await self._logs.read(tries)
            tries = [tried for tried in tries if tried.is_current]
            decided: list[tuple[Tried, Start | Stop]] = []
            for first in range(0, len(tries), TOGETHER):
                decided += await self._begin(tries[first : first + TOGETHER], readings)
            for tried, decision in decided:
                await self._set_aside(tried, decision)
        except NetworkFault as fault:
            for tried in tries:
                if tried.is_current:
                    self._postpone(tried.partition, fault)
        except Exception as fault:  # noqa: BLE001 - which partition it is, is seen one by one
            await self._sort_out([tried for tried in tries if tried.is_current], fault)

    async def _set_aside(self, tried: Tried, decision: Start | Stop) -> None:
        """Do what was decided of the target's own records; a fault postpones this partition alone.

        A `.diverged` topic that takes no records must not hold up those of others.
        """
        try:
            if isinstance(decision, Start):
                await self._quarantine.say_what_was_merged(tried.partition, decision)
            elif tried.is_current and self._quarantine.acts_on(tried.partition, decision):
                await self._quarantine.act_or_stop(tried.partition, decision)
        except NetworkFault as fault:
            if tried.is_current:
                self._postpone(tried.partition, fault)

    async def _sort_out(self, tries: Sequence[Tried], fault: Exception) -> None:
        """Stop a partition that cannot be positioned; of several each is tried alone."""
        if not tries:
            _LOG.error("positioning failed behind its decisions", exc_info=fault)
        if len(tries) == 1:
            self._interruptions.stop_as_failed(tries[0].partition, "where to go on", fault)
            return
        for tried in tries:
            if tried.is_current:
                await self._position([tried])

    def _postpone(self, partition: MirroredPartition, fault: NetworkFault) -> None:
        code = fault.code if isinstance(fault, RequestRefused) else None
        no_right = code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if no_right or isinstance(fault, AuthenticationFailed):
            self._interruptions.stop(partition, PartitionState.NOT_AUTHORISED, str(fault), now_ms())
        else:
            partition.postpone(str(fault), now_ms())
        self._parts.wakeups.refresh.wake()

    async def _begin(
        self, tries: Sequence[Tried], readings: LogReadings
    ) -> Sequence[tuple[Tried, Start | Stop]]:
        """Decide under the map's lock, make it durable, act on it, and return what was decided.

        What is to be set aside is left to the caller.
        """
        await self._tell_runs(tries, readings)
        decided: list[tuple[Tried, Start | Stop]] = []
        needless: list[MapRecord] = []

        def compose() -> list[MapRecord]:
            decided[:] = self._decide_all(tries, readings)
            needless[:] = needless_of(decision for _, decision in decided)
            if needless:
                return needless
            return [
                record
                for tried, decision in decided
                if isinstance(decision, Start)
                for record in (
                    *settled_due(self._map_log.state, tried.partition),
                    *map_records_of(tried.partition, decision),
                    *self._target_topic_records(tried.partition),
                    *self._reached_records(tried.partition, decision, readings),
                )
            ]

        await self._map_log.write(compose)
        while needless:
            await self._map_log.write(compose)
        now = now_ms()
        for tried, decision in decided:
            if not tried.is_current:
                continue
            with self._interruptions.contained(tried.partition, "where to go on"):
                self._go_on(tried.partition, decision, readings, now)
        self._parts.progress.tell(tried.partition for tried, _ in decided)
        self._parts.wakeups.fetch_anew()
        return decided

    def _go_on(
        self, partition: MirroredPartition, decision: Start | Stop, readings: LogReadings, now: int
    ) -> None:
        """Let a partition flow, or stop it, as was decided; the map has what goes with it."""
        if isinstance(decision, Stop) and self._quarantine.acts_on(partition, decision):
            self._note_ends(partition, readings.source, now)
            return  # the map tells where it ends once that is done
        partition.target.find_position()
        if isinstance(decision, Start):
            ends = readings.target[partition.topic_partition]
            assert isinstance(ends, LogEnds), "nothing is decided without the ends"
            partition.offset_map.advance(ends.end)
            partition.offset_map.reach(decision.place)
            partition.target.tell_runs()
            partition.target.anchor()
            _note_left_out(partition, decision)
            shift = decision.source - decision.place
            partition.go_on(Cursor(decision.source, decision.place, shift), now)
        else:
            self._stop(partition, decision, readings, now)
        self._note_ends(partition, readings.source, now)

    async def _tell_runs(self, tries: Sequence[Tried], readings: LogReadings) -> None:
        """Tell beforehand where runs begin that are too many to go along; each is true by itself.

        They gather while the map cannot be written, and where somebody was killed.
        """
        gathered: list[tuple[Tried, Tail]] = []
        for tried in tries:
            tail = readings.tails.get(tried.partition.topic_partition)
            if isinstance(tail, Tail):
                gathered.append((tried, tail))
        runs = [
            (tried, run)
            for tried, tail in gathered
            for run in (*tried.partition.target.untold_runs, *tail.runs)
        ]
        if len(runs) <= ALONG:
            return
        for first in range(0, len(runs), RECORDS_A_WRITE):
            some = runs[first : first + RECORDS_A_WRITE]
            await self._map_log.write(partial(_run_records, some))
        for tried, tail in gathered:
            if tried.is_current:
                tried.partition.target.tell_runs()
                tail.tell_runs()

    def _target_topic_records(self, partition: MirroredPartition) -> list[MapRecord]:
        """Tell which topic holds the copy, where the map does not know or knows another."""
        topic_id, topic_partition = partition.target.topic_id, partition.topic_partition
        if topic_id is None or self._map_log.state.target_ids.get(topic_partition) == topic_id:
            return []
        return [target_topic(*topic_partition, topic_id)]

    def _reached_records(
        self, partition: MirroredPartition, start: Start, readings: LogReadings
    ) -> list[MapRecord]:
        """Tell how far a partition has come that others write to, or take back what was told."""
        key = partition.topic_partition
        if not self._doubts.is_shared(partition):
            return []
        tail, ends = readings.tails.get(key), readings.target[key]
        at = Reached(place=start.place, target_end=start.place if start.run is None else start.run)
        runs: list[tuple[Place, int]] = []
        if isinstance(tail, Tail) and isinstance(ends, LogEnds):
            # All of the log has been looked at: the next look may begin behind it.
            at = replace(tail.reached, target_end=ends.end)
            runs = [*partition.target.untold_runs, *tail.runs]
        records = place_records(partition, runs, at)
        if self._parts.config.current.is_active_active:
            return records
        return [*records, withdrawal(ReachedKey(topic=key[0], partition=key[1]))]

    def _decide_all(
        self, tries: Sequence[Tried], readings: LogReadings
    ) -> Iterable[tuple[Tried, Start | Stop]]:
        for tried in filter(attrgetter("is_current"), tries):
            partition = tried.partition
            key = partition.topic_partition
            source_ends, target_ends = readings.source[key], readings.target[key]
            if isinstance(source_ends, ErrorCode) or isinstance(target_ends, ErrorCode):
                self._without_ends(partition, source_ends, target_ends)
                continue
            state, config = self._map_log.state, self._parts.config.current
            not_yet = why_not_yet(state, config, partition, readings.begins)
            if not_yet is not None:
                partition.postpone(not_yet, now_ms())
                continue
            tail, rewritten = readings.tails.get(key), readings.rewritten.get(key)
            if isinstance(tail, RequestRefused):
                self._postpone(partition, tail)
                continue
            if isinstance(rewritten, RequestRefused):
                self._postpone(partition, rewritten)
                continue
            if isinstance(tail, TailGarbled):
                yield tried, Stop(state=PartitionState.TARGET_DIVERGED, reason=str(tail))
                continue
            if rewritten is not None:
                yield tried, self._in_doubt_of_map(partition, rewritten)
                continue
            scanned = tail if isinstance(tail, Mixed) else None
            offset_map = partition.offset_map
            seen = Situation(
                offset_map=(
                    offset_map
                    if scanned is None
                    else scanned.applied_to(offset_map, target_ends.end)
                ),
                source=source_ends,
                target=target_ends,
                arrived=self._parts.reverse.map_of(key, source_ends.end),
                reads_holes_again=self._doubts.reads_holes_again(partition, readings.target),
                is_shared=config.is_active_active,
                tail=None if tail is None else tail.reached,
                runs=() if scanned is None else scanned.runs,
                foreign=() if scanned is None else scanned.foreign,
                was_returned=self._parts.reverse.has_map_of(key),
                set_aside=self._map_log.state.set_aside.get(key, {}),
                is_one_way=not config.names.comes_back(partition.topic),
                begun=known_begin(state, partition),
                due=due_begin(state, config, partition, readings.begins, target_ends),
            )
            decision = decide_start(*key, seen)
            if isinstance(tail, Tail):
                decision = unless_untold(decision, tail.untold, source_ends)
            yield tried, self._by_policy(partition, decision)

    def _without_ends(
        self,
        partition: MirroredPartition,
        source_ends: LogEnds | ErrorCode,
        target_ends: LogEnds | ErrorCode,
    ) -> None:
        """Stop a partition whose ends we may not ask for; one that has none for now waits."""
        reason = f"log ends: source {_told(source_ends)}, target {_told(target_ends)}"
        if ErrorCode.TOPIC_AUTHORIZATION_FAILED in {source_ends, target_ends}:
            self._interruptions.stop(partition, PartitionState.NOT_AUTHORISED, reason, now_ms())
        else:
            partition.postpone(reason, now_ms())
        self._parts.wakeups.refresh.wake()

    def _in_doubt_of_map(self, partition: MirroredPartition, stop: Stop) -> Stop:
        """Return a stop by records that are not the map's with the doubt that the map is whole.

        An old copy of the witness does not know who has written the newest records of the map. So
        a policy of the file decides nothing where these speak of the partition; a person may.
        """
        foreign = self._map_log.unbelieved_records
        count = foreign.count
        if not count:
            return stop
        if foreign.speaks_of(partition.topic_partition) and partition.skips.allowed_once is None:
            stop = replace(stop, skip_to=None, own=None)
        topic_set = self._parts.config.current.topic_set
        reason = (
            f"{stop.reason}; or the map lacks {count} of its records, whose producers are not"
            " registered: before anything is deleted, see"
            f" `failover recover --believe-maps{set_option(topic_set)}`"
        )
        return replace(stop, reason=reason)

    def _by_policy(self, partition: MirroredPartition, decision: Start | Stop) -> Start | Stop:
        """Pass over what is lost or refused, where a policy or a command says so."""
        if isinstance(decision, Stop) and decision.state is PartitionState.TARGET_DIVERGED:
            decision = self._in_doubt_of_map(partition, decision)
        if self._parts.reverse.lacks_map_of(partition.topic_partition):
            decision = unless_own_is_unknown(decision, self._parts.config.current.topic_set)
        if isinstance(decision, Start):
            return passing_over(decision, partition.skips.pass_over or 0)
        policy = self._interruptions.policy_for(partition, decision.state)
        if decision.skip_to is None or policy not in {Policy.SKIP, Policy.MERGE}:
            return decision
        if self._quarantine.is_to_keep(partition, decision):
            return decision  # to be merged once the flow back is told
        return replace(decision.skip_to, merged=decision.own)

    def _stop(
        self, partition: MirroredPartition, stop: Stop, readings: LogReadings, now: int
    ) -> None:
        key = partition.topic_partition
        ends, tail = readings.target[key], readings.tails.get(key)
        if isinstance(ends, LogEnds):
            partition.offset_map.advance(ends.end)
        if isinstance(tail, Tail | Mixed):
            partition.offset_map.reach(tail.reached.place)
        partition.skips.lose(stop.lost_records)
        partition.skips.allow_once(None)  # what was ordered has been tried
        partition.skips.tell_apart(is_savable=stop.own is not None)
        self._interruptions.stop(partition, stop.state, stop.reason, now)
        _LOG.error("%s-%d: %s: %s", partition.topic, partition.index, stop.state.value, stop.reason)

    def _note_ends(self, partition: MirroredPartition, source: Ends, now: int) -> None:
        ends = source[partition.topic_partition]
        if isinstance(ends, LogEnds):
            partition.heard(source_end=ends.end, readable_end=ends.end, now_ms=now)


def _run_records(runs: Iterable[tuple[Tried, tuple[Place, int]]]) -> list[MapRecord]:
    """Return the records of runs of partitions that nothing has interrupted since."""
    return [
        run_start(tried.partition.topic, tried.partition.index, place=place, target_start=target)
        for tried, (place, target) in runs
        if tried.is_current
    ]


def _note_left_out(partition: MirroredPartition, start: Start) -> None:
    """Count what a decision has cost, and say it."""
    partition.skips.settle(start.left_out, start.source)
    if start.left_out:
        _LOG.warning(
            "%s-%d: source offsets %d to %d are left out",
            partition.topic,
            partition.index,
            start.source - start.left_out,
            start.source - 1,
        )


def _told(ends: LogEnds | ErrorCode) -> str:
    return ends.name if isinstance(ends, ErrorCode) else "ok"
