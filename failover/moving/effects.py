"""The effects of a promotion's steps on the two sites, the flow and the witness.

Every method may be repeated at any time. A cluster that does not answer fails the step. The facts
that later steps rely on are typed (`failover.journal.facts`).
"""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Final, TypeAlias, TypeVar

import trio

from failover.journal.execute import Note, StepFailed, StepOutcome
from failover.journal.facts import DrainFacts, Facts, FenceFacts, GroupFacts, PreflightFacts
from failover.journal.journal import Journal
from failover.journal.journal_size import why_too_long
from failover.journal.lease import Lease
from failover.journal.steps import PromotionKind, StepName
from failover.journal.store import WitnessStore
from failover.moving.closing import SourceClosing
from failover.moving.drain import (
    drained_logs,
    open_transactions,
    read_source_logs,
    wait_close_behind,
    wait_drained,
)
from failover.moving.flow import FlowControl
from failover.moving.groups import GROUPS_BYTES, BothMaps, HeldPositions, fitting, move_groups
from failover.moving.leaving import CountFollowers, wait_left, wait_plain_left
from failover.moving.left_behind import find_left_behind
from failover.moving.opening import TargetOpening
from failover.moving.seals import Seals
from failover.moving.standstill import StandstillWatch
from failover.planning.before_start import at_most
from failover.sites.map_follower import MapFollower
from failover.sites.opening import Ends
from failover.sites.other_log import (
    find_other_copies,
    find_other_logs,
    find_regrown_logs,
    require_none,
)
from failover.sites.pair_evidence import PairEvidence
from failover.sites.set_groups import cut_line, groups_of_set
from failover.sites.shared_fence import SharedFence
from failover.sites.site import GroupChoice, LeaderMoved, Site, brief
from failover.sites.slipped import (
    find_appended,
    find_beyond_mirrored,
    find_slipped,
    make_missing,
)
from runtime.configuration.config import FlowConfig
from runtime.configuration.failover_section import FailoverConfig
from runtime.coordination.witness import WitnessGarbled
from wire.net import NetworkFault
from wire.net.side_by_side import ask_both
from wire.topic_partition import TopicPartition
from wire.values import frozen

_LOG = logging.getLogger(__name__)
T = TypeVar("T")
Step: TypeAlias = Callable[[Journal], Awaitable[StepOutcome]]
Undo: TypeAlias = Callable[[Journal], Awaitable[Facts]]

LEADER_MOVES_S: Final = 10.0
"""So long a step is tried again whose partitions have no leader: longer than a broker's session."""
LEADER_AGAIN_S: Final = 0.1
LOST_SOURCE_TIMEOUT_S: Final = 3.0
"""A source that was given up is asked for so long to close itself."""


@frozen
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
    shared_fence: SharedFence
    """The fence of each site, of which this promotion changes its own set's part."""
    count_followers: CountFollowers
    journals: Callable[[], Awaitable[Sequence[Journal]]]
    """Reads all promotions' journals, oldest first; raises JournalUnreadable."""
    is_insisted: bool = False
    """Whether the operator goes on although plain consumers stay, or topics open one way."""
    accepts_loss: bool = False
    """Whether a lost source is sealed although records of its map are not believed."""
    loss: Facts | None = None
    """What the plan says is lost of the source, for the journal."""

    @property
    def closing(self) -> SourceClosing:
        """Return what closes the source."""
        away = self.limits.sends_clients_away
        return SourceClosing(
            flow=self.flow, source=self.source, shared=self.shared_fence, sends_away=away
        )

    @property
    def opening(self) -> TargetOpening:
        """Return what opens the target."""
        return TargetOpening(
            ends=Ends(flow=self.flow, source=self.source, target=self.target),
            shared=self.shared_fence,
            evidence=self.evidence,
            is_insisted=self.is_insisted,
        )

    @property
    def _seals(self) -> Seals:
        return Seals(
            flow=self.flow,
            source=self.source,
            target=self.target,
            follower=self.follower,
            journals=self.journals,
            accepts_loss=self.accepts_loss,
        )

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
            StepName.SEAL: partial(self._seals.seal, note=note),
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
            StepName.SEAL: self._seals.unseal,
            StepName.OPEN_TARGET: self.opening.close,
        }
        return await self._act(partial(undo[step], journal))

    async def _act(self, work: Callable[[], Awaitable[T]]) -> T:
        try:
            return await _patiently(partial(self.lease.act, work))
        except NetworkFault as fault:
            raise StepFailed(brief(fault)) from fault

    # --- looking ---------------------------------------------------------------------------------

    async def _preflight(self, journal: Journal) -> StepOutcome:
        is_planned = journal.kind is PromotionKind.PLANNED
        looked = self.source if is_planned else self.target
        assigned = await self._assigned()
        partitions = await looked.partitions(self.flow, assigned)
        if not partitions and self.flow.topic_set is None:
            raise StepFailed(
                f"no topic of the flow {self.flow.name} is on {looked.name}, so nothing moves;"
                " `mirror topics` says why"
            )
        _require_room(partitions)
        plain: Mapping[str, int] = {}
        if is_planned:
            plain = await self._wait_ready(partitions)
            regrown, regrown_back = await ask_both(
                partial(find_regrown_logs, self.source, self.follower, partitions),
                partial(self._regrown_backward, partitions),
            )
            require_none(regrown)
            require_none(regrown_back)
        # What `open-target` will need is tried before anybody is kept from writing.
        one_way = await self.opening.require_no_one_way(journal.kind)
        await self.evidence.require_writable(self.opening.required(journal))
        # A promotion that this one replaces may have opened the target already.
        known = journal.preflight.target_fence
        fence = known or (await self.shared_fence.read_part(self.target)).topics
        facts = PreflightFacts(
            topics=_counted(partitions),
            target_fence=tuple(fence),
            plain_members=plain,
            one_way=one_way,
        ).encode()
        if journal.kind is PromotionKind.SOURCE_LOST:
            lost = sorted(assigned.difference(partitions))
            facts = {**facts, "unmirrored": fitting(_counted(lost), GROUPS_BYTES)}
            if self.loss is not None:
                facts = {**facts, "loss": self.loss}
        elif stays := at_most(await find_left_behind(self.source, self.follower, partitions)):
            facts = {**facts, "before_start": stays}
        return StepOutcome(facts=facts)

    async def _wait_ready(self, partitions: tuple[TopicPartition, ...]) -> Mapping[str, int]:
        """Wait for what would hold up writes behind the fence; return the members that stay.

        They are counted by group. Raises StepFailed.
        """
        try:
            await wait_close_behind(
                self.source,
                partitions,
                self.follower,
                StandstillWatch(self.control.standing),
                max_lag=self.limits.max_lag_before_fence,
                timeout_ms=self.limits.catch_up_timeout_ms,
            )
        except StepFailed as late:
            why = await open_transactions(self.source, partitions)
            raise StepFailed(f"{late}{why}") from late
        return await wait_plain_left(
            self.source,
            await self._groups(),
            self.count_followers,
            target=self.target.name,
            timeout_ms=self.limits.group_drain_timeout_ms,
            is_insisted=self.is_insisted,
        )

    async def _assigned(self) -> frozenset[TopicPartition]:
        """Return the partitions of what moves that the mirror knew of."""
        try:
            known = await self.control.assigned()
        except WitnessGarbled as fault:
            _LOG.warning("what the mirror knew of the source is not known: %s", fault)
            return frozenset()
        return frozenset(partition for partition in known if self.flow.moves(partition.topic))

    # --- the two clients' sides of it ------------------------------------------------------------

    async def _announce(self, journal: Journal) -> StepOutcome:
        await self.store.announce(journal, journal.site)
        return StepOutcome()

    async def _withdraw(self, journal: Journal) -> Facts:
        await self.store.announce(journal, None)
        return {}

    async def _groups(self) -> GroupChoice:
        """Return the groups that this promotion moves."""
        configuration = self.shared_fence.configuration
        return (await groups_of_set(self.source, configuration, self.flow)).chosen

    async def _groups_leave(self, journal: Journal) -> StepOutcome:
        return StepOutcome(
            facts=await wait_left(
                self.source,
                await self._groups(),
                self.count_followers,
                plain=journal.preflight.plain_members,
                timeout_ms=self.limits.group_drain_timeout_ms,
            )
        )

    async def _groups_move(self, journal: Journal) -> StepOutcome:
        groups = await self._groups()
        return StepOutcome(facts=await self._move_groups(journal, _held(journal), groups))

    async def _move_groups(
        self, journal: Journal, held: HeldPositions, groups: GroupChoice
    ) -> Facts:
        partitions = frozenset(journal.moving)
        await ask_both(
            partial(self.follower.refresh, partitions), partial(self.backward.refresh, partitions)
        )
        self._require_backward(partitions)
        # Of what does not move nobody has asked how far it is mirrored.
        forward = {
            partition: one
            for partition, one in self.follower.maps.items()
            if partition in partitions
        }
        bounded = {partition: self.backward.bounded(partition) for partition in partitions}
        maps = BothMaps(
            forward=forward,
            backward=bounded,
            target_ends=self.follower.target_ends,
            source_ends=drained_logs(journal).ends,
            held=held,
        )
        return await move_groups(
            self.source,
            self.target,
            groups,
            maps,
            timeout_ms=self.limits.group_drain_timeout_ms,
        )

    async def _regrown_backward(
        self, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, str]:
        """Return what of the other direction does not hold the same record on both sides."""
        await self.backward.refresh(partitions)
        self._require_backward(partitions)
        came = [one for one in partitions if self.backward.bounded(one) is not None]
        return await find_regrown_logs(self.target, self.backward, came)

    def _require_backward(self, partitions: Collection[TopicPartition]) -> None:
        """Raise StepFailed where nobody knows what came to the source from the target.

        A group among such records would be moved before all of them, and read them again.
        """
        lacking = self.backward.lacking(partitions)
        if lacking:
            raise StepFailed(
                f"what of {lacking[0]} came to {self.source.name} from {self.target.name} is not"
                f" known ({len(lacking)} of {len(partitions)} partitions), so no group can be moved"
                f" by it: {self.backward.unbelieved}"
            )

    # --- the fence -------------------------------------------------------------------------------

    async def _fence(self, journal: Journal) -> StepOutcome:
        if journal.kind is PromotionKind.PLANNED:
            closed = await self.closing.close(journal)
            _require_room(closed)
            if self.reverse is not None:
                await self.closing.require_way_back(closed)
            topics = FenceFacts(topics=_counted(closed)).encode()
            return StepOutcome(facts={"fenced": True, "partitions": len(closed), **topics})
        why = f"{self.source.name} did not answer within {LOST_SOURCE_TIMEOUT_S:g} s"
        with trio.move_on_after(LOST_SOURCE_TIMEOUT_S):
            try:
                closed = await self.closing.close(journal)
            except (NetworkFault, StepFailed) as fault:
                why = brief(fault)
            else:
                return StepOutcome(facts={"fenced": True, "partitions": len(closed)})
        return StepOutcome(facts={"fenced": False, "why": why})

    async def _unfence(self, journal: Journal) -> Facts:
        """Open the source again; one that was given up and does not answer may stay closed."""
        if journal.kind is PromotionKind.PLANNED:
            await self.closing.lift()
            return {"fenced": False}
        with trio.move_on_after(LOST_SOURCE_TIMEOUT_S):
            try:
                await self.closing.lift()
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
        moved are moved again, and the report goes by what is found now.
        """
        drained = drained_logs(journal).ends
        configuration = self.shared_fence.configuration
        here = await groups_of_set(self.source, configuration, self.flow)
        if here.cut:
            raise StepFailed(cut_line(here.cut))
        # First: it may take long.
        moved = await self._move_groups(journal, _held(journal), here.chosen)
        found = await self.closing.close(journal, drained)
        await ask_both(
            partial(self._require_drained_ends, found, drained),
            partial(self._require_sealed_ends, journal),
        )
        made = await make_missing(self.source, self.target, self.flow, found)
        return StepOutcome(facts={**moved, "partitions": len(found), "made": made})

    async def _require_drained_ends(
        self, found: Collection[TopicPartition], drained: Mapping[TopicPartition, int]
    ) -> None:
        """Raise StepFailed naming a partition of the source that is not as it was drained."""
        require_none(await find_other_logs(self.source, self.follower, drained))
        appended, shrunk = await find_appended(self.source, found, drained)
        if appended:
            raise StepFailed(f"the fence did not hold: {appended[0].describe(self.source.name)}")
        if shrunk:
            raise StepFailed(shrunk[0].describe(self.source.name))

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
            await self.follower.refresh(journal.moving)  # a successor has not read it
            beyond = await find_beyond_mirrored(self.source, self.follower, journal.partitions)
            if isinstance(beyond, str):
                return StepOutcome(facts={**facts, "source_silent": beyond})
            return StepOutcome(facts={**facts, "appended": [asdict(one) for one in beyond]})
        try:
            return StepOutcome(
                facts={**facts, **await _patiently(partial(self._look_behind, journal))}
            )
        except (NetworkFault, StepFailed) as fault:
            return StepOutcome(facts={**facts, "not_looked": brief(fault)})

    async def _look_behind(self, journal: Journal) -> Facts:
        """Return what has slipped through to the old site, and carry over what can be."""
        drained = drained_logs(journal).ends
        found = await self.closing.close(journal)  # set anew, as it may have been lifted
        groups = await self._groups()
        moved, (appended, shrunk) = await ask_both(
            partial(self._move_groups, journal, {}, groups),
            partial(find_slipped, self.source, self.follower.topic_ids, found, drained),
        )
        staying = {
            name: count for name, count in (await self.source.members(groups)).items() if count
        }
        # Last, as what was made once is not named again.
        made = await make_missing(self.source, self.target, self.flow, found)
        await self.closing.keep(journal, found)
        return {
            "appended": [asdict(one) for one in appended],
            "shrunk": [asdict(one) for one in shrunk],
            "made": made,
            "committed": moved["committed"],
            "not_carried": moved["has_members"],
            "still_members": fitting(staying, GROUPS_BYTES // 4),
        }

    async def _open_target(self, journal: Journal) -> StepOutcome:
        return StepOutcome(facts=await self.opening.open(journal))

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
            raise StepFailed(f"{late}{await open_transactions(self.source, logs.ends)}") from late
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


async def _patiently(work: Callable[[], Awaitable[T]]) -> T:
    """Do something; where a partition's leader moves, which loses nothing, do it again."""
    moved_at: float | None = None
    while True:
        try:
            return await work()
        except LeaderMoved:
            now = trio.current_time()
            moved_at = now if moved_at is None else moved_at
            if now - moved_at > LEADER_MOVES_S:
                raise
        await trio.sleep(LEADER_AGAIN_S)


def _counted(partitions: Iterable[TopicPartition]) -> dict[str, int]:
    """Return how many partitions each topic has."""
    return dict(Counter(topic for topic, _ in partitions))


def _require_room(partitions: Iterable[TopicPartition]) -> None:
    """Raise StepFailed where nobody could read the journal of all these any more."""
    too_long = why_too_long(_counted(partitions))
    if too_long is not None:
        raise StepFailed(too_long)


def _held(journal: Journal) -> HeldPositions:
    """Return where the promotion has moved groups before."""
    return GroupFacts.decode(journal.moved_groups).positions
