"""One flow under the witness: it runs as the witness commands, and stops without it.

One session with the witness serves one flow. The daemon that holds the ephemeral worker node leads;
all daemons mirror what the assignment gives them (mirror.flow.membership).
"""

import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Final, TypeAlias

import trio

from mirror.clusters.links import open_links
from mirror.flow.engine import Engine, MapRegistries
from mirror.flow.known_ends import KnownEndsNode, Wakefulness, has_fallen_silent
from mirror.flow.membership import Membership, Nodes, NoMember, session_prefix
from mirror.flow.order_execution import OrderExecution
from mirror.flow.pair_watch import LOOK_AGAIN_S, begin_with_evidence, find_contradiction
from mirror.flow.run_decision import Role, Witnessed, decide_duty, is_left, must_acknowledge
from mirror.flow.speed import Progress, Sample
from mirror.state.measurements import FlowMeasurements
from mirror.state.wakeups import KeptWakeup
from runtime.configuration.config import Configuration, FlowConfig
from runtime.configuration.running_flow import explain, find_differences, publish_running
from runtime.configuration.witness_session import open_witness
from runtime.coordination.map_registry import WitnessWriters
from runtime.coordination.session_lease import SessionLease, SessionReplaced
from runtime.coordination.witness import (
    ActiveSite,
    FlowCommand,
    WitnessGarbled,
    WorkerInfo,
)
from runtime.coordination.zookeeper import (
    NodeExists,
    NoNode,
    SessionState,
    ZNode,
    ZooKeeper,
    ZooKeeperFault,
    ZooKeeperUnreachable,
)
from runtime.pair.opening import PairContradicted, PairUnknown, open_clusters
from runtime.process.clock import now_ms
from runtime.process.fault_note import FaultNote
from runtime.process.tasks import background_tasks

_LOG = logging.getLogger(__name__)

RETRY_S: Final = 1.0
STOP_SETTLE_S: Final = 4.0
STOP_APPLY_S: Final = 2.0
LEAVE_S: Final = 1.0

See: TypeAlias = Callable[[ZooKeeper, ZNode | None], None]
"""Takes a node of the witness over; raises WitnessGarbled."""


class FlowRunner:
    """Runs one flow for as long as the process lives."""

    def __init__(
        self,
        configuration: Configuration,
        flow: FlowConfig,
        worker: WorkerInfo,
        measurements: FlowMeasurements,
    ) -> None:
        """Know what to run; ``run`` does it."""
        self.config = flow
        self.role = Role.STARTING
        self.reason = ""
        self.since_ms = now_ms()
        self.engine: Engine | None = None
        """The engine at work, or the last one that was."""
        self.progress: Final = Progress()
        self._configuration = configuration
        self._worker = worker
        self.measurements: Final = measurements
        self._paths = configuration.coordination.paths
        self._order_execution = OrderExecution(
            flow.name, self._paths.orders(flow.source, flow.target)
        )
        self._changed = KeptWakeup()
        self._working: trio.CancelScope | None = None
        self._ended = trio.Event()
        self.membership: Membership | None = None
        self._nodes = Nodes.of(self._paths, flow)
        self._is_member = False
        self._leads = False
        self._active: ActiveSite | None = None
        self._command: FlowCommand | None = None
        self._acknowledged: FlowCommand | None = None
        self._contradiction: str | None = None
        """How the clusters contradict the witness."""
        self.file_fault: Final = FaultNote(f"{flow.name}: file")
        self._garbled: dict[See, str] = {}
        """The faults of nodes that could not be understood, by the part that takes them over."""

    @property
    def is_at_work(self) -> bool:
        """Whether the engine is not one that has ended."""
        return self._working is not None

    @property
    def is_left(self) -> bool:
        """Whether a promotion has taken applications away from the source."""
        return is_left(
            self._active,
            self._command,
            source=self.config.source,
            heeds_promotions=self.config.heeds_promotions,
        )

    @property
    def _epoch(self) -> int | None:
        """The active site's; 0 before one is named, None where no promotion concerns the flow."""
        if not self.config.heeds_promotions:
            return None
        return 0 if self._active is None else self._active.epoch

    async def run(self) -> None:
        """Serve until cancelled."""
        coordination = self._configuration.coordination
        while True:
            try:
                async with open_witness(coordination) as zookeeper:
                    await self._serve(zookeeper)
            except (ZooKeeperFault, WitnessGarbled, PairContradicted, PairUnknown) as fault:
                self._be(Role.NO_WITNESS, str(fault))
                await trio.sleep(RETRY_S)

    def take_config(self, config: FlowConfig) -> None:
        """Go on with other settings, of those that may change at run time."""
        self.config = config
        if self.engine is not None:
            self.engine.flow.take_config(config)
        self._changed.wake()

    async def stop(self) -> None:
        """Drain what is under way; the caller cancels ``run`` afterwards."""
        self._be(Role.STOPPING, "asked to stop")
        await self._stop_engine(settle_s=STOP_SETTLE_S, apply_s=STOP_APPLY_S)

    def _be(self, role: Role, reason: str = "") -> None:
        if self.role is Role.STOPPING:
            return
        if (role, reason) != (self.role, self.reason):
            _LOG.info("%s: %s%s", self.config.name, role.value, f": {reason}" if reason else "")
        if role is not self.role:
            self.since_ms = now_ms()
        self.role, self.reason = role, reason

    async def _serve(self, zookeeper: ZooKeeper) -> None:
        """Work until the session is lost, again and again."""
        self.membership = None  # that of an earlier session ends with it
        while True:
            await zookeeper.wait_connected()
            await begin_with_evidence(self._configuration, zookeeper)  # it may be an older copy now
            await self._work(zookeeper)
            if zookeeper.state is SessionState.CONNECTED:
                await trio.sleep(RETRY_S)  # a node of ours is gone, or one makes no sense

    async def _watch_pair(self, zookeeper: ZooKeeper) -> None:
        """Stop the flow while the clusters contradict the witness."""
        self._contradiction = None
        async with open_clusters(self._configuration) as clusters:
            while True:
                await trio.sleep(LOOK_AGAIN_S)
                self._contradiction = await find_contradiction(
                    self._configuration, zookeeper, clusters
                )
                self._changed.wake()

    async def _contend(self, zookeeper: ZooKeeper) -> None:
        """Lead as soon as nobody else does; a leader's node that is gone ends its work."""
        path = self._paths.worker(self.config.source, self.config.target)
        async with zookeeper.watch_data(path) as nodes:
            async for node in nodes:
                is_ours = node is not None and node.ephemeral_owner == zookeeper.session_id
                if self._leads and not is_ours:
                    self._is_member = False
                    self._changed.wake()
                    return
                try:
                    if is_ours:
                        await publish_running(zookeeper, self._paths, self.config)
                        self._acknowledged = await self._read_acknowledged(zookeeper)
                        self._leads = True
                    elif node is None:
                        data = self._worker.encode()
                        await zookeeper.create(path, data, ephemeral=True, make_parents=True)
                except (NodeExists, ZooKeeperUnreachable):
                    continue  # what has become of it, the watch will say
                self._changed.wake()

    async def _publish(self, zookeeper: ZooKeeper) -> None:
        """Keep in the witness what is run here, while this worker leads: a file may be reloaded."""
        published, due_s = self.config, 0.0
        while True:
            if not self._leads and trio.current_time() >= due_s:
                due_s = trio.current_time() + LOOK_AGAIN_S
                await self._compare_file(zookeeper)
            if self._leads and published is not self.config:
                config = self.config
                try:
                    await publish_running(zookeeper, self._paths, config)
                    published = config
                except ZooKeeperUnreachable as fault:
                    _LOG.debug("%s: not published: %s", config.name, fault)
            await trio.sleep(RETRY_S)

    async def _compare_file(self, zookeeper: ZooKeeper) -> None:
        """Note how the file differs from what the leading worker runs, which shares its work."""
        try:
            found = await find_differences(zookeeper, self._paths, self.config)
        except (ZooKeeperFault, WitnessGarbled) as fault:
            _LOG.debug("%s: not compared: %s", self.config.name, fault)
        else:
            if found:
                self.file_fault.note(explain(self.config, found))
            else:
                self.file_fault.clear()

    async def _publish_known_ends(self, zookeeper: ZooKeeper) -> None:
        """Keep in the witness where the source's logs end, while this worker leads."""
        awake, due_s = Wakefulness(now_ms(), trio.current_time()), 0.0
        was_silent = False
        while True:
            awake.tick(now_ms(), trio.current_time())
            engine = self.engine
            if self._leads and self.role is Role.RUNNING and engine is not None:
                is_silent = has_fallen_silent(engine.flow.partitions, now_ms())
                if trio.current_time() >= due_s or is_silent is not was_silent:
                    flow = engine.flow
                    node = KnownEndsNode(
                        zookeeper, self._paths, self.config, flow.partitions, flow.share
                    )
                    try:
                        rest_s = await node.publish(awake.since_ms, now_ms())
                        due_s, was_silent = trio.current_time() + rest_s, is_silent
                    except ZooKeeperFault as fault:  # the next look tries again
                        _LOG.debug("%s: ends are not published: %s", self.config.name, fault)
            await trio.sleep(RETRY_S)

    async def _work(self, zookeeper: ZooKeeper) -> None:
        """Follow the witness until the session or a node of ours is lost."""
        source, target = self.config.source, self.config.target
        self._is_member = True
        self._leads = False
        watched = (
            (self._paths.active, self._see_active),
            (self._paths.command(source, target), self._see_command),
            (self._paths.orders(source, target), self._see_orders),
        )
        async with background_tasks() as tasks, AsyncExitStack() as stack:
            for path, see in watched:
                nodes = await stack.enter_async_context(zookeeper.watch_data(path))
                self._see(zookeeper, await nodes.receive(), see)
                tasks.start_soon(self._follow, zookeeper, nodes, see)
            states = await stack.enter_async_context(zookeeper.watch_state())
            tasks.start_soon(self._follow_states, states)
            tasks.start_soon(self._watch_pair, zookeeper)
            tasks.start_soon(self._contend, zookeeper)
            tasks.start_soon(self._publish, zookeeper)
            tasks.start_soon(self._publish_known_ends, zookeeper)
            try:
                while await self._act(zookeeper, tasks):
                    await self._changed.wait(RETRY_S)
            finally:
                self._cancel_engine()

    async def _act(self, zookeeper: ZooKeeper, tasks: trio.Nursery) -> bool:
        """Do what the witness asks now; return False when the lock is lost."""
        if self.role is Role.STOPPING:
            return True
        duty = decide_duty(
            Witnessed(
                session=zookeeper.state,
                is_member=self._is_member,
                active=self._active,
                command=self._command,
                garbled=next(iter(self._garbled.values()), self._contradiction),
                paused=self._order_execution.pause_of_flow,
            ),
            source=self.config.source,
            heeds_promotions=self.config.heeds_promotions,
        )
        was = self.role
        self._be(duty.role, duty.reason)
        engine = await self._at_work(duty.role)
        match duty.role:
            case Role.NO_WITNESS:
                return False
            case Role.HELD if engine is not None and was is not Role.HELD:
                engine.hold()
            case Role.PAUSED if engine is not None:
                await self._stop_engine(others=partial(self._wait_others_gone, zookeeper))
            case Role.RUNNING if engine is None:
                await tasks.start(self._run_engine, zookeeper)
            case Role.RUNNING if engine is not None and was is Role.HELD:
                engine.let_go()
        member = self.membership
        if self.role is Role.RUNNING and self.engine is not None and member is not None:
            if self._leads and not self.engine.flow.share.leads:
                self.engine.lead()
            self._note_progress(self.engine)
            await self._order_execution.carry_out(
                self.engine.flow,
                zookeeper,
                epoch=self._epoch,
                is_placed=member.is_placed,
                is_carried_out=member.is_carried_out,
            )
        if (
            self._leads
            and must_acknowledge(self._command, self._acknowledged, self.role)
            and (self.role is Role.RUNNING or not await self._workers(zookeeper))
        ):
            await self._acknowledge(zookeeper)
        return True

    async def _wait_others_gone(self, zookeeper: ZooKeeper) -> None:
        """Wait until nobody but us has anything under way: who stops takes its node away."""
        own = "" if self.membership is None else self.membership.name
        async with zookeeper.watch_children(self._nodes.workers) as members:
            async for _ in members:
                if not await self._workers(zookeeper) - {own}:
                    return

    async def _workers(self, zookeeper: ZooKeeper) -> set[str]:
        """Return who is a worker; nodes of engines of ours that have ended are taken away.

        A witness that was restored from an old copy has them again. Where our session goes on
        there, they stay with it: the flow would have a worker that never stops and never works.
        """
        member = None if self._working is None else self.membership
        own = "" if member is None else member.name
        names = set(await zookeeper.children(self._nodes.workers) or ())
        ended = {name for name in names - {own} if name.startswith(session_prefix(zookeeper))}
        for name in ended:
            with suppress(NoNode):
                await zookeeper.delete(f"{self._nodes.workers}/{name}")
        return names - ended

    def _note_progress(self, engine: Engine) -> None:
        now = now_ms()
        lags = [partition.lag_records(now) for partition in engine.flow.partitions.own.values()]
        self.progress.note(
            Sample(
                at_ms=now,
                records=self.measurements.records,
                bytes=self.measurements.bytes,
                lag_records=sum(lag for lag in lags if lag is not None),
            )
        )

    async def _run_engine(
        self,
        zookeeper: ZooKeeper,
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Run a new engine until its scope is cancelled."""
        clusters = self._configuration.clusters
        source, target = clusters[self.config.source], clusters[self.config.target]
        lease = SessionLease(zookeeper)
        await lease.confirm()
        await self._workers(zookeeper)
        self._ended = trio.Event()
        try:
            with trio.CancelScope() as scope:
                async with open_links(
                    self.config,
                    source,
                    target,
                    may_write=lease.is_held,
                    undelivered_ms=lease.undelivered_ms,
                ) as links:
                    engine = self.engine = Engine(
                        self.config, links, self.measurements, self._registries(zookeeper)
                    )
                    member = Membership(zookeeper, self._nodes, self._worker, engine)
                    self.membership = member
                    self._working = scope
                    task_status.started()
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(lease.keep)
                        nursery.start_soon(engine.run)
                        nursery.start_soon(member.run)
        except* (NoMember, SessionReplaced, WitnessGarbled) as faults:
            _LOG.warning("%s: %s", self.config.name, faults.exceptions[0])
            self._is_member = False
            self._changed.wake()
        finally:
            self._working = None
            with trio.move_on_after(LEAVE_S, shield=True), suppress(ZooKeeperUnreachable):
                await self._leave()
            self._ended.set()

    def _registries(self, zookeeper: ZooKeeper) -> MapRegistries:
        source, target = self.config.source, self.config.target
        return MapRegistries(
            forward=WitnessWriters(zookeeper, self._paths, source, target),
            backward=WitnessWriters(zookeeper, self._paths, target, source),
            checkpoints=WitnessWriters(zookeeper, self._paths, source, target, of_checkpoints=True),
        )

    async def _at_work(self, role: Role) -> Engine | None:
        """Return the engine that runs; without one, be no worker either."""
        if self._working is not None:
            return self.engine
        if role in {Role.RUNNING, Role.PAUSED}:
            await self._leave()
        return None

    async def _leave(self) -> None:
        """See that the engine that has ended is no worker any more; raises ZooKeeperUnreachable."""
        if self.membership is not None:
            await self.membership.leave()

    async def _stop_engine(
        self,
        *,
        settle_s: float = 10.0,
        apply_s: float = 5.0,
        others: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Let what is under way settle, then end the engine."""
        if self._working is None or self.engine is None:
            return
        if not await self.engine.drain(settle_s=settle_s, apply_s=apply_s, others=others):
            _LOG.warning("%s: not all that was under way was answered", self.config.name)
        self._cancel_engine()
        await self._ended.wait()

    def _cancel_engine(self) -> None:
        if self._working is not None:
            self._working.cancel()

    async def _follow(
        self,
        zookeeper: ZooKeeper,
        nodes: trio.MemoryReceiveChannel[ZNode | None],
        see: See,
    ) -> None:
        async for node in nodes:
            self._see(zookeeper, node, see)
            self._changed.wake()

    def _see(
        self,
        zookeeper: ZooKeeper,
        node: ZNode | None,
        see: See,
    ) -> None:
        """Take a node over; one that cannot be understood stops the flow until it can."""
        try:
            see(zookeeper, node)
        except WitnessGarbled as fault:
            self._garbled[see] = str(fault)
        else:
            self._garbled.pop(see, None)

    async def _follow_states(self, states: trio.MemoryReceiveChannel[SessionState]) -> None:
        async for state in states:
            if state is SessionState.LOST:
                self._is_member = False
            self._changed.wake()

    def _see_active(self, _: ZooKeeper, node: ZNode | None) -> None:
        self._active = None if node is None else self._paths.read_active(node.data)

    def _see_command(self, _: ZooKeeper, node: ZNode | None) -> None:
        self._command = None if node is None else FlowCommand.decode(node.data)

    def _see_orders(self, _: ZooKeeper, node: ZNode | None) -> None:
        self._order_execution.see(node)

    async def _read_acknowledged(self, zookeeper: ZooKeeper) -> FlowCommand | None:
        """Return what was acknowledged last; what makes no sense is nothing, and written over."""
        node = await zookeeper.get(self._paths.acknowledged(self.config.source, self.config.target))
        try:
            return None if node is None else FlowCommand.decode(node.data)
        except WitnessGarbled as fault:
            _LOG.warning("%s: %s", self.config.name, fault)
            return None

    async def _acknowledge(self, zookeeper: ZooKeeper) -> None:
        command = self._command
        if command is None:
            return
        path = self._paths.acknowledged(self.config.source, self.config.target)
        try:
            await zookeeper.set(path, command.encode())
        except NoNode:
            await zookeeper.create(path, command.encode(), make_parents=True)
        self._acknowledged = command
        _LOG.info("%s: command of epoch %d carried out", self.config.name, command.epoch)
