"""What a site had of the other one when it last took over, by the journals. Pure.

Apart from `journals`, which a look at a pair imports: `offset_translation` is more than it needs.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from failover.journal.journal import Journal
from failover.journal.steps import PromotionState
from offset_translation.topic_identity import NO_ID, is_recreated
from wire.topic_partition import TopicPartition


def mirrored_away(
    journals: Sequence[Journal], source: str, site: str, topic_ids: Mapping[str, UUID]
) -> dict[TopicPartition, int]:
    """Return the ends on `source` of what `site` had of it when it last took over.

    `journals` are the oldest first. Nothing is told of a topic that was made again on `source`
    since: `topic_ids` are those that it has now.
    """
    done = [
        one
        for one in journals
        if (one.source, one.site, one.state) == (source, site, PromotionState.DONE)
    ]
    if not done:
        return {}
    then = done[-1].sealed_ids
    return {
        TopicPartition(one.topic, one.partition): one.mirrored_source_end
        for one in done[-1].partitions
        if not is_recreated(then.get(one.topic), topic_ids.get(one.topic, NO_ID))
    }
