"""Asks a site's leaders where the epochs ended that evidence tells of."""

from collections.abc import Mapping

from runtime.configuration.config import ClusterConfig
from spark_audit.snapshot.cluster_bounds import CLIENT_ID
from spark_audit.snapshot.seals import CannotTell
from wire.errors import ErrorCode
from wire.net import NetworkFault, open_cluster
from wire.net.partition_operations import EpochEnd, epoch_ends
from wire.topic_partition import TopicPartition


async def ask_epochs(
    config: ClusterConfig, epochs: Mapping[TopicPartition, int]
) -> Mapping[TopicPartition, EpochEnd | ErrorCode]:
    """Return where each of these epochs ended; CannotTell if the cluster is down."""
    if not epochs:
        return {}
    try:
        async with open_cluster(
            config.bootstrap, client_id=CLIENT_ID, security=config.security
        ) as cluster:
            return await epoch_ends(cluster, dict(epochs))
    except NetworkFault as fault:
        raise CannotTell(f"cluster {config.name} ({config.bootstrap_servers}): {fault}") from fault
