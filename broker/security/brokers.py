"""Who is a broker of this cluster: cluster APIs are answered to nobody else.

Where brokers come to each other over SASL they are known by the name that they log in with, and
by `super.users`. Where that listener asks for no SASL, a broker proves on each connection, by
SCRAM-SHA-256, that it knows a secret which the first broker of the cluster has put into ZooKeeper;
clients of that listener prove nothing, as ever.
"""

import secrets
from dataclasses import field
from typing import Final

from broker.listeners import Listener
from broker.security.credentials import ScramUsers
from broker.security.gate import Gate
from broker.security.scram import credential_of
from broker.security.settings import JaasLogin, ListenerSettings, inter_broker_security
from wire.net.security import Mechanism, Sasl
from wire.values import frozen

NAME: Final = "broker"
"""The name by which all brokers know the secret."""
MECHANISM: Final = Mechanism.SCRAM_SHA_256
_SECRET_BYTES: Final = 32
_SALT_BYTES: Final = 20


def new_secret() -> str:
    """Return a secret that nobody can guess."""
    return secrets.token_urlsafe(_SECRET_BYTES)


@frozen
class ClusterBrokers:
    """What makes a peer a broker: its principal, or the secret."""

    principals: frozenset[str]
    secret: str = field(repr=False)

    @property
    def proof(self) -> Sasl:
        """What a broker shows at a listener that asks for no SASL."""
        return Sasl(mechanism=MECHANISM, username=NAME, password=self.secret)

    def gate(self, config: ListenerSettings, listener: Listener) -> Gate | None:
        """Return the gate at which brokers prove the secret, None where they come otherwise."""
        if listener != config.inter_broker_listener or listener.protocol.uses_sasl:
            return None
        users = ScramUsers()
        credential = credential_of(MECHANISM, self.secret, secrets.token_bytes(_SALT_BYTES))
        users.set_user(NAME, {MECHANISM.value: str(credential)})
        return Gate({MECHANISM: JaasLogin()}, users, session_lifetime_ms=0, is_for_brokers=True)


def cluster_brokers(
    config: ListenerSettings, super_users: tuple[str, ...], secret: str
) -> ClusterBrokers:
    """Return who is a broker by these settings. Raises BadSecurity."""
    own = inter_broker_security(config).sasl
    names = (f"User:{own.username}",) if isinstance(own, Sasl) else ()
    return ClusterBrokers(principals=frozenset((*super_users, *names)), secret=secret)
