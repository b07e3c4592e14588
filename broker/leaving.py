"""Leaving the cluster: leaders move first, then the registration goes (controlled shutdown)."""

import logging
from typing import Final

import trio

from broker.controller.cluster import ShutdownRequested
from broker.controller.controller import Controller
from broker.controller.requests import still_led
from broker.metadata_cache import MetadataCache
from broker.registration import BrokerRegistrar
from runtime.coordination.zookeeper import ZooKeeperFault
from wire.errors import ErrorCode, describe
from wire.messages.controlled_shutdown import ControlledShutdownRequest
from wire.net.errors import NetworkFault
from wire.net.pool import ConnectionPool

_LOG = logging.getLogger(__name__)

MOVE_LEADERS_S: Final = 3.0
UNREGISTER_S: Final = 1.0
ATTEMPTS: Final = 3
"""As Kafka's `controlled.shutdown.max.retries`; what nobody else can lead is lost to the clients
for a while anyway."""
RETRY_S: Final = 0.3


class BrokerDeparture:
    """How one broker goes."""

    def __init__(
        self,
        broker_id: int,
        controller: Controller,
        metadata: MetadataCache,
        registration: BrokerRegistrar,
        pool: ConnectionPool,
    ) -> None:
        self._broker_id = broker_id
        self._controller = controller
        self._metadata = metadata
        self._registration = registration
        self._pool = pool

    async def leave(self, *, is_controlled: bool) -> None:
        """Give away what can be given away, then unregister; never takes longer than 4 s."""
        if is_controlled:
            with trio.move_on_after(MOVE_LEADERS_S) as moving:
                await self._move_leaders()
            if moving.cancelled_caught:
                _LOG.warning("the controller does not answer; leaving without it")
        with trio.move_on_after(UNREGISTER_S):
            try:
                await self._registration.unregister()
                await self._controller.retire()
            except ZooKeeperFault as fault:
                _LOG.warning("not unregistered: %s", fault)

    async def _move_leaders(self) -> None:
        for _ in range(ATTEMPTS):
            left = await self._ask()
            if left == 0:
                _LOG.info("broker %s leads nothing any more", self._broker_id)
                return
            if left is not None:
                _LOG.info("%s partitions have nobody else in sync to lead them", left)
            await trio.sleep(RETRY_S)

    async def _ask(self) -> int | None:
        """Return how many partitions could not be given away, None when nobody answered."""
        if self._controller.is_active:
            request = ShutdownRequested(broker_id=self._broker_id)
            decision = await self._controller.ask(lambda _: request)
            return None if decision is None else len(still_led(decision.cluster, self._broker_id))
        controller = self._metadata.brokers.get(self._metadata.controller_id)
        if controller is None:
            return None
        try:
            connection = await self._pool.connection((controller.host, controller.port))
            answer = await connection.request(
                ControlledShutdownRequest(
                    broker_id=self._broker_id, broker_epoch=self._registration.epoch
                )
            )
        except NetworkFault as fault:
            _LOG.info("the controller cannot be asked to move leaders: %s", fault)
            return None
        if answer.error_code != ErrorCode.NONE:
            _LOG.info("the controller answers %s", describe(answer.error_code))
            return None
        return len(answer.remaining_partitions)
