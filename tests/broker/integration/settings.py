"""Settings for all brokers at once: no other client can address them by the empty name."""

from collections.abc import Mapping

import trio

from tests.clusters import RunningCluster
from wire.errors import ErrorCode
from wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from wire.net import open_cluster


def set_fence(cluster: RunningCluster, topics: str, client_ids: str) -> None:
    """Let only some client ids write to some topics."""
    fence = {"write.fence.topics": topics, "write.fence.allowed.client.ids": client_ids}
    assert set_all_brokers(cluster, fence) == [ErrorCode.NONE]


def set_all_brokers(cluster: RunningCluster, settings: Mapping[str, str]) -> list[int]:
    """Set each setting for all brokers; return the error code of each resource."""
    request = IncrementalAlterConfigsRequest(
        resources=(
            IncrementalAlterConfigsResource(
                resource_type=4,
                resource_name="",
                configs=tuple(
                    IncrementalAlterConfigsAlterableConfig(
                        name=name, config_operation=0, value=value
                    )
                    for name, value in settings.items()
                ),
            ),
        ),
        validate_only=False,
    )

    async def ask() -> list[int]:
        async with open_cluster(cluster.addresses, client_id="test") as connected:
            response = await connected.request(request)
            return [resource.error_code for resource in response.responses]

    return trio.run(ask)
