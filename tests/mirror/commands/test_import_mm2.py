"""MirrorMaker's properties in our words, and what its Connect worker has kept."""

from pathlib import Path

import pytest
import yaml

from mirror.mirrormaker.connect_offsets import last_mirrored
from mirror.mirrormaker.mm2_properties import ALL_ALIKE, import_properties
from runtime.configuration.config import load
from runtime.configuration.properties import read_properties
from runtime.configuration.reading.mistakes import ConfigurationError
from runtime.configuration.reading.yaml_file import as_yaml
from tests.commands import run_mirror_command
from wire.record_batch import Record

BASE = """\
clusters = dc1, dc2
dc1.bootstrap.servers = a:9092, b:9092
dc2.bootstrap.servers = c:9092
dc1->dc2.enabled = true
dc2->dc1.enabled = false
"""


def imported(folder: Path, more: str) -> tuple[dict[str, object], list[str]]:
    file = folder / "mm2.properties"
    file.write_text(BASE + more)
    found = import_properties(read_properties(file), "mm2.properties", "w:2181")
    return found.document, [note.replace(f"{file}", "mm2.properties") for note in found.notes]


def flow(document: dict[str, object]) -> dict[str, object]:
    flows = document["flows"]
    assert isinstance(flows, list)
    [one] = flows
    assert isinstance(one, dict)
    return one


def test_a_short_file_gets_mirrormakers_defaults(tmp_path: Path) -> None:
    document, notes = imported(tmp_path, "")
    assert document == {
        "clusters": {"dc1": {"bootstrap": ["a:9092", "b:9092"]}, "dc2": {"bootstrap": ["c:9092"]}},
        "flows": [
            {
                "source": "dc1",
                "target": "dc2",
                "names": "prefixed",
                "replication_factor": 2,
                "mirrormaker": {"heartbeats": True, "offset_syncs": "source"},
            }
        ],
        "coordination": {"zookeeper": "w:2181"},
        "failover": {"initial_active": "dc1"},
    }
    assert [note.split(":")[1].strip() for note in notes] == [
        "isolation.level",
        "sync.group.offsets.enabled",
    ]


def test_everything_that_has_a_counterpart_is_said(tmp_path: Path) -> None:
    document, notes = imported(
        tmp_path,
        """
topics = orders.*, \\
    pay\\u006dents
dc1->dc2.topics = orders.*
dc1->dc2.topics.exclude = .*-tmp
groups.exclude = test-.*
replication.factor = 3
replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy
replication.policy.separator = _
refresh.topics.interval.seconds = 5
sync.group.offsets.enabled = true
sync.group.offsets.interval.seconds = 2
sync.topic.configs.enabled = false
config.properties.exclude = retention\\\\.ms
use.defaults.from = source
sync.topic.acls.enabled = false
emit.heartbeats.enabled = false
offset-syncs.topic.location = target
dc1.consumer.isolation.level = read_uncommitted
tasks.max = 8
dc2.producer.linger.ms = 20
""",
    )
    assert flow(document) == {
        "source": "dc1",
        "target": "dc2",
        "names": "identical",
        "separator": "_",
        "topics": {"include": ["orders.*"], "exclude": [".*-tmp"]},
        "groups": {"exclude": ["test-.*"]},
        "replication_factor": 3,
        "discovery_interval_ms": 5_000,
        "group_offsets_interval_ms": 2_000,
        "topic_settings": {
            "include": [],
            "exclude": ["retention\\.ms"],
            "defaults_of": "source",
        },
        "acls": "off",
        "mirrormaker": {"heartbeats": False, "offset_syncs": "target"},
        "isolation": "read_uncommitted",
    }
    assert notes == [
        "mm2.properties:25: tasks.max: has no counterpart here",
        "mm2.properties:26: dc2.producer.linger.ms: has no counterpart here",
    ]


def test_secrets_are_referred_to_and_never_copied(tmp_path: Path) -> None:
    document, notes = imported(
        tmp_path,
        """
security.protocol = SASL_SSL
sasl.mechanism = SCRAM-SHA-512
dc1.sasl.jaas.config = org.apache.kafka.common.security.scram.ScramLoginModule required \\
    username="mirror" password="hush";
dc2.security.protocol = PLAINTEXT
dc1.ssl.truststore.location = /etc/ca.pem
dc1.ssl.truststore.type = PEM
dc1.ssl.keystore.location = /etc/client.jks
dc1.ssl.keystore.type = JKS
dc1.ssl.endpoint.identification.algorithm =
""",
    )
    clusters = document["clusters"]
    assert isinstance(clusters, dict)
    assert clusters == {
        "dc1": {
            "bootstrap": ["a:9092", "b:9092"],
            "security_protocol": "SASL_SSL",
            "ssl": {"ca": "/etc/ca.pem", "check_hostname": False},
            "sasl": {
                "mechanism": "SCRAM-SHA-512",
                "username": "mirror",
                "password": "${DC1_PASSWORD}",
            },
            "client": {"ssl.keystore.location": "/etc/client.jks"},
        },
        "dc2": {"bootstrap": ["c:9092"]},
    }
    assert "hush" not in f"{document}{notes}"
    assert "mm2.properties: dc1: its password is $DC1_PASSWORD" in notes
    assert not any("keystore.location" in note for note in notes), "the file itself says what it is"


def test_settings_of_the_clients_are_taken_over(tmp_path: Path) -> None:
    document, notes = imported(
        tmp_path,
        """
request.timeout.ms = 40000
dc1.request.timeout.ms = 600000
dc2.reconnect.backoff.ms = 0
retry.backoff.max.ms = 20
dc1.reconnect.backoff.ms = 2000
dc1.reconnect.backoff.max.ms = 900
dc2.send.buffer.bytes = 100
receive.buffer.bytes = -1
dc1.consumer.request.timeout.ms = 5000
producer.retries = 7
""",
    )
    clusters = document["clusters"]
    assert isinstance(clusters, dict)
    assert [clusters[name]["client"] for name in ("dc1", "dc2")] == [
        {
            "request.timeout.ms": 300_000,
            "reconnect.backoff.ms": 2_000,
            "reconnect.backoff.max.ms": 2_000,
            "retry.backoff.ms": 20,
            "retry.backoff.max.ms": 20,
            "receive.buffer.bytes": -1,
        },
        {
            "request.timeout.ms": 40_000,
            "reconnect.backoff.ms": 1,
            "retry.backoff.ms": 20,
            "retry.backoff.max.ms": 20,
            "send.buffer.bytes": 1_024,
            "receive.buffer.bytes": -1,
        },
    ]
    (tmp_path / "dc.yaml").write_text(as_yaml(document))
    assert load(tmp_path / "dc.yaml").clusters["dc1"].security.client.retry_backoff_max_ms == 20
    about = [note.partition("mm2.properties:")[2] for note in notes]
    assert about[:6] == [
        "8: dc1.request.timeout.ms: 600000 is taken as 300000 here",
        "9: dc2.reconnect.backoff.ms: 0 is taken as 1 here",
        "12: dc1.reconnect.backoff.max.ms: is below reconnect.backoff.ms, so that is taken here",
        "13: dc2.send.buffer.bytes: 100 is taken as 1024 here",
        f"15: dc1.consumer.request.timeout.ms: {ALL_ALIKE}request.timeout.ms",
        "16: producer.retries: has no counterpart here",
    ]


def test_stores_versions_and_suites_are_taken_over(tmp_path: Path) -> None:
    document, notes = imported(
        tmp_path,
        """
security.protocol = SSL
ssl.truststore.location = /etc/authorities.p12
ssl.truststore.password = hush
ssl.truststore.type = PKCS12
dc1.ssl.keystore.location = /etc/client.p12
dc1.ssl.keystore.password = hush
dc1.ssl.keystore.type = PKCS12
dc1.ssl.key.password = hush
ssl.enabled.protocols = TLSv1.1,TLSv1.2
dc1.ssl.cipher.suites = TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
dc2.ssl.cipher.suites = TLS_ECDHE_RSA_WITH_RC4_128_SHA
ssl.protocol = TLSv1.3
""",
    )
    clusters = document["clusters"]
    assert isinstance(clusters, dict)
    assert clusters["dc1"]["client"] == {
        "ssl.truststore.location": "/etc/authorities.p12",
        "ssl.truststore.password": "${DC1_TRUSTSTORE_PASSWORD}",
        "ssl.keystore.location": "/etc/client.p12",
        "ssl.keystore.password": "${DC1_KEYSTORE_PASSWORD}",
        "ssl.enabled.protocols": ["TLSv1.2"],
        "ssl.cipher.suites": ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"],
    }
    assert "ssl.cipher.suites" not in clusters["dc2"]["client"]
    told = "\n".join(notes)
    assert "hush" not in f"{document}{told}"
    for note in (
        "ssl.enabled.protocols: TLSv1.1 is not spoken here",
        "dc1.ssl.key.password: has no counterpart here: a store and its key have one password",
        "dc2.ssl.cipher.suites: is left out: 'TLS_ECDHE_RSA_WITH_RC4_128_SHA' is no suite",
        "ssl.protocol: has no counterpart here",
        "dc1: its truststore_password is $DC1_TRUSTSTORE_PASSWORD",
    ):
        assert note in told


def test_what_older_releases_wrote_is_understood(tmp_path: Path) -> None:
    document, notes = imported(
        tmp_path,
        """
topics.blacklist = secret.*
groups.blacklist = secret.*
config.properties.blacklist = retention.ms
dc1->dc2.groups.exclude = probe.*
replication.factor = -1
""",
    )
    found = flow(document)
    assert found["topics"] == {"exclude": ["secret.*"]}
    assert found["groups"] == {"exclude": ["probe.*"]}, "the new name goes before"
    assert found["topic_settings"] == {"exclude": ["retention.ms"]}
    assert "replication_factor" not in found
    assert [note.partition(": ")[2] for note in notes if "no counterpart" in note] == []
    assert any("replication.factor: -1 is the target's default there" in note for note in notes)


def test_a_protocol_before_an_address_is_skipped_as_kafkas_clients_do(tmp_path: Path) -> None:
    document, _ = imported(tmp_path, "dc2.bootstrap.servers = SASL_SSL://c:9092,[::1]:9093\n")
    clusters = document["clusters"]
    assert isinstance(clusters, dict)
    assert clusters["dc2"] == {"bootstrap": ["c:9092", "[::1]:9093"]}


@pytest.mark.parametrize(
    "key",
    ["auto.offset.reset", "consumer.auto.offset.reset", "dc1->dc2.consumer.auto.offset.reset"],
)
def test_where_new_partitions_begin_is_imported(key: str, tmp_path: Path) -> None:
    document, notes = imported(tmp_path, f"{key} = latest\n")
    assert flow(document)["start"] == "latest"
    assert any(note.startswith(f"mm2.properties:6: {key}: imported as") for note in notes)
    assert "start" not in flow(imported(tmp_path, f"{key} = earliest\n")[0])


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ("topics = [a-z&&[^b]]+\n", ":6: topics: '[a-z&&[^b]]+': Possible set intersection"),
        ("dc1->dc2.enabled = perhaps", ":6: dc1->dc2.enabled: 'perhaps' is neither"),
        ("topics = ord[ers", ":6: topics: 'ord[ers': "),
        ("replication.factor = 0", ":6: replication.factor: '0' is not 1 or more"),
        ("dc1.consumer.isolation.level = any", ":6: dc1.consumer.isolation.level: 'any' is no"),
        ("dc1->dc2.consumer.auto.offset.reset = none", ": 'none' is neither earliest nor latest"),
        ("replication.factor = two", ":6: replication.factor: 'two' is not a whole number"),
        ("replication.policy.class = com.acme.Own", ":6: replication.policy.class: how com.acme"),
        ("dc1->dc2.transforms = route", ":6: dc1->dc2.transforms: what 'route' makes of names and"),
        ("clusters = dc1", ":6: clusters: needs two clusters"),
        ("clusters = dc1, dc2, dc3", ": dc3.bootstrap.servers: is missing"),
        ("dc1->dc2.enabled = false", ": no flow is enabled"),
        ("dc1.security.protocol = TLS", ":6: dc1.security.protocol: 'TLS' is no"),
        ("dc1.security.protocol = SASL_SSL", ":6: dc1.security.protocol: needs dc1.sasl.mech"),
        ("= nothing", ":6: a line without a key"),
        ("topics = \\u00g1", ":6: \\u is not followed by"),
    ],
)
def test_a_bad_line_is_named_with_its_file(more: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as wrong:
        imported(tmp_path, more)
    assert complaint in f"{wrong.value}"
    assert "mm2.properties" in f"{wrong.value}"


IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"


def test_identical_names_in_both_directions_are_imported_so_that_both_run(tmp_path: Path) -> None:
    more = "dc2->dc1.enabled = true\ndc1->dc2.topics = a\ndc2->dc1.topics = b\n"
    text = BASE.replace("dc2->dc1.enabled = false\n", "")
    file = tmp_path / "mm2.properties"
    file.write_text(text + more + IDENTITY)
    ended = run_mirror_command("import-mm2", "--write", file)
    assert ended.returncode == 0
    assert "dc1->dc2 and dc2->dc1: identical names in both directions are imported" in ended.stderr
    flows = load(tmp_path / "mm2.yaml").flows
    assert [(one.name, one.is_active_active, one.heeds_promotions) for one in flows] == [
        ("dc1->dc2", True, False),
        ("dc2->dc1", True, False),
    ]


def test_a_flow_that_would_rest_is_the_active_sites_or_named(tmp_path: Path) -> None:
    one_way = """\
clusters = dc1, dc2, dc3
dc1.bootstrap.servers = a:9092
dc2.bootstrap.servers = b:9092
dc3.bootstrap.servers = c:9092
dc1->dc2.enabled = true
dc2->dc3.enabled = true
dc2->dc3.replication.policy.class = IdentityReplicationPolicy
"""
    file = tmp_path / "mm2.properties"
    file.write_text(one_way)
    found = import_properties(read_properties(file), "mm2.properties", "w:2181")
    assert found.document["failover"] == {"initial_active": "dc2"}
    assert not any("rests" in note for note in found.notes)
    file.write_text(one_way + "replication.policy.class = IdentityReplicationPolicy\n")
    found = import_properties(read_properties(file), "mm2.properties", "w:2181")
    assert found.document["failover"] == {"initial_active": "dc1"}
    [told] = [note for note in found.notes if "rests" in note]
    assert "dc2->dc3: rests until a promotion makes dc2 active" in told


def test_the_command_writes_a_file_that_all_programs_read(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(BASE + "sync.topic.acls.enabled = false\ntasks.max = 4\n")

    shown = run_mirror_command("import-mm2", file)
    assert shown.returncode == 0
    assert f"{file}:7: tasks.max: has no counterpart here" in shown.stderr
    assert run_mirror_command("import-mm2", "--write", file).returncode == 0
    written = tmp_path / "mm2.yaml"
    assert yaml.safe_load(written.read_text()) == yaml.safe_load(shown.stdout)
    [one] = load(written).flows
    assert (one.name, one.is_prefixed, one.acls.value) == ("dc1->dc2", True, "off")
    again = run_mirror_command("import-mm2", "--write", file)
    assert (again.returncode, "File exists" in again.stderr) == (2, True)


def kept(key: bytes | None, value: bytes | None) -> Record:
    return Record(0, 0, key, value)


def test_the_last_offset_of_each_partition_counts() -> None:
    key = b'["MirrorSourceConnector",{"cluster":"dc1","partition":0,"topic":"orders"}]'
    records = [
        kept(key, b'{"offset":7}'),
        kept(key.replace(b":0", b":1"), b'{"offset":3}'),
        kept(key.replace(b":0", b":1"), None),
        kept(key.replace(b'"dc1"', b'"dc9"'), b'{"offset":90}'),
        kept(b'["MirrorCheckpointConnector",{"group":"g","partition":0,"topic":"orders"}]', b"{}"),
        kept(b"\x00binary", b"\x00"),
        kept(None, None),
        kept(b"[" * 100_000, b"{}"),
        kept(key, b'{"offset":41}'),
    ]
    assert last_mirrored(records, "dc1") == {("orders", 0): 41}
