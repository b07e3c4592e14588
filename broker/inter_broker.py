"""How brokers come to each other: over the listener that the settings name, as one of its users."""

from broker.config import BrokerConfig
from broker.security.settings import inter_broker_security
from wire.net.connecting import ConnectionSettings
from wire.net.tls import TlsDial
from wire.net.transport import dial_tcp


def inter_broker_connections(config: BrokerConfig, *, client_id: str) -> ConnectionSettings:
    """Return the settings of connections to other brokers. Raises BadSecurity."""
    security = inter_broker_security(config)
    return ConnectionSettings(
        client_id=client_id,
        sasl=security.sasl,
        dial=dial_tcp if security.tls is None else TlsDial(security.tls),
    )
