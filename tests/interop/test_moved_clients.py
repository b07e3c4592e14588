"""Unmodified clients of every kind at once, through promotions, a disaster and back.

They run beside each other, each with a topic and a group of its own: what one endpoint does for all
of them costs two sites once.
"""

import json
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from time import monotonic
from types import MappingProxyType
from typing import Any, Final, TypeAlias, cast

import pytest
import yaml
from confluent_kafka import libversion
from confluent_kafka.admin import AclOperation, AdminClient, NewTopic, ResourceType

from runtime.pair.evidence import TOPIC as EVIDENCE
from runtime.process.clock import wall_ms
from runtime.process.ports import free_port
from tests.clusters import RunningCluster
from tests.commands import run_mirror_command
from tests.drill.failover.story import Said, advised
from tests.failover.bootstrap.served import run_forwarding
from tests.failover.promoting import failover, finish, tell
from tests.failover.set_aside import lines_of
from tests.failover.two_sites import QUIET, pause, read_all, run_sites, values_of
from tests.forked import start_program
from tests.interop.applications import (
    PATIENCE_S,
    Applications,
    longest_gap_s,
    run_foreign,
    run_java,
    run_librdkafka,
    wait_more,
)
from tests.interop.closing import TOPIC, stage
from tests.interop.foreign.clients import ForeignClient, franz_go, kafkajs, named_franz_go, sarama
from tests.interop.matrix import Peer
from tests.interop.peers import KAFKA_4_KRAFT, NEWEST_3, NEWEST_4
from tests.interop.peers.kafka import KafkaCluster
from tests.interop.rights import give
from tests.mirror.daemon import run_mirror, wait_until
from tests.secured_cluster import RIGHT, USER
from wire.net.security import Mechanism

OTHERS: Final = {"franz-go": franz_go, "kafkajs": kafkajs, "Sarama": sarama}
LIBRDKAFKA: Final = "librdkafka"
EACH_SITE: Final = 200
"""So many records each client writes while a site is active, a hundred in a second."""
HEARD_S: Final = 1.0
"""Until clients have told of what a site acknowledged before it was killed."""
LOOKING_AGAIN: Final = "Unmodified clients at `failover bootstrap`"
"""The table of the matrix."""
LOOKING_AGAIN_S: Final = 10.0
FORWARDING_S: Final = 5.0
OFTEN_MS: Final = 1_000
"""So often clients that are to look again ask for the way while nothing is wrong."""
SESSIONS_MS: Final = "30000"
"""With 3 s, as elsewhere in these tests, kafkajs stands still within minutes: it takes the answer
to whatever is under way for that of the login it renews."""
LOGIN: Final = {"SASL_USER": USER, "SASL_PASSWORD": RIGHT}

Site: TypeAlias = RunningCluster | KafkaCluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Company:
    """Which clients run beside each other."""

    java: Mapping[str, str] = field(default_factory=dict)
    """Versions, each with settings of its own."""
    others: Mapping[str, Callable[[], ForeignClient]] = field(default_factory=dict)
    librdkafka: Mapping[str, Any] | None = None
    """Its settings, where it is among them."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return those by which their topics are called."""
        last = () if self.librdkafka is None else (LIBRDKAFKA,)
        return (*self.java, *self.others, *last)


ALL: Final[Mapping[str, Company]] = {
    "others": Company(others=OTHERS, librdkafka={}),
    "Java": Company(java={NEWEST_3: "", NEWEST_4: ""}),
}
COME_BACK: Final[Mapping[str, Company]] = {
    # As it is, franz-go takes the other site's topic, which has another id, for a new one: what is
    # written fails until it is started anew.
    "others": Company(others={**OTHERS, "franz-go": named_franz_go}, librdkafka={}),
    # Since Java 4.0 this is the default (KIP-1102).
    "Java": Company(java={NEWEST_3: "metadata.recovery.strategy=rebootstrap", NEWEST_4: ""}),
}
SENT_ALONG: Final = Company(
    java={NEWEST_4: f"metadata.max.age.ms={OFTEN_MS}"},
    librdkafka={"topic.metadata.refresh.interval.ms": OFTEN_MS},
)
"""Those that know REBOOTSTRAP_REQUIRED (KIP-1102)."""
of_each = pytest.mark.parametrize("who", ALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Two sites, and what clients need to come in."""

    dc1: Site
    dc2: Site
    file: Path
    endpoint: Path
    """The file by which the endpoint runs."""
    java: str = ""
    librdkafka: Mapping[str, Any] = field(default_factory=dict)
    login: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def bundled(folder: Path, witness: str) -> Iterator[Ground]:
    with run_sites(folder, witness) as sites:
        file = sites.configure(folder, f"/moved-{folder.name}", f"{TOPIC}.*", is_both_ways=True)
        yield Ground(dc1=sites.dc1, dc2=sites.dc2, file=file, endpoint=file)


@contextmanager
def apache(folder: Path, _: str) -> Iterator[Ground]:
    """Run sites that are closed by rights; applications and the endpoint are an ordinary user."""
    sessions = {"connections.max.reauth.ms": SESSIONS_MS}
    with stage(folder, KAFKA_4_KRAFT, KAFKA_4_KRAFT, topics=f"{TOPIC}.*", more=sessions) as at:
        for site in (at.dc1.cluster, at.dc2.cluster):
            give(site, USER, ResourceType.TOPIC, "*", AclOperation.ALL)
            give(site, USER, ResourceType.GROUP, "*", AclOperation.ALL)
            give(site, USER, ResourceType.TOPIC, EVIDENCE, AclOperation.READ)
        java = at.dc1.java_properties("SASL_PLAINTEXT", Mechanism.PLAIN, folder).read_text()
        librdkafka = dict(at.dc1.client("SASL_PLAINTEXT"))
        del librdkafka["bootstrap.servers"]
        yield Ground(
            dc1=at.dc1.cluster,
            dc2=at.dc2.cluster,
            file=at.file,
            endpoint=at.applications,
            java=java,
            librdkafka=librdkafka,
            login=LOGIN,
        )


Run: TypeAlias = Callable[[Path, str], Any]
GROUNDS: Final[Mapping[str, Run]] = {"Apache Kafka": apache, "bundled brokers": bundled}
on_each = pytest.mark.parametrize("kind", GROUNDS)


@dataclass(slots=True)
class Clients:
    """Those that run, by name, and what became of them so far."""

    topics: Mapping[str, str]
    by_name: Mapping[str, Applications]
    pauses_s: dict[str, list[float]] = field(default_factory=dict)
    resumed_s: dict[str, list[float]] = field(default_factory=dict)
    _again: dict[str, int] = field(default_factory=dict)

    def wait_more(self, more: int) -> None:
        for applications in self.by_name.values():
            wait_more(applications, more)

    def wait_resumed(self, known: Mapping[str, int], from_ms: int) -> None:
        """Return once each has written something new and read it, and note how long that took."""
        begun, left = monotonic(), {*self.by_name}
        while left:
            for name in sorted(left):
                new = {one for one, _ in self.by_name[name].acknowledged() if one > known[name]}
                if new and not new.isdisjoint(self.by_name[name].read()):
                    left.remove(name)
                    self.resumed_s.setdefault(name, []).append(monotonic() - begun)
            trouble = {name: self.by_name[name].trouble() for name in left}
            assert monotonic() - begun < PATIENCE_S, f"these do not go on: {trouble}"
            pause(0.05)
        for name, one in self.by_name.items():
            gap_s = longest_gap_s(one.acknowledged(), from_ms)
            self.pauses_s.setdefault(name, []).append(gap_s)

    def last(self) -> dict[str, int]:
        """Return the last number that each has written."""
        return {name: max(n for n, _ in one.acknowledged()) for name, one in self.by_name.items()}

    def read_again(self) -> dict[str, int]:
        """Return how many records each was given again since this was asked last."""
        found = {}
        for name, one in self.by_name.items():
            read = one.read()
            now = len(read) - len({*read})
            found[name] = now - self._again.get(name, 0)
            self._again[name] = now
        return found

    def end(self) -> dict[str, list[int]]:
        """Have all stop; return which records of each that were acknowledged nobody has read."""
        for one in self.by_name.values():
            one.stop_writing()
        lost = {}
        for name, one in self.by_name.items():
            written = [number for number, _ in one.acknowledged()]
            wait_until("the last is read", partial(_has_read, one, written[-1]), PATIENCE_S)
            assert one.failed() == [], f"{name}: what was written failed"
            lost[name] = sorted({*written} - {*one.read()})
        return lost


def _has_read(applications: Applications, number: int) -> bool:
    return number in applications.read()


@contextmanager
def run_clients(company: Company, ground: Ground, address: str, folder: Path) -> Iterator[Clients]:
    """Run them with this address in `bootstrap.servers`.

    dc1 is started anew before, so that leader epochs of the two sites differ.
    """
    topics = {name: make_topic(ground, name) for name in company.names}
    ready = {name: make() for name, make in company.others.items()}
    ground.dc1.kill()
    ground.dc1.start()
    named: dict[str, Applications] = {}
    with ExitStack() as stack:
        for version, settings in company.java.items():
            peer = Peer(name="Java clients", version=version)
            run = run_java(peer, address, topics[version], folder, f"{ground.java}\n{settings}\n")
            named[f"Java {version}"] = stack.enter_context(run)
        for name, client in ready.items():
            run_one = run_foreign(client, address, topics[name], folder, ground.login)
            named[client.name] = stack.enter_context(run_one)
        if company.librdkafka is not None:
            where = {**ground.librdkafka, **company.librdkafka, "bootstrap.servers": address}
            run_it = run_librdkafka(where, topics[LIBRDKAFKA])
            named[f"{LIBRDKAFKA} {libversion()[0]}"] = stack.enter_context(run_it)
        yield Clients(dict(zip(named, topics.values(), strict=True)), named)


def make_topic(ground: Ground, name: str) -> str:
    """Make a client's own topic where the clients begin; return its name."""
    topic = f"{TOPIC}-{name.lower()}"
    admin = AdminClient({"bootstrap.servers": ground.dc1.bootstrap, **QUIET})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(PATIENCE_S)
    return topic


@contextmanager
def run_guard(file: Path) -> Iterator[None]:
    """Run `failover serve`, which keeps the idle site closed."""
    with (file.parent / "serve.log").open("ab") as log:
        guard = start_program("failover.cli", "serve", str(file), output=log)
    try:
        yield
    finally:
        guard.terminate()
        guard.wait(PATIENCE_S)


def promote(them: Clients, file: Path, site: str, *how: str) -> None:
    """Promote, and wait until all clients go on; the command is given again where it is refused."""
    known, begun_ms, begun = them.last(), wall_ms(), monotonic()
    while (ended := finish(failover("promote", site, *how, str(file)))).status != 0:
        if ended.status == 1 and "--source-lost" in how:
            break  # what it gives up is listed
        assert monotonic() - begun < PATIENCE_S, ended
        pause(1.0)
        known, begun_ms = them.last(), wall_ms()
    them.wait_resumed(known, begun_ms)


def go_through_planned(them: Clients, file: Path, *sites: str) -> None:
    """Promote there and back: nothing is read twice."""
    for site in sites:
        promote(them, file, site)
        them.wait_more(EACH_SITE)
        assert not any(them.read_again().values()), f"to {site}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Disaster:
    """What became of each client's records when a site was lost, by the client's name."""

    written: Mapping[str, int]
    """The last that was acknowledged before."""
    aside: Mapping[str, set[int]]
    """Those that only the lost site had, as they are listed in `diverged`."""


def go_through_disaster(them: Clients, ground: Ground) -> Disaster:
    """Lose dc1 and have it back."""
    ground.dc1.kill()
    pause(HEARD_S)
    written = them.last()
    promote(them, ground.file, "dc2", "--source-lost", "--accept-loss", "--force")
    pause(EACH_SITE / 100)
    ground.dc1.start()
    set_aside(ground.file)
    print("read again behind the disaster", json.dumps(them.read_again()))
    listed = lines_of(ground.file.parent)
    aside = {
        name: {int(b64decode(one["value"])) for one in listed if one["topic"] == topic}
        for name, topic in them.topics.items()
    }
    return Disaster(written=written, aside=aside)


def set_aside(file: Path) -> None:
    """Decide about what the lost site alone has, as it is advised, until all is decided."""
    deadline = monotonic() + PATIENCE_S
    while True:
        said = tell("divergence", str(file))
        story = Said(
            began_ms=0, ended_ms=0, command=("divergence",), status=said.status, text=said.output
        )
        wanted = advised(story)
        if not wanted and said.status in {0, 1} and "NOT looked at" not in said.output:
            return
        assert monotonic() < deadline, said
        for flow, where in wanted:
            run_mirror_command("restart", flow, where, "--quarantine", str(file))
        pause(1.0)


NONE_YET: Final = Disaster(written={}, aside={})


def judge(them: Clients, disaster: Disaster, within_s: float) -> None:
    """Hold what became of the clients against what is promised."""
    lost = them.end()
    for name, one in them.by_name.items():
        shown = [f"{gap:.1f}" for gap in them.pauses_s[name]]
        resumed = [f"{took:.1f}" for took in them.resumed_s[name]]
        count = len(one.acknowledged())
        print(f"{name}: pauses {shown}, resumed {resumed}, lost {len(lost[name])} of {count}")
    for name, numbers in lost.items():
        # What the mirror had not carried is lost with the site: the last before it, all in a row.
        last = disaster.written.get(name, -1)
        assert all(number <= last for number in numbers), f"{name}: {numbers}"
        assert all(after - before == 1 for before, after in pairwise(numbers)), f"{name}: {numbers}"
        assert disaster.aside.get(name, set()).issuperset(numbers), (
            f"{name}: {numbers} are listed nowhere"
        )
    slow = {name: took for name, took in them.resumed_s.items() if max(took) > within_s}
    assert not slow, slow


def wait_carried(
    them: Clients,
    source: Site,
    target: Site,
    aside: Mapping[str, set[int]] = MappingProxyType({}),
) -> None:
    """Return once the other site has all that the active one has: no batch passes for mirrored.

    What was set aside by a command stays in the active site's log, where it was the lost one.
    """
    for name, topic in them.topics.items():
        there = values(source, topic) - aside.get(name, set())
        is_carried = partial(_holds, target, topic, there)
        wait_until(f"what {name} wrote is on the other site", is_carried, PATIENCE_S)


def _holds(site: Site, topic: str, wanted: set[int]) -> bool:
    return wanted <= values(site, topic)


def values(site: Site, topic: str) -> set[int]:
    """Return the numbers that a site has."""
    return {*values_of(read_all(cast("RunningCluster", site), topic))}


@pytest.mark.matrix(subject="Unmodified clients at a forwarding `failover bootstrap`")
@of_each
@on_each
def test_clients_are_forwarded_through_promotions_a_disaster_and_back(
    kind: str, who: str, witness: str, tmp_path: Path
) -> None:
    with (
        GROUNDS[kind](tmp_path, witness) as ground,
        run_mirror(ground.file),
        run_guard(ground.file),
        run_forwarding(ground.endpoint, tmp_path) as (address, _),
        run_clients(ALL[who], ground, address, tmp_path) as them,
    ):
        them.wait_more(EACH_SITE)
        go_through_planned(them, ground.file, "dc2", "dc1")
        disaster = go_through_disaster(them, ground)
        go_through_planned(them, ground.file, "dc1")
        judge(them, disaster, FORWARDING_S)
        wait_carried(them, ground.dc1, ground.dc2, disaster.aside)


@contextmanager
def run_looking_again(file: Path, folder: Path) -> Iterator[str]:
    """Run `failover bootstrap` by a copy of this file; its address."""
    address = f"127.0.0.1:{free_port()}"
    document = yaml.safe_load(file.read_text())
    document["failover"]["bootstrap"] = {"listen": address}
    own = folder / "endpoint.yaml"
    own.write_text(yaml.safe_dump(document))
    with (folder / "bootstrap.log").open("ab") as log:
        program = start_program("failover.cli", "bootstrap", str(own), output=log)
    try:
        yield address
    finally:
        program.terminate()
        program.wait(PATIENCE_S)


@pytest.mark.matrix(subject=LOOKING_AGAIN)
@of_each
@on_each
def test_clients_look_again_when_a_site_is_lost(
    kind: str, who: str, witness: str, tmp_path: Path
) -> None:
    with (
        GROUNDS[kind](tmp_path, witness) as ground,
        run_mirror(ground.file),
        run_guard(ground.file),
        run_looking_again(ground.endpoint, tmp_path) as address,
        run_clients(COME_BACK[who], ground, address, tmp_path) as them,
    ):
        them.wait_more(EACH_SITE)
        disaster = go_through_disaster(them, ground)
        judge(them, disaster, LOOKING_AGAIN_S)
        wait_carried(them, ground.dc2, ground.dc1)


@pytest.mark.matrix(subject=LOOKING_AGAIN)
def test_clients_are_sent_along_in_a_planned_promotion(witness: str, tmp_path: Path) -> None:
    with bundled(tmp_path, witness) as ground:
        document = yaml.safe_load(ground.file.read_text())
        document["failover"]["rebootstrap_clients"] = True
        ground.file.write_text(yaml.safe_dump(document))
        with (
            run_mirror(ground.file),
            run_guard(ground.file),
            run_looking_again(ground.endpoint, tmp_path) as address,
            run_clients(SENT_ALONG, ground, address, tmp_path) as them,
        ):
            them.wait_more(EACH_SITE)
            # Nobody stops the members, and by themselves they do not leave before the switch.
            # Producers do not go back: dc1 knows their ids, and an earlier sequence of each.
            promote(them, ground.file, "dc2", "--force")
            them.wait_more(EACH_SITE)
            print("read again behind the switch", json.dumps(them.read_again()))
            judge(them, NONE_YET, LOOKING_AGAIN_S)
