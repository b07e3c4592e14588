"""Which flows of a file can be compared: those of which only one direction has ever run. Pure.

Where both are configured, the one out of the active site runs and the other rests. As long as no
promotion has switched sites, the target holds nothing but what was mirrored to it.
"""

from collections.abc import Sequence

from runtime.config import Configuration, FlowConfig
from runtime.witness import ActiveSite
from spark_audit.bounds import Snapshot
from spark_audit.seals import CannotTell


def way_back(configuration: Configuration, flow: FlowConfig) -> FlowConfig | None:
    """Return the flow of the other direction, None if none is configured."""
    for other in configuration.flows:
        if (other.source, other.target) == (flow.target, flow.source):
            return other
    return None


def has_ways_back(configuration: Configuration) -> bool:
    """Say whether which flows can be compared depends on which site is active."""
    return any(
        way_back(configuration, flow) is not None and not flow.is_active_active
        for flow in configuration.flows
    )


def comparable_flows(
    configuration: Configuration, active: ActiveSite | None
) -> Sequence[FlowConfig]:
    """Return the flows to be compared, without those that rest as ways back.

    `active` is the witness's word, None if there is none yet. Raises CannotTell for flows whose
    target holds records of its own beside mirrored ones: the comparison would take them for
    phantoms and losses; and for other names on the target.
    """
    if active is None:
        active = ActiveSite(site=configuration.failover.initial_active, epoch=0)
    flows: list[FlowConfig] = []
    for flow in configuration.flows:
        if flow.is_prefixed:
            raise CannotTell(
                f"flow {flow.name}: auditing a flow with `names: prefixed` is not supported yet"
            )
        if way_back(configuration, flow) is None:
            flows.append(flow)
        elif flow.is_active_active or active.epoch > 0:
            raise _both_ways(flow)
        elif flow.source == active.site:
            flows.append(flow)
        elif flow.target != active.site:
            raise _both_ways(flow)
    return flows


def require_one_way(configuration: Configuration, flow: FlowConfig, snapshot: Snapshot) -> None:
    """Raise CannotTell if a promotion has let the way back run by the time of the snapshot."""
    if snapshot.promotion is not None and way_back(configuration, flow) is not None:
        raise _both_ways(flow)


def _both_ways(flow: FlowConfig) -> CannotTell:
    return CannotTell(
        f"flow {flow.name}: auditing flows in both directions is not supported yet, but for the "
        f"one out of the site that is active before the first promotion"
    )
