"""From a request to the end of a promotion: look, decide, take the lease, carry it out."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias

from failover.automatic.hold import read_hold
from failover.automatic.stoppable import StoppableEffects
from failover.hooks.around_steps import HookedEffects
from failover.hooks.call import call_hook
from failover.hooks.hook_plan import hook_lines, hooks_document, why_not_runnable
from failover.journal.commands_given import given_here
from failover.journal.execute import (
    Effects,
    Executor,
    RollbackStuck,
    StepFailed,
    nobody_watches,
)
from failover.journal.facts import Facts
from failover.journal.journal import (
    Journal,
    JournalUnreadable,
    note_command,
    taken_on,
    turn_back,
)
from failover.journal.journals import find_unfinished, forget_superfluous, read_journals
from failover.journal.lease import Lease, LeaseHeld, LeaseLost, hold_lease
from failover.journal.steps import PromotionKind, PromotionState, StepName, is_switched
from failover.journal.store import Superseded, WitnessStore
from failover.moving.effects import PromotionEffects
from failover.moving.flow import FlowControl
from failover.moving.leaving import count_followers
from failover.planning.agreed import why_not_agreed
from failover.planning.loss import loss_summary
from failover.planning.plan import Plan, PromotionRequest, Resume, decide
from failover.planning.plan_description import describe, describe_resume, plan_document
from failover.planning.refusal import Refusal
from failover.sites.map_follower import MapFollower
from failover.sites.opening import flow_between, open_ends
from failover.sites.pair_evidence import PairEvidence
from failover.sites.shared_fence import SharedFence
from failover.view.report import step_line
from failover.view.snapshot import take_snapshot
from runtime.configuration.config import Configuration, FlowConfig
from runtime.configuration.hooks_section import HookConfig
from runtime.configuration.witness_session import open_witness
from runtime.coordination.map_registry import WitnessWriters
from runtime.coordination.witness import WitnessGarbled, WitnessPaths
from runtime.coordination.zookeeper import ZooKeeper, ZooKeeperFault
from runtime.pair.opening import PairContradicted, PairUnknown, open_clusters, require_pair
from runtime.process.clock import now_ms
from runtime.set_option import set_option
from wire.values import frozen

Print: TypeAlias = Callable[[str], None]
WhyStop: TypeAlias = Callable[[ZooKeeper], Awaitable[str | None]]
"""Returns what is in the way of going on, by what the witness says now; None for nothing."""

LOSING_KEPT: Final = 1_000
"""So many partitions that lose records stand in the journal, those that lose most."""


class PromotionRefused(Exception):
    """The command may not be carried out; the message is one line that says why."""


UNREADABLE: Final = (JournalUnreadable, WitnessGarbled, ZooKeeperFault)
"""What reading the witness raises."""
CANNOT_PROMOTE: Final = (
    LeaseHeld,
    LeaseLost,
    PromotionRefused,
    RollbackStuck,
    StepFailed,
    Superseded,
    PairContradicted,
    PairUnknown,
    *UNREADABLE,
)
"""What opening a controller and promoting raise."""


@frozen
class PromotionController:
    """One program with the lease in its hands."""

    configuration: Configuration
    zookeeper: ZooKeeper
    lease: Lease
    show: Print
    name: str = "failover"
    """The program that gives the commands, as the journal has it."""
    at_step: Callable[[StepName], None] = nobody_watches
    """Told of each step that begins."""
    why_stop: WhyStop | None = None
    """Asked around each step up to the switch, where nobody has commanded the promotion."""

    @property
    def paths(self) -> WitnessPaths:
        """Return the paths in the witness."""
        return self.configuration.coordination.paths

    async def promote(
        self, request: PromotionRequest, started_ms: int, agreed: Plan | Resume | None = None
    ) -> Journal:
        """Begin a promotion or go on with one; return its journal once it has ended.

        What is worse by now than what somebody `agreed` to is refused; None agrees to whatever is.
        Raises PromotionRefused, RollbackStuck, LeaseLost, Superseded.
        """
        snapshot = await take_snapshot(
            self.configuration,
            self.zookeeper,
            request.site,
            is_source_lost=request.kind is PromotionKind.SOURCE_LOST,
        )
        decision = decide(snapshot, request)
        if agreed is not None and not isinstance(decision, Refusal):
            _require_as_agreed(agreed, decision)
        match decision:
            case Refusal(reason=reason):
                raise PromotionRefused(reason)
            case Resume(journal=found):
                self.show(describe_resume(decision))
                _require_hooks(self.configuration, request)
                store = self._store(found.epoch)
                return await self._carry_out(
                    store,
                    await self._noted(store, self._promote_command(request), started_ms),
                    is_taken_over=True,
                    request=request,
                )
            case Plan():
                for line in plan_lines(decision, self.configuration, request):
                    self.show(line)
                _require_hooks(self.configuration, request)
                given = given_here(self._promote_command(request), started_ms)
                journal = note_command(_first(decision, started_ms), given)
                if decision.supersedes is None:
                    store = self._store(decision.epoch)
                    await store.create(journal)
                    journal = await self._heeding_hold(store, journal, request)
                else:
                    store, journal = await self._replace(decision.supersedes, journal)
        loss = None if decision.loss is None else loss_summary(decision.loss, LOSING_KEPT)
        return await self._carry_out(store, journal, request=request, loss=loss)

    async def abort(self) -> Journal:
        """Take back the unfinished promotion; raises what promote() raises."""
        async with open_clusters(self.configuration) as clusters:
            await require_pair(self.configuration, self.zookeeper, clusters)
        unfinished = find_unfinished(await read_journals(self.zookeeper, self.paths))
        if unfinished is None:
            raise PromotionRefused(
                "no promotion is unfinished; `failover status` shows the last one"
            )
        if is_switched(unfinished.step_states):
            raise PromotionRefused(
                f"{unfinished.site} is active already;"
                f" `failover promote {unfinished.site}{set_option(self.configuration.topic_set)}`"
                " finishes what is left"
            )
        store = self._store(unfinished.epoch)
        journal = await self._noted(store, f"{self.name} abort", now_ms())
        journal = turn_back(journal, "taken back by the operator")
        await store.save(journal)
        return await self._carry_out(store, journal)

    async def _heeding_hold(
        self, store: WitnessStore, journal: Journal, request: PromotionRequest
    ) -> Journal:
        """Return a journal to be taken back where somebody holds by now: looks take seconds.

        Whoever holds looks for journals behind that, so one of the two sees the other.
        """
        if request.despite_hold:
            return journal
        await self.zookeeper.sync()
        hold = await read_hold(self.zookeeper, self.paths)
        if hold is None:
            return journal
        journal = turn_back(journal, f"promotions are {hold}")
        await store.save(journal)
        return journal

    async def _noted(self, store: WitnessStore, what: str, at_ms: int) -> Journal:
        """Take a journal over, with this command in it; it is written with what is done next."""
        return note_command(await store.take_over(), given_here(what, at_ms))

    def _promote_command(self, request: PromotionRequest) -> str:
        how = {
            "--source-lost": request.kind is PromotionKind.SOURCE_LOST,
            "--force": request.force,
            "--accept-loss": request.accepts_loss,
            "--without-hooks": request.without_hooks,
            "--despite-hold": request.despite_hold,
        }
        options = [option for option, is_given in how.items() if is_given]
        if self.configuration.topic_set is not None:
            options += ["--set", self.configuration.topic_set]
        return " ".join([self.name, "promote", request.site, *options])

    async def _carry_out(
        self,
        store: WitnessStore,
        journal: Journal,
        *,
        is_taken_over: bool = False,
        request: PromotionRequest | None = None,
        loss: Facts | None = None,
    ) -> Journal:
        flow = flow_between(self.configuration, journal.source, journal.site)
        if flow is None:
            raise PromotionRefused(
                f"the flow from {journal.source} to {journal.site} is not configured"
            )
        async with self._effects(store, flow, request=request, loss=loss) as effects:
            executor = Executor(
                store=store,
                effects=self._with_hooks(effects, request),
                clock_ms=now_ms,
                report=lambda report: self.show(step_line(report)),
                begun=self.at_step,
            )
            if is_taken_over:
                journal = await executor.look_again(journal)
            ended = await executor.carry_out(journal)
            if ended.state is PromotionState.ROLLED_BACK:
                # An old copy of the witness, of before this, would take it for under way.
                await self.lease.act(effects.evidence.say_active)
        await forget_superfluous(self.zookeeper, self.paths, self.lease)
        return ended

    def _with_hooks(self, effects: Effects, request: PromotionRequest | None) -> Effects:
        """Return effects that call hooks around the steps, and ask first whether to go on."""
        effects = self._with_all_hooks(effects, request)
        if self.why_stop is None:
            return effects
        why_stop = partial(self.why_stop, self.zookeeper)
        return StoppableEffects(effects=effects, lease=self.lease, why_stop=why_stop)

    def _with_all_hooks(self, effects: Effects, request: PromotionRequest | None) -> Effects:
        if request is not None and request.without_hooks:
            return effects
        clusters = self.configuration.clusters.values()
        return HookedEffects(
            effects=effects,
            lease=self.lease,
            hooks=self.configuration.failover.hooks,
            bootstraps={cluster.name: cluster.bootstrap_servers for cluster in clusters},
            call=call_hook,
            topic_set=self.configuration.topic_set,
        )

    @asynccontextmanager
    async def _effects(
        self,
        store: WitnessStore,
        flow: FlowConfig,
        *,
        request: PromotionRequest | None = None,
        loss: Facts | None = None,
    ) -> AsyncIterator[PromotionEffects]:
        reverse = flow_between(self.configuration, flow.target, flow.source)
        async with open_ends(self.configuration, flow, self.lease) as ends:
            yield PromotionEffects(
                lease=self.lease,
                store=store,
                flow=flow,
                limits=self.configuration.failover,
                control=self._control(flow),
                reverse=None if reverse is None else self._control(reverse),
                source=ends.source,
                target=ends.target,
                follower=MapFollower(
                    ends.target,
                    flow.source,
                    self._writers(flow.source, flow.target),
                    flow.mirrors,
                    topic_set=flow.topic_set,
                ),
                backward=MapFollower(
                    ends.source,
                    flow.target,
                    self._writers(flow.target, flow.source),
                    flow.mirrors,
                    topic_set=flow.topic_set,
                    names=flow.names.way_home,
                    # Without a flow back no command could find it again, or have it forgotten.
                    may_be_gone=reverse is None,
                ),
                evidence=PairEvidence(
                    self.configuration,
                    self.zookeeper,
                    {flow.source: ends.source, flow.target: ends.target},
                ),
                shared_fence=SharedFence(
                    configuration=self.configuration, zookeeper=self.zookeeper
                ),
                count_followers=partial(count_followers, self.zookeeper, self.paths),
                journals=partial(read_journals, self.zookeeper, self.paths),
                is_insisted=request is not None and request.force,
                accepts_loss=request is not None and request.accepts_loss,
                loss=loss,
            )

    async def _replace(self, replaced: Journal, journal: Journal) -> tuple[WitnessStore, Journal]:
        """End a planned promotion whose source was lost; the new one takes on what it has done."""
        old = self._store(replaced.epoch)
        replaced = await old.take_over()
        journal = replace(journal, steps=taken_on(replaced, journal.kind))
        reason = f"{journal.source} was lost: replaced by the promotion with epoch {journal.epoch}"
        ended = replace(turn_back(replaced, reason), state=PromotionState.ROLLED_BACK)
        return await old.replace_by(journal, ended), journal

    def _control(self, flow: FlowConfig) -> FlowControl:
        return FlowControl(self.zookeeper, self.paths, flow)

    def _writers(self, source: str, target: str) -> WitnessWriters:
        return WitnessWriters(self.zookeeper, self.paths, source, target)

    def _store(self, epoch: int) -> WitnessStore:
        return WitnessStore(self.zookeeper, self.paths, self.lease, epoch)


def _hooks(
    configuration: Configuration, request: PromotionRequest | None
) -> tuple[HookConfig, ...]:
    """Return what is called on the way; an operator may do without."""
    if request is not None and request.without_hooks:
        return ()
    return configuration.failover.hooks


def _require_hooks(configuration: Configuration, request: PromotionRequest) -> None:
    """Raise PromotionRefused for a hook that cannot be called from here."""
    why = why_not_runnable(_hooks(configuration, request))
    if why is not None:
        raise PromotionRefused(f"{why}; --without-hooks promotes {request.site} without them")


def _require_as_agreed(agreed: Plan | Resume, decision: Plan | Resume) -> None:
    """Raise PromotionRefused where more would be done than somebody has agreed to."""
    why = why_not_agreed(agreed, decision)
    if why is not None:
        raise PromotionRefused(
            f"since the question was asked, {why}: nothing was begun; run the same command again"
        )


def _first(plan: Plan, started_ms: int) -> Journal:
    return Journal(
        epoch=plan.epoch,
        site=plan.site,
        source=plan.source,
        kind=plan.kind,
        started_ms=started_ms,
    )


@asynccontextmanager
async def open_controller(
    configuration: Configuration,
    show: Print,
    *,
    name: str = "failover",
    at_step: Callable[[StepName], None] = nobody_watches,
    why_stop: WhyStop | None = None,
    is_rehearsal: bool = False,
) -> AsyncIterator[PromotionController]:
    """Connect to the witness and take the lease; raises ZooKeeperUnreachable, LeaseHeld.

    A lease that a killed controller left behind is waited for: it lasts as long as its session. A
    rehearsal that has it hears that we wait, unless we are one.
    """
    coordination = configuration.coordination
    paths = coordination.paths
    async with (
        open_witness(coordination) as zookeeper,
        hold_lease(
            zookeeper,
            paths.lease,
            wait_ms=2 * coordination.session_timeout_ms,
            wanted=None if is_rehearsal else paths.lease_wanted,
        ) as lease,
    ):
        yield PromotionController(
            configuration=configuration,
            zookeeper=zookeeper,
            lease=lease,
            show=show,
            name=name,
            at_step=at_step,
            why_stop=why_stop,
        )


async def make_plan(configuration: Configuration, request: PromotionRequest) -> Plan | Resume:
    """Return what promote() would do now; raises PromotionRefused."""
    coordination = configuration.coordination
    async with open_witness(coordination) as zookeeper:
        decision = decide(
            await take_snapshot(
                configuration,
                zookeeper,
                request.site,
                is_source_lost=request.kind is PromotionKind.SOURCE_LOST,
            ),
            request,
        )
    if isinstance(decision, Refusal):
        raise PromotionRefused(decision.reason)
    _require_hooks(configuration, request)
    return decision


def plan_lines(
    decision: Plan | Resume,
    configuration: Configuration,
    request: PromotionRequest,
    lag_over: int | None = None,
) -> tuple[str, ...]:
    """Return a plan as promote() prints it, or with all topics that lag by more than `lag_over`."""
    if isinstance(decision, Resume):
        return (describe_resume(decision),)
    return (
        *describe(decision, lag_over),
        *hook_lines(_hooks(configuration, request), decision.kind),
    )


def promotion_document(
    decision: Plan | Resume, configuration: Configuration, request: PromotionRequest
) -> Mapping[str, object]:
    """Return the JSON form of a plan."""
    kind = decision.kind if isinstance(decision, Plan) else decision.journal.kind
    hooks = hooks_document(_hooks(configuration, request), kind)
    return {**plan_document(decision), "hooks": hooks}
