"""Find topics that a promotion would open without what the active site has of them.

    dc1->dc2   orders, clicks    promoted: dc1 is closed for both, dc2 takes writes
    dc2->dc1   orders            the way back opens dc1; what dc2 has taken for clicks stays there

The file moves such a topic one way alone. Who writes to the promoted site goes on without the
records that the other one has, and the mirror finds both logs apart.
"""

from collections.abc import Callable
from typing import Final

import trio

from failover.sites.fence import read_fence
from failover.sites.opening import Ends
from runtime.configuration.config import FlowConfig
from wire.net import NetworkFault

PATIENCE_S: Final = 3.0


async def find_one_way_topics(
    ends: Ends,
    back: FlowConfig | None,
    *,
    has: Callable[[str], bool],
    is_source_there: bool,
) -> tuple[str, ...] | None:
    """Return what the target is closed for by the flow out of it, and what `ends.flow` leaves out.

    By the names of the target; `back` is the flow from the target to the source. A topic that the
    source has no more is none of them, unless the source does not answer. None where a site does
    not tell: no later step looks.
    """
    if back is None or not back.heeds_promotions:
        return ()
    with trio.move_on_after(PATIENCE_S):
        try:
            fence = await read_fence(ends.target.cluster)
            left_out = [
                topic
                for topic in fence.topics
                if has(topic)
                and back.moves_at(ends.target.name, topic)
                and ends.target.moved(ends.flow, topic) is None
            ]
            if left_out and is_source_there:
                there = (await ends.source.cluster.metadata(refresh=True)).topics
                left_out = [topic for topic in left_out if back.names.on_target(topic) in there]
        except NetworkFault:
            return None
        return tuple(left_out)
    return None
