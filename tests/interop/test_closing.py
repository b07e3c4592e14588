"""Planned promotions away from Apache Kafka: closed for writes by rights, and opened again."""

import subprocess
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AclOperation, AdminClient, ResourceType

from failover.journal.steps import StepName
from runtime.pair import evidence
from tests.failover.held import held_promotion
from tests.failover.promoting import failover, finish
from tests.interop.closing import (
    GROUP,
    SUBJECT,
    TIMEOUT_S,
    TOPIC,
    applications_may,
    create_as_user,
    fenced,
    of_any_kind,
    stage,
    write_as_user,
)
from tests.interop.peers import KAFKA_3_KRAFT, KAFKA_3_ZOOKEEPER, KAFKA_4_KRAFT, Kind
from tests.interop.programs import active_site, run_program
from tests.interop.rights import denied_creation, give, held, take
from tests.interop.secured import SecuredKafka
from tests.interop.sites import (
    QUIET,
    Site,
    commit,
    committed,
    end_of,
    write,
)
from tests.mirror.daemon import run_mirror, wait_until
from tests.secured_cluster import USER

pytestmark = pytest.mark.matrix(subject=SUBJECT)
EVERYONE: Final = {"allow.everyone.if.no.acl.found": "true"}


def read_as_user(site: SecuredKafka) -> bytes | None:
    """Read a record as an application does."""
    reader = Consumer(site.client("SASL_PLAINTEXT", group_id=GROUP, auto_offset_reset="earliest"))
    reader.assign([TopicPartition(TOPIC, 0, 0)])
    message = reader.poll(TIMEOUT_S)
    reader.close()
    assert message is not None
    assert message.error() is None, message.error()
    return message.value()


def topics_of(site: Site) -> set[str]:
    admin = AdminClient({"bootstrap.servers": site.bootstrap, **QUIET})
    return {*admin.list_topics(timeout=TIMEOUT_S).topics}


def told(program: "subprocess.CompletedProcess[str]") -> str:
    return program.stdout + program.stderr


def promote(site: str, file: Path, *more: str) -> "subprocess.CompletedProcess[str]":
    return run_program("failover.cli", "promote", site, *more, str(file))


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


@pytest.mark.parametrize(
    ("source", "target"),
    [(KAFKA_3_ZOOKEEPER, KAFKA_4_KRAFT), (KAFKA_4_KRAFT, KAFKA_3_KRAFT)],
    ids=str,
)
def test_no_topic_of_the_flow_is_made_behind_the_fence_by_whichever_right(
    tmp_path: Path, source: Kind, target: Kind
) -> None:
    """By CreateTopics and by the first record; by the cluster's right and by the topics'."""
    refused = KafkaError.TOPIC_AUTHORIZATION_FAILED
    topics = [f"{TOPIC}.*", "(yet|another).kind"]
    by_themselves = {"auto.create.topics.enable": "true"}
    with (
        stage(tmp_path, source, target, topics=topics, more=by_themselves) as at,
        run_mirror(at.file) as mirror,
    ):
        dc1, dc2 = at.dc1.cluster, at.dc2.cluster
        for site in (dc1, dc2):
            give(site, USER, ResourceType.TOPIC, "*", AclOperation.ALL)
            give(site, USER, ResourceType.BROKER, "kafka-cluster", AclOperation.ALL)
        write(dc1, TOPIC, 0, 10)
        assert create_as_user(at.dc1, "moving-0") == 0
        mirror.wait_mirrored(TOPIC, end_of(dc1, TOPIC))
        with held_promotion("dc2", at.file, StepName.FENCE) as there:
            for name in ("moving-1", "another.kind", "other"):
                assert create_as_user(at.dc1, name) == refused
            told_by_writing = write_as_user(at.dc1, "moving-1")
            assert told_by_writing is not None
            assert told_by_writing.code() == refused
            assert there.end() == 0, there.lines
        assert fenced(at.file) == {"dc1": [TOPIC, "moving-0"], "dc2": []}
        assert denied_creation(dc1) == {TOPIC}
        assert denied_creation(dc2) == set()
        assert create_as_user(at.dc1, "other") == 0
        take(dc1, USER, "kafka-cluster", ResourceType.BROKER)
        assert create_as_user(at.dc1, "moving-1") == refused
        assert create_as_user(at.dc2, "moving-2") == 0
        wait_until("moving-2 is on dc1", lambda: "moving-2" in topics_of(dc1))
        back = promote("dc1", at.file)
        assert back.returncode == 0, told(back)
        assert denied_creation(dc1) == set()
        assert denied_creation(dc2) == {TOPIC}
        assert create_as_user(at.dc1, "moving-3") == 0


@of_any_kind
def test_where_all_may_do_what_no_acl_speaks_of_the_plan_says_that_topics_can_be_made(
    tmp_path: Path,
) -> None:
    with (
        stage(tmp_path, KAFKA_4_KRAFT, KAFKA_4_KRAFT, more=EVERYONE) as at,
        run_mirror(at.file) as mirror,
    ):
        dc1 = at.dc1.cluster
        applications_may(dc1, AclOperation.ALL)
        write(dc1, TOPIC, 0, 10)
        mirror.wait_mirrored(TOPIC, end_of(dc1, TOPIC))
        warned = (
            "topics can be made on dc1 behind its fence: no ACL of others speaks of *, the clus"
        )
        assert warned in run_program("failover.cli", "plan", "dc2", str(at.file)).stdout
        warned = "topics can be made on dc1 while it is closed: no ACL of others speaks of *, t"
        assert warned in run_program("mirror.cli", "check", str(at.file)).stdout
        there = promote("dc2", at.file)
        assert there.returncode == 0, told(there)
        assert denied_creation(dc1) == {TOPIC}


@of_any_kind
def test_what_cannot_be_closed_is_told_before_anything_is_touched(tmp_path: Path) -> None:
    with (
        stage(tmp_path, KAFKA_4_KRAFT, KAFKA_4_KRAFT, more=EVERYONE) as at,
        run_mirror(at.file) as mirror,
    ):
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
def test_a_fence_that_would_shut_out_the_way_back_is_taken_back(tmp_path: Path) -> None:
    with stage(tmp_path, KAFKA_3_ZOOKEEPER, KAFKA_4_KRAFT, as_user=True) as at:
        dc1 = at.dc1.cluster
        applications_may(dc1, AclOperation.ALL)
        give(dc1, USER, ResourceType.BROKER, "kafka-cluster", AclOperation.ALL)
        of_the_mirror = ("dc2.offset-map.internal", "dc2.checkpoints.internal", evidence.TOPIC)
        for internal in of_the_mirror:
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
            assert denied_creation(dc1) == set()
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
            watch.process.terminate()
        assert finish(watch).status == 0
        refused = write_as_user(at.dc1)
        assert refused is not None
        assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
