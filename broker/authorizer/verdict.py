"""Whether entries let somebody do something: the rules of Kafka's StandardAuthorizer. Pure.

A DENY comes before every ALLOW. Some ALLOWs imply more than they say; a DENY never does. Where no
entry speaks of a resource, `allow.everyone.if.no.acl.found` decides.
"""

import ipaddress
from collections.abc import Collection, Iterable
from typing import NamedTuple

from wire.acls import (
    EVERYBODY,
    IMPLIED_BY,
    WILDCARD,
    AccessControlEntry,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
)


class Asker(NamedTuple):
    """Who asks, and from which address."""

    principal: str
    host: str


def is_allowed(
    entries: Collection[AccessControlEntry],
    asker: Asker,
    operation: Operation,
    *,
    where_none_speak: bool,
) -> bool:
    """Decide by all entries that speak of the resource.

    CLUSTER_ACTION, which makes its holder a broker of this cluster, is given by an entry alone:
    Kafka gives it by `allow.everyone.if.no.acl.found` as well.
    """
    if not entries:
        return where_none_speak and operation is not Operation.CLUSTER_ACTION
    enough = {operation, Operation.ALL} | IMPLIED_BY.get(operation, frozenset())
    is_let = False
    for entry in entries:
        if not concerns(entry, asker):
            continue
        if entry.permission is Permission.DENY:
            if entry.operation in {operation, Operation.ALL}:
                return False
        elif entry.operation in enough:
            is_let = True
    return is_let


def concerns(entry: AccessControlEntry, asker: Asker) -> bool:
    """Say whether an entry is about whoever asks."""
    return entry.principal in {asker.principal, EVERYBODY} and (
        entry.host == WILDCARD or address(entry.host) == asker.host
    )


def is_allowed_somewhere(
    held: Iterable[tuple[ResourcePattern, AccessControlEntry]],
    asker: Asker,
    operation: Operation,
    *,
    where_none_speak: bool,
) -> bool:
    """Decide whether there may be a resource with which it is allowed (KIP-679).

    `held` are all entries of one type of resource. Only a DENY or an ALLOW of the operation itself
    and of ALL count, as in `Authorizer.authorizeByResourceType`.
    """
    allowed: list[ResourcePattern] = []
    denied: list[ResourcePattern] = []
    for resource, entry in held:
        if concerns(entry, asker) and entry.operation in {operation, Operation.ALL}:
            kept = denied if entry.permission is Permission.DENY else allowed
            kept.append(resource)
    if any(_is_everything(one) for one in denied):
        return False
    return where_none_speak or any(not any(_covers(no, yes) for no in denied) for yes in allowed)


def _is_everything(resource: ResourcePattern) -> bool:
    return resource.pattern is PatternType.LITERAL and resource.name == WILDCARD


def _covers(wider: ResourcePattern, other: ResourcePattern) -> bool:
    """Say whether each resource of the other pattern is one of the wider, too."""
    if wider.pattern is PatternType.PREFIXED:
        return not _is_everything(other) and other.name.startswith(wider.name)
    return other.pattern is PatternType.LITERAL and other.name == wider.name


def address(text: str) -> str:
    """Return an address in one form: Java writes IPv6 at length, and a mapped IPv4 as IPv4."""
    try:
        parsed = ipaddress.ip_address(text)
    except ValueError:
        return text
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(parsed)
