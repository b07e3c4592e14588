"""Which cluster a command is for: addresses, or a site of the configuration with its security."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from runtime.configuration.config import ClusterConfig, load
from runtime.configuration.reading.addresses import parse_address
from runtime.program.command import Options
from runtime.program.program import BadInput, find_configuration
from wire.errors import ErrorCode
from wire.net import Cluster, NetworkFault, open_cluster
from wire.net.retries import code_of

CLIENT_ID: Final = "broker-command"
LOCAL: Final = "127.0.0.1:9092"
MOST_ADDRESSES: Final = 100


class CommandFailed(Exception):
    """A cluster did not answer or would not; one line with the cluster and the reason."""


def cluster_of(options: Options) -> ClusterConfig:
    """Return the cluster that is meant; raises BadInput, ConfigurationError."""
    if options.site is None:
        text = options.bootstrap or LOCAL
        try:
            addresses = tuple(parse_address(part.strip()) for part in text.split(","))
        except ValueError as wrong:
            raise BadInput(f"--bootstrap {text}: {wrong}") from wrong
        if len(addresses) > MOST_ADDRESSES:
            raise BadInput(f"--bootstrap: more than {MOST_ADDRESSES} addresses; give a few of them")
        return ClusterConfig(name=text, bootstrap=addresses)
    options.file = options.config
    file = find_configuration(options)
    clusters = load(file).clusters
    if options.site not in clusters:
        raise BadInput(
            f"--site {options.site}: {file} has no such cluster; it has {', '.join(clusters)}"
        )
    return clusters[options.site]


@asynccontextmanager
async def reach(options: Options) -> AsyncIterator[Cluster]:
    """Give the cluster that is meant. Raises CommandFailed of what happens within the block."""
    meant = cluster_of(options)
    try:
        async with open_cluster(
            meant.bootstrap, client_id=CLIENT_ID, security=meant.security
        ) as cluster:
            yield cluster
    except NetworkFault as fault:
        raise CommandFailed(f"cluster {meant.name}: {fault}") from fault


def require(what: str, code: int, message: str | None = None) -> None:
    """Raise CommandFailed with what was wanted and Kafka's reason, unless the code is NONE."""
    if code != ErrorCode.NONE:
        raise CommandFailed(f"{what}: {reason(code, message)}")


def reason(code: int, message: str | None = None) -> str:
    """Return Kafka's name of an error, with what the broker says of it."""
    name = code_of(code).name
    return name if not message else f"{name}: {message}"
