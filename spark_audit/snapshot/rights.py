"""Asks both clusters for the rights that they keep."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from runtime.configuration.flow_section import AclSync
from spark_audit.snapshot.cluster_bounds import Site, patiently
from spark_audit.snapshot.different_rights import (
    DifferentRight,
    different_cluster_rights,
    different_rights,
)
from wire.net import Cluster
from wire.net.errors import RequestRefused
from wire.net.rights import Right, RightsOff, cluster_rights, topic_rights


async def ask_rights(
    source: Site, target: Site, *, mirrored: Mapping[str, str], sync: AclSync, prefix: str = ""
) -> tuple[tuple[DifferentRight, ...], str | None]:
    """Return the rights that differ, or why they cannot be compared.

    `mirrored` are the source's topics, each with its name on the target, behind `prefix`.
    A cluster without an authorizer has none, and one may forbid to ask; neither is a fault of what
    the mirror copied. Raises CannotTell for a cluster that does not answer.
    """
    held: list[set[Right]] = []
    for site in (source, target):
        for ask in (topic_rights, cluster_rights):
            answer = await patiently(site, partial(_held, ask, site.cluster))
            if isinstance(answer, str):
                return (), f"{site.name}: {answer}"
            held.append(answer)
    of_topics = different_rights(held[0], held[2], mirrored=mirrored, sync=sync, prefix=prefix)
    return (*of_topics, *different_cluster_rights(held[1], held[3], sync)), None


async def _held(
    ask: Callable[[Cluster], Awaitable[set[Right]]], cluster: Cluster
) -> set[Right] | str:
    try:
        return await ask(cluster)
    except (RightsOff, RequestRefused) as why:
        return str(why)
