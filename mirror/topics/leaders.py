"""The leaders of a partition by the last discovery, and what a change of them does."""

from typing import Final

from mirror.state.interruptions import Interruptions
from mirror.state.leadership import NO_LEADER
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from runtime.process.clock import now_ms
from wire.errors import ErrorCode
from wire.net.metadata import PartitionView
from wire.net.topic_creation import TopicRefused

UNAUTHORISED: Final = frozenset(
    {ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
)


def follow_leaders(
    interruptions: Interruptions,
    partition: MirroredPartition,
    source: PartitionView,
    target: PartitionView | None,
    refused: TopicRefused | None,
) -> None:
    """Follow moved leaders; batches on their way to an old one must be settled first.

    A broker that leads again may have cut its log to that of another leader in between, on either
    site: so may one that has lost its disk, or was elected uncleanly. Both logs are looked at again
    then, also of a partition that is quiet. A partition that waits, with pauses that have become
    long while nobody led, need wait no longer. `target` is None where the target has no such
    partition, and `refused` tells why the topic could not be made.
    """
    now = now_ms()
    had_target = partition.leaders.target != NO_LEADER
    leader = NO_LEADER if target is None else target.leader
    epoch = NO_LEADER if target is None else target.leader_epoch
    is_other_target = partition.leaders.follow_target(leader, epoch)
    is_other_source = partition.leaders.follow_source(source.leader, source.leader_epoch)
    is_under_way = partition.is_flowing or is_positioning(partition)
    if is_other_source or is_other_target:
        partition.target.lose_anchor()
    if is_under_way and had_target and is_other_target:
        interruptions.interrupt(partition, "the target leader moved", now, at_once=True)
    elif is_other_source and is_under_way:
        interruptions.interrupt(partition, "the source leader moved", now, at_once=True)
    elif partition.state is PartitionState.WAITING and (is_other_target or is_other_source):
        interruptions.wait_no_longer(partition, now)
    if partition.state is PartitionState.DISCOVERING and leader < 0:
        reason = "no leader on the target yet" if refused is None else str(refused)
        if refused is not None and refused.code in UNAUTHORISED:
            interruptions.stop(partition, PartitionState.NOT_AUTHORISED, reason, now)
        else:
            partition.move(PartitionState.DISCOVERING, now, reason)


def is_positioning(partition: MirroredPartition) -> bool:
    """Return whether it is being positioned by what the clusters were before this look."""
    return partition.state is PartitionState.POSITIONING
