"""Whether the way to a cluster is as safe as TLS can make it."""

from collections.abc import Iterator

from runtime.configuration.cipher_suites import TLS13
from runtime.configuration.config import ClusterConfig


def told_encryption(cluster: ClusterConfig) -> Iterator[str]:
    """Yield a warning for each setting of TLS that lets somebody in between, or does not hold."""
    tls = cluster.security.tls
    if tls is None:
        return
    if not tls.checks_hostname:
        yield (
            f"warning: cluster {cluster.name}: the names of its brokers are not held against their"
            " certificates: whoever has a certificate of the same authorities can be in between"
        )
    if tls.protocols and TLS13 not in tls.protocols:
        yield (
            f"warning: cluster {cluster.name}: failover.client speaks {TLS13}, too, because"
            " librdkafka cannot be told otherwise"
        )
