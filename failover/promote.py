"""From a request to the end of a promotion: look, decide, take the lease, carry it out."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from failover.journal.commands_given import given_here
from failover.journal.execute import Executor
from failover.journal.journal import Journal, note_command, taken_on, turn_back
from failover.journal.journals import find_unfinished, forget_superfluous, read_journals
from failover.journal.lease import Lease, hold_lease
from failover.journal.steps import PromotionKind, PromotionState, is_switched
from failover.journal.store import WitnessStore
from failover.moving.effects import PromotionEffects
from failover.moving.flow import FlowControl
from failover.moving.leaving import count_followers
from failover.planning.plan import (
    Plan,
    PromotionRequest,
    Refusal,
    Resume,
    decide,
    describe,
    describe_resume,
)
from failover.sites.map_follower import MapFollower
from failover.sites.pair_evidence import PairEvidence
from failover.view.report import step_line
from failover.view.snapshot import flow_between, open_ends, take_snapshot
from runtime.configuration.config import Configuration, FlowConfig
from runtime.configuration.witness_session import open_witness
from runtime.coordination.map_registry import WitnessWriters
from runtime.coordination.witness import WitnessPaths
from runtime.coordination.zookeeper import ZooKeeper
from runtime.pair.opening import open_clusters, require_pair
from runtime.process.clock import now_ms

Print: TypeAlias = Callable[[str], None]


class PromotionRefused(Exception):
    """The command may not be carried out; the message is one line that says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller:
    """One program with the lease in its hands."""

    configuration: Configuration
    zookeeper: ZooKeeper
    lease: Lease
    show: Print
    name: str = "failover"
    """The program that gives the commands, as the journal has it."""

    @property
    def paths(self) -> WitnessPaths:
        """Return the paths in the witness."""
        return WitnessPaths(root=self.configuration.coordination.path)

    async def promote(self, request: PromotionRequest, started_ms: int) -> Journal:
        """Begin a promotion or go on with one; return its journal once it has ended.

        Raises PromotionRefused, RollbackStuck, LeaseLost, Superseded.
        """
        snapshot = await take_snapshot(
            self.configuration,
            self.zookeeper,
            request.site,
            is_source_lost=request.kind is PromotionKind.SOURCE_LOST,
        )
        decision = decide(snapshot, request)
        match decision:
            case Refusal(reason=reason):
                raise PromotionRefused(reason)
            case Resume(journal=found):
                self.show(describe_resume(decision))
                store = self._store(found.epoch)
                return await self._carry_out(
                    store,
                    await self._noted(store, self._promote_command(request), started_ms),
                    is_taken_over=True,
                    is_insisted=request.force,
                )
            case Plan():
                for line in describe(decision):
                    self.show(line)
                given = given_here(self._promote_command(request), started_ms)
                journal = note_command(_first(decision, started_ms), given)
                if decision.supersedes is None:
                    store = self._store(decision.epoch)
                    await store.create(journal)
                else:
                    store, journal = await self._replace(decision.supersedes, journal)
        return await self._carry_out(store, journal, is_insisted=request.force)

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
                f"{unfinished.site} is active already; `failover promote {unfinished.site}`"
                " finishes what is left"
            )
        store = self._store(unfinished.epoch)
        journal = await self._noted(store, f"{self.name} abort", now_ms())
        journal = turn_back(journal, "taken back by the operator")
        await store.save(journal)
        return await self._carry_out(store, journal)

    async def _noted(self, store: WitnessStore, what: str, at_ms: int) -> Journal:
        """Take a journal over, with this command in it; it is written with what is done next."""
        return note_command(await store.take_over(), given_here(what, at_ms))

    def _promote_command(self, request: PromotionRequest) -> str:
        how = {
            "--source-lost": request.kind is PromotionKind.SOURCE_LOST,
            "--force": request.force,
            "--accept-loss": request.accepts_loss,
        }
        options = [option for option, is_given in how.items() if is_given]
        return " ".join([self.name, "promote", request.site, *options])

    async def _carry_out(
        self,
        store: WitnessStore,
        journal: Journal,
        *,
        is_taken_over: bool = False,
        is_insisted: bool = False,
    ) -> Journal:
        flow = flow_between(self.configuration, journal.source, journal.site)
        if flow is None:
            raise PromotionRefused(
                f"the flow from {journal.source} to {journal.site} is not configured"
            )
        async with self._effects(store, flow, is_insisted=is_insisted) as effects:
            executor = Executor(
                store=store,
                effects=effects,
                clock_ms=now_ms,
                report=lambda report: self.show(step_line(report)),
            )
            if is_taken_over:
                journal = await executor.look_again(journal)
            ended = await executor.carry_out(journal)
            if ended.state is PromotionState.ROLLED_BACK:
                # An old copy of the witness, of before this, would take it for under way.
                await self.lease.act(effects.evidence.say_active)
        await forget_superfluous(self.zookeeper, self.paths, self.lease)
        return ended

    @asynccontextmanager
    async def _effects(
        self, store: WitnessStore, flow: FlowConfig, *, is_insisted: bool = False
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
                    ends.target, flow.source, self._writers(flow.source, flow.target)
                ),
                backward=MapFollower(
                    ends.source, flow.target, self._writers(flow.target, flow.source)
                ),
                evidence=PairEvidence(
                    self.configuration,
                    self.zookeeper,
                    {flow.source: ends.source, flow.target: ends.target},
                ),
                count_followers=partial(count_followers, self.zookeeper, self.paths),
                journals=partial(read_journals, self.zookeeper, self.paths),
                is_insisted=is_insisted,
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
    configuration: Configuration, show: Print, *, name: str = "failover"
) -> AsyncIterator[Controller]:
    """Connect to the witness and take the lease; raises ZooKeeperUnreachable, LeaseHeld.

    A lease that a killed controller left behind is waited for: it lasts as long as its session.
    """
    coordination = configuration.coordination
    paths = WitnessPaths(root=coordination.path)
    async with (
        open_witness(coordination) as zookeeper,
        hold_lease(zookeeper, paths, wait_ms=2 * coordination.session_timeout_ms) as lease,
    ):
        yield Controller(
            configuration=configuration, zookeeper=zookeeper, lease=lease, show=show, name=name
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
    return decision


def plan_lines(decision: Plan | Resume) -> tuple[str, ...]:
    """Return a plan as promote() prints it."""
    return describe(decision) if isinstance(decision, Plan) else (describe_resume(decision),)
