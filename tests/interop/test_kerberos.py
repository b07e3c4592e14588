"""Logins by tickets: our client and programs at Apache Kafka, with a KDC of MIT's."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
import trio

from failover.client import SiteProducer
from tests.dc_yaml import dc_yaml, flow
from tests.interop.peers import KAFKA_4_KRAFT
from tests.interop.peers.kdc import REALM, Realm, run_kdc
from tests.interop.programs import run_program
from tests.interop.secured import SESSION_MS, SecuredKafka, run_secured
from tests.interop.sites import create_topic, end_of, write
from tests.mirror.daemon import run_mirror
from tests.zookeeper import run_witness
from wire.messages.metadata import MetadataRequest
from wire.net import AuthenticationFailed, open_cluster
from wire.net.security import KerberosSasl, Security

SUBJECT: Final = "Kerberos"
TOPIC: Final = "ticketed"
SERVICE: Final = "kafka/127.0.0.1"
CLIENT: Final = "mirror"
STARTING: Final = "COORDINATOR_LOAD_IN_PROGRESS"
"""A new cluster may say so once; it is no refusal."""
LOGIN_MODULE: Final = "com.sun.security.auth.module.Krb5LoginModule"

pytestmark = pytest.mark.matrix(subject=SUBJECT, against="Apache Kafka 4.4")


@dataclass(frozen=True, slots=True)
class Stage:
    """A realm, two sites that take its tickets at SASL_SSL, and a client's keytab."""

    realm: Realm
    keytab: Path
    sites: dict[str, SecuredKafka]

    def security(self, **settings: object) -> Security:
        """Return a login at dc1."""
        tls = self.sites["dc1"].tls(with_certificate=False)
        sasl = KerberosSasl(key="sasl", **{"keytab": self.keytab, **settings})  # type: ignore[arg-type]
        return Security(tls=tls, sasl=sasl)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("kerberos")
    with run_kdc(folder / "kdc") as realm, pytest.MonkeyPatch.context() as patch:
        for name, value in realm.environment.items():
            patch.setenv(name, value)
        patch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.krb5.conf={realm.folder}/krb5.conf")
        listener = "listener.name.sasl_ssl"
        module = (
            f"{LOGIN_MODULE} required useKeyTab=true storeKey=true "
            f'keyTab="{realm.keytab(SERVICE)}" principal="{SERVICE}@{REALM}";'
        )
        more = {
            f"{listener}.sasl.enabled.mechanisms": "GSSAPI",
            f"{listener}.gssapi.sasl.jaas.config": module,
            f"{listener}.sasl.kerberos.service.name": "kafka",
        }
        with (
            run_secured(folder, KAFKA_4_KRAFT, "dc1", more) as dc1,
            run_secured(folder, KAFKA_4_KRAFT, "dc2", more) as dc2,
        ):
            yield Stage(realm, realm.keytab(CLIENT), {"dc1": dc1, "dc2": dc2})


async def test_a_session_is_renewed_by_tickets_on_the_same_connection(stage: Stage) -> None:
    address = stage.sites["dc1"].address("SASL_SSL")
    async with open_cluster([address], client_id="test", security=stage.security()) as opened:
        connection = await opened.any_connection()
        ends_at = trio.current_time() + 3 * SESSION_MS / 1_000
        while trio.current_time() < ends_at:
            assert (await connection.request(MetadataRequest(topics=()))).brokers
            await trio.sleep(0.1)
        assert connection.is_open
        assert connection.session is not None


async def test_the_users_own_cache_is_shown_where_no_keytab_is_named(stage: Stage) -> None:
    address = stage.sites["dc1"].address("SASL_SSL")
    security = stage.security(keytab=None)
    async with open_cluster([address], client_id="test", security=security) as opened:
        with pytest.raises(AuthenticationFailed, match=r"sasl: no ticket for kafka@127\.0\.0\.1: "):
            await opened.any_connection()
    await trio.to_thread.run_sync(stage.realm.log_in, stage.keytab, CLIENT)
    async with open_cluster([address], client_id="test", security=security) as opened:
        await opened.any_connection()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"service_name": "nobody"}, "no ticket for nobody@127.0.0.1: .*not found in"),
        ({"principal": "another"}, "no ticket for kafka@127.0.0.1: "),
    ],
    ids=["service", "principal"],
)
async def test_what_the_realm_does_not_know_is_named(
    stage: Stage, settings: dict[str, str], said: str
) -> None:
    address = stage.sites["dc1"].address("SASL_SSL")
    security = stage.security(**settings)
    async with open_cluster([address], client_id="test", security=security) as opened:
        with pytest.raises(AuthenticationFailed, match=said):
            await opened.any_connection()


def test_the_programs_work_by_tickets(stage: Stage, tmp_path: Path) -> None:
    """The mirror, its checks, `failover` and the audit; librdkafka's wheel refuses in words."""
    login = {"mechanism": "GSSAPI", "keytab_file": str(stage.keytab), "principal": CLIENT}
    sections = {
        name: {**site.section("SASL_SSL"), "sasl": login} for name, site in stage.sites.items()
    }
    dc1, dc2 = (stage.sites[name].cluster for name in ("dc1", "dc2"))
    with run_witness(tmp_path / "witness") as witness:
        file = tmp_path / "dc.yaml"
        file.write_text(
            dc_yaml(
                flow("dc1", "dc2", TOPIC, discovery_interval_ms=300),
                dc1=sections["dc1"],
                dc2=sections["dc2"],
                witness=witness,
                path="/kerberos",
                coordination={"session_timeout_ms": 4_000},
                failover={"initial_active": "dc1"},
            )
        )
        create_topic(dc1, TOPIC)
        write(dc1, TOPIC, 0, 2_000)
        with run_mirror(file) as mirror:
            mirror.wait_mirrored(TOPIC, end_of(dc1, TOPIC))
            write(dc1, TOPIC, 2_000, 100)
            mirror.wait_mirrored(TOPIC, end_of(dc1, TOPIC))
            for words in (
                ("mirror.cli", "check"),
                ("failover.cli", "status"),
                ("spark_audit.cli", "run", "--output", str(tmp_path / "audit")),
            ):
                done = run_program(*words, str(file))
                assert done.returncode == 0, (words, done.stdout, done.stderr)
            warned = [line for line in mirror.log.splitlines() if " WARNING " in line]
            assert [line for line in warned if STARTING not in line] == []
        assert end_of(dc2, TOPIC) == end_of(dc1, TOPIC)
        with pytest.raises(Exception, match="No provider for SASL mechanism GSSAPI"):
            SiteProducer(file)
