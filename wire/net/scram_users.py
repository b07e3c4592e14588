"""Who has SCRAM credentials at a cluster (KIP-554). No broker gives the credentials themselves."""

from enum import Enum
from typing import Final

from wire.errors import ErrorCode
from wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from wire.net.cluster import Cluster
from wire.net.errors import RequestRefused
from wire.net.retries import code_of


class ScramMechanism(Enum):
    """A mechanism by its number in the protocol (KIP-554)."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2


_NAMES: Final = {one.value: one.name.replace("_", "-") for one in ScramMechanism}


async def scram_users(cluster: Cluster) -> set[tuple[str, str]]:
    """Return each user with each mechanism: ("alice", "SCRAM-SHA-512").

    Raises UnsupportedApi before Apache Kafka 2.7, RequestRefused without DESCRIBE on the cluster,
    and NetworkFault.
    """
    answer = await cluster.request(DescribeUserScramCredentialsRequest(users=None))
    if answer.error_code != ErrorCode.NONE:
        raise RequestRefused("to describe SCRAM users", code_of(answer.error_code))
    return {
        (result.user, _NAMES.get(info.mechanism, f"mechanism {info.mechanism}"))
        for result in answer.results
        for info in result.credential_infos
    }
