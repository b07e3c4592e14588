"""Whether a site can be closed for writes, and whether topics could be made on it then.

Bundled brokers have settings for it. Apache Kafka is closed by rights (`runtime.rights.closing`).
"""

from collections.abc import Iterable
from typing import Final

from runtime.rights.creation import harmless, why_not_barred, without_bars
from wire.errors import ErrorCode
from wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from wire.net.cluster import Cluster
from wire.net.errors import NetworkFault, RequestRefused
from wire.net.retries import code_of
from wire.net.rights import Right, RightsOff, all_rights, topic_rights

FENCED_TOPICS: Final = "write.fence.topics"
FENCED_PATTERNS: Final = "write.fence.patterns"
ALLOWED_CLIENTS: Final = "write.fence.allowed.client.ids"
REBOOTSTRAP: Final = "write.fence.rebootstrap"
EVERYONE_IF_NO_ACL: Final = "allow.everyone.if.no.acl.found"
BROKER_RESOURCE: Final = 4
ALL_BROKERS: Final = ""


async def read_fence_settings(cluster: Cluster) -> dict[str, str] | None:
    """Return the settings of the fence; None where the brokers know no such settings.

    Apache Kafka takes any setting, known or not, and calls those secret that it does not know.
    Raises NetworkFault.
    """
    resource = DescribeConfigsResource(
        resource_type=BROKER_RESOURCE,
        resource_name=ALL_BROKERS,
        configuration_keys=(FENCED_TOPICS, FENCED_PATTERNS, ALLOWED_CLIENTS, REBOOTSTRAP),
    )
    [result] = (await cluster.request(DescribeConfigsRequest(resources=(resource,)))).results
    if result.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        return None  # brokers that ask for rights know no such settings
    if result.error_code != ErrorCode.NONE:
        raise RequestRefused("reading the write fence", code_of(result.error_code))
    known = {each.name: each.value or "" for each in result.configs if not each.is_sensitive}
    return known if {FENCED_TOPICS, ALLOWED_CLIENTS} <= known.keys() else None


async def why_unfenceable(cluster: Cluster, topics: Iterable[str]) -> str | None:
    """Return why these topics cannot be closed; None when they can. Raises NetworkFault.

    An entry that denies one thing would take everything else away as well from a topic that all
    may use because no entry concerns it (allow.everyone.if.no.acl.found).
    """
    if await read_fence_settings(cluster) is not None:
        return None
    try:
        held = without_bars(await topic_rights(cluster))
    except RightsOff as off:
        return f"it has no write fence, and {off}"
    except RequestRefused as refused:
        return f"it has no write fence, and {refused}"
    bare = sorted(topic for topic in topics if not _is_guarded(topic, held))
    open_to_all = await _why_open_to_all(cluster) if bare else None
    if open_to_all is None:
        return None
    more = f" (and {len(bare) - 1} more)" if len(bare) > 1 else ""
    return (
        f"no ACL concerns {bare[0]}{more}, and the first one, a DENY of WRITE, would shut readers"
        f" out as well: {open_to_all}; give READ to those who read it"
    )


async def why_creatable(cluster: Cluster, wanted: Iterable[Right]) -> str | None:
    """Return why topics could be made on this site while it is closed by rights; None if not.

    Bundled brokers close such a topic from its first moment on. Raises NetworkFault.
    """
    if await read_fence_settings(cluster) is not None:
        return None
    asked = frozenset(wanted)
    lacking = asked - await givable(cluster, asked)
    return why_not_barred(lacking, await _why_open_to_all(cluster) or "") if lacking else None


async def givable(cluster: Cluster, wanted: Iterable[Right]) -> frozenset[Right]:
    """Return the entries that shut nobody out from anything but making topics.

    Raises RequestRefused and NetworkFault.
    """
    asked = frozenset(wanted)
    if not asked or await _why_open_to_all(cluster) is None:
        return asked
    return harmless(asked, await all_rights(cluster))


async def _why_open_to_all(cluster: Cluster) -> str | None:
    """Return why all may do what no entry speaks of, if they may, or if nobody knows.

    Apache Kafka shows settings of its authorizer without their values, and only where they are set.
    """
    silent: NetworkFault | None = None
    for node in (await cluster.metadata((), refresh=True)).brokers:
        resource = DescribeConfigsResource(
            resource_type=BROKER_RESOURCE,
            resource_name=str(node),
            configuration_keys=(EVERYONE_IF_NO_ACL,),
        )
        request = DescribeConfigsRequest(resources=(resource,))
        try:
            [result] = (await cluster.request(request, node=node)).results
        except NetworkFault as fault:
            silent = fault
            continue
        if result.error_code != ErrorCode.NONE:
            refused = code_of(result.error_code).name
            return f"whether {EVERYONE_IF_NO_ACL} is set is not told ({refused})"
        values = [one.value for one in result.configs if one.name == EVERYONE_IF_NO_ACL]
        return _told_by(values[0]) if values else None
    raise silent or NetworkFault("no broker is known")


def _told_by(value: str | None) -> str | None:
    if value is None:
        return f"{EVERYONE_IF_NO_ACL} is set, and brokers do not tell to what"
    return None if value.casefold() == "false" else f"{EVERYONE_IF_NO_ACL} is {value}"


def _is_guarded(topic: str, held: Iterable[Right]) -> bool:
    return any(right.concerns(topic) for right in held)
