"""Rights (ACLs): who may do what with which resource, as the brokers keep it (KIP-290)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from wire.acls import WILDCARD, ResourceType
from wire.errors import ErrorCode
from wire.messages.create_acls import AclCreation, CreateAclsRequest
from wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from wire.messages.describe_acls import DescribeAclsRequest
from wire.net.cluster import Cluster
from wire.net.errors import NetworkFault, RequestRefused, UnsupportedApi
from wire.net.retries import code_of

DENY: Final = 2
ALLOW: Final = 3
"""AclPermissionType."""
ALL_OPERATIONS: Final = 2
READ: Final = 3
WRITE: Final = 4
CREATE: Final = 5
"""AclOperation."""
LITERAL: Final = 3
PREFIXED: Final = 4
"""PatternType."""

_ANY: Final = 1
"""What matches everything in a filter."""
_AT_ONCE: Final = 200
"""Entries in a request: with ZooKeeper each topic is a write of its own there."""


class RightsOff(NetworkFault):
    """The cluster keeps no rights; the message says what it has none of."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Right:
    """One entry; numbers as in the protocol. `name` is a prefix where the pattern says so.

    Numbers, not names: brokers may know kinds and operations that we do not.
    """

    name: str
    principal: str
    host: str
    operation: int
    permission: int
    pattern: int = LITERAL
    kind: int = ResourceType.TOPIC
    """What is named, a `ResourceType`."""

    @property
    def is_of_one(self) -> bool:
        """Tell whether it speaks of one resource by its name."""
        return self.pattern == LITERAL and self.name != WILDCARD

    def concerns(self, name: str) -> bool:
        """Tell whether it is asked about when somebody wants to use this resource of its kind."""
        if self.pattern == PREFIXED:
            return name.startswith(self.name)
        return self.name in (name, WILDCARD)


async def topic_rights(cluster: Cluster) -> set[Right]:
    """Return the entries for topics. Raises RightsOff, RequestRefused and NetworkFault."""
    return await _rights(cluster, ResourceType.TOPIC)


async def all_rights(
    cluster: Cluster, *, node: int | None = None, permission: int = _ANY
) -> set[Right]:
    """Return the entries of every kind, as any broker knows them, or as this one does.

    All, or those with one permission. Raises RightsOff, RequestRefused and NetworkFault.
    """
    return await _rights(cluster, ResourceType.ANY, node=node, permission=permission)


async def _rights(
    cluster: Cluster,
    kind: int,
    *,
    node: int | None = None,
    permission: int = _ANY,
) -> set[Right]:
    request = DescribeAclsRequest(
        resource_type_filter=kind,
        pattern_type_filter=_ANY,
        operation=_ANY,
        permission_type=permission,
    )
    try:
        answer = await cluster.request(request, node=node)
    except UnsupportedApi:
        raise RightsOff("no rights that its brokers knew of") from None
    if answer.error_code == ErrorCode.SECURITY_DISABLED:
        raise RightsOff("no authorizer")
    if answer.error_code != ErrorCode.NONE:
        raise RequestRefused("to describe rights", code_of(answer.error_code))
    return {
        Right(
            kind=resource.resource_type,
            name=resource.resource_name,
            principal=entry.principal,
            host=entry.host,
            operation=entry.operation,
            permission=entry.permission_type,
            pattern=resource.pattern_type,
        )
        for resource in answer.resources
        if kind in {ResourceType.ANY, resource.resource_type}
        for entry in resource.acls
    }


async def give_rights(cluster: Cluster, rights: Sequence[Right]) -> None:
    """Add entries in this order; those that are there stay.

    Raises RequestRefused and NetworkFault.
    """
    for some in _in_parts(rights):
        request = CreateAclsRequest(
            creations=tuple(
                AclCreation(
                    resource_type=right.kind,
                    resource_name=right.name,
                    resource_pattern_type=right.pattern,
                    principal=right.principal,
                    host=right.host,
                    operation=right.operation,
                    permission_type=right.permission,
                )
                for right in some
            )
        )
        answer = await cluster.request(request)
        for right, result in zip(some, answer.results, strict=True):
            if result.error_code != ErrorCode.NONE:
                what = f"to give {right.principal} a right to {right.name}"
                raise RequestRefused(what, code_of(result.error_code))


async def take_rights(cluster: Cluster, rights: Sequence[Right]) -> None:
    """Remove entries in this order, those that are there.

    Raises RequestRefused and NetworkFault.
    """
    for some in _in_parts(rights):
        request = DeleteAclsRequest(
            filters=tuple(
                DeleteAclsFilter(
                    resource_type_filter=right.kind,
                    resource_name_filter=right.name,
                    pattern_type_filter=right.pattern,
                    principal_filter=right.principal,
                    host_filter=right.host,
                    operation=right.operation,
                    permission_type=right.permission,
                )
                for right in some
            )
        )
        answer = await cluster.request(request)
        for right, result in zip(some, answer.filter_results, strict=True):
            if result.error_code != ErrorCode.NONE:
                what = f"to take from {right.principal} a right to {right.name}"
                raise RequestRefused(what, code_of(result.error_code))


def _in_parts(rights: Sequence[Right]) -> Iterator[Sequence[Right]]:
    for begin in range(0, len(rights), _AT_ONCE):
        yield rights[begin : begin + _AT_ONCE]
