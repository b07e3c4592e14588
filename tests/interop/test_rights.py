"""Rights on Apache Kafka: copied with MirrorMaker's downgrade, and missing ones as a state."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import (
    AclOperation,
    ResourceType,
)

from runtime.pair.evidence import TOPIC as EVIDENCE
from tests.dc_yaml import dc_yaml, flow
from tests.interop.peers import KAFKA_3_ZOOKEEPER, KAFKA_4_KRAFT
from tests.interop.rights import KRAFT_AUTHORIZER, ZOOKEEPER_AUTHORIZER, give, held, take
from tests.interop.secured import run_secured
from tests.interop.sites import create_topic, end_of, read_committed, write
from tests.mirror.daemon import run_mirror, wait_until
from tests.secured_cluster import USER
from tests.zookeeper import run_witness
from wire.net.security import Mechanism

pytestmark = pytest.mark.matrix(subject="Rights", against="Apache Kafka 3.9 to 4.4")

SCRAM: Final = ("SASL_PLAINTEXT", Mechanism.SCRAM_SHA_256)
INTERNAL: Final = (EVIDENCE, "dc1.offset-map.internal", "dc1.checkpoints.internal")
SESSION: Final = {"session_timeout_ms": 4_000}


def test_missing_rights_are_a_state_and_the_sources_rights_travel(tmp_path: Path) -> None:
    with (
        run_secured(tmp_path, KAFKA_3_ZOOKEEPER, "dc1", ZOOKEEPER_AUTHORIZER) as dc1,
        run_secured(tmp_path, KAFKA_4_KRAFT, "dc2", KRAFT_AUTHORIZER) as dc2,
        run_witness(tmp_path / "witness") as witness,
    ):
        source, target = dc1.cluster, dc2.cluster
        create_topic(source, "rights")
        write(source, "rights", 0, 10)
        give(source, "reader", ResourceType.TOPIC, "rights", AclOperation.READ)
        give(source, "writer", ResourceType.TOPIC, "rights", AclOperation.WRITE)
        give(source, "owner", ResourceType.TOPIC, "rights", AclOperation.ALL)
        # All that the mirror needs, but to write into this topic.
        create_topic(target, "rights")
        give(target, USER, ResourceType.BROKER, "kafka-cluster", AclOperation.ALL)
        give(target, USER, ResourceType.GROUP, "*", AclOperation.ALL)
        for topic in INTERNAL:
            give(target, USER, ResourceType.TOPIC, topic, AclOperation.ALL)
        give(target, USER, ResourceType.TOPIC, "rights", AclOperation.DESCRIBE)
        file = tmp_path / "dc.yaml"
        file.write_text(
            dc_yaml(
                flow(topics="rights", discovery_interval_ms=300),
                dc1=source.bootstrap,
                dc2=dc2.section(*SCRAM),
                witness=witness,
                path="/rights",
                coordination=SESSION,
            )
        )
        with run_mirror(file) as mirror:
            line = mirror.wait_state("rights", "not authorised")
            assert "TOPIC_AUTHORIZATION_FAILED" in line["reason"]
            assert "grant the mirror's user the right" in line["advice"]
            found = subprocess.run(
                [sys.executable, "-m", "mirror.cli", "check", str(file)],
                capture_output=True,
                text=True,
                timeout=180,
                check=False,
            )
            assert found.returncode == 2, found.stderr
            assert "on dc2 the right WRITE is missing for rights" in found.stdout, found.stderr
            assert "on dc1 the right" not in found.stdout
            give(target, USER, ResourceType.TOPIC, "rights", AclOperation.WRITE)
            mirror.wait_mirrored("rights", 10)
            expected = {("User:reader", AclOperation.READ), ("User:owner", AclOperation.READ)}
            wait_until("rights", lambda: expected <= held(target, "rights"))
            assert not {who for who, _ in held(target, "rights")} & {"User:writer"}


def test_rights_taken_in_mid_run_stop_their_topic_alone_until_they_are_given_back(
    tmp_path: Path,
) -> None:
    topics = ("at-source", "at-target", "at-peace")
    with (
        run_secured(tmp_path, KAFKA_3_ZOOKEEPER, "dc1", ZOOKEEPER_AUTHORIZER) as dc1,
        run_secured(tmp_path, KAFKA_4_KRAFT, "dc2", KRAFT_AUTHORIZER) as dc2,
        run_witness(tmp_path / "witness") as witness,
    ):
        source, target = dc1.cluster, dc2.cluster
        for site in (source, target):
            give(site, USER, ResourceType.BROKER, "kafka-cluster", AclOperation.ALL)
            give(site, USER, ResourceType.GROUP, "*", AclOperation.ALL)
            for topic in (*topics, *INTERNAL):
                give(site, USER, ResourceType.TOPIC, topic, AclOperation.ALL)
        for topic in topics:
            create_topic(source, topic)
            write(source, topic, 0, 10)
        file = tmp_path / "dc.yaml"
        file.write_text(
            dc_yaml(
                flow(
                    topics=topics,
                    acls="off",
                    delete_gone_topics_after_ms=6_000,
                    discovery_interval_ms=300,
                ),
                dc1=dc1.section(*SCRAM),
                dc2=dc2.section(*SCRAM),
                witness=witness,
                path="/revoked",
                coordination=SESSION,
            )
        )
        with run_mirror(file) as mirror:
            for topic in topics:
                mirror.wait_mirrored(topic, 10)
            take(source, USER, "at-source")
            take(target, USER, "at-target")
            for topic in topics:
                write(source, topic, 10, 10)
            mirror.wait_mirrored("at-peace", 20)
            for topic in ("at-source", "at-target"):
                assert "grant the mirror" in mirror.wait_state(topic, "not authorised")["advice"]
            give(source, USER, ResourceType.TOPIC, "at-source", AclOperation.ALL)
            give(target, USER, ResourceType.TOPIC, "at-target", AclOperation.ALL)
            for topic in topics:
                mirror.wait_mirrored(topic, 20)
                mirror.wait_state(topic, "streaming")
            assert mirror.stop() == 0
        for topic in topics:
            assert read_committed(target, topic) == read_committed(source, topic)
            assert end_of(target, topic) == 20
