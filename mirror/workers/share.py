"""This worker's share of a flow: takes and lets go of partitions while the others go on."""

import logging
from collections.abc import Awaitable, Callable
from typing import Final

import trio

from mirror.map.map_log import MapLog
from mirror.state.flow_partitions import FlowPartitions
from mirror.state.partition import MirroredPartition
from mirror.state.wakeups import SETTLE_LOOK_S, FlowWakeups
from mirror.state.work_share import WorkShare
from runtime.process.clock import now_ms
from wire.net.errors import NetworkFault
from wire.topic_partition import TopicPartition

_LOG = logging.getLogger(__name__)

RETRY_S: Final = 0.5
_NOTHING_SHOWN: Final = (0, frozenset[TopicPartition]())
LETS_GO: Final = "another worker is to mirror it"


class ShareFollower:
    """Follows the newest version that the witness has shown."""

    def __init__(
        self,
        name: str,
        *,
        share: WorkShare,
        partitions: FlowPartitions,
        wakeups: FlowWakeups,
        map_log: MapLog,
        take: Callable[[], None],
    ) -> None:
        """Begin without any partition; ``take`` has discovery take those of the share.

        ``name`` is the flow's, for the log.
        """
        self.confirmed = 0
        """The version whose partitions are mirrored here, and no others."""
        self.changed = trio.Event()
        """Set when a version is confirmed, and then another."""
        self._name = name
        self._share = share
        self._partitions = partitions
        self._wakeups = wakeups
        self._map_log = map_log
        self._take = take
        self._shown = _NOTHING_SHOWN
        self._is_shown = trio.Event()

    def show(self, version: int, topic_partitions: frozenset[TopicPartition]) -> None:
        """Say what is to be mirrored here from this version on; later calls replace earlier."""
        self._shown = (version, topic_partitions)
        self._is_shown.set()

    async def run(self) -> None:
        """Do what is shown, for ever; what was shown before is done again."""
        if self._shown != _NOTHING_SHOWN:
            self._is_shown.set()
        while True:
            await self._is_shown.wait()
            self._is_shown = trio.Event()
            version, topic_partitions = self._shown
            own = self._share.own
            lost, gained = own - topic_partitions, topic_partitions - own
            self._share.give_up_all_but(topic_partitions)
            await self._let_go(lost)
            if gained:
                # Behind the fence of who had them: all that was ever announced is read now.
                await _until_done(self._map_log.catch_up)
            self._share.take(topic_partitions)
            self._take()
            if lost or gained or not self.confirmed:
                _LOG.info(
                    "%s: version %d: %d partitions, %d taken, %d let go",
                    *(self._name, version, len(topic_partitions), len(gained), len(lost)),
                )
            self.confirmed = version
            changed, self.changed = self.changed, trio.Event()
            changed.set()

    async def _let_go(self, topic_partitions: frozenset[TopicPartition]) -> None:
        """Return once nothing of these partitions is under way, neither records nor the map."""
        leaving: list[MirroredPartition] = []
        now = now_ms()
        for topic_partition in topic_partitions:
            partition = self._partitions.let_go(topic_partition)
            if partition is not None:
                partition.pause(LETS_GO, now)
                leaving.append(partition)
        while not all(partition.in_flight.is_settled for partition in leaving):
            await self._wakeups.settled.wait(SETTLE_LOOK_S)
        if leaving:
            await _until_done(self._map_log.settle)


async def _until_done(step: Callable[[], Awaitable[None]]) -> None:
    while True:
        try:
            await step()
        except NetworkFault as fault:
            _LOG.debug("hand-over: %s", fault)
            await trio.sleep(RETRY_S)
        else:
            return
