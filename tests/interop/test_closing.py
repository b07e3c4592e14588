"""Planned promotions away from Apache Kafka: closed for writes by rights, and opened again."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AclOperation, ResourceType

from failover.client import SiteProducer
from tests.failover.promoting import failover, finish
from tests.interop.peers import KAFKA_3_KRAFT, KAFKA_3_ZOOKEEPER, KAFKA_4_KRAFT, Kind
from tests.interop.peers.kinds import Mode
from tests.interop.secured import SecuredKafka, run_secured
from tests.interop.sites import (
    QUIET,
    Site,
    commit,
    committed,
    create_topic,
    end_of,
    read_committed,
    write,
)
from tests.interop.test_failover import active_site, run_program
from tests.interop.test_rights import KRAFT_AUTHORIZER, ZOOKEEPER_AUTHORIZER, give, held
from tests.mirror.daemon import MirrorProcess, run_mirror, wait_until
from tests.secured_cluster import USER
from tests.zookeeper import run_witness

SUBJECT: Final = "Planned promotions away from Apache Kafka"
pytestmark = pytest.mark.matrix(subject=SUBJECT)
of_any_kind = pytest.mark.matrix(subject=SUBJECT, against="Apache Kafka 3.9 to 4.3")

TOPIC: Final = "moving"
GROUP: Final = "movers"
TIMEOUT_S: Final = 60
CONFIG: Final = """\
clusters:
  dc1: {dc1}
  dc2: {dc2}
flows:
  - {{source: dc1, target: dc2, topics: {{include: ["{topic}"]}}, {often}}}
  - {{source: dc2, target: dc1, topics: {{include: ["{topic}"]}}, {often}}}
coordination: {{zookeeper: "{witness}", path: "/closing", session_timeout_ms: 4000}}
failover: {{initial_active: dc1, drain_timeout_ms: 8000, group_drain_timeout_ms: 2000}}
metrics: {{mirror_port: 0, failover_port: 0, audit_port: 0}}
"""
OFTEN: Final = "discovery_interval_ms: 300, group_offsets_interval_ms: 300"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Two sites with authorizers and the programs' configuration."""

    dc1: SecuredKafka
    dc2: SecuredKafka
    file: Path
    applications: Path
    """The same, but as an ordinary user."""


@contextmanager
def stage(folder: Path, source: Kind, target: Kind, *, as_user: bool = False) -> Iterator[Stage]:
    """Run both; our programs are dc1's super user, or `as_user` an ordinary one."""
    with (
        run_secured(folder, source, "dc1", _authorizer(source)) as dc1,
        run_secured(folder, target, "dc2", _authorizer(target)) as dc2,
        run_witness(folder / "witness") as witness,
    ):
        user = [site.section("SASL_PLAINTEXT") for site in (dc1, dc2)]
        own = [f'{{bootstrap: "{site.cluster.bootstrap}"}}' for site in (dc1, dc2)]
        files = folder / "dc.yaml", folder / "applications.yaml"
        for file, sections in zip(
            files, ([user[0], own[1]] if as_user else own, user), strict=True
        ):
            file.write_text(
                CONFIG.format(
                    dc1=sections[0], dc2=sections[1], topic=TOPIC, often=OFTEN, witness=witness
                )
            )
        create_topic(dc1.cluster, TOPIC, 2)
        yield Stage(dc1=dc1, dc2=dc2, file=files[0], applications=files[1])


def _authorizer(kind: Kind) -> dict[str, str]:
    return ZOOKEEPER_AUTHORIZER if kind.mode is Mode.ZOOKEEPER else KRAFT_AUTHORIZER


def write_as_user(site: SecuredKafka) -> KafkaError | None:
    """Write a record as an application does; return what came of it."""
    outcome: list[KafkaError | None] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        outcome.append(error)

    producer = Producer(site.client("SASL_PLAINTEXT", message_timeout_ms=20_000))
    producer.produce(TOPIC, b"by an application", b"k", 0, on_delivery=delivered)
    producer.flush(TIMEOUT_S)
    return outcome[0]


def read_as_user(site: SecuredKafka) -> bytes | None:
    """Read a record as an application does."""
    reader = Consumer(site.client("SASL_PLAINTEXT", group_id=GROUP, auto_offset_reset="earliest"))
    reader.assign([TopicPartition(TOPIC, 0, 0)])
    message = reader.poll(TIMEOUT_S)
    reader.close()
    assert message is not None
    assert message.error() is None, message.error()
    return message.value()


def told(program: "subprocess.CompletedProcess[str]") -> str:
    return program.stdout + program.stderr


def promote(site: str, file: Path, *more: str) -> "subprocess.CompletedProcess[str]":
    return run_program("failover.cli", "promote", site, *more, str(file))


def fenced(file: Path) -> dict[str, list[str]]:
    """Return what `failover status` calls closed, by site."""
    status = run_program("failover.cli", "status", "--json", str(file))
    assert status.returncode == 0, status.stderr
    sites: list[dict[str, Any]] = json.loads(status.stdout)["sites"]
    return {site["name"]: site["fenced_topics"] for site in sites}


def applications_may(site: Site, what: AclOperation) -> None:
    give(site, USER, ResourceType.TOPIC, TOPIC, what)
    give(site, USER, ResourceType.GROUP, "*", AclOperation.ALL)


@pytest.mark.parametrize(
    ("source", "target"),
    [(KAFKA_3_ZOOKEEPER, KAFKA_4_KRAFT), (KAFKA_4_KRAFT, KAFKA_3_KRAFT)],
    ids=str,
)
def test_a_planned_promotion_closes_apache_kafka_by_rights_and_the_way_back_opens_it(
    tmp_path: Path, source: Kind, target: Kind
) -> None:
    with stage(tmp_path, source, target) as at, run_mirror(at.file) as mirror:
        dc1, dc2 = at.dc1.cluster, at.dc2.cluster
        applications_may(dc1, AclOperation.ALL)
        write(dc1, TOPIC, 0, 500)
        assert write_as_user(at.dc1) is None
        commit(dc1, GROUP, TOPIC, 100)
        mirror.wait_mirrored(TOPIC, end_of(dc1, TOPIC))
        applications_may(dc2, AclOperation.WRITE)
        there = promote("dc2", at.file)
        assert there.returncode == 0, told(there)
        assert "2 partitions refuse writes" in there.stdout
        assert active_site(at.file) == "dc2"
        assert committed(dc2, GROUP, TOPIC) == 100
        assert fenced(at.file) == {"dc1": [TOPIC], "dc2": []}
        refused = write_as_user(at.dc1)
        assert refused is not None
        assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
        assert read_as_user(at.dc1) is not None
        assert write_as_user(at.dc2) is None
        wait_until("the way back", lambda: end_of(dc1, TOPIC) == end_of(dc2, TOPIC))
        wait_until(
            "READ travels", lambda: any(who == f"User:{USER}" for who, _ in held(dc2, TOPIC))
        )
        back = promote("dc1", at.file)
        assert back.returncode == 0, told(back)
        assert fenced(at.file) == {"dc1": [], "dc2": [TOPIC]}
        assert {who for who, _ in held(dc1, TOPIC)} == {f"User:{USER}"}
        assert write_as_user(at.dc1) is None
        refused = write_as_user(at.dc2)
        assert refused is not None
        assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


@of_any_kind
def test_what_cannot_be_closed_is_told_before_anything_is_touched(tmp_path: Path) -> None:
    with stage(tmp_path, KAFKA_4_KRAFT, KAFKA_4_KRAFT) as at, run_mirror(at.file) as mirror:
        write(at.dc1.cluster, TOPIC, 0, 10)
        mirror.wait_mirrored(TOPIC, end_of(at.dc1.cluster, TOPIC))
        for program in (
            run_program("failover.cli", "plan", "dc2", str(at.file)),
            promote("dc2", at.file),
        ):
            assert program.returncode == 2, told(program)
            assert f"dc1 cannot be closed for writes: no ACL concerns {TOPIC}" in program.stderr
        assert not held(at.dc1.cluster, TOPIC)


@of_any_kind
def test_a_producer_without_the_right_to_write_hears_of_it(tmp_path: Path) -> None:
    with stage(tmp_path, KAFKA_4_KRAFT, KAFKA_4_KRAFT) as at:
        applications_may(at.dc1.cluster, AclOperation.DESCRIBE)
        give(at.dc1.cluster, USER, ResourceType.TOPIC, "other", AclOperation.WRITE)
        outcome: list[KafkaError | None] = []

        def delivered(error: KafkaError | None, _: Message) -> None:
            outcome.append(error)

        with SiteProducer(at.applications, producer_config=QUIET) as producer:
            for _ in range(3):
                producer.produce(TOPIC, b"not mine", b"k", on_delivery=delivered)
                assert producer.flush(TIMEOUT_S) == 0
        refused = KafkaError.TOPIC_AUTHORIZATION_FAILED
        assert [error and error.code() for error in outcome] == [refused] * 3


@of_any_kind
def test_a_fence_that_would_shut_out_the_way_back_is_taken_back(tmp_path: Path) -> None:
    with stage(tmp_path, KAFKA_3_ZOOKEEPER, KAFKA_4_KRAFT, as_user=True) as at:
        dc1 = at.dc1.cluster
        applications_may(dc1, AclOperation.ALL)
        give(dc1, USER, ResourceType.BROKER, "kafka-cluster", AclOperation.ALL)
        for internal in ("dc2.offset-map.internal", "dc2.checkpoints.internal"):
            give(dc1, USER, ResourceType.TOPIC, internal, AclOperation.ALL)
        given = held(dc1, TOPIC)
        with run_mirror(at.file) as mirror:
            write(dc1, TOPIC, 0, 10)
            mirror.wait_mirrored(TOPIC, end_of(dc1, TOPIC))
            failed = promote("dc2", at.file)
            assert failed.returncode == 2, told(failed)
            assert "its super.users must name the mirror's user" in told(failed)
            assert active_site(at.file) == "dc1"
            assert held(dc1, TOPIC) == given
            assert write_as_user(at.dc1) is None


@of_any_kind
def test_a_lost_site_is_closed_by_rights_when_it_is_back(tmp_path: Path) -> None:
    with stage(tmp_path, KAFKA_4_KRAFT, KAFKA_4_KRAFT) as at, run_mirror(at.file) as mirror:
        dc1 = at.dc1.cluster
        applications_may(dc1, AclOperation.ALL)
        write(dc1, TOPIC, 0, 10)
        mirror.wait_mirrored(TOPIC, end_of(dc1, TOPIC))
        dc1.kill()
        try:
            lost = promote("dc2", at.file, "--source-lost")
        finally:
            dc1.start()
        assert lost.returncode == 0, told(lost)
        assert write_as_user(at.dc1) is None
        watch = failover("serve", str(at.file))
        try:
            wait_until("closed", lambda: fenced(at.file) == {"dc1": [TOPIC], "dc2": []})
        finally:
            watch.terminate()
        assert finish(watch).status == 0
        refused = write_as_user(at.dc1)
        assert refused is not None
        assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


@dataclass(slots=True)
class Writer:
    """An application that writes numbers all the time."""

    producer: SiteProducer
    sent: int = 0
    delivered: list[int] = field(default_factory=list)

    def write_until(self, is_done: Callable[[], bool], at_least: int = 0) -> None:
        """Write a number every other millisecond."""
        deadline = monotonic() + TIMEOUT_S
        least = self.sent + at_least
        while not (is_done() and self.sent >= least):
            assert monotonic() < deadline, f"{self.sent} sent, {len(self.delivered)} delivered"
            number = self.sent
            self.sent += 1

            def told(error: KafkaError | None, _: Message, number: int = number) -> None:
                assert error is None, error
                self.delivered.append(number)

            self.producer.produce(TOPIC, b"%d" % number, b"%d" % (number % 10), on_delivery=told)
            self.producer.poll(0.002)


def numbers_by_key(site: Site) -> dict[bytes | None, list[int]]:
    found: dict[bytes | None, list[int]] = {}
    for partition in range(2):
        for _, key, value in read_committed(site, TOPIC, partition):
            found.setdefault(key, []).append(int(value or b"-1"))
    return found


def each_once_in_order(count: int) -> dict[bytes | None, list[int]]:
    return {b"%d" % key: list(range(key, count, 10)) for key in range(10)}


def let_applications_in(at: Stage) -> None:
    """They may all that a producer needs on both sites."""
    for site in (at.dc1.cluster, at.dc2.cluster):
        applications_may(site, AclOperation.ALL)
        for name in ("dc1.offset-map.internal", "dc2.offset-map.internal"):
            give(site, USER, ResourceType.TOPIC, name, AclOperation.READ)


@contextmanager
def writing(at: Stage, mirror: MirrorProcess) -> Iterator[Writer]:
    """Let an application write; what it has given librdkafka leaves that up to a second later.

    So some of it comes upon the fence.
    """
    for partition in range(2):
        mirror.wait_state(TOPIC, "streaming", partition)
    late = {**QUIET, "linger.ms": 1_000}
    with SiteProducer(at.applications, producer_config=late) as producer:
        writer = Writer(producer)
        writer.write_until(lambda: True, at_least=500)
        yield writer
    assert sorted(writer.delivered) == list(range(writer.sent))


def are_equal(at: Stage) -> bool:
    return numbers_by_key(at.dc1.cluster) == numbers_by_key(at.dc2.cluster)


def begun_anew(log: pytest.LogCaptureFixture, site: str) -> int:
    """Return how often a producer looked up what has arrived at a site, and went on there."""
    return sum(line.startswith(f"on {site}: ") for line in log.messages)


@of_any_kind
def test_a_producer_goes_on_at_the_new_site_each_record_once_in_its_order(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "failover.client")
    with stage(tmp_path, KAFKA_3_ZOOKEEPER, KAFKA_4_KRAFT) as at, run_mirror(at.file) as mirror:
        let_applications_in(at)
        with writing(at, mirror) as writer:
            for site in ("dc2", "dc1"):
                promotion = failover("promote", site, str(at.file))
                writer.write_until(partial(has_ended, promotion), at_least=500)
                assert finish(promotion).status == 0
                assert writer.producer.flush(TIMEOUT_S) == 0
                assert writer.producer.site == site
                assert begun_anew(caplog, site) == 1
                wait_until("the same on both sites", lambda: are_equal(at))
        assert numbers_by_key(at.dc1.cluster) == each_once_in_order(writer.sent)


@of_any_kind
def test_a_producer_goes_on_at_the_old_site_when_a_promotion_is_taken_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "failover.client")
    with stage(tmp_path, KAFKA_4_KRAFT, KAFKA_4_KRAFT) as at, run_mirror(at.file) as mirror:
        let_applications_in(at)
        with writing(at, mirror) as writer:
            os.kill(mirror.pid, signal.SIGSTOP)
            try:
                promotion = failover("promote", "dc2", str(at.file))
                writer.write_until(partial(has_ended, promotion), at_least=500)
            finally:
                os.kill(mirror.pid, signal.SIGCONT)
            ended = finish(promotion)
            assert ended.status == 1, ended
            assert writer.producer.flush(TIMEOUT_S) == 0
            assert writer.producer.site == "dc1"
            assert begun_anew(caplog, "dc1") == 1
        assert numbers_by_key(at.dc1.cluster) == each_once_in_order(writer.sent)
        wait_until("the same on both sites", lambda: are_equal(at))


def has_ended(program: "subprocess.Popen[str]") -> bool:
    return program.poll() is not None
