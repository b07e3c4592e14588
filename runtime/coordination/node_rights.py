"""Who may touch a node of a ZooKeeper, held against who should. Pure."""

from collections.abc import Iterable, Mapping

from runtime.coordination.zookeeper_access import Grant, Identity, NodeRight, ZooKeeperAccess
from wire.values import frozen


@frozen(kw_only=False)
class UnexpectedRights:
    """How a node's rights are others than they should be.

    `rights` is what others may do, None where our login may not even ask. `missing` is what those
    may not do who should.
    """

    path: str
    rights: tuple[Grant, ...] | None
    missing: tuple[Grant, ...] = ()

    def __str__(self) -> str:
        if self.rights is None:
            return f"{self.path}: its rights are for another login than ours"
        told = [f"{grant.identity} may {_said(grant.rights)}" for grant in self.rights]
        lacking = [f"{grant.identity} may not {_said(grant.rights)}" for grant in self.missing]
        return f"{self.path}: {', '.join(told or lacking)}"


def unexpected_rights(
    path: str, rights: tuple[Grant, ...], access: ZooKeeperAccess
) -> UnexpectedRights | None:
    """Return how the rights of a node are others than those with which it would be made."""
    wanted, held = _by_identity(access.grants(path)), _by_identity(rights)
    beyond, missing = _beyond(held, wanted), _beyond(wanted, held)
    return UnexpectedRights(path, beyond, missing) if beyond or missing else None


def _by_identity(grants: Iterable[Grant]) -> Mapping[Identity, NodeRight]:
    found: dict[Identity, NodeRight] = {}
    for grant in grants:
        found[grant.identity] = found.get(grant.identity, NodeRight(0)) | grant.rights
    return found


def _beyond(
    some: Mapping[Identity, NodeRight], others: Mapping[Identity, NodeRight]
) -> tuple[Grant, ...]:
    """Return the rights in `some` that are not in `others`."""
    return tuple(
        Grant(identity, beyond)
        for identity, rights in some.items()
        if (beyond := rights & ~others.get(identity, NodeRight(0)))
    )


def _said(rights: NodeRight) -> str:
    return "+".join(right.name.lower() for right in NodeRight if right in rights and right.name)
