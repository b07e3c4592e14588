"""The pair as a flow sees it: its first start, and whether the clusters contradict the witness.

A witness may lose its memory at any time, and a cluster that was away may come back with evidence
of a later epoch. A worker therefore looks at all three when its session begins, and again and again
while it works.
"""

import logging
from collections.abc import Mapping
from typing import Final

from runtime.configuration.config import Configuration
from runtime.coordination.witness import WitnessGarbled
from runtime.coordination.zookeeper import ZooKeeper, ZooKeeperFault
from runtime.pair.evidence import (
    TOPIC,
    Agreed,
    Contradicted,
    EvidenceUnknown,
    FirstStart,
    PairSeen,
    judge,
)
from runtime.pair.opening import (
    PairContradicted,
    PairUnknown,
    begin_pair,
    open_clusters,
    renew_evidence,
    require_pair,
)
from wire.net import Cluster

_LOG = logging.getLogger(__name__)

LOOK_AGAIN_S: Final = 15.0


async def begin_with_evidence(configuration: Configuration, zookeeper: ZooKeeper) -> None:
    """Return once nothing contradicts the witness, which is made at the first start of a pair.

    Clusters that carry no evidence yet get it; what is older than the witness is left to
    `failover serve`. Raises PairContradicted, PairUnknown, WitnessGarbled and ZooKeeperFault.
    """
    async with open_clusters(configuration) as clusters:
        seen = await begin_pair(configuration, zookeeper, clusters)
        failed = await renew_evidence(configuration, clusters, seen, _without_evidence(seen))
    for name, why in sorted(failed.items()):
        _LOG.warning(
            "%s carries no evidence of the pair: %s; `failover serve` writes it", name, why
        )


def told_pair(seen: PairSeen) -> tuple[list[str], str | None]:
    """Return lines on what was seen of the pair, and what keeps flows from running, if anything."""
    lines = [
        f"{name}: whether it carries evidence of the pair is not known: {site.fault}; reading it"
        f" takes the rights READ and DESCRIBE on the topic {TOPIC}"
        for name, site in sorted(seen.sites.items())
        if site.fault is not None
    ]
    lines += [
        f"warning: {TOPIC} on {name} has {site.missing_replicas} replicas less than it could: the"
        " pair would forget with one broker which site is active. `failover serve` adds them, if it"
        " has the right ALTER on the cluster; kafka-reassign-partitions.sh does, too"
        for name, site in sorted(seen.sites.items())
        if site.missing_replicas
    ]
    match judge(seen):
        case FirstStart():
            return [*lines, "pair: new; `mirror run` or `failover serve` starts it"], None
        case EvidenceUnknown(reason) | Contradicted(reason):
            return lines, reason
        case Agreed(stale):
            later = f"; {', '.join(stale)} to be told by `failover serve`" if stale else ""
            return [*lines, f"pair: the clusters agree with the witness{later}"], None


def _without_evidence(seen: PairSeen) -> list[str]:
    judgement = judge(seen)
    stale = judgement.stale if isinstance(judgement, Agreed) else ()
    return [name for name in stale if seen.sites[name].evidence is None]


async def find_contradiction(
    configuration: Configuration, zookeeper: ZooKeeper, clusters: Mapping[str, Cluster]
) -> str | None:
    """Return what contradicts the witness, None if nothing does or the witness is out of reach.

    The state of the session tells of a witness out of reach, and stops what must not go on.
    """
    try:
        await require_pair(configuration, zookeeper, clusters)
    except (PairContradicted, PairUnknown, WitnessGarbled) as fault:
        return str(fault)
    except ZooKeeperFault:
        return None
    return None
