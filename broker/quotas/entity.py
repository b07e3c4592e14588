"""Who a quota is for: a user, a client id, both, or an address; each may be the default. Pure.

    /config/users/<user>                     /config/clients/<client id>
    /config/users/<user>/clients/<client id> /config/ips/<address>

Names are URL-encoded there (Kafka's Sanitizer); `<default>` is not.
"""

from enum import Enum
from typing import Final, TypeAlias

from broker.zookeeper.tree import decode_user, encode_user
from wire.values import frozen


class Default(Enum):
    """Stands for whoever of a type has no quota of its own."""

    DEFAULT = "<default>"


DEFAULT: Final = Default.DEFAULT
Name: TypeAlias = str | Default | None
"""None: the entity has no such part."""

USER: Final = "user"
CLIENT: Final = "client-id"
IP: Final = "ip"
PRODUCER_RATE: Final = "producer_byte_rate"
CONSUMER_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
"""Of the event loop: a broker has one, so a hundred is all there is."""
MUTATION_RATE: Final = "controller_mutation_rate"
RATES: Final = frozenset({PRODUCER_RATE, CONSUMER_RATE})
"""Those of bytes, which are whole."""
QUOTAS: Final = RATES | {REQUEST_PERCENTAGE, MUTATION_RATE}
"""Those of a user or a client id."""
IP_QUOTAS: Final = frozenset({"connection_creation_rate"})


@frozen
class QuotaEntity:
    """Who has a quota."""

    user: Name = None
    client: Name = None
    ip: Name = None

    def parts(self) -> dict[str, str | Default]:
        """Return its parts by their types, as they travel."""
        named = {USER: self.user, CLIENT: self.client, IP: self.ip}
        return {kind: name for kind, name in named.items() if name is not None}

    @property
    def path(self) -> str:
        """The node below `/config` that holds its quotas."""
        if self.ip is not None:
            return f"ips/{_encoded(self.ip)}"
        of_client = "" if self.client is None else f"clients/{_encoded(self.client)}"
        if self.user is None:
            return of_client
        of_user = f"users/{_encoded(self.user)}"
        return f"{of_user}/{of_client}" if of_client else of_user


def entity_at(path: str) -> QuotaEntity | None:
    """Return who has the node at this path below `/config`; None for a node of nobody."""
    match path.split("/"):
        case ["users", user]:
            return QuotaEntity(user=_decoded(user))
        case ["users", user, "clients", client]:
            return QuotaEntity(user=_decoded(user), client=_decoded(client))
        case ["clients", client]:
            return QuotaEntity(client=_decoded(client))
        case ["ips", address]:
            return QuotaEntity(ip=_decoded(address))
        case _:
            return None


def _encoded(name: str | Default) -> str:
    return name.value if isinstance(name, Default) else encode_user(name)


def _decoded(name: str) -> str | Default:
    return DEFAULT if name == DEFAULT.value else decode_user(name)
