"""The connections of one flow.

A broker answers the requests of one connection one after the other, so a Fetch that waits for data
holds up everything behind it: data, group commits and questions go over connections of their own.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from runtime.configuration.config import ClusterConfig, FlowConfig
from wire.net.client_settings import SYSTEMS_OWN
from wire.net.cluster import Cluster, open_cluster
from wire.net.connection import MaySend, always
from wire.values import frozen


@frozen
class Links:
    """Both clusters, by purpose."""

    source_data: Cluster
    source_groups: Cluster
    source_admin: Cluster
    target_data: Cluster
    target_admin: Cluster


@asynccontextmanager
async def open_links(
    flow: FlowConfig,
    source: ClusterConfig,
    target: ClusterConfig,
    *,
    may_write: MaySend = always,
    undelivered_ms: int = SYSTEMS_OWN,
) -> AsyncIterator[Links]:
    """Open all; brokers that are down are found out by the first request.

    Nothing is sent to the target while `may_write` says no. The system takes bytes back that the
    target has not acknowledged after `undelivered_ms`.
    """

    def reach(
        cluster: ClusterConfig, may_send: MaySend = always, undelivered_ms: int = SYSTEMS_OWN
    ) -> AbstractAsyncContextManager[Cluster]:
        return open_cluster(
            cluster.bootstrap,
            client_id=flow.client_id,
            name=cluster.name,
            security=cluster.security,
            may_send=may_send,
            undelivered_ms=undelivered_ms,
        )

    async with (
        reach(source) as source_data,
        reach(source) as source_groups,
        reach(source) as source_admin,
        reach(target, may_write, undelivered_ms) as target_data,
        reach(target, may_write, undelivered_ms) as target_admin,
    ):
        yield Links(
            source_data=source_data,
            source_groups=source_groups,
            source_admin=source_admin,
            target_data=target_data,
            target_admin=target_admin,
        )
