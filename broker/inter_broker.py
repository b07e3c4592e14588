"""How brokers come to each other: over the listener that the settings name, and as brokers."""

from broker.config import BrokerConfig
from broker.security.brokers import ClusterBrokers
from broker.security.settings import inter_broker_security
from wire.net.connecting import ConnectionSettings
from wire.net.pool import ConnectionPool
from wire.net.tls import TlsDial
from wire.net.transport import dial_tcp
from wire.values import frozen


@frozen
class Peers:
    """How this broker reaches the others, and how it knows them when they come."""

    brokers: ClusterBrokers
    pool: ConnectionPool


def inter_broker_connections(
    config: BrokerConfig, brokers: ClusterBrokers, *, client_id: str
) -> ConnectionSettings:
    """Return the settings of connections to other brokers. Raises BadSecurity."""
    security = inter_broker_security(config)
    return ConnectionSettings(
        client_id=client_id,
        sasl=security.sasl or brokers.proof,
        dial=dial_tcp if security.tls is None else TlsDial(security.tls),
    )
