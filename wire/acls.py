"""Access control entries as Kafka has them (KIP-11, KIP-290): values, and how a filter finds them.

Numbers and names are those of the Java client's `ResourceType`, `PatternType`, `AclOperation` and
`AclPermissionType`. Pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Final

from wire.values import frozen


class ResourceType(IntEnum):
    """The kind of thing that an entry speaks of; ANY stands in filters only."""

    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How an entry's name is meant; ANY and MATCH stand in filters only."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    """The thing that is done to a resource; ANY stands in filters, ALL in entries only."""

    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14


class Permission(IntEnum):
    """Whether an entry lets or keeps; ANY stands in filters only."""

    ANY = 1
    DENY = 2
    ALLOW = 3


WILDCARD: Final = "*"
"""As a literal name, every resource of its type; as a host, every host."""
EVERYBODY: Final = "User:*"
CLUSTER_NAME: Final = "kafka-cluster"
"""The one name of a resource of type CLUSTER."""


@dataclass(frozen=True, slots=True, order=True)
class ResourcePattern:
    """The resources that entries speak of: one by its name, or all whose names begin so."""

    type: ResourceType
    name: str
    pattern: PatternType = PatternType.LITERAL


@dataclass(frozen=True, slots=True, order=True)
class AccessControlEntry:
    """Who, from where, may do what, or may not. `principal` is `User:alice`."""

    principal: str
    host: str
    operation: Operation
    permission: Permission


@dataclass(frozen=True, slots=True, order=True)
class AclBinding:
    """An entry with the resources that it speaks of."""

    resource: ResourcePattern
    entry: AccessControlEntry


@frozen
class AclFilter:
    """The question of DescribeAcls and DeleteAcls; None and ANY find everything."""

    type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    @property
    def exact(self) -> ResourcePattern | None:
        """The one pattern whose entries may be meant; None where they may be of several."""
        is_one = self.pattern in {PatternType.LITERAL, PatternType.PREFIXED}
        if self.type is ResourceType.ANY or self.name is None or not is_one:
            return None
        return ResourcePattern(self.type, self.name, self.pattern)

    def finds(self, resource: ResourcePattern) -> bool:
        """Say whether entries of this resource may be meant.

        MATCH finds every pattern that would speak of a resource of this name.
        """
        if self.type not in {ResourceType.ANY, resource.type}:
            return False
        if self.pattern not in {PatternType.ANY, PatternType.MATCH, resource.pattern}:
            return False
        if self.name is None or self.name == resource.name:
            return True
        if self.pattern is not PatternType.MATCH:
            return False
        if resource.pattern is PatternType.PREFIXED:
            return self.name.startswith(resource.name)
        return resource.name == WILDCARD

    def finds_entry(self, entry: AccessControlEntry) -> bool:
        """Say whether this entry is meant, of a resource that is."""
        return (
            self.principal in {None, entry.principal}
            and self.host in {None, entry.host}
            and self.operation in {Operation.ANY, entry.operation}
            and self.permission in {Permission.ANY, entry.permission}
        )


SUPPORTED: Final[Mapping[ResourceType, tuple[Operation, ...]]] = MappingProxyType(
    {
        ResourceType.TOPIC: (
            Operation.READ,
            Operation.WRITE,
            Operation.CREATE,
            Operation.DELETE,
            Operation.ALTER,
            Operation.DESCRIBE,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
        ),
        ResourceType.GROUP: (Operation.READ, Operation.DELETE, Operation.DESCRIBE),
        ResourceType.CLUSTER: (
            Operation.CREATE,
            Operation.ALTER,
            Operation.DESCRIBE,
            Operation.CLUSTER_ACTION,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
            Operation.IDEMPOTENT_WRITE,
        ),
    }
)
"""The operations that are told as authorized ones (KIP-430, `AclEntry.supportedOperations`)."""


IMPLIED_BY: Final[Mapping[Operation, frozenset[Operation]]] = MappingProxyType(
    {
        Operation.DESCRIBE: frozenset(
            {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
        ),
        Operation.DESCRIBE_CONFIGS: frozenset({Operation.ALTER_CONFIGS}),
    }
)
"""Whom an ALLOW of these lets do that, too (KIP-11, `AclEntry`'s implied operations)."""


def bits_of(operations: Iterable[Operation]) -> int:
    """Return operations as they are told: each as the bit of its number."""
    return sum(1 << operation for operation in operations)
