"""What CreateAcls, DeleteAcls and DescribeAcls have in common: from their numbers to entries.

The checks are those of Kafka's AclControlManager and AclApis. Pure.
"""

from enum import IntEnum
from typing import Final, TypeVar

from broker.zookeeper.acl_nodes import why_no_node
from wire.acls import (
    CLUSTER_NAME,
    AccessControlEntry,
    AclBinding,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from wire.messages.create_acls import AclCreation
from wire.messages.delete_acls import DeleteAclsFilter
from wire.messages.describe_acls import DescribeAclsRequest

NO_AUTHORIZER: Final = "No Authorizer is configured on the broker"

E = TypeVar("E", bound=IntEnum)


class BadAcl(ValueError):
    """An entry or a filter that cannot be; the message says why."""


def binding_of(creation: AclCreation) -> AclBinding:
    """Return the entry that is to be created. Raises BadAcl."""
    kind = _of_entry(ResourceType, creation.resource_type, "resourceType")
    pattern = _of_entry(PatternType, creation.resource_pattern_type, "patternType")
    if pattern is PatternType.MATCH:
        raise BadAcl("Invalid patternType MATCH")
    name = creation.resource_name
    wrong = why_no_node(name)
    if wrong is not None:
        raise BadAcl(wrong)
    if kind is ResourceType.CLUSTER and name != CLUSTER_NAME:
        raise BadAcl(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not creation.host:
        raise BadAcl("The host should not be empty")
    _check_principal(creation.principal)
    return AclBinding(
        ResourcePattern(kind, name, pattern),
        AccessControlEntry(
            principal=creation.principal,
            host=creation.host,
            operation=_of_entry(Operation, creation.operation, "operation"),
            permission=_of_entry(Permission, creation.permission_type, "permissionType"),
        ),
    )


def _check_principal(principal: str) -> None:
    kind, colon, name = principal.partition(":")
    if not (kind and colon and name):
        raise BadAcl(
            f"Could not parse principal from `{principal:.80}` (no colon is present separating "
            "the principal type from the principal name)"
        )


def _of_entry(kind: type[E], number: int, what: str) -> E:
    """Return a value that an entry may have. ANY stands in filters only."""
    found = _known(kind, number)
    if found is None or found.name == "ANY":
        raise BadAcl(f"Invalid {what} {'UNKNOWN' if found is None else found.name}")
    return found


def _known(kind: type[E], number: int) -> E | None:
    try:
        return kind(number)
    except ValueError:
        return None


def filter_of(asked: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    """Return a filter. Raises BadAcl."""
    return AclFilter(
        type=_of_filter(ResourceType, asked.resource_type_filter, "resourceType"),
        name=asked.resource_name_filter,
        pattern=_of_filter(PatternType, asked.pattern_type_filter, "patternType"),
        principal=asked.principal_filter,
        host=asked.host_filter,
        operation=_of_filter(Operation, asked.operation, "operation"),
        permission=_of_filter(Permission, asked.permission_type, "permissionType"),
    )


def _of_filter(kind: type[E], number: int, what: str) -> E:
    found = _known(kind, number)
    if found is None:
        raise BadAcl(f"Unknown {what} {number} in a filter")
    return found
