"""Rights that would shut the mirror's own user out of the target. Pure.

A DENY of everybody meets the mirror as well, unless it is a super user, and no broker tells who is.
A topic that such an entry concerns tells it: Kafka says what we may do with it (KIP-430).
"""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from runtime.rights.needed import NEEDS, At, By, Thing
from wire.acls import EVERYBODY, WILDCARD, Operation, ResourceType
from wire.net.rights import DENY, Right

_KINDS: Final = {
    Thing.TOPICS: ResourceType.TOPIC,
    Thing.GROUPS: ResourceType.GROUP,
    Thing.CLUSTER: ResourceType.CLUSTER,
}
OURS: Final[Mapping[int, frozenset[Operation]]] = MappingProxyType(
    {
        kind: frozenset(
            operation
            for need in NEEDS
            if (need.program, need.at, need.thing) == (By.MIRROR, At.TARGET, thing)
            for operation in need.operations
        )
        | {Operation.ALL, Operation.DESCRIBE}
        for thing, kind in _KINDS.items()
    }
)
"""What the mirror does on the target, by kind; whoever reads or writes describes as well."""


def shuts_us_out(right: Right) -> bool:
    """Tell whether an entry keeps the mirror from its work unless it is a super user."""
    return (right.permission, right.principal, right.host) == (
        DENY,
        EVERYBODY,
        WILDCARD,
    ) and right.operation in OURS.get(right.kind, frozenset())


def telling_topic(held: Iterable[Right], topics: Collection[str]) -> tuple[str, Right] | None:
    """Return a topic that tells whether we are a super user, and the entry that concerns it.

    None where no entry of the cluster shuts us out of one of these topics.
    """
    for right in sorted(filter(shuts_us_out, held)):
        topic = next(filter(right.concerns, topics), None)
        if right.kind == ResourceType.TOPIC and topic is not None:
            return topic, right
    return None


def passes(right: Right, bits: int) -> bool:
    """Tell whether we may do with its topic, by the bits of what we may, what the entry denies."""
    asked = Operation.READ if right.operation == Operation.ALL else right.operation
    return bits >= 0 and bool(bits & 1 << asked)


def withheld_words(right: Right, site: str) -> str:
    """Say what is not given and what to do; names are for the caller to escape."""
    kind = ResourceType(right.kind).name.lower().replace("_", " ")
    operation = Operation(right.operation).name
    rule = f"the DENY of {operation} to {right.principal} of {kind} {right.name}"
    if not shuts_us_out(right):
        return (
            f"{site} does not get {rule}: rules of a cluster travel with `acls: identical` alone,"
            " and of those only what applications do; give it there by hand"
        )
    return (
        f"{site} does not get {rule}: it would shut out the mirror's own user there, which is not"
        " known to be a super user; make it one of `super.users` and give the entry there by hand"
        " (`kafka-acls.sh --add --deny-principal`), and such entries travel from then on"
    )
