"""ZooKeeper nodes and the operations of a transaction, as pure values."""

from kazoo.protocol.states import ZnodeStat

from wire.values import frozen


@frozen
class ZNode:
    """A node's data and the part of its stat that decisions need."""

    data: bytes
    version: int
    created_zxid: int
    modified_zxid: int
    ephemeral_owner: int
    modified_ms: int = 0
    """By the clock of the server that leads."""


@frozen
class Create:
    """In a transaction: create `path`."""

    path: str
    data: bytes = b""
    ephemeral: bool = False


@frozen
class SetData:
    """In a transaction: set `path` if it has `version` (-1: any)."""

    path: str
    data: bytes
    version: int = -1


@frozen
class Delete:
    """In a transaction: delete `path` if it has `version` (-1: any)."""

    path: str
    version: int = -1


@frozen
class Check:
    """In a transaction: go on only if `path` has `version`."""

    path: str
    version: int


Operation = Create | SetData | Delete | Check


def node_of(data: bytes | None, stat: ZnodeStat) -> ZNode:
    """Return our value for kazoo's data and stat; a node of Java's without data holds nothing."""
    return ZNode(
        data=data or b"",
        version=stat.version,
        created_zxid=stat.czxid,
        modified_zxid=stat.mzxid,
        ephemeral_owner=stat.ephemeralOwner,
        modified_ms=stat.mtime,
    )
