"""This broker's part in the controller's election, and what handlers ask of the controller.

SUSPENDED (the connection to ZooKeeper is gone): no decisions, the reign ends. LOST: somebody else
may reign by now. Either way this broker contends anew once it is connected.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

import trio

from broker.clock import Clock
from broker.controller.channels import Deposed
from broker.controller.cluster import Cluster, Decision
from broker.controller.reign import Ask, Reign
from broker.controller.settings import ControllerSettings
from broker.controller.topics import Refusal, TopicSpec
from broker.zookeeper.controller_store import Reigning, try_become_controller
from broker.zookeeper.store import ClusterStore
from broker.zookeeper.tree import TopicAssignment
from runtime.zookeeper import SessionState, ZooKeeperFault
from wire.errors import ErrorCode

_LOG = logging.getLogger(__name__)

RETRY_S: Final = 0.1
NOT_CONTROLLER: Final = Refusal(
    error=ErrorCode.NOT_CONTROLLER, message="This is not the correct controller for this cluster."
)

_T = TypeVar("_T")


class Controller:
    """Contends for the controller's place all the time, and reigns while it has it."""

    def __init__(
        self, broker_id: int, store: ClusterStore, clock: Clock, settings: ControllerSettings
    ) -> None:
        self._broker_id = broker_id
        self._store = store
        self._clock = clock
        self.settings = settings
        self._reign: Reign | None = None
        self._contending = trio.CancelScope()

    @property
    def is_active(self) -> bool:
        """Return whether this broker is the controller now."""
        return self._reign is not None

    @property
    def cluster(self) -> Cluster | None:
        """Return the cluster as this controller knows it, None when it is not the one."""
        return None if self._reign is None else self._reign.cluster

    @property
    def offline_partitions(self) -> int:
        """Return how many partitions have no leader; 0 where this broker cannot know."""
        if self._reign is None:
            return 0
        return sum(state.leader < 0 for state in self._reign.cluster.states.values())

    async def run(self) -> None:
        """Contend and reign until cancelled, or retired."""
        with self._contending:
            await self._contend()

    async def retire(self) -> None:
        """Reign no more, and make room for another at once. Raises ZooKeeperFault."""
        self._contending.cancel()
        await self._store.vacate_controller()

    async def _contend(self) -> None:
        while True:
            await self._store.zookeeper.wait_connected()
            try:
                reigning = await try_become_controller(
                    self._store.zookeeper, self._broker_id, self._clock.wall_ms()
                )
                if reigning is None:
                    await self._wait_vacant()
                else:
                    await self._rule(reigning)
            except* (ZooKeeperFault, Deposed) as group:
                for fault in group.exceptions:
                    _LOG.warning("the controller's reign ends: %s", fault)
                await trio.sleep(RETRY_S)

    async def _wait_vacant(self) -> None:
        async with self._store.watch_controller() as nodes:
            async for node in nodes:
                if node is None:
                    return

    async def _rule(self, reigning: Reigning) -> None:
        _LOG.info("broker %s is the controller, epoch %s", self._broker_id, reigning.epoch)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._end_when_disconnected, nursery.cancel_scope)
            nursery.start_soon(self._end_when_replaced, nursery.cancel_scope)
            reign = Reign(self._broker_id, self._store, reigning, self.settings, nursery)
            await reign.load()
            self._reign = reign
            nursery.start_soon(reign.watch_brokers)
            nursery.start_soon(reign.watch_topics)
            nursery.start_soon(reign.watch_deletions)
            nursery.start_soon(reign.watch_disks)
            nursery.start_soon(reign.watch_settings)
            nursery.start_soon(reign.balance_leaders)
            try:
                await trio.sleep_forever()
            finally:
                self._reign = None  # while the nursery still takes what was asked meanwhile

    async def _end_when_disconnected(self, reign: trio.CancelScope) -> None:
        async with self._store.watch_session() as states:
            async for state in states:
                if state is not SessionState.CONNECTED:
                    _LOG.warning("ZooKeeper is %s: no decisions", state.value)
                    reign.cancel()

    async def _end_when_replaced(self, reign: trio.CancelScope) -> None:
        async with self._store.watch_controller() as nodes:
            async for node in nodes:
                if node is None or node.ephemeral_owner != self._store.zookeeper.session_id:
                    _LOG.warning("broker %s is no longer the controller", self._broker_id)
                    reign.cancel()

    async def ask(self, ask: Ask, *, is_told: bool = True) -> Decision | None:
        """Have the controller decide and do something, None when this broker is not the one.

        With `is_told` every broker that answers has heard of it when this returns.
        """
        return await self._ask(lambda reign: reign.ask(ask, is_told=is_told), None)

    async def create_topic(
        self, spec: TopicSpec, *, validate_only: bool = False
    ) -> TopicAssignment | Refusal:
        """Create a topic, if this broker is the controller."""
        return await self._ask(
            lambda reign: reign.create_topic(
                spec, self.settings.defaults, validate_only=validate_only
            ),
            NOT_CONTROLLER,
        )

    async def grow_topic(
        self,
        name: str,
        total: int,
        given: Sequence[Sequence[int]] | None,
        *,
        validate_only: bool = False,
    ) -> TopicAssignment | Refusal:
        """Add partitions to a topic, if this broker is the controller."""
        return await self._ask(
            lambda reign: reign.grow_topic(name, total, given, validate_only=validate_only),
            NOT_CONTROLLER,
        )

    async def delete_topic(self, name: str) -> ErrorCode:
        """Begin to delete a topic, if this broker is the controller."""
        return await self._ask(lambda reign: reign.delete_topic(name), ErrorCode.NOT_CONTROLLER)

    async def wait_deleted(self, name: str) -> None:
        """Wait until a topic is wholly gone; returns at once when this is not the controller."""
        if self._reign is not None:
            await self._reign.wait_deleted(name)

    async def _ask(self, command: Callable[[Reign], Awaitable[_T]], otherwise: _T) -> _T:
        """Run a command in the reign's own nursery: a client that leaves does not cut it short."""
        reign = self._reign
        if reign is None:
            return otherwise
        outcome: list[_T] = []
        finished = trio.Event()

        async def run() -> None:
            try:
                outcome.append(await command(reign))
            finally:
                finished.set()

        reign.nursery.start_soon(run)
        await finished.wait()
        return outcome[0] if outcome else otherwise
