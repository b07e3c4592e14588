"""This broker's part in the controller's election, and what handlers ask of the controller.

SUSPENDED (the connection to ZooKeeper is gone): this broker resigns and decides nothing. LOST:
another broker may be the controller by now. In both cases this broker contends again once it is
connected.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

import trio

from broker.clock import Clock
from broker.controller.active_controller import ActiveController, EventMaker, TopicsMended
from broker.controller.channels import Deposed
from broker.controller.cluster import ApiError, Cluster, Decision
from broker.controller.settings import ControllerSettings
from broker.controller.topics import TopicSpec
from broker.zookeeper.controller_store import ControllerEpoch, try_become_controller
from broker.zookeeper.store import ClusterStore
from broker.zookeeper.tree import MalformedNode, TopicAssignment
from runtime.coordination.zookeeper import SessionState, ZooKeeperFault
from wire.errors import ErrorCode

_LOG = logging.getLogger(__name__)

RETRY_S: Final = 0.1
MALFORMED_RETRY_S: Final = 5.0
NOT_CONTROLLER: Final = ApiError(
    error=ErrorCode.NOT_CONTROLLER, message="This is not the correct controller for this cluster."
)

_T = TypeVar("_T")


class Controller:
    """Contends for the controller's place all the time, and acts as controller while it has it."""

    def __init__(
        self, broker_id: int, store: ClusterStore, clock: Clock, settings: ControllerSettings
    ) -> None:
        self._broker_id = broker_id
        self._store = store
        self._clock = clock
        self.settings = settings
        self._active: ActiveController | None = None
        self._contending = trio.CancelScope()

    @property
    def is_active(self) -> bool:
        """Return whether this broker is the controller now."""
        return self._active is not None

    @property
    def cluster(self) -> Cluster | None:
        """Return the cluster as this controller knows it, None when it is not the one."""
        return None if self._active is None else self._active.cluster

    @property
    def offline_partitions(self) -> int:
        """Return how many partitions have no leader; 0 where this broker cannot know."""
        if self._active is None:
            return 0
        return sum(state.leader < 0 for state in self._active.cluster.states.values())

    async def run(self) -> None:
        """Contend, and act as controller when elected, until cancelled or retired."""
        with self._contending:
            await self._contend()

    async def retire(self) -> None:
        """Resign for good, and make room for another at once. Raises ZooKeeperFault."""
        self._contending.cancel()
        await self._store.vacate_controller()

    async def _contend(self) -> None:
        while True:
            await self._store.zookeeper.wait_connected()
            try:
                epoch = await try_become_controller(
                    self._store.zookeeper, self._broker_id, self._clock.wall_ms()
                )
                if epoch is None:
                    await self._wait_vacant()
                else:
                    await self._act(epoch)
            except* (ZooKeeperFault, Deposed) as group:
                for fault in group.exceptions:
                    _LOG.warning("this broker resigns as the controller: %s", fault)
                await trio.sleep(RETRY_S)
            except* TopicsMended as group:
                _LOG.warning(
                    "topics were left as they are and can be read now, so that this broker begins"
                    " anew as the controller: %s",
                    group.exceptions[0],
                )
            except* MalformedNode as group:
                _LOG.error("this broker cannot be the controller: %s", group.exceptions[0])
                await trio.sleep(MALFORMED_RETRY_S)

    async def _wait_vacant(self) -> None:
        async with self._store.watch_controller() as nodes:
            async for node in nodes:
                if node is None:
                    return

    async def _act(self, epoch: ControllerEpoch) -> None:
        _LOG.info("broker %s is the controller, epoch %s", self._broker_id, epoch.number)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._end_when_disconnected, nursery.cancel_scope)
            nursery.start_soon(self._end_when_replaced, nursery.cancel_scope)
            active = ActiveController(self._broker_id, self._store, epoch, self.settings, nursery)
            await active.load()
            self._active = active
            nursery.start_soon(active.watch_brokers)
            nursery.start_soon(active.watch_topics)
            nursery.start_soon(active.watch_left)
            nursery.start_soon(active.watch_deletions)
            nursery.start_soon(active.watch_disks)
            nursery.start_soon(active.watch_settings)
            nursery.start_soon(active.balance_leaders)
            try:
                await trio.sleep_forever()
            finally:
                self._active = None  # while the nursery still takes what was asked meanwhile

    async def _end_when_disconnected(self, acting: trio.CancelScope) -> None:
        async with self._store.watch_session() as states:
            async for state in states:
                if state is not SessionState.CONNECTED:
                    _LOG.warning("ZooKeeper is %s: no decisions", state.value)
                    acting.cancel()

    async def _end_when_replaced(self, acting: trio.CancelScope) -> None:
        async with self._store.watch_controller() as nodes:
            async for node in nodes:
                if node is None or node.ephemeral_owner != self._store.zookeeper.session_id:
                    _LOG.warning("broker %s is no longer the controller", self._broker_id)
                    acting.cancel()

    async def ask(self, ask: EventMaker, *, is_told: bool = True) -> Decision | None:
        """Have the controller decide and do something, None when this broker is not the one.

        With `is_told` every broker that answers has heard of it when this returns.
        """
        return await self._ask(lambda active: active.ask(ask, is_told=is_told), None)

    async def create_topic(
        self, spec: TopicSpec, *, validate_only: bool = False
    ) -> TopicAssignment | ApiError:
        """Create a topic, if this broker is the controller."""
        return await self._ask(
            lambda active: active.create_topic(
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
    ) -> TopicAssignment | ApiError:
        """Add partitions to a topic, if this broker is the controller."""
        return await self._ask(
            lambda active: active.grow_topic(name, total, given, validate_only=validate_only),
            NOT_CONTROLLER,
        )

    async def delete_topic(self, name: str) -> ErrorCode:
        """Begin to delete a topic, if this broker is the controller."""
        return await self._ask(lambda active: active.delete_topic(name), ErrorCode.NOT_CONTROLLER)

    async def wait_deleted(self, name: str) -> None:
        """Wait until a topic is wholly gone; returns at once when this is not the controller."""
        if self._active is not None:
            await self._active.wait_deleted(name)

    async def _ask(self, command: Callable[[ActiveController], Awaitable[_T]], otherwise: _T) -> _T:
        """Run a command in the active controller's nursery, so that no client cuts it short."""
        active = self._active
        if active is None:
            return otherwise
        outcome: list[_T] = []
        finished = trio.Event()

        async def run() -> None:
            try:
                outcome.append(await command(active))
            finally:
                finished.set()

        active.nursery.start_soon(run)
        await finished.wait()
        return outcome[0] if outcome else otherwise
