"""Whether each idle site could be promoted now: a look at each, judged as a plan would be."""

import logging
from dataclasses import replace

from failover.hooks.hook_plan import why_not_runnable
from failover.journal.steps import PromotionKind
from failover.moving.flow import FlowControl
from failover.planning.before_start import at_most
from failover.planning.loss import estimate
from failover.planning.plan import PromotionRequest, SitesView, decide
from failover.planning.readiness import IfLost, Readiness, if_lost, judge_readiness
from failover.sites.opening import flow_between
from failover.view.snapshot import take_snapshot
from runtime.configuration.config import Configuration
from runtime.coordination.witness import WitnessGarbled
from runtime.coordination.zookeeper import ZooKeeper
from runtime.process.clock import now_ms

_LOG = logging.getLogger(__name__)


async def look_at_readiness(configuration: Configuration, zookeeper: ZooKeeper) -> list[Readiness]:
    """Look at every site that a promotion could move to; raises what `take_snapshot` raises."""
    found: list[Readiness] = []
    hook_fault = why_not_runnable(configuration.failover.hooks)
    for site in promotable(configuration):
        snapshot = await take_snapshot(configuration, zookeeper, site)
        if site == snapshot.active or snapshot.flow is None:
            continue
        decision = decide(snapshot, PromotionRequest(site=site, kind=PromotionKind.PLANNED))
        ready = judge_readiness(site, decision, configuration.failover, hook_fault=hook_fault)
        found.append(
            replace(ready, if_lost=await _if_lost(configuration, zookeeper, snapshot, site))
        )
    return found


async def _if_lost(
    configuration: Configuration, zookeeper: ZooKeeper, snapshot: SitesView, site: str
) -> IfLost | None:
    """Return what it would cost if the active site were gone, by the mirror's last news of it.

    None where the target does not tell how far it is mirrored.
    """
    flow = flow_between(configuration, snapshot.active, site)
    if flow is None or snapshot.target is None or snapshot.target.fault is not None:
        return None
    try:
        known = await FlowControl(zookeeper, configuration.coordination.paths, flow).known_ends()
    except WitnessGarbled as fault:
        _LOG.warning("what would be lost is not known: %s", fault)
        return None
    loss = estimate(known, snapshot.mirrored, snapshot.target.ends, now_ms())
    loss = replace(loss, before_start=at_most(snapshot.left_behind))
    return if_lost(loss, configuration.failover.loss_budget, snapshot.active)


def promotable(configuration: Configuration) -> list[str]:
    """Return the sites that a flow leads to which moves with promotions."""
    return sorted({flow.target for flow in configuration.flows if flow.heeds_promotions})
