"""What `mirror check` says of applications: who would be refused on the target after a switch."""

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from mirror.clusters.links import Links
from runtime.configuration.config import FlowConfig
from runtime.rights.outlook import ask_site, look_ahead
from runtime.rights.quotas import differing_quotas
from runtime.rights.refused import Seen
from runtime.rights.withheld import find_withheld
from wire.net import NetworkFault
from wire.net.client_quotas import client_quotas
from wire.net.errors import RequestRefused, UnsupportedApi
from wire.net.operations import list_groups

MOST_QUOTAS: Final = 20
"""More are counted, not named."""


async def refusals(flow: FlowConfig, links: Links, topics: Collection[str]) -> list[str]:
    """Return a warning for each principal and group; a cluster that does not answer is one, too.

    `topics` are those of the source that are mirrored.
    """
    try:
        groups = frozenset(filter(flow.groups.matches, await list_groups(links.source_admin)))
        source = await ask_site(links.source_admin, flow.source)
        target = await ask_site(links.target_admin, flow.target)
        seen = Seen(topics={one: flow.names.on_target(one) for one in topics}, groups=groups)
        kept_back = await find_withheld(flow, seen, source, target, links.target_admin)
    except NetworkFault as fault:
        return [f"warning: who would be refused after a switch is not known: {fault}"]
    outlook = replace(look_ahead(source, target, seen), withheld=kept_back)
    lines = [*outlook.lines(), *await _quotas(links)]
    return [f"warning: {line}" for line in lines]


async def _quotas(links: Links) -> list[str]:
    """Return the client quotas that the target has not; nothing where a site keeps none."""
    try:
        found = differing_quotas(
            await client_quotas(links.source_admin), await client_quotas(links.target_admin)
        )
    except UnsupportedApi:
        return []
    except RequestRefused as refused:
        return [f"client quotas are not compared: {refused}"]
    except NetworkFault as fault:
        return [f"client quotas are not compared: {fault}"]
    more = len(found) - MOST_QUOTAS
    return [*found[:MOST_QUOTAS], *([f"{more} more quotas differ"] if more > 0 else [])]
