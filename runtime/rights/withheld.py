"""Rules of the source that the target does not get: it allows then what the source denies."""

from collections.abc import Collection

from runtime.configuration.config import FlowConfig
from runtime.configuration.flow_section import AclSync
from runtime.rights.authorized import NOT_TOLD, topic_operations
from runtime.rights.closing import of_fence
from runtime.rights.outlook import SiteRights
from runtime.rights.own import passes, shuts_us_out, telling_topic
from runtime.rights.refused import Seen
from runtime.rights.travelling import OF_APPLICATIONS, Travelled, as_it_travels, rights_to_give
from wire.acls import Operation, ResourceType
from wire.net.cluster import Cluster
from wire.net.rights import DENY, Right


async def find_withheld(
    flow: FlowConfig, seen: Seen, source: SiteRights, target: SiteRights, cluster: Cluster
) -> tuple[Right, ...]:
    """Return what the target is not given; nothing where a site does not tell its entries.

    `cluster` is the target. Raises NetworkFault.
    """
    if isinstance(source.entries, str) or isinstance(target.entries, str):
        return ()
    travelled = Travelled(
        topics=seen.topics,
        prefix=flow.names.prefix,
        groups=seen.groups,
        group_names=flow.groups,
    )
    given = rights_to_give(source.entries, target.entries, travelled, flow.acls)
    kept = await shutting_us_out(given, target.entries, seen.topics.values(), cluster)
    return tuple(sorted(kept | staying(source.entries, target.entries, flow.acls)))


async def shutting_us_out(
    given: Collection[Right], held: Collection[Right], topics: Collection[str], target: Cluster
) -> frozenset[Right]:
    """Return what is not to be given to the target, because it would shut our own user out.

    `held` are the target's entries, `topics` those that are mirrored, by their names there. Raises
    NetworkFault.
    """
    found = frozenset(filter(shuts_us_out, given))
    telling = telling_topic(held, topics) if found else None
    if telling is None:
        return found
    topic, right = telling
    bits = (await topic_operations(target, [topic])).get(topic, NOT_TOLD)
    return frozenset() if passes(right, bits) else found


def staying(
    source: Collection[Right], target: Collection[Right], sync: AclSync
) -> frozenset[Right]:
    """Return what denies applications something of the source's cluster, and does not travel.

    Without `acls` nothing travels, and rights are given on both sites by other means. Pure.
    """
    if sync is AclSync.OFF:
        return frozenset()
    denied = OF_APPLICATIONS | {Operation.ALL}
    return frozenset(
        right
        for right in set(source) - of_fence(set(source)) - set(target)
        if (right.kind, right.permission) == (ResourceType.CLUSTER, DENY)
        and right.operation in denied
        and as_it_travels(right, sync) is None
    )
