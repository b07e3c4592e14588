"""`mirror check`: the clocks of other machines, as far as the protocols show them.

    witness            the time that ZooKeeper stamps on a node made for it: exact to a round trip
    Kafka with KRaft   the controller's time in DescribeQuorum (KIP-836): exact to a round trip
    other brokers      the newest stamp in `__consumer_offsets`, which brokers set by their own
                       clock: a clock that is ahead shows as one, one that is behind does not

Nothing is written into either cluster.
"""

from collections import defaultdict
from typing import Final

from mirror.commands.checks.versions import Spoken
from runtime.coordination.zookeeper import ZooKeeper
from runtime.process.clock import wall_ms
from wire.errors import ErrorCode
from wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartition,
    DescribeQuorumRequestTopic,
)
from wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from wire.net.cluster import Cluster
from wire.net.metadata import ClusterView
from wire.values import frozen

TOLERATED_MS: Final = 1_000
CONSEQUENCE: Final = "lags in seconds and retention by time are wrong by as much"
METADATA_TOPIC: Final = "__cluster_metadata"
OFFSETS_TOPIC: Final = "__consumer_offsets"
MAX_TIMESTAMP: Final = -3
"""ListOffsets v7 takes it for the newest stamp (KIP-734)."""


@frozen
class ClockReading:
    """The time of a clock between two moments of this machine's, all in milliseconds."""

    clock: str
    shown_ms: int
    asked_ms: int
    answered_ms: int
    is_least: bool = False
    """It showed this at some time before, so now it shows as much at least."""


def told_clock(reading: ClockReading) -> str:
    """Return a line about a clock; one that matters begins with `warning`."""
    if reading.is_least:
        ahead_ms = reading.shown_ms - reading.answered_ms
        if ahead_ms <= TOLERATED_MS:
            age = f"{max(0, -ahead_ms) / 1_000:.1f} s ago"
            return f"clock of {reading.clock}: not ahead when last seen, {age}; more is not shown"
        ahead = f"{ahead_ms / 1_000:.1f} s or more ahead of this machine's"
        return f"warning: clock of {reading.clock}: {ahead}: {CONSEQUENCE}"
    sure_ms = (reading.answered_ms - reading.asked_ms) / 2 + 1
    off_ms = reading.shown_ms - (reading.answered_ms + reading.asked_ms) / 2
    where = "ahead of" if off_ms > 0 else "behind"
    told = f"{abs(off_ms) / 1_000:.3f} s {where} this machine's, to {sure_ms / 1_000:.3f} s"
    if abs(off_ms) - sure_ms <= TOLERATED_MS:
        return f"clock of {reading.clock}: {told}"
    return f"warning: clock of {reading.clock}: {told}: {CONSEQUENCE}"


async def witness_clock(zookeeper: ZooKeeper, root: str) -> ClockReading:
    """Make a node and take it away again; raises ZooKeeperFault.

    The node is made where the mirror makes its own: below `root`, or the part of its path that
    exists. A right that is missing there shows here, and no right is needed anywhere else.
    """
    while root and not await zookeeper.exists(root):
        root = root.rpartition("/")[0]
    path = f"{root}/kafka-dr-check-{zookeeper.session_id:x}"
    asked_ms = wall_ms()
    await zookeeper.create(path, b"", ephemeral=True)
    answered_ms = wall_ms()
    node = await zookeeper.get(path)
    await zookeeper.delete(path)
    assert node is not None, "it lives as long as the session"
    return ClockReading(
        clock="the witness",
        shown_ms=node.modified_ms,
        asked_ms=asked_ms,
        answered_ms=answered_ms,
    )


async def cluster_clocks(
    name: str, cluster: Cluster, view: ClusterView, spoken: list[Spoken]
) -> list[ClockReading]:
    """Return what can be seen of a cluster's clocks, perhaps nothing; raises NetworkFault."""
    if any(one.speaks(DescribeQuorumRequest, 1) for one in spoken):
        found = await _controllers_clock(name, cluster)
        if found is not None:
            return [found]
    found_each = [await _newest_stamp(name, cluster, view, one) for one in spoken]
    return [one for one in found_each if one is not None]


async def _controllers_clock(name: str, cluster: Cluster) -> ClockReading | None:
    topic = DescribeQuorumRequestTopic(
        topic_name=METADATA_TOPIC, partitions=(DescribeQuorumRequestPartition(partition_index=0),)
    )
    asked_ms = wall_ms()
    answer = await cluster.request(DescribeQuorumRequest(topics=(topic,)))
    answered_ms = wall_ms()
    for partition in (each for topic in answer.topics for each in topic.partitions):
        for voter in partition.current_voters:
            if voter.replica_id == partition.leader_id and voter.last_caught_up_timestamp > 0:
                return ClockReading(
                    clock=f"{name}'s controller {voter.replica_id}",
                    shown_ms=voter.last_caught_up_timestamp,
                    asked_ms=asked_ms,
                    answered_ms=answered_ms,
                )
    return None


async def _newest_stamp(
    name: str, cluster: Cluster, view: ClusterView, spoken: Spoken
) -> ClockReading | None:
    topic = view.topics.get(OFFSETS_TOPIC)
    led: defaultdict[int, list[ListOffsetsPartition]] = defaultdict(list)
    for index, partition in ({} if topic is None else topic.partitions).items():
        led[partition.leader].append(
            ListOffsetsPartition(partition_index=index, timestamp=MAX_TIMESTAMP)
        )
    if not led[spoken.node] or not spoken.speaks(ListOffsetsRequest, 7):
        return None
    asked_ms = wall_ms()
    wanted = ListOffsetsTopic(name=OFFSETS_TOPIC, partitions=tuple(led[spoken.node]))
    answer = await cluster.request(
        ListOffsetsRequest(replica_id=-1, topics=(wanted,)), node=spoken.node
    )
    stamps = [
        partition.timestamp
        for found in answer.topics
        for partition in found.partitions
        if partition.error_code == ErrorCode.NONE and partition.timestamp > 0
    ]
    if not stamps:
        return None
    return ClockReading(
        clock=f"{name}'s broker {spoken.node}",
        shown_ms=max(stamps),
        asked_ms=asked_ms,
        answered_ms=wall_ms(),
        is_least=True,
    )
