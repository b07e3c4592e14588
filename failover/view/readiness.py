"""Whether each idle site could be promoted now: a look at each, judged as a plan would be."""

from failover.hooks.hook_plan import why_not_runnable
from failover.journal.steps import PromotionKind
from failover.planning.plan import PromotionRequest, decide
from failover.planning.readiness import Readiness, judge_readiness
from failover.view.snapshot import take_snapshot
from runtime.configuration.config import Configuration
from runtime.coordination.zookeeper import ZooKeeper


async def look_at_readiness(configuration: Configuration, zookeeper: ZooKeeper) -> list[Readiness]:
    """Look at every site that a promotion could move to; raises what `take_snapshot` raises."""
    found: list[Readiness] = []
    hook_fault = why_not_runnable(configuration.failover.hooks)
    for site in promotable(configuration):
        snapshot = await take_snapshot(configuration, zookeeper, site)
        if site == snapshot.active or snapshot.flow is None:
            continue
        decision = decide(snapshot, PromotionRequest(site=site, kind=PromotionKind.PLANNED))
        found.append(judge_readiness(site, decision, configuration.failover, hook_fault=hook_fault))
    return found


def promotable(configuration: Configuration) -> list[str]:
    """Return the sites that a flow leads to which moves with promotions."""
    return sorted({flow.target for flow in configuration.flows if flow.heeds_promotions})
