"""A settings file is taken as Kafka takes it, and what is wrong in it is named with its line."""

from pathlib import Path

import pytest

from broker.config import BrokerConfig, parse_config
from broker.dynamic_config import static_log_settings
from broker.listeners import Listener
from runtime.configuration.properties import parse_override, read_properties
from runtime.configuration.reading.mistakes import ConfigurationError

MINIMAL = "broker.id=3\nzookeeper.connect=localhost:2181\n"


def load(folder: Path, text: str, *overrides: str) -> BrokerConfig:
    path = folder / "server.properties"
    path.write_text(text)
    properties = read_properties(path)
    for override in map(parse_override, overrides):
        properties[override.key] = override
    return parse_config(properties.values(), file="server.properties")


def complaint(folder: Path, text: str, *overrides: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load(folder, text, *overrides)
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(f"{folder}/")


def test_defaults_are_kafkas(tmp_path: Path) -> None:
    config = load(tmp_path, MINIMAL)
    assert config.broker_id == 3
    assert config.listeners == (Listener(name="PLAINTEXT", host="", port=9092),)
    assert config.offsets_topic_num_partitions == 50
    assert config.log_retention_ms == 604_800_000
    assert config.message_max_bytes == 1_048_588
    assert static_log_settings(config) == {}


def test_kafkas_own_sample_file_is_taken(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        """
# The id of the broker.
broker.id=0
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/var/kafka-logs,/mnt/more
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=24
log.retention.check.interval.ms=300000
zookeeper.connect=localhost:2181
zookeeper.connection.timeout.ms=18000
group.initial.rebalance.delay.ms=0
""",
    )
    assert config.log_dirs == (Path("/var/kafka-logs"), Path("/mnt/more"))
    assert config.log_retention_ms == 24 * 3_600_000
    assert static_log_settings(config) == {"log.retention.ms": "86400000"}


def test_the_finer_unit_wins(tmp_path: Path) -> None:
    text = MINIMAL + "log.retention.hours=1\nlog.retention.minutes=2\nlog.roll.hours=3\n"
    config = load(tmp_path, text)
    assert config.log_retention_ms == 120_000
    assert config.log_roll_ms == 3 * 3_600_000


def test_unlimited_stays_unlimited_in_every_unit(tmp_path: Path) -> None:
    assert load(tmp_path, MINIMAL + "log.retention.hours=-1\n").log_retention_ms == -1


def test_java_property_syntax(tmp_path: Path) -> None:
    text = "  broker.id : 7\n! comment\nzookeeper.connect a:1,\\\n   b:2\nmetrics.host=a\\:b\n"
    config = load(tmp_path, text)
    assert (config.broker_id, config.zookeeper_connect) == (7, "a:1,b:2")
    assert config.metrics_host == "a:b"


def test_an_override_comes_last(tmp_path: Path) -> None:
    config = load(tmp_path, MINIMAL + "num.partitions=2\n", "num.partitions=9")
    assert config.num_partitions == 9


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("num.partition=3", "num.partition: unknown setting"),
        ("num.partitions=three", "num.partitions: 'three' is not a whole number"),
        ("num.partitions=0", "num.partitions: 0 is not within 1 and 2147483647"),
        (
            "auto.create.topics.enable=yes",
            "auto.create.topics.enable: 'yes' is neither true nor false",
        ),
        (
            "listeners=PLAINTEXT://host",
            "listeners: 'PLAINTEXT://host' is not of the form PLAINTEXT://host:port",
        ),
        (
            "listeners=CLIENTS://host:9092",
            ("listeners: CLIENTS://host:9092: listener.security.protocol.map does not name it"),
        ),
        (
            "listeners=PLAINTEXT://host:70000",
            "listeners: 'PLAINTEXT://host:70000': there is no port 70000",
        ),
        (
            "advertised.listeners=PLAINTEXT://0.0.0.0:9092",
            "advertised.listeners: PLAINTEXT://0.0.0.0:9092: clients need a real host",
        ),
        (
            "zookeeper.connect=a:2181,b:70000",
            "zookeeper.connect: 'b:70000': there is no port 70000",
        ),
        (
            "zookeeper.connect=localhost",
            "zookeeper.connect: 'localhost' is not of the form host:port[,host:port][/chroot]",
        ),
        (
            "zookeeper.connect=a:1/kafka,b:2/kafka",
            (
                "zookeeper.connect: 'a:1/kafka,b:2/kafka' is not of the form "
                "host:port[,host:port][/chroot]"
            ),
        ),
        ("zookeeper.password.file=/", "zookeeper.password.file: /: is a folder"),
        (
            "zookeeper.set.acl=true",
            "zookeeper.set.acl: is of no use without zookeeper.password.file",
        ),
        (
            "zookeeper.username=a:b",
            "zookeeper.username: holds a colon: ZooKeeper ends the name there",
        ),
        ("log.dirs= , ", "log.dirs: names no folder"),
        ("log.dirs=/a,/b,/c/../a", "log.dirs: names a folder twice"),
        (
            "log.cleanup.policy=shred",
            (
                "log.cleanup.policy: 'shred' is none of "
                "delete, compact, compact,delete, delete,compact"
            ),
        ),
    ],
)
def test_a_wrong_setting_is_named_with_file_line_and_key(
    tmp_path: Path, line: str, said: str
) -> None:
    assert complaint(tmp_path, f"{MINIMAL}\n{line}\n") == f"server.properties:4: {said}"


def test_a_wrong_override_is_named_as_such(tmp_path: Path) -> None:
    assert complaint(tmp_path, MINIMAL, "broker.id=x") == (
        "--override: broker.id: 'x' is not a whole number"
    )
    with pytest.raises(ConfigurationError, match="--override nonsense: expected key=value"):
        parse_override("nonsense")


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    assert complaint(tmp_path, "broker.id=1\n") == "server.properties: zookeeper.connect: missing"


def test_a_line_without_a_key_is_named(tmp_path: Path) -> None:
    assert complaint(tmp_path, "=5\n") == "server.properties:1: a line without a key: =5"


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="absent: cannot be read: No such file"):
        read_properties(tmp_path / "absent")


def test_the_settings_of_the_new_group_protocol_are_kafkas(tmp_path: Path) -> None:
    config = load(tmp_path, MINIMAL)
    assert config.group_coordinator_rebalance_protocols == ("classic", "consumer")
    assert config.group_consumer_session_timeout_ms == 45_000
    assert config.group_consumer_heartbeat_interval_ms == 5_000
    assert config.group_consumer_assignors == ("uniform", "range")
    assert config.group_consumer_migration_policy == "bidirectional"

    package = "org.apache.kafka.coordinator.group.assignor"
    named = load(
        tmp_path,
        MINIMAL,
        f"group.consumer.assignors={package}.RangeAssignor,{package}.UniformAssignor",
        "group.consumer.migration.policy=UPGRADE",
        "group.coordinator.rebalance.protocols=classic",
    )
    assert named.group_consumer_assignors == ("range", "uniform")
    assert named.group_consumer_migration_policy == "upgrade"
    assert named.group_coordinator_rebalance_protocols == ("classic",)


@pytest.mark.parametrize(
    ("override", "reason"),
    [
        ("group.consumer.assignors=sticky", "'sticky' is none of uniform, range"),
        ("group.consumer.assignors=", "names none of uniform, range"),
        ("group.coordinator.rebalance.protocols=consumer", "classic is missing"),
        ("group.coordinator.rebalance.protocols=classic,share", "'share' is none of"),
        ("group.consumer.migration.policy=never", "'never' is none of"),
        ("group.consumer.session.timeout.ms=6000", "is not within 45000 and 60000"),
        ("group.consumer.min.heartbeat.interval.ms=6000", "is not within 6000 and 15000"),
    ],
)
def test_a_wrong_setting_of_the_new_group_protocol_is_named(
    tmp_path: Path, override: str, reason: str
) -> None:
    found = complaint(tmp_path, MINIMAL, override)
    assert override.partition("=")[0] in found
    assert reason in found


JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required"
    ' username="b" password="s3cret" user_b="s3cret";'
)


def test_files_with_keys_or_passwords_that_all_may_read_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keys, file = tmp_path / "broker.pem", tmp_path / "server.properties"
    keys.write_text("s3cret")
    lines = (
        "listeners=IN://:9092,OUT://:9093",
        "listener.security.protocol.map=IN:SASL_PLAINTEXT,OUT:SSL",
        "inter.broker.listener.name=IN",
        "sasl.mechanism.inter.broker.protocol=PLAIN",
        "sasl.enabled.mechanisms=PLAIN",
        "advertised.listeners=IN://a:9092,OUT://a:9093",
        f"listener.name.in.plain.sasl.jaas.config={JAAS}",
        f"listener.name.out.ssl.keystore.location={keys}",
    )
    file.write_text(MINIMAL + "\n".join(lines))
    for mode, count in ((0o600, 0), (0o644, 2)):
        file.chmod(mode)
        keys.chmod(mode)
        parse_config(read_properties(file).values(), file=str(file))
        assert len(caplog.messages) == count
    of_jaas, of_keys = caplog.messages
    assert f"plain.sasl.jaas.config: {file}: every user of this machine may read it" in of_jaas
    assert f"out.ssl.keystore.location: {keys}: every user of this machine may read it" in of_keys
    assert "s3cret" not in caplog.text
