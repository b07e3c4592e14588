"""Where Kafka's AclAuthorizer keeps access control entries, and in which form. Pure.

    /kafka-acl/Topic/<name>                        of one name, or of `*`
    /kafka-acl-extended/prefixed/Topic/<prefix>    of all names that begin so (KIP-290)
    /kafka-acl-changes/acl_changes_N               TOPIC:<name>
    /kafka-acl-extended-changes/acl_changes_N      {"version":1,"resourceType":"TOPIC",...}

Decoders raise MalformedNode, naming the path, when a node holds something else.
"""

from collections.abc import Collection, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, TypeVar

from broker.zookeeper.tree import MalformedNode, dump_json, is_node_name, load_json
from runtime.untrusted_json import text
from wire.acls import (
    AccessControlEntry,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)

CHANGE_PREFIX: Final = "acl_changes_"
LONGEST_NAME_BYTES: Final = 32_767
"""Of a resource: a string of the protocol is no longer where its length has two bytes."""

_E = TypeVar("_E", ResourceType, Operation, Permission)


class AclFolder(Enum):
    """The two places: entries of names, and entries of prefixes."""

    LITERAL = "/kafka-acl"
    PREFIXED = "/kafka-acl-extended/prefixed"

    @property
    def pattern(self) -> PatternType:
        """The type of all patterns that lie here."""
        return PatternType[self.name]

    @property
    def changes(self) -> str:
        """The folder of notifications that something here has changed."""
        return _CHANGES[self]


_CHANGES: Final[Mapping[AclFolder, str]] = MappingProxyType(
    {
        AclFolder.LITERAL: "/kafka-acl-changes",
        AclFolder.PREFIXED: "/kafka-acl-extended-changes",
    }
)
RESOURCE_TYPES: Final = tuple(one for one in ResourceType if one is not ResourceType.ANY)


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


_BY_NAME: Final[Mapping[type[Enum], Mapping[str, Any]]] = MappingProxyType(
    {
        kind: MappingProxyType({_camel(one.name): one for one in kind if one.name != "ANY"})
        for kind in (ResourceType, Operation, Permission)
    }
)


def folder_of(resource: ResourcePattern) -> AclFolder:
    """Return the place of a pattern's entries."""
    return AclFolder[resource.pattern.name]


def type_path(folder: AclFolder, kind: ResourceType) -> str:
    """Return the parent of the patterns of one type of resource."""
    return f"{folder.value}/{_camel(kind.name)}"


def acl_path(resource: ResourcePattern) -> str:
    """Return the node that holds a pattern's entries."""
    return f"{type_path(folder_of(resource), resource.type)}/{resource.name}"


def why_no_node(name: str) -> str | None:
    """Return why ZooKeeper cannot hold entries for this name; None when it can."""
    if not name:
        return "Resource name should not be empty"
    if not is_node_name(name):
        return "ZooKeeper cannot hold a resource name with '/' or control characters, '.' or '..'"
    if len(name.encode(errors="surrogatepass")) > LONGEST_NAME_BYTES:
        return f"The resource name is longer than {LONGEST_NAME_BYTES} bytes"
    return None


def encode_acls(entries: Collection[AccessControlEntry]) -> bytes:
    """Return a pattern's entries (version 1)."""
    return dump_json(
        {
            "version": 1,
            "acls": [
                {
                    "principal": entry.principal,
                    "permissionType": _camel(entry.permission.name),
                    "operation": _camel(entry.operation.name),
                    "host": entry.host,
                }
                for entry in sorted(entries)
            ],
        }
    )


def decode_acls(path: str, data: bytes) -> frozenset[AccessControlEntry]:
    """Return a pattern's entries; none of a node that is only the parent of others.

    One entry that cannot be read makes all of the node unreadable: it may be a DENY.
    """
    if not data:
        return frozenset()
    value = load_json(path, data)
    try:
        _check_version(value["version"])
        return frozenset(map(_entry, value["acls"]))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise MalformedNode(f"{path}: {error!r:.200}") from error


def _check_version(version: object) -> None:
    if version != 1:
        raise ValueError(f"version {version!r:.40} is not known")


def _entry(value: Mapping[str, object]) -> AccessControlEntry:
    return AccessControlEntry(
        principal=text(value["principal"]),
        host=text(value["host"]),
        operation=_named(Operation, value["operation"]),
        permission=_named(Permission, value["permissionType"]),
    )


def _named(kind: type[_E], name: object) -> _E:
    found = _BY_NAME[kind].get(text(name))
    if found is None:
        raise ValueError(f"{name!r:.40} is no {kind.__name__}")
    assert isinstance(found, kind)
    return found


def encode_acl_change(resource: ResourcePattern) -> bytes:
    """Return the notification that a pattern's entries have changed."""
    if resource.pattern is PatternType.LITERAL:
        return f"{resource.type.name}:{resource.name}".encode()
    return dump_json(
        {
            "version": 1,
            "resourceType": resource.type.name,
            "name": resource.name,
            "patternType": resource.pattern.name,
        }
    )


def decode_acl_change(path: str, data: bytes) -> ResourcePattern:
    """Return the pattern that a notification names. Raises MalformedNode."""
    try:
        if path.startswith(f"{AclFolder.LITERAL.changes}/"):
            kind, _, name = data.decode().partition(":")
            return _changed(kind, name, PatternType.LITERAL)
        value = load_json(path, data)
        return _changed(text(value["resourceType"]), text(value["name"]), PatternType.PREFIXED)
    except MalformedNode:
        raise
    except (KeyError, ValueError) as error:
        raise MalformedNode(f"{path}: {error!r:.200}") from error


def _changed(kind: str, name: str, pattern: PatternType) -> ResourcePattern:
    """Return the pattern; ZooKeeper's client throws at a path that cannot be."""
    wrong = why_no_node(name)
    if wrong is not None:
        raise ValueError(f"{wrong}: {name!r:.80}")
    return ResourcePattern(_type(kind), name, pattern)


def _type(name: str) -> ResourceType:
    """Return the type that Kafka 2.x calls `Topic` and later ones `TOPIC`."""
    for kind in RESOURCE_TYPES:
        if name.upper() in {kind.name, _camel(kind.name).upper()}:
            return kind
    raise ValueError(f"{name!r:.40} is no type of resource")
