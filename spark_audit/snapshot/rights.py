"""Asks both clusters for the rights that they keep."""

from collections.abc import Mapping
from functools import partial

from runtime.configuration.flow_section import FlowConfig
from runtime.rights.travelling import Travelled
from spark_audit.snapshot.cluster_bounds import AuditedCluster, patiently
from spark_audit.snapshot.different_rights import DifferentRight, different_rights
from wire.acls import ResourceType
from wire.net import Cluster
from wire.net.errors import RequestRefused
from wire.net.operations import list_groups
from wire.net.rights import PREFIXED, Right, RightsOff, all_rights


async def ask_rights(
    source: AuditedCluster, target: AuditedCluster, flow: FlowConfig, topics: Mapping[str, str]
) -> tuple[tuple[DifferentRight, ...], str | None]:
    """Return the rights that differ, or why they cannot be compared.

    `topics` are the source's, each with its name on the target. A cluster without an authorizer has
    no rights, and one may forbid to ask; neither is a fault of what the mirror copied. Raises
    CannotTell for a cluster that does not answer.
    """
    held: list[set[Right]] = []
    for site in (source, target):
        answer = await patiently(site, partial(_held, site.cluster))
        if isinstance(answer, str):
            return (), f"{site.name}: {answer}"
        held.append(answer)
    has_prefixes = any(
        one.kind == ResourceType.GROUP and one.pattern == PREFIXED for side in held for one in side
    )
    groups = await patiently(source, lambda: list_groups(source.cluster)) if has_prefixes else {}
    travelled = Travelled(
        topics=topics,
        prefix=flow.names.prefix,
        groups=frozenset(filter(flow.groups.matches, groups)),
        group_names=flow.groups,
    )
    return tuple(different_rights(held[0], held[1], travelled, flow.acls)), None


async def _held(cluster: Cluster) -> set[Right] | str:
    try:
        return await all_rights(cluster)
    except (RightsOff, RequestRefused) as why:
        return str(why)
