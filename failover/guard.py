"""Close a lost site for writes when it comes back.

A promotion that gave its source up could not fence it. When the site answers again, it would take
writes as before, and nobody would carry them anywhere. `failover serve` watches for that moment.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from failover.fence import Fence, FenceDoesNotHold, set_fence, wait_holds
from failover.journal import Journal
from failover.lease import Lease, LeaseHeld, LeaseLost, hold_lease
from failover.site import brief, client_let_through
from failover.snapshot import open_site
from failover.status import Status, read_status
from failover.steps import StepName
from runtime.config import Configuration
from runtime.witness import WitnessPaths
from runtime.zookeeper import ZooKeeper
from wire.net import Cluster, NetworkFault

_LOG = logging.getLogger(__name__)

LEASE_WAIT_MS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """A site that answers, is not active, and takes writes to topics that moved away from it."""

    site: str
    active: str
    topics: tuple[str, ...]


def find_breach(status: Status) -> Breach | None:
    """Return what the last promotion left open, if it can be closed now.

    While a promotion is unfinished nothing is, because that one decides about fences.
    """
    promotion = status.switched
    if promotion is None or status.unfinished is not None:
        return None
    for site in status.sites:
        if site.name == promotion.source and site.fault is None:
            moved = _moved_topics(promotion)
            if not set(moved) <= set(site.fenced_topics):
                return Breach(site=site.name, active=promotion.site, topics=moved)
    return None


async def close_breach(configuration: Configuration, zookeeper: ZooKeeper) -> None:
    """Fence the lost site if that is still right once no promotion can be at work.

    What stands in the way is logged; the next look tries again.
    """
    paths = WitnessPaths(root=configuration.coordination.path)
    try:
        async with hold_lease(zookeeper, paths, wait_ms=LEASE_WAIT_MS) as lease:
            status = await read_status(configuration, zookeeper)
            breach = find_breach(status)
            if breach is not None:
                await lease.act(lambda: _fence(configuration, breach, lease))
    except (LeaseHeld, LeaseLost) as error:
        _LOG.info("a returned site is not fenced yet: %s", error)
    except (NetworkFault, FenceDoesNotHold) as error:
        _LOG.warning("a returned site could not be fenced: %s", brief(error))


async def _fence(configuration: Configuration, breach: Breach, lease: Lease) -> None:
    async with open_site(configuration.clusters[breach.site], lease) as site:
        allowed = client_let_through(source=breach.site, target=breach.active)
        await set_fence(site.cluster, Fence(topics=breach.topics, allowed_clients=(allowed,)))
        await wait_holds(site.cluster, await _places(site.cluster, breach.topics))
    _LOG.warning(
        "%s is back and is now closed for writes to %s; %s is active",
        breach.site,
        ", ".join(breach.topics),
        breach.active,
    )


async def _places(cluster: Cluster, topics: Sequence[str]) -> list[tuple[str, int]]:
    view = await cluster.metadata(topics, refresh=True)
    return sorted((t.name, partition) for t in view.topics.values() for partition in t.partitions)


def _moved_topics(journal: Journal) -> tuple[str, ...]:
    topics: Any = journal.facts(StepName.PREFLIGHT).get("topics", {})
    return tuple(sorted(topics))
