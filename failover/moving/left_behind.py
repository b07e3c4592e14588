"""Looks for what a flow leaves on its source on purpose: the records before its start."""

import logging
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final

import trio

from failover.planning.before_start import KeptOnSource
from failover.sites.map_follower import MapFollower
from failover.sites.site import Site
from wire.net import NetworkFault
from wire.topic_partition import TopicPartition

_LOG = logging.getLogger(__name__)

LOOK_TIMEOUT_S: Final = 10.0
NOT_TOLD: Final[Mapping[TopicPartition, int]] = MappingProxyType({})


async def find_left_behind(
    source: Site, follower: MapFollower, partitions: Collection[TopicPartition]
) -> Mapping[TopicPartition, KeptOnSource]:
    """Return what stays on the source; where its logs begin, as far as it tells in time."""
    begun = [partition for partition in partitions if follower.begun(partition) is not None]
    starts = NOT_TOLD
    with trio.move_on_after(LOOK_TIMEOUT_S):
        try:
            starts = await source.starts(begun) if begun else NOT_TOLD
        except NetworkFault as fault:
            _LOG.info("where the logs of %s begin is not known: %s", source.name, fault)
    return begun_behind(follower, begun, starts)


def begun_behind(
    follower: MapFollower,
    partitions: Collection[TopicPartition],
    starts: Mapping[TopicPartition, int] = NOT_TOLD,
) -> Mapping[TopicPartition, KeptOnSource]:
    """Return what stays on a source whose logs begin at `starts`, where that is known."""
    return {
        partition: KeptOnSource(
            begin=begun.source_start, log_start=starts.get(partition), start=begun.start
        )
        for partition in partitions
        if (begun := follower.begun(partition)) is not None
    }
