"""Strimzi's resource for MirrorMaker 2 in our words, in both of its forms."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from mirror.mirrormaker.strimzi import import_strimzi
from runtime.configuration.config import load
from runtime.configuration.reading.yaml_file import as_yaml, read_documents
from tests.commands import run_mirror_command

NAMED = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaMirrorMaker2
metadata: {name: to-dr}
spec:
  replicas: 2
  connectCluster: dr
  clusters:
    - alias: main
      bootstrapServers: main-kafka-bootstrap:9093
      tls:
        trustedCertificates: [{secretName: main-ca, certificate: ca.pem}]
      authentication:
        type: scram-sha-512
        username: mirror
        passwordSecret: {secretName: mirror-user, password: password}
    - alias: dr
      bootstrapServers: dr-kafka-bootstrap:9093
      tls:
        trustedCertificates: [{secretName: dr-ca, pattern: "*.crt"}]
      authentication:
        type: tls
        certificateAndKey: {secretName: mirror-cert, certificate: user.crt, key: user.key}
      config: {request.timeout.ms: 20000, config.storage.replication.factor: 3}
  mirrors:
    - sourceCluster: main
      targetCluster: dr
      topicsPattern: "orders.*, payments"
      topicsExcludePattern: ".*-tmp"
      groupsPattern: "app-.*"
      sourceConnector:
        tasksMax: 4
        config: {replication.factor: 3, sync.topic.acls.enabled: "false"}
      checkpointConnector:
        state: paused
        config: {sync.group.offsets.enabled: true}
"""

TARGETED = """\
kind: Secret
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaMirrorMaker2
spec:
  target: {alias: dr, bootstrapServers: "dr:9092", groupId: g}
  mirrors:
    - source: {alias: east, bootstrapServers: "east:9092"}
      sourceConnector:
        config:
          replication.policy.class: org.apache.kafka.connect.mirror.IdentityReplicationPolicy
      heartbeatConnector: {}
    - source: {alias: west, bootstrapServers: "west:9092"}
      sourceConnector: {}
---
"""


def imported(folder: Path, text: str) -> tuple[dict[str, Any], list[str]]:
    file = folder / "mm2.yaml"
    file.write_text(text)
    found = import_strimzi(read_documents(file), str(file), "w:2181")
    return found.document, [note.removeprefix(f"{file}:") for note in found.notes]


def test_clusters_that_are_named_become_clusters_and_flows(tmp_path: Path) -> None:
    document, notes = imported(tmp_path, NAMED)
    assert document["clusters"] == {
        "main": {
            "bootstrap": ["main-kafka-bootstrap:9093"],
            "security_protocol": "SASL_SSL",
            "ssl": {"ca": "main-ca/ca.pem"},
            "sasl": {
                "mechanism": "SCRAM-SHA-512",
                "username": "mirror",
                "password_file": "mirror-user/password",
            },
        },
        "dr": {
            "bootstrap": ["dr-kafka-bootstrap:9093"],
            "client": {"request.timeout.ms": 20_000},
            "security_protocol": "SSL",
            "ssl": {
                "ca": "dr-ca/ca.crt",
                "certificate": "mirror-cert/user.crt",
                "key": "mirror-cert/user.key",
            },
        },
    }
    [flow] = document["flows"]
    assert flow["topics"] == {"include": ["orders.*", "payments"], "exclude": [".*-tmp"]}
    assert flow["groups"] == {"include": ["app-.*"]}
    assert (flow["replication_factor"], flow["acls"]) == (3, "off")
    assert flow["mirrormaker"]["heartbeats"] is False
    assert "23: dr.config.storage.replication.factor: has no counterpart here" in notes
    assert "11: main: mount the Secret main-ca beside the file: main-ca/ca.pem" in notes
    assert "34: main->dr: rests there; here its flow runs" in notes


def test_a_target_with_its_sources_becomes_clusters_and_flows(tmp_path: Path) -> None:
    document, notes = imported(tmp_path, TARGETED)
    assert list(document["clusters"]) == ["dr", "east", "west"]
    east, west = document["flows"]
    assert (east["source"], east["target"], east["names"]) == ("east", "dr", "identical")
    assert (west["source"], west["target"], west["names"]) == ("west", "dr", "prefixed")
    assert east["mirrormaker"]["heartbeats"] is True
    assert west["mirrormaker"]["heartbeats"] is False
    assert not any("mount" in note for note in notes)


def test_what_is_imported_is_a_valid_configuration(tmp_path: Path) -> None:
    document, _ = imported(tmp_path, TARGETED)
    file = tmp_path / "dc.yaml"
    file.write_text(as_yaml(document))
    assert [flow.name for flow in load(file).flows] == ["east->dr", "west->dr"]


def test_a_login_by_tokens_keeps_its_issuer(tmp_path: Path) -> None:
    login = """\
      authentication:
        type: oauth
        tokenEndpointUri: https://issuer/token
        clientId: mirror
        clientSecret: {secretName: oauth, key: secret}
        scope: kafka
        tlsTrustedCertificates: [{secretName: issuer-ca, certificate: ca.crt}]
"""
    text = (
        NAMED[: NAMED.index("      authentication:")]
        + login
        + NAMED[NAMED.index("    - alias: dr") :]
    )
    document, _ = imported(tmp_path, text)
    assert document["clusters"]["main"]["sasl"] == {
        "mechanism": "OAUTHBEARER",
        "token_endpoint": "https://issuer/token",
        "client_id": "mirror",
        "client_secret_file": "oauth/secret",
        "scope": "kafka",
        "token_endpoint_ca": "issuer-ca/ca.crt",
    }


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("kind: KafkaMirrorMaker2", "kind: Kafka", "has 0 resources of kind KafkaMirrorMaker2"),
        ("sourceCluster: main", "sourceCluster: mian", "25: spec.mirrors[0].sourceCluster: 'mian'"),
        (
            "type: scram-sha-512",
            "type: custom",
            "13: spec.clusters[0].authentication.type: 'custom'",
        ),
        ("    - alias: main", "    - name: main", ": spec.clusters[0].alias: is missing"),
        ("replication.factor: 3, s", "replication.factor: x, s", "'x' is not a whole number"),
        ('topicsPattern: "orders.*, payments"', "topicsPattern: [orders]", "must be a text, a num"),
        ("spec:", "spek:", "unknown key; did you mean 'spec'?"),
        ("kind:", "kind: [", "not YAML"),
    ],
)
def test_a_resource_that_cannot_be_read_is_named_by_line(
    tmp_path: Path, old: str, new: str, complaint: str
) -> None:
    file = tmp_path / "mm2.yaml"
    file.write_text(NAMED.replace(old, new, 1))
    done = run_mirror_command("import-mm2", file)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert all(line.startswith("mirror: ") for line in done.stderr.splitlines())


def test_the_resource_is_not_written_over(tmp_path: Path) -> None:
    file = tmp_path / "mm2.yaml"
    file.write_text(TARGETED)
    done = run_mirror_command("import-mm2", file, "--write")
    assert done.returncode == 0
    assert file.read_text() == TARGETED
    assert "east" in yaml.safe_load((tmp_path / "mm2.dc.yaml").read_text())["clusters"]
    again = run_mirror_command("import-mm2", file, "--write")
    assert again.returncode == 2
    assert "mm2.dc.yaml: File exists" in again.stderr
