"""The flows of a file that are compared, and how each site's records are told apart. Pure.

Where both directions are configured, the one out of the active site runs and the other rests. As
long as no promotion has switched sites, the target holds nothing but what was mirrored to it, and
the way back nothing at all. Behind one, and under `active_active` from the start, both are
compared, and each site's records told apart by origin.

Where names are prefixed, copies lie in topics of their own: each direction is compared by itself,
whichever site is active.
"""

from collections.abc import Sequence

from runtime.configuration.config import Configuration, FlowConfig
from runtime.coordination.witness import ActiveSite
from spark_audit.snapshot.bounds import Snapshot
from spark_audit.snapshot.seals import CannotTell


def way_back(configuration: Configuration, flow: FlowConfig) -> FlowConfig | None:
    """Return the flow that writes to the topics that this one reads, None if none is configured."""
    if flow.is_prefixed:
        return None
    for other in configuration.flows:
        is_back = (other.source, other.target) == (flow.target, flow.source)
        if is_back and not other.is_prefixed:
            return other
    return None


def has_ways_back(configuration: Configuration) -> bool:
    """Tell whether the flows that can be compared depend on the active site."""
    return any(
        way_back(configuration, flow) is not None and not flow.is_active_active
        for flow in configuration.flows
    )


def comparable_flows(
    configuration: Configuration, active: ActiveSite | None
) -> Sequence[tuple[FlowConfig, bool]]:
    """Return the flows to be compared, each with whether the other direction may have run too.

    Ways back that rest, as they do before the first promotion, are left out. `active` is None
    before there was an active site. Raises CannotTell for a flow that cannot be compared.
    """
    if active is None:
        active = ActiveSite(site=configuration.failover.initial_active, epoch=0)
    flows: list[tuple[FlowConfig, bool]] = []
    for flow in configuration.flows:
        if way_back(configuration, flow) is None:
            flows.append((flow, False))
        elif flow.is_active_active or active.epoch > 0:
            flows.append((flow, True))
        elif active.site not in {flow.source, flow.target}:
            raise CannotTell(
                f"flow {flow.name}: neither of its sites is active ({active.site} is): which "
                f"direction has run cannot be told"
            )
        elif flow.source == active.site:
            flows.append((flow, False))
    return flows


def require_still_comparable(
    configuration: Configuration, flow: FlowConfig, snapshot: Snapshot, *, is_both_ways: bool
) -> None:
    """Raise CannotTell if the first promotion has let the way back run by then."""
    if is_both_ways or snapshot.promotion is None or way_back(configuration, flow) is None:
        return
    raise CannotTell(
        f"flow {flow.name}: promotion {snapshot.promotion} came while the audit began; run it again"
    )
