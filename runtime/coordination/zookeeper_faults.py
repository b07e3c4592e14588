"""The faults of ZooKeeper as our exceptions, and kazoo's names for them."""

from typing import Final

from kazoo import exceptions as kazoo_errors
from kazoo.handlers.threading import KazooTimeoutError


class ZooKeeperFault(Exception):
    """ZooKeeper did not do what was asked; the message names the path or the servers."""


class ZooKeeperUnreachable(ZooKeeperFault):
    """No server answered, or the session or connection was lost before the answer came."""


class NoNode(ZooKeeperFault):
    """The path, or its parent, does not exist."""


class NodeExists(ZooKeeperFault):
    """The path exists already."""


class BadVersion(ZooKeeperFault):
    """The node changed since the version that was given."""


class NotEmpty(ZooKeeperFault):
    """The node to delete has children."""


class NotAllowed(ZooKeeperFault):
    """The node's rights name other logins than that of this connection."""


_FAULTS: Final[tuple[tuple[type[Exception], type[ZooKeeperFault]], ...]] = (
    (kazoo_errors.NoNodeError, NoNode),
    (kazoo_errors.NodeExistsError, NodeExists),
    (kazoo_errors.BadVersionError, BadVersion),
    (kazoo_errors.NotEmptyError, NotEmpty),
    (kazoo_errors.NoAuthError, NotAllowed),
    (kazoo_errors.ConnectionLoss, ZooKeeperUnreachable),
    (kazoo_errors.SessionExpiredError, ZooKeeperUnreachable),
    (kazoo_errors.ConnectionClosedError, ZooKeeperUnreachable),
    (kazoo_errors.OperationTimeoutError, ZooKeeperUnreachable),
    (KazooTimeoutError, ZooKeeperUnreachable),
)


def fault_of(error: Exception, what: str, who: str) -> ZooKeeperFault:
    """Return our fault for an error of kazoo's.

    `what` names the servers and the path, `who` whose credentials were shown.
    """
    for kazoo_type, ours in _FAULTS:
        if isinstance(error, kazoo_type):
            if ours is NotAllowed:
                why = f"the node's rights are for another login than ours ({who})"
                return NotAllowed(f"{what}: {why}")
            return ours(f"{what}: {type(error).__name__}")
    return ZooKeeperFault(f"{what}: {error!r}")
