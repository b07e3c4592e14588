"""The doors of a local stack: keys, passwords and tokens, and who is told of them.

One place for `make demo SECURED=1` and for the drills. The brokers of a site listen at SASL_SSL and
let the programs in by SCRAM; the witness asks for a certificate beside its login; pages are HTTPS
and ask for a token.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from demo.certificates import LOOPBACK, Authority, joined
from runtime.process.zookeeper_server import ServerDoors
from wire.net.secret_file import make_own_secret, read_own_secret
from wire.net.security import Mechanism

LISTENER: Final = "SASL_SSL"
MECHANISM: Final = Mechanism.SCRAM_SHA_512
USER: Final = "kafka-dr"
BROKER: Final = "broker"
LOGIN_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


class Doors:
    """Keys and secrets in a folder that only our user reads."""

    def __init__(self, folder: Path) -> None:
        """Make all of them."""
        folder.mkdir(mode=0o700, parents=True)
        authority = Authority(folder)
        self._authority = authority.file
        self._server = authority.sign("server", LOOPBACK)
        self._client = authority.sign("client", is_client=True)
        self._keys = joined(self._server, folder / "server-with-key.pem")
        self._password, self._brokers = folder / "password", folder / "brokers.password"
        self.token = folder / "pages.token"
        for file in (self._password, self._brokers, self.token):
            make_own_secret(file)

    @property
    def of_brokers(self) -> Mapping[str, str]:
        """Return the settings of brokers that listen at LISTENER."""
        own, theirs = read_own_secret(self._brokers), read_own_secret(self._password)
        users = f'user_{BROKER}="{own}" user_{USER}="{theirs}"'
        return {
            "sasl.enabled.mechanisms": MECHANISM.value,
            "sasl.mechanism.inter.broker.protocol": MECHANISM.value,
            "sasl.jaas.config": f"{LOGIN_MODULE} required "
            f'username="{BROKER}" password="{own}" {users};',
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._keys),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._authority),
        }

    @property
    def of_brokers_file(self) -> Path:
        """Write the same as `broker up` reads it, and return the file."""
        file = self._authority.with_name("brokers.properties")
        file.touch(mode=0o600)
        file.write_text("".join(f"{key}={value}\n" for key, value in self.of_brokers.items()))
        return file

    def cluster(self, bootstrap: str) -> dict[str, Any]:
        """Return a cluster's section of `dc.yaml`."""
        return {
            "bootstrap": bootstrap.split(","),
            "security_protocol": LISTENER,
            "ssl": {"ca": str(self._authority)},
            "sasl": {
                "mechanism": MECHANISM.value,
                "username": USER,
                "password_file": str(self._password),
            },
        }

    def client(self, bootstrap: str) -> dict[str, Any]:
        """Return the settings of a client of librdkafka."""
        return {
            "bootstrap.servers": bootstrap,
            "security.protocol": LISTENER,
            "ssl.ca.location": str(self._authority),
            "sasl.mechanism": MECHANISM.value,
            "sasl.username": USER,
            "sasl.password": read_own_secret(self._password),
        }

    @property
    def of_witness(self) -> ServerDoors:
        """Return how the witness lets clients in."""
        return ServerDoors(keys=self._keys, authorities=self._authority)

    @property
    def witness_options(self) -> list[str]:
        """Return the same as options of `runtime.process.zookeeper_server`."""
        return ["--keys", str(self._keys), "--authorities", str(self._authority)]

    @property
    def at_witness(self) -> dict[str, str]:
        """Return the section `coordination.tls`."""
        return {
            "ca": str(self._authority),
            "certificate": str(self._client),
            "key": str(self._client.with_suffix(".key")),
        }

    @property
    def at_pages(self) -> dict[str, Any]:
        """Return what `metrics` says of who may read pages."""
        own = {"certificate": str(self._server), "key": str(self._server.with_suffix(".key"))}
        return {"token_file": str(self.token), "tls": {**own, "ca": str(self._authority)}}
