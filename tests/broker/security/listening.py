"""A broker that serves all four protocols, clients of it, and what it says of them."""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from broker.listeners import Listener, SecurityProtocol
from broker.security.scram import credential_of
from broker.security.settings import JaasLogin
from runtime.process.tasks import background_tasks
from tests.broker.rig import Rig, serving
from tests.doubles.certificates import Certificates
from wire.messages.metadata import MetadataRequest
from wire.net import AuthenticationFailed
from wire.net.connecting import ConnectionSettings, connect
from wire.net.connection import Connection
from wire.net.security import Mechanism, Sasl, Security, Tls
from wire.net.tls import TlsDial
from wire.net.transport import dial_tcp

RIGHT, WRONG = "pencil", "eraser"
METADATA = MetadataRequest(topics=())
LISTENERS = tuple(
    Listener(name=protocol.name, host="127.0.0.1", port=0, protocol=protocol)
    for protocol in SecurityProtocol
)


def keystore(certificates: Certificates, folder: Path, key: Path | None = None) -> Path:
    """Write key and certificate into one file, as Kafka has it."""
    path = folder / "broker-keystore.pem"
    key = key or certificates.key(certificates.broker)
    path.write_text(key.read_text() + certificates.broker.read_text())
    return path


@asynccontextmanager
async def secured(folder: Path, certificates: Certificates, **settings: Any) -> AsyncIterator[Rig]:
    """Serve all four protocols; the SSL listener asks for a certificate."""
    given = {
        "listeners": LISTENERS,
        "ssl_keystore_location": keystore(certificates, folder),
        "ssl_truststore_location": certificates.ca,
        "ssl_client_auth": "required",
        "sasl_enabled_mechanisms": (Mechanism.PLAIN, Mechanism.SCRAM_SHA_256),
        "sasl_jaas_config": JaasLogin(users={"alice": RIGHT}),
        "connection_failed_authentication_delay_ms": 0,
    }
    async with serving(folder, **{**given, **settings}) as rig:
        kept = credential_of(Mechanism.SCRAM_SHA_256, RIGHT, b"salt")
        rig.node.scram_users.set_user("alice", {"SCRAM-SHA-256": str(kept)})
        yield rig


def security(
    certificates: Certificates, protocol: str, mechanism: Mechanism = Mechanism.PLAIN
) -> Security:
    """Return what lets a client in; the listener SSL wants its certificate as well."""
    made = certificates
    tls = Tls(ca=made.ca, certificate=made.client, key=made.key(made.client))
    sasl = Sasl(mechanism=mechanism, username="alice", password=RIGHT)
    return Security(
        tls=tls if protocol.endswith("SSL") else None,
        sasl=sasl if protocol.startswith("SASL") else None,
    )


@asynccontextmanager
async def connected(rig: Rig, listener: str, security: Security) -> AsyncIterator[Connection]:
    dial = dial_tcp if security.tls is None else TlsDial(security.tls)
    settings = ConnectionSettings(client_id="test", sasl=security.sasl, dial=dial)
    async with background_tasks() as tasks:
        yield await connect(tasks, ("127.0.0.1", rig.ports[listener]), settings)


async def refused(rig: Rig, listener: str, wrong: Security) -> str:
    """Return what a client is told that does not come in."""
    with pytest.raises(AuthenticationFailed) as caught:
        async with connected(rig, listener, wrong):
            raise AssertionError("it came in")
    return str(caught.value)


def complaints(records: Sequence[logging.LogRecord], logger: str = "broker.server") -> list[str]:
    """Return what the broker said, one line each, without the peer."""
    said = [one.getMessage() for one in records if one.name == logger]
    return [line.partition(": ")[2] for line in said]
