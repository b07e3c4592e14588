"""What `mirror check` says of a site that is to be closed for writes: why it cannot be."""

from collections.abc import Collection

from mirror.clusters.links import Links
from runtime.configuration.config import FlowConfig
from runtime.rights.closable import why_creatable, why_unfenceable
from runtime.rights.creation import bars
from runtime.topic_patterns import moving_patterns
from wire.net import Cluster, NetworkFault


async def closing(flow: FlowConfig, links: Links, topics: Collection[str]) -> list[str]:
    """Return a warning for each site that a promotion, or the standby's guard, could not close.

    A site that does not answer is one, too. Of a flow that no promotion moves there is nothing to
    close. `topics` are those of the source that are mirrored.
    """
    if not flow.heeds_promotions:
        return []
    lines = await _of_site(flow, flow.source, links.source_admin, topics)
    try:
        copies = set(map(flow.names.on_target, topics))
        there = (await links.target_admin.metadata(refresh=True)).topics.keys() & copies
    except NetworkFault as fault:
        return [*lines, f"warning: whether {flow.target} can be closed is not known: {fault}"]
    return [*lines, *await _of_site(flow, flow.target, links.target_admin, there)]


async def _of_site(
    flow: FlowConfig, site: str, cluster: Cluster, topics: Collection[str]
) -> list[str]:
    try:
        why = await why_unfenceable(cluster, topics)
        if why is not None:
            return [f"warning: {site} cannot be closed for writes: {why}"]
        wanted = bars(moving_patterns(flow, site), is_moving=True)
        creatable = await why_creatable(cluster, wanted)
    except NetworkFault as fault:
        return [f"warning: whether {site} can be closed is not known: {fault}"]
    if creatable is None:
        return []
    return [f"warning: topics can be made on {site} while it is closed: {creatable}"]
