"""Targets to which nothing is written for the moment: whether their logs are as long as they were.

A broker that comes back without the end of its log does not tell of it, and may lead again in the
same epoch, where the whole cluster was away. The answer to the next batch would show it. Where no
batch is due, the mirror would show what was mirrored once, and lag 0, for as long as it is quiet.
"""

from collections.abc import Mapping
from typing import Final

from mirror.clusters.links import Links
from mirror.state.interruptions import Interruptions
from mirror.state.partition import MirroredPartition
from wire.errors import ErrorCode
from wire.net.operations import log_ends
from wire.topic_partition import TopicPartition

LOOK_MS: Final = 30_000
"""Between two looks; at once behind a fault of the target."""


class QuietTargets:
    """Has partitions positioned again whose target has become shorter."""

    def __init__(self, interruptions: Interruptions, links: Links) -> None:
        self._interruptions = interruptions
        self._links = links
        self._looked_ms: int | None = None

    def doubt(self) -> None:
        """Have the next look not wait: some broker was away."""
        self._looked_ms = None

    async def look(
        self, partitions: Mapping[TopicPartition, MirroredPartition], now_ms: int
    ) -> None:
        """Look, if it is due, where the targets end to which nothing is under way.

        Raises NetworkFault.
        """
        if self._looked_ms is not None and now_ms - self._looked_ms < LOOK_MS:
            return
        # What is known only grows, so a log that ends before has lost something.
        quiet = {
            TopicPartition(one.target_topic, one.index): (one, one.offset_map.target_end)
            for one in partitions.values()
            if one.is_flowing and one.target.is_positioned and one.in_flight.is_settled
        }
        ends = await log_ends(self._links.target_admin, quiet) if quiet else {}
        for where, end in ends.items():
            partition, known = quiet[where]
            if isinstance(end, ErrorCode) or end >= known or not partition.is_flowing:
                continue
            partition.target.lose_anchor()
            reason = f"the target ends at {end}, and {known} offsets were there: it has lost some"
            self._interruptions.interrupt(partition, reason, now_ms, at_once=True)
        self._looked_ms = now_ms
