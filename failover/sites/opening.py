"""A site opened, and both ends of a flow."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

from failover.journal.lease import Lease
from failover.sites.site import CLIENT_ID, REQUEST_TIMEOUT_MS, Site
from runtime.configuration.config import ClusterConfig, Configuration, FlowConfig
from wire.net import open_cluster
from wire.net.client_settings import SYSTEMS_OWN
from wire.net.connection import always
from wire.values import frozen


@asynccontextmanager
async def open_site(cluster: ClusterConfig, lease: Lease | None = None) -> AsyncIterator[Site]:
    """Open a cluster under its site's name; a dead one is found out by the first request.

    A caller that changes anything there gives its lease: without the right to act nothing is sent.
    """
    async with open_cluster(
        cluster.bootstrap,
        client_id=CLIENT_ID,
        security=cluster.security.no_slower(REQUEST_TIMEOUT_MS),
        may_send=always if lease is None else lease.may_send,
        undelivered_ms=SYSTEMS_OWN if lease is None else lease.undelivered_ms,
    ) as opened:
        yield Site(name=cluster.name, cluster=opened)


@frozen
class Ends:
    """Both ends of a flow, open."""

    flow: FlowConfig
    source: Site
    target: Site


@asynccontextmanager
async def open_ends(
    configuration: Configuration, flow: FlowConfig, lease: Lease | None = None
) -> AsyncIterator[Ends]:
    """Open both clusters of a flow, as `open_site` does."""
    clusters = configuration.clusters
    async with AsyncExitStack() as stack:
        source = await stack.enter_async_context(open_site(clusters[flow.source], lease))
        target = await stack.enter_async_context(open_site(clusters[flow.target], lease))
        # What is done along a flow goes by its source's names.
        names = flow.names if flow.renames else None
        yield Ends(flow=flow, source=source, target=replace(target, names=names))


def flow_between(configuration: Configuration, source: str, target: str) -> FlowConfig | None:
    """Return the flow of this direction, None when none is configured."""
    for flow in configuration.flows:
        if (flow.source, flow.target) == (source, target):
            return flow
    return None
