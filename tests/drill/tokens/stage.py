"""Two sites that take tokens and passwords for 20 s, and all that logs in there.

The programs come to dc1 by tokens of an issuer (HTTPS, client credentials) and to dc2 by those of a
command; the applications have a token in a file, which somebody renews. The brokers come to each
other, and the reader of the target to it, by SCRAM. Everybody is asked again within 20 s.
"""

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import trio
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from runtime.process.ports import free_port
from tests.dc_yaml import FREE_PORTS, dc_yaml, flow
from tests.doubles.certificates import Certificates
from tests.doubles.issuer import CLIENT_ID, CLIENT_SECRET, Issuer, serving_tokens
from tests.doubles.signed_tokens import ec_key, jwk, write_jwks
from tests.drill.failover.stage import Daemon
from tests.drill.tokens.print_token import CLAIMS, token_of
from tests.secured_cluster import HOST, SecuredCluster, run_secured_cluster
from tests.zookeeper import run_witness
from wire.net.security import Mechanism

SITES: Final = ("dc1", "dc2")
BROKERS: Final = 2
RENEWED_AFTER: Final = 0.25
"""Of a token's life, by who writes it into the file."""
APPLICATIONS: Final = "applications"
LISTENER: Final = "SASL_SSL"
SCRAM: Final = Mechanism.SCRAM_SHA_512
TOPIC: Final = "drilled"


@dataclass(slots=True, kw_only=True)
class Stage:
    """What runs."""

    folder: Path
    sites: Mapping[str, SecuredCluster]
    issuer: Issuer
    page: str
    """The mirror's metrics."""
    file: Path
    applications: Path
    mirror: Daemon
    guard: Daemon

    @property
    def ports(self) -> list[int]:
        """Return the ports at which everybody logs in."""
        return [port for site in self.sites.values() for port in site.ports_of(LISTENER)]

    def by_password(self, site: str) -> dict[str, Any]:
        """Return settings of a client that shows no token."""
        return self.sites[site].client(LISTENER, SCRAM)

    def times_asked(self) -> dict[str, int]:
        """Return how often each source was asked for a token."""
        notes = self.folder / "asked"
        return {
            "issuer": self.issuer.given,
            "command": len(notes.read_text().splitlines()) if notes.exists() else 0,
        }

    def broker_lines(self, *marks: str) -> list[str]:
        """Return what brokers have said that holds one of these marks."""
        return [
            line
            for site in self.sites.values()
            for broker in range(BROKERS)
            for line in site.log(broker).splitlines()
            if any(mark in line for mark in marks)
        ]


@asynccontextmanager
async def staged(folder: Path, life_s: int) -> AsyncIterator[Stage]:
    """Run sites, witness, issuer, mirror and `failover serve` until the block ends.

    Tokens and passwords hold for `life_s`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    key = ec_key()
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    (folder / "signing.key").write_text(text)
    write_jwks(folder / "jwks.json", jwk(key, kid="drill"))
    (folder / "of-issuer").mkdir()
    certificates = Certificates(folder / "of-issuer")
    issuer = Issuer(make=lambda _: token_of(text, life_s), life_s=life_s)
    with ExitStack() as stack:
        async with serving_tokens(issuer, certificates), trio.open_nursery() as nursery:
            settings = _settings(folder, life_s)
            sites = {
                name: stack.enter_context(run_secured_cluster(folder, BROKERS, name, settings))
                for name in SITES
            }
            witness = stack.enter_context(run_witness(folder / "witness"))
            renewed, page = folder / "application.token", free_port(HOST)
            await nursery.start(_renew, renewed, text, life_s)
            files: dict[str, dict[str, dict[str, Any]]] = {
                "dc.yaml": {
                    "dc1": _of_issuer(folder, issuer, certificates),
                    "dc2": _of_command(folder, life_s),
                },
                "applications.yaml": {one: {"token_file": str(renewed)} for one in SITES},
            }
            for name, logins in files.items():
                (folder / name).write_text(_written(sites, logins, witness, page))
            stage = _stage(folder, sites, issuer, page)
            stage.mirror.ensure()
            stage.guard.ensure()
            try:
                yield stage
            finally:
                # In threads: what ends may want a last token of the issuer, which is in this loop.
                with trio.CancelScope(shield=True):
                    await trio.to_thread.run_sync(stage.guard.end)
                    await trio.to_thread.run_sync(stage.mirror.end)
                nursery.cancel_scope.cancel()


def _settings(folder: Path, life_s: int) -> dict[str, str]:
    """Return what brokers need beside their certificates and passwords."""
    listener = f"listener.name.{LISTENER.lower()}"
    return {
        f"{listener}.sasl.enabled.mechanisms": f"{SCRAM.value},OAUTHBEARER",
        f"{listener}.sasl.oauthbearer.jwks.endpoint.url": (folder / "jwks.json").as_uri(),
        f"{listener}.sasl.oauthbearer.expected.audience": CLAIMS["aud"],
        f"{listener}.sasl.oauthbearer.expected.issuer": CLAIMS["iss"],
        f"{listener}.sasl.oauthbearer.clock.skew.seconds": "0",
        f"{listener}.connections.max.reauth.ms": str(life_s * 1_000),
        # Kafka's ten minutes would end connections that nobody has used since the drill began.
        "connections.max.idle.ms": str(3_600_000),
    }


def _of_issuer(folder: Path, issuer: Issuer, certificates: Certificates) -> dict[str, str]:
    secret = folder / "client.secret"
    secret.touch(mode=0o600)
    secret.write_text(CLIENT_SECRET)
    return {
        "token_endpoint": issuer.url,
        "token_endpoint_ca": str(certificates.ca),
        "client_id": CLIENT_ID,
        "client_secret_file": str(secret),
    }


def _of_command(folder: Path, life_s: int) -> dict[str, list[str]]:
    words = (folder / "signing.key", str(life_s), folder / "asked")
    module = (sys.executable, "-m", "tests.drill.tokens.print_token")
    return {"token_command": [*module, *map(str, words)]}


async def _renew(
    file: Path, key: str, life_s: int, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Put another token in place, long before the last one ends."""
    is_there = False
    while True:
        new = file.with_suffix(".new")
        new.touch(mode=0o600)
        new.write_text(token_of(key, life_s, APPLICATIONS))
        new.replace(file)
        if not is_there:
            task_status.started()
        is_there = True
        await trio.sleep(life_s * RENEWED_AFTER)


def _written(
    sites: Mapping[str, SecuredCluster],
    logins: Mapping[str, Mapping[str, Any]],
    witness: str,
    page: int,
) -> str:
    sections = {}
    for name, site in sites.items():
        sections[name] = {
            **site.section(LISTENER, SCRAM),
            "sasl": {"mechanism": "OAUTHBEARER", **logins[name]},
        }
    return dc_yaml(
        *(flow(*way, TOPIC, discovery_interval_ms=300) for way in (SITES, SITES[::-1])),
        dc1=sections["dc1"],
        dc2=sections["dc2"],
        witness=witness,
        path="/tokens",
        coordination={"session_timeout_ms": 6_000},
        metrics={**FREE_PORTS, "mirror_port": page},
        failover={"initial_active": "dc1"},
    )


def _stage(folder: Path, sites: Mapping[str, SecuredCluster], issuer: Issuer, page: int) -> Stage:
    file = folder / "dc.yaml"

    def daemon(name: str, module: str, command: str) -> Daemon:
        return Daemon(module=module, arguments=(command, str(file)), log=folder / f"{name}.log")

    return Stage(
        folder=folder,
        sites=sites,
        issuer=issuer,
        page=f"http://{HOST}:{page}/metrics",
        file=file,
        applications=folder / "applications.yaml",
        mirror=daemon("mirror", "mirror.cli", "run"),
        guard=daemon("serve", "failover.cli", "serve"),
    )
