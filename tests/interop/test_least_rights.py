"""Every program with just the rights that `mirror acls` names, each as a user of its own.

Apache Kafka's authorizers say what was asked and what came of it: a right that is missing from the
table is a refusal, and one that nobody asks for is not needed. A planned promotion away from Apache
Kafka takes super users, so that is made between bundled brokers.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import trio
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from failover.client import SiteConsumer, SiteProducer
from mirror.commands.acls import internal_topics
from runtime.configuration.config import load
from runtime.rights.needed import NEEDS, By, Thing, granted
from tests.dc_yaml import dc_yaml, flow
from tests.failover.promoting import CONSUMER
from tests.interop.peers import KAFKA_4_KRAFT
from tests.interop.programs import active_site, run_program
from tests.interop.rights import KRAFT_AUTHORIZER, held
from tests.interop.rights import give as give_one
from tests.interop.secured import SecuredKafka, run_secured
from tests.interop.sites import QUIET, Site, by_plaintext, committed, create_topic, end_of, write
from tests.mirror.daemon import MirrorProcess, run_mirror, wait_until
from tests.secured_cluster import RIGHT, SCRAM_MODULE, Secured, run_secured_cluster
from tests.zookeeper import run_witness
from wire.acls import Operation
from wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from wire.net import open_cluster
from wire.net.client_quotas import Quotas, client_quotas, set_quotas

SUBJECT: Final = "Rights"
TOPIC, GROUP = "guarded", "guards"
USERS: Final = {
    "mirror": "mirror",
    "failover": "failover",
    "spark-audit": "audit",
    "failover.client": "app",
}
"""Each program with its user."""
LIMITED: Final = frozenset({("user", "reader")})
OFTEN: Final[dict[str, Any]] = {
    "discovery_interval_ms": 300,
    "group_offsets_interval_ms": 300,
    "groups": {"include": [GROUP]},
    "client_quotas": True,
}
BUNDLED_AUTHORIZER: Final = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS;User:broker",
    "sasl.jaas.config": f'{SCRAM_MODULE} required username="broker" password="b" user_broker="b" '
    + " ".join(f'user_{user}="{RIGHT}"' for user in USERS.values())
    + ";",
}
BROKER_LOGGER: Final = 8
AUDIT_LOG: Final = re.compile(
    r"Principal = User:(\S+) is (Allowed|Denied) operation = (\w+) from host = \S+"
    r" on resource = (\w+):LITERAL:(\S+) for request = \w+"
    r" with resourceRefCount = \d+ based on rule (\w+)"
)
BY_FENCE: Final = "MatchingAcl"
"""The rule of a refusal that an entry demands: here that is the fence."""
READERS_GROUP: Final = "kafka-dr-site-reader"
"""The group that `failover.client` names and never joins; librdkafka looks for its coordinator."""
NOT_TRIED: Final = {
    (By.FAILOVER, Thing.EVIDENCE, Operation.CREATE): "the mirror came first",
    (By.FAILOVER, Thing.GROUPS, Operation.READ): "planned promotions move positions",
    (By.FAILOVER, Thing.TOPICS, Operation.WRITE): "tries the fence of bundled brokers",
    (By.FAILOVER, Thing.CLUSTER, Operation.ALTER_CONFIGS): "closes bundled brokers",
    (By.MIRROR, Thing.SET_ASIDE, Operation.WRITE): "no site has records of its own",
    (By.MIRROR, Thing.SET_ASIDE, Operation.CREATE): "no site has records of its own",
    (By.MIRROR, Thing.MAP, Operation.DELETE): "no site came back empty",
    (By.MIRROR, Thing.CHECKPOINTS, Operation.DELETE): "no site came back empty",
}
"""What a promotion of Apache Kafka whose source is lost does not need."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Both sites as a super user reaches them, and a file for each program, with its own login."""

    sites: Mapping[str, Site]
    files: Mapping[str, Path]


@contextmanager
def stage(folder: Path, run: Callable[[str], Any], plain: Callable[[Any], Site]) -> Iterator[Stage]:
    """Run both sites with `run`, and give each program what `mirror acls` names."""
    with ExitStack() as stack:
        secured = {name: stack.enter_context(run(name)) for name in ("dc1", "dc2")}
        witness = stack.enter_context(run_witness(folder / "witness"))
        sites = {name: plain(one) for name, one in secured.items()}
        files = {
            program: _file(folder / f"{user}.yaml", user, secured, witness)
            for program, user in USERS.items()
        }
        at = Stage(sites=sites, files=files)
        create_topic(sites["dc1"], TOPIC, 2)
        for program in files:
            give(at, program)
        yield at


def _file(path: Path, user: str, secured: Mapping[str, Secured], witness: str) -> Path:
    login = {"mechanism": "SCRAM-SHA-256", "username": user, "password": RIGHT}
    sections = {
        name: {**one.section("SASL_PLAINTEXT"), "sasl": login} for name, one in secured.items()
    }
    path.write_text(
        dc_yaml(
            flow("dc1", "dc2", TOPIC, **OFTEN),
            flow("dc2", "dc1", TOPIC, **OFTEN),
            dc1=sections["dc1"],
            dc2=sections["dc2"],
            witness=witness,
            path="/least",
            coordination={"session_timeout_ms": 4_000},
            failover={"initial_active": "dc1"},
        )
    )
    return path


def give(at: Stage, program: str, *options: str) -> None:
    """Give a program's user the rights that `mirror acls` prints, and no others."""
    words = ("acls", "--json", *options, "--program", program, str(at.files[program]))
    told = run_program("mirror.cli", *words)
    assert told.returncode == 0, told.stderr
    for entry in json.loads(told.stdout):
        admin = administrator(at.sites[entry["cluster"]])
        kind = entry["resource_type"]
        bindings = [
            AclBinding(
                ResourceType.BROKER if kind == "CLUSTER" else ResourceType[kind],
                entry["name"],
                ResourcePatternType[entry["pattern_type"]],
                entry["principal"],
                "*",
                AclOperation[operation],
                AclPermissionType.ALLOW,
            )
            for operation in entry["operations"]
        ]
        for given in admin.create_acls(bindings).values():
            given.result(60)


def administrator(site: Site) -> AdminClient:
    return AdminClient({"bootstrap.servers": site.bootstrap, **QUIET})


@contextmanager
def apache_kafka(folder: Path) -> Iterator[Stage]:
    def run(name: str) -> Any:
        return run_secured(folder, KAFKA_4_KRAFT, name, KRAFT_AUTHORIZER)

    def plain(one: SecuredKafka) -> Site:
        add_users(one.cluster)
        trio.run(tell_all, one.cluster)
        return one.cluster

    with stage(folder, run, plain) as at:
        yield at


def add_users(site: Site) -> None:
    admin = administrator(site)  # kept until it has answered
    for user in USERS.values():
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        change = UserScramCredentialUpsertion(user, info, RIGHT.encode())
        admin.alter_user_scram_credentials([change])[user].result(60)


async def tell_all(site: Site) -> None:
    """Have the broker write what its authorizer is asked, also where it says yes."""
    setting = IncrementalAlterConfigsAlterableConfig(
        name="kafka.authorizer.logger", config_operation=0, value="DEBUG"
    )
    resource = IncrementalAlterConfigsResource(
        resource_type=BROKER_LOGGER, resource_name="0", configs=(setting,)
    )
    async with open_cluster(site.addresses, client_id="test") as cluster:
        request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
        [answer] = (await cluster.request(request, node=0)).responses
        assert answer.error_code == 0, answer


class Asked(NamedTuple):
    """A question to an authorizer."""

    site: str
    user: str
    operation: str
    kind: str
    name: str


def asked(at: Stage, verdict: str) -> set[Asked]:
    """Return what was asked with this verdict, but for what a fence refuses."""
    logs = {name: str(getattr(site, "log", "")) for name, site in at.sites.items()}
    return {
        Asked(name, user, operation.upper(), kind.upper(), resource)
        for name, log in logs.items()
        for user, found, operation, kind, resource, rule in AUDIT_LOG.findall(log)
        if found == verdict and user in USERS.values()
        if not (verdict == "Denied" and rule == BY_FENCE)
    }


def not_needed(at: Stage, used: set[Asked]) -> set[tuple[By, Thing, Operation]]:
    """Return what of the table nobody has asked for in either direction."""
    flows = load(at.files["mirror"]).flows
    return {
        (need.program, need.thing, operation)
        for need in NEEDS
        if any(need.applies(one) for one in flows)
        for operation in need.operations
        if not used
        & {
            Asked(
                grant.cluster,
                USERS[need.program.value],
                operation.name,
                grant.kind.name,
                grant.named.name,
            )
            for one in flows
            for grant in granted(need, one, internal_topics(one))
        }
    }


def change_source(site: Site) -> None:
    """Change what travels: a setting, the number of partitions, a right and a quota."""
    admin = administrator(site)
    for grown in admin.create_partitions([NewPartitions(TOPIC, 3)]).values():
        grown.result(60)
    entry = ConfigEntry("retention.ms", "7200000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, TOPIC, incremental_configs=[entry])
    for changed in admin.incremental_alter_configs([resource]).values():
        changed.result(60)
    give_one(site, "reader", ResourceType.TOPIC, TOPIC, AclOperation.READ)
    trio.run(limit, site)


async def limit(site: Site) -> None:
    async with open_cluster(site.addresses, client_id="test") as cluster:
        await set_quotas(cluster, {LIMITED: {"producer_byte_rate": 1e6}})


def has_followed(site: Site) -> bool:
    """Tell whether the target has all of that; rights and quotas are looked at every 30 s."""
    admin = administrator(site)
    resource = ConfigResource(ConfigResource.Type.TOPIC, TOPIC)
    [settings] = [one.result(60) for one in admin.describe_configs([resource]).values()]
    return (
        ("User:reader", AclOperation.READ) in held(site, TOPIC)
        and settings["retention.ms"].value == "7200000"
        and len(admin.list_topics(timeout=60).topics[TOPIC].partitions) == 3
        and LIMITED in trio.run(quotas_of, site)
    )


async def quotas_of(site: Site) -> Quotas:
    async with open_cluster(site.addresses, client_id="test") as cluster:
        return await client_quotas(cluster)


def work(producer: SiteProducer, consumer: SiteConsumer, count: int) -> None:
    """Write so many records and read as many, as an application does."""
    for number in range(count):
        producer.produce(TOPIC, b"%d" % number, b"key %d" % number)
    assert producer.flush(60) == 0
    seen: list[object] = []

    def are_read() -> bool:
        seen.extend(consumer.consume(50, 0.2))
        return len(seen) >= count

    wait_until(f"{count} records", are_read)


def wait_level(at: Stage, mirror: MirrorProcess) -> None:
    dc1, dc2 = at.sites["dc1"], at.sites["dc2"]
    for index in range(2):
        mirror.wait_mirrored(TOPIC, end_of(dc1, TOPIC, index), index)
    wait_until(
        "the position", lambda: committed(dc2, GROUP, TOPIC, 0) == committed(dc1, GROUP, TOPIC, 0)
    )


def begin_anew(at: Stage, mirror: MirrorProcess) -> None:
    """Have a topic mirrored from its beginning, with the rights that this takes beside."""
    give(at, "mirror", "--orders")
    run_all("mirror.cli", "restart", "--from-earliest", "dc1-dc2", TOPIC, at.files["mirror"])
    wait_until("the topic was made again", lambda: "deleted on the target" in mirror.log)
    wait_level(at, mirror)


def run_all(module: str, *arguments: object) -> str:
    """Run a program that has to end well; return what it said."""
    done = run_program(module, *map(str, arguments))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.matrix(subject=SUBJECT, against="Apache Kafka 4.4")
def test_each_program_does_its_work_with_just_the_rights_that_are_listed(tmp_path: Path) -> None:
    with apache_kafka(tmp_path) as at:
        app, failover = at.files["failover.client"], at.files["failover"]
        with (
            run_mirror(at.files["mirror"]) as mirror,
            SiteProducer(app) as producer,
            SiteConsumer(app, GROUP, [TOPIC], consumer_config=CONSUMER) as consumer,
        ):
            work(producer, consumer, 200)
            consumer.commit()
            wait_level(at, mirror)
            change_source(at.sites["dc1"])
            wait_until("what was changed", lambda: has_followed(at.sites["dc2"]))
            assert not mirror.status()["faults"]
            begin_anew(at, mirror)
            run_all("mirror.cli", "check", at.files["mirror"])
            run_all("spark_audit.cli", "run", "--out", tmp_path / "out", at.files["spark-audit"])
            planned = run_program("failover.cli", "promote", "dc2", str(failover))
            assert "its super.users must name the mirror's user" in planned.stderr
            lost = ("--source-lost", "--force", "--accept-loss")
            run_all("failover.cli", "promote", "dc2", *lost, failover)
            assert active_site(failover) == "dc2"
            run_all("failover.cli", "divergence", failover)
            work(producer, consumer, 1)
        refused = {one for one in asked(at, "Denied") if one.name != READERS_GROUP}
        assert not refused
        assert not_needed(at, asked(at, "Allowed")) == NOT_TRIED.keys()


@pytest.mark.matrix(subject=SUBJECT)
def test_a_planned_promotion_there_and_back_takes_no_super_user_on_bundled_brokers(
    tmp_path: Path,
) -> None:
    def run(name: str) -> Any:
        return run_secured_cluster(tmp_path, name=name, more=BUNDLED_AUTHORIZER)

    with stage(tmp_path, run, by_plaintext) as at:
        failover = at.files["failover"]
        with run_mirror(at.files["mirror"]) as mirror:
            write(at.sites["dc1"], TOPIC, 0, 100)
            mirror.wait_mirrored(TOPIC, end_of(at.sites["dc1"], TOPIC))
            for site in ("dc2", "dc1"):
                run_all("failover.cli", "promote", site, failover)
                assert active_site(failover) == site
