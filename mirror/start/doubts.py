"""Whether a target's log may end elsewhere than what is mirrored: then logs are read first.

Each doubt costs a reading of logs before a partition goes on; without any it goes on by its ends.
"""

from mirror.clusters.log_ends import Ends, LogEnds
from mirror.map.map_log import MapLog
from mirror.state.live_config import LiveConfig
from mirror.state.partition import MirroredPartition
from mirror.state.reverse_flow import ReverseFlow
from wire.errors import ErrorCode
from wire.values import frozen


@frozen
class Doubts:
    """The doubts about partitions of one flow."""

    config: LiveConfig
    reverse: ReverseFlow
    map_log: MapLog

    def is_shared(self, partition: MirroredPartition) -> bool:
        """Whether others write to the target partition, or did before the setting was changed."""
        key = partition.topic_partition
        return self.config.current.is_active_active or key in self.map_log.state.reached

    def is_odd(self, partition: MirroredPartition, source: Ends, target: Ends) -> bool:
        """Whether the end of a target that is ours alone may not be the end of what is mirrored.

        Our sequences were refused, the source has not as much, it is another topic than before, or
        its log has grown by what nobody has acknowledged to us: the broker may have forgotten our
        sequences (after a day without records: producer.id.expiration.ms), and would refuse none.
        A worker that takes the partition over knows neither that id nor that end, so a promotion
        looks at the last batch of every partition as well (failover.sites.foreign_writers).
        """
        key = partition.topic_partition
        source_ends, target_ends = source[key], target[key]
        if self.is_shared(partition) or self.reverse.has_map_of(key):
            return False
        if not isinstance(target_ends, LogEnds) or not isinstance(source_ends, LogEnds):
            return False
        offset_map = partition.offset_map.copy()  # by that end others' records would count
        offset_map.advance(target_ends.end)
        if offset_map.sealed_at is not None:
            return False
        mirrored = offset_map.mirrored_source_end
        has_too_much = mirrored is not None and mirrored > source_ends.end
        has_grown = not _is_where_left(partition, target_ends)
        was_refused = partition.retries.sequence_refused_since_ms is not None
        return has_too_much or has_grown or partition.target.is_new or was_refused

    def is_doubtful(self, partition: MirroredPartition, target: Ends) -> bool:
        """Whether the last record on both sides is to be compared, if the target is ours alone."""
        return not self.is_shared(partition) and not (
            partition.target.is_anchored
            and not partition.target.is_new
            and _is_where_left(partition, target[partition.topic_partition])
        )

    def reads_holes_again(self, partition: MirroredPartition, target: Ends) -> bool:
        """Whether a hole at the end of the map may be somebody else's word.

        What this worker has just announced, or has been told to leave out, is not.
        """
        hole = partition.offset_map.last_hole
        is_decided = hole is not None and partition.skips.decided_end == hole.end
        return not is_decided and self.is_doubtful(partition, target)


def _is_where_left(partition: MirroredPartition, ends: LogEnds | ErrorCode) -> bool:
    """Whether the target's log has not grown since this worker last stopped writing there."""
    return isinstance(ends, LogEnds) and partition.target.left_at in {None, ends.end}
