"""The effects of a promotion's steps on the two sites, the flow and the witness.

Every method may be repeated at any time. A cluster that does not answer fails the step. The facts
that later steps rely on are typed (`failover.journal.facts`).
"""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Final, TypeAlias, TypeVar

import trio

from failover.journal.execute import Note, StepFailed, StepOutcome
from failover.journal.facts import DrainFacts, Facts, FenceFacts, PreflightFacts
from failover.journal.journal import Journal, PartitionEnds
from failover.journal.journal_size import why_too_long
from failover.journal.journals import mirrored_away
from failover.journal.lease import Lease
from failover.journal.steps import PromotionKind, StepName
from failover.journal.store import WitnessStore
from failover.moving.drain import (
    SourceLogs,
    missing,
    open_transactions,
    read_source_logs,
    wait_close_behind,
    wait_drained,
)
from failover.moving.flow import FlowControl
from failover.moving.groups import GROUPS_BYTES, BothMaps, fitting, move_groups
from failover.moving.leaving import CountFollowers, wait_left, wait_plain_left
from failover.moving.standstill import StandstillWatch
from failover.sites.fence import (
    Fence,
    FenceDoesNotHold,
    fence_of,
    find_locked_out,
    read_fence,
    set_fence,
    wait_holds,
)
from failover.sites.map_follower import MapFollower
from failover.sites.mirrored_ends import (
    find_mirrored_ends,
    foreign_stops,
    seal_facts,
    with_earlier,
    without_mirrored_away,
)
from failover.sites.other_log import (
    find_other_copies,
    find_other_logs,
    find_shorter_logs,
    require_none,
)
from failover.sites.pair_evidence import PairEvidence
from failover.sites.site import Site, brief, client_let_through
from failover.sites.slipped import find_appended, find_beyond_mirrored, make_missing
from runtime.configuration.config import FailoverConfig, FlowConfig
from runtime.coordination.witness import WitnessGarbled
from wire.net import NetworkFault
from wire.topic_partition import TopicPartition

_LOG = logging.getLogger(__name__)
T = TypeVar("T")
Step: TypeAlias = Callable[[Journal], Awaitable[StepOutcome]]
Undo: TypeAlias = Callable[[Journal], Awaitable[Facts]]

LOST_SOURCE_TIMEOUT_S: Final = 3.0
"""A source that was given up is asked for so long to close itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionEffects:
    """The effects of one promotion, done only while the lease is certain."""

    lease: Lease
    store: WitnessStore
    flow: FlowConfig
    limits: FailoverConfig
    control: FlowControl
    reverse: FlowControl | None
    source: Site
    target: Site
    follower: MapFollower
    backward: MapFollower
    """The map of records that the other direction has brought into the source."""
    evidence: PairEvidence
    count_followers: CountFollowers
    journals: Callable[[], Awaitable[Sequence[Journal]]]
    """Reads all promotions' journals, oldest first; raises JournalUnreadable."""
    is_insisted: bool = False
    """Whether the operator goes on although plain consumers stay."""

    async def run(self, step: StepName, journal: Journal, note: Note) -> StepOutcome:
        """Do a step; raises StepFailed, and what the lease and the store raise."""
        steps: dict[StepName, Step] = {
            StepName.PREFLIGHT: self._preflight,
            StepName.ANNOUNCE: self._announce,
            StepName.FENCE: self._fence,
            StepName.DRAIN: self._drain,
            StepName.GROUPS_LEAVE: self._groups_leave,
            StepName.GROUPS_MOVE: self._groups_move,
            StepName.STOP_FLOW: self._stop_flow,
            StepName.VERIFY_FENCE: self._verify_fence,
            StepName.SEAL: partial(self._seal, note=note),
            StepName.OPEN_TARGET: self._open_target,
            StepName.CONFIRM: self._confirm,
            StepName.START_REVERSE: self._start_reverse,
        }
        return await self._act(partial(steps[step], journal))

    async def undo(self, step: StepName, journal: Journal) -> Facts:
        """Take a step back; raises StepFailed, and what the lease and the store raise."""
        undo: dict[StepName, Undo] = {
            StepName.ANNOUNCE: self._withdraw,
            StepName.FENCE: self._unfence,
            StepName.STOP_FLOW: self._start_flow,
            StepName.SEAL: self._unseal,
            StepName.OPEN_TARGET: self._close_target,
        }
        return await self._act(partial(undo[step], journal))

    async def _act(self, work: Callable[[], Awaitable[T]]) -> T:
        try:
            return await self.lease.act(work)
        except NetworkFault as fault:
            raise StepFailed(brief(fault)) from fault

    # --- looking ---------------------------------------------------------------------------------

    async def _preflight(self, journal: Journal) -> StepOutcome:
        is_planned = journal.kind is PromotionKind.PLANNED
        looked = self.source if is_planned else self.target
        partitions = await looked.partitions(self.flow)
        if not partitions:
            raise StepFailed(
                f"no topic of the flow {self.flow.name} is on {looked.name}, so nothing moves;"
                " `mirror topics` says why"
            )
        _require_room(partitions)
        plain = await self._wait_ready(partitions) if is_planned else {}
        # What `open-target` will need is tried before anybody is kept from writing.
        await self.evidence.require_writable(self._required(journal))
        # A promotion that this one replaces may have opened the target already.
        known = journal.preflight.target_fence
        fence = known or (await read_fence(self.target.cluster)).topics
        facts = PreflightFacts(
            topics=_counted(partitions), target_fence=tuple(fence), plain_members=plain
        ).encode()
        if journal.kind is PromotionKind.SOURCE_LOST:
            facts = {**facts, "unmirrored": await self._unmirrored(partitions)}
        return StepOutcome(facts=facts)

    async def _wait_ready(self, partitions: tuple[TopicPartition, ...]) -> Mapping[str, int]:
        """Wait for what would hold up writes behind the fence; return the members that stay.

        They are counted by group. Raises StepFailed.
        """
        await wait_close_behind(
            self.source,
            partitions,
            self.follower,
            StandstillWatch(self.control.standing),
            max_lag=self.limits.max_lag_before_fence,
            timeout_ms=self.limits.catch_up_timeout_ms,
        )
        return await wait_plain_left(
            self.source,
            self.flow.groups,
            self.count_followers,
            target=self.target.name,
            timeout_ms=self.limits.group_drain_timeout_ms,
            is_insisted=self.is_insisted,
        )

    async def _unmirrored(self, partitions: Collection[TopicPartition]) -> dict[str, int]:
        """Return how many partitions of each topic the mirror knew of and the target has not."""
        try:
            known = await self.control.assigned()
        except WitnessGarbled as fault:
            _LOG.warning("what the mirror knew of the lost source is not known: %s", fault)
            return {}
        lost = sorted(
            partition for partition in known - set(partitions) if self.flow.moves(partition.topic)
        )
        return fitting(_counted(lost), GROUPS_BYTES)

    # --- the two clients' sides of it ------------------------------------------------------------

    async def _announce(self, journal: Journal) -> StepOutcome:
        await self.store.announce(journal, journal.site)
        return StepOutcome()

    async def _withdraw(self, journal: Journal) -> Facts:
        await self.store.announce(journal, None)
        return {}

    async def _groups_leave(self, journal: Journal) -> StepOutcome:
        return StepOutcome(
            facts=await wait_left(
                self.source,
                self.flow.groups,
                self.count_followers,
                plain=journal.preflight.plain_members,
                timeout_ms=self.limits.group_drain_timeout_ms,
            )
        )

    async def _groups_move(self, journal: Journal) -> StepOutcome:
        partitions = frozenset(journal.moving)
        await self.follower.refresh(partitions)
        await self.backward.refresh(partitions)
        # Of what does not move nobody has asked how far it is mirrored.
        forward = {
            partition: one
            for partition, one in self.follower.maps.items()
            if partition in partitions
        }
        bounded = {partition: self.backward.bounded(partition) for partition in partitions}
        return StepOutcome(
            facts=await move_groups(
                self.source,
                self.target,
                self.flow.groups,
                BothMaps(forward=forward, backward=bounded),
                timeout_ms=self.limits.group_drain_timeout_ms,
            )
        )

    # --- the fence -------------------------------------------------------------------------------

    async def _fence(self, journal: Journal) -> StepOutcome:
        if journal.kind is PromotionKind.PLANNED:
            closed = await self._close_source(journal)
            _require_room(closed)
            await self._require_way_back(closed)
            topics = FenceFacts(topics=_counted(closed)).encode()
            return StepOutcome(facts={"fenced": True, "partitions": len(closed), **topics})
        why = f"{self.source.name} did not answer within {LOST_SOURCE_TIMEOUT_S:g} s"
        with trio.move_on_after(LOST_SOURCE_TIMEOUT_S):
            try:
                closed = await self._close_source(journal)
            except (NetworkFault, StepFailed) as fault:
                why = brief(fault)
            else:
                return StepOutcome(facts={"fenced": True, "partitions": len(closed)})
        return StepOutcome(facts={"fenced": False, "why": why})

    async def _close_source(
        self, journal: Journal, closed: Collection[TopicPartition] = ()
    ) -> tuple[TopicPartition, ...]:
        """Close all that the flow takes from the source, beside what is closed; return it.

        What is made there meanwhile is closed too, and so is what was closed and takes writes
        again: the new site may be open by then, and every second counts in which both are.
        """
        moved = {topic for topic, _ in journal.moving}
        allowed = client_let_through(source=self.flow.source, target=self.flow.target)
        found = await self.source.partitions(self.flow)
        while True:
            fence = fence_of(self.flow, moved | {topic for topic, _ in found}, allowed)
            close = partial(set_fence, self.source.cluster, fence)
            if not closed or not set(found) <= set(closed):
                await close()
            try:
                await wait_holds(self.source.cluster, found, close=close)
            except FenceDoesNotHold as fault:
                raise StepFailed(f"{self.source.name} cannot be fenced: {fault}") from fault
            closed, found = found, await self.source.partitions(self.flow)
            if set(found) <= set(closed):
                return found

    async def _require_way_back(self, closed: Collection[TopicPartition]) -> None:
        """The flow back has to write through the fence; raises StepFailed naming a partition."""
        if self.reverse is None:
            return
        shut = await find_locked_out(self.source.cluster, closed)
        if shut:
            topic, partition = shut[0]
            raise StepFailed(
                f"{self.source.name} would take nothing from the flow back either, as"
                f" {topic}-{partition} ({len(shut)} partitions): its super.users must name the"
                " mirror's user"
            )

    async def _unfence(self, journal: Journal) -> Facts:
        """Open the source again; one that was given up and does not answer may stay closed."""
        if journal.kind is PromotionKind.PLANNED:
            await set_fence(self.source.cluster, Fence())
            return {"fenced": False}
        with trio.move_on_after(LOST_SOURCE_TIMEOUT_S):
            try:
                await set_fence(self.source.cluster, Fence())
            except NetworkFault as fault:
                return {"left": brief(fault)}
            return {"fenced": False}
        return {"left": f"{self.source.name} does not answer"}

    async def _verify_fence(self, journal: Journal) -> StepOutcome:
        """Look once more at all that the switch rests on.

        No record may have been appended behind the drain, not even to a topic created since: such a
        topic is closed as well, and made on the target. That the fence holds is tried once more: a
        request to lift it that a broker held back since an earlier promotion may have come late.
        Transactions that were open may end meanwhile, which is no record. No topic may have been
        made again on either site, the target may not have lost anything, and nobody may have
        written there behind the seal. Positions that were committed on the source since groups
        moved are moved again.
        """
        drained = _drained_logs(journal).ends
        moved = await self._groups_move(journal)  # first: it may take long
        found = await self._close_source(journal, drained)
        appended = await find_appended(self.source, found, drained)
        if appended:
            raise StepFailed(f"the fence did not hold: {appended[0].describe(self.source.name)}")
        require_none(await find_other_logs(self.source, self.follower, drained))
        made = await make_missing(self.source, self.target, self.flow, found)
        await self._require_sealed_ends(journal)
        return StepOutcome(
            facts={"partitions": len(found), "made": made, "committed": moved.facts["committed"]}
        )

    async def _require_sealed_ends(self, journal: Journal) -> None:
        """Raise StepFailed naming a partition that is not on the target as it was sealed."""
        sealed = {
            TopicPartition(one.topic, one.partition): one.target_end for one in journal.partitions
        }
        require_none(await find_other_copies(self.follower, sealed))

    async def _confirm(self, journal: Journal) -> StepOutcome:
        """Look behind the switch at what has slipped through to the old site, and carry it over.

        What cannot be looked at is noted as such: it is not clean. A source that was lost is asked
        too, since one that answers can tell what it took beyond the mirrored end. A silent one is
        closed by `failover serve` when it is back.
        """
        left = await self.evidence.say_active()
        facts: Facts = {"evidence": left}
        if journal.kind is PromotionKind.SOURCE_LOST:
            beyond = await find_beyond_mirrored(self.source, journal.partitions)
            if isinstance(beyond, str):
                return StepOutcome(facts={**facts, "source_silent": beyond})
            return StepOutcome(facts={**facts, "appended": [asdict(one) for one in beyond]})
        try:
            drained = _drained_logs(journal).ends
            found = await self._close_source(journal)  # set anew, as it may have been lifted
            appended = await find_appended(self.source, found, drained)
            made = await make_missing(self.source, self.target, self.flow, found)
            moved = await self._groups_move(journal)
            staying = {
                name: count
                for name, count in (await self.source.members(self.flow.groups)).items()
                if count
            }
        except (NetworkFault, StepFailed) as fault:
            return StepOutcome(facts={**facts, "not_looked": brief(fault)})
        return StepOutcome(
            facts={
                **facts,
                "appended": [asdict(one) for one in appended],
                "made": made,
                "committed": moved.facts["committed"],
                "not_carried": moved.facts["has_members"],
                "still_members": fitting(staying, GROUPS_BYTES // 4),
            }
        )

    async def _open_target(self, journal: Journal) -> StepOutcome:
        """Let the target take writes; both clusters carry first that a promotion is under way."""
        required = self._required(journal)
        left = await self.evidence.say_moving(journal.site, journal.epoch, required)
        moved = {topic for topic, _ in journal.moving}
        fence = await read_fence(self.target.cluster)
        if moved & set(fence.topics) or fence.patterns:
            await set_fence(self.target.cluster, Fence())
        return StepOutcome(
            facts={"was_fenced": sorted(moved & set(fence.topics)), "evidence": {**left}}
        )

    def _required(self, journal: Journal) -> frozenset[str]:
        """Return the sites that have to carry that a promotion is under way."""
        planned = journal.kind is PromotionKind.PLANNED
        return frozenset({self.target.name, *([self.source.name] if planned else [])})

    async def _close_target(self, journal: Journal) -> Facts:
        """Close the target as it was before, and name what it has taken while it was open.

        One that does not answer now may stay open. The evidence says again that no promotion is
        under way; what cannot be written now, `failover serve` writes.
        """
        await self.evidence.say_active()
        before = journal.preflight.target_fence
        try:
            if before:
                fence = fence_of(self.flow, before, self.flow.client_id)
                await set_fence(self.target.cluster, fence)
        except NetworkFault as fault:
            return {"left": brief(fault)}
        return {"fenced": len(before), **await self._taken(journal)}

    async def _taken(self, journal: Journal) -> Facts:
        """Return what lies behind the seals on the target, and the source does not have."""
        sealed = {
            TopicPartition(one.topic, one.partition): one.target_end for one in journal.partitions
        }
        if not sealed:
            return {}
        try:
            ends = await self.target.known_ends(sealed)
            taken = await find_appended(self.target, [*ends], sealed)
        except NetworkFault as fault:
            return {"not_looked": brief(fault)}
        return {"taken": [asdict(one) for one in taken]} if taken else {}

    # --- records ---------------------------------------------------------------------------------

    async def _drain(self, journal: Journal) -> StepOutcome:
        timeout_ms = self.limits.drain_timeout_ms
        logs = await read_source_logs(self.source, journal.moving, timeout_ms=timeout_ms)
        try:
            standstills = StandstillWatch(self.control.standing)
            records = await wait_drained(
                self.source, logs, self.follower, standstills, timeout_ms=timeout_ms
            )
        except StepFailed as late:
            raise StepFailed(f"{late}{await open_transactions(self.source, logs)}") from late
        facts = DrainFacts(starts=logs.starts, ends=logs.ends).encode()
        return StepOutcome(facts={"records": records, **facts})

    async def _stop_flow(self, journal: Journal) -> StepOutcome:
        timeout_ms, claim = self.limits.stop_timeout_ms, self.store.claim
        if self.reverse is not None:
            # It would run from the switch on, and `confirm` take its records for slipped through.
            await self.reverse.forbid(journal.epoch, claim)
        return StepOutcome(facts=await self.control.stop(journal.epoch, timeout_ms, claim))

    async def _start_reverse(self, journal: Journal) -> StepOutcome:
        if self.reverse is not None:
            await self.reverse.start(journal.epoch, self.store.claim)
        return StepOutcome(facts={"configured": self.reverse is not None})

    async def _start_flow(self, journal: Journal) -> Facts:
        await self.control.start(journal.epoch, self.store.claim)
        if self.reverse is not None:
            await self.reverse.start(journal.epoch, self.store.claim)
        return {}

    async def _seal(self, journal: Journal, *, note: Note) -> StepOutcome:
        await self.follower.refresh(journal.moving)
        if journal.kind is PromotionKind.SOURCE_LOST:
            return await self._seal_without_source(journal, note)
        logs = _drained_logs(journal)
        require_none(await find_shorter_logs(self.source, self.follower, logs.ends))
        ends = [self._drained_ends(partition, logs) for partition in journal.moving]
        await self.follower.seal(
            {
                TopicPartition(one.topic, one.partition): (one.mirrored_source_end, one.target_end)
                for one in ends
            }
        )
        return StepOutcome(facts={"partitions": len(ends)}, partitions=tuple(ends))

    async def _seal_without_source(self, journal: Journal, note: Note) -> StepOutcome:
        """Seal behind the last batch of the mirror, whatever others have written to the target.

        With its seal the map accounts for what others have written, and nobody finds it any more:
        so the journal names it first.
        """
        partitions = journal.moving
        away = mirrored_away(await self.journals(), self.target.name, self.source.name)
        found = without_mirrored_away(await find_mirrored_ends(self.follower, partitions), away)
        facts = with_earlier(seal_facts(found), journal.facts(StepName.SEAL))
        if facts["foreign"] or facts["untold"]:
            await note(facts)
        await self.follower.seal(
            {partition: (end.source_end, end.target_end) for partition, end in found.items()},
            [(partition, *run) for partition, end in sorted(found.items()) for run in end.runs],
        )
        return StepOutcome(
            facts={"partitions": len(found), **facts},
            partitions=tuple(
                PartitionEnds(
                    topic=partition.topic,
                    partition=partition.partition,
                    mirrored_source_end=end.source_end,
                    target_end=end.target_end,
                    source_end=None,
                )
                for partition, end in sorted(found.items())
            ),
        )

    def _drained_ends(self, partition: TopicPartition, logs: SourceLogs) -> PartitionEnds:
        """Return where a partition stands behind the drain; raises StepFailed.

        What was never announced is a log without records: all of it is mirrored.
        """
        mirrored = self.follower.mirrored_end(partition)
        if missing(logs, {partition: mirrored}).get(partition, 0) > 0:
            raise StepFailed(
                f"{partition} is mirrored up to {mirrored or 0}, not to {logs.ends[partition]}"
            )
        if mirrored is None:
            mirrored = logs.ends[partition]
        return PartitionEnds(
            topic=partition.topic,
            partition=partition.partition,
            mirrored_source_end=mirrored,
            target_end=self.follower.writing_end(partition),
            source_end=logs.ends[partition],
        )

    async def _unseal(self, journal: Journal) -> Facts:
        """Take the seals back; where the target does not answer, the mirror does it by itself.

        What it does when it goes on, and the source must not stay closed until then.
        """
        try:
            await self.follower.unseal(journal.moving, foreign_stops(journal.facts(StepName.SEAL)))
        except NetworkFault as fault:
            return {"left": brief(fault)}
        return {}


def _counted(partitions: Iterable[TopicPartition]) -> dict[str, int]:
    """Return how many partitions each topic has."""
    return dict(Counter(topic for topic, _ in partitions))


def _require_room(partitions: Iterable[TopicPartition]) -> None:
    """Raise StepFailed where nobody could read the journal of all these any more."""
    too_long = why_too_long(_counted(partitions))
    if too_long is not None:
        raise StepFailed(too_long)


def _drained_logs(journal: Journal) -> SourceLogs:
    drained = journal.drain
    if drained.starts is None or drained.ends is None:
        raise StepFailed("the journal does not say where the drained logs begin and end")
    return SourceLogs(starts=drained.starts, ends=drained.ends)
