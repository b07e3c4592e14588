"""The configuration file: what it yields, and what it says about mistakes."""

from pathlib import Path

import pytest
from kazoo.hosts import collect_hosts

from runtime.configuration.config import ConfigurationError, load

GOOD = """\
clusters:
  dc1: {bootstrap: "127.0.0.1:9092"}
  dc2:
    bootstrap: [127.0.0.1:9192, "[::1]:9193"]
flows:
  - source: dc1
    target: dc2
    topics: {include: ["flights.*"], exclude: [".*-scratch"]}
coordination:
  zookeeper: 127.0.0.1:2183
"""


ALIKE = """\
  dc1-a: {bootstrap: "h:1"}
  a-dc2: {bootstrap: "h:1"}
flows:
  - {source: dc1-a, target: dc2}
  - {source: dc1, target: a-dc2}
"""


def write(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "dc.yaml"
    file.write_text(text)
    return file


def test_a_short_file_is_filled_with_defaults(tmp_path: Path) -> None:
    configuration = load(write(tmp_path, GOOD))
    assert configuration.clusters["dc2"].bootstrap == (("127.0.0.1", 9192), ("::1", 9193))
    (flow,) = configuration.flows
    assert (flow.name, flow.client_id) == ("dc1->dc2", "mirror-dc1-dc2")
    assert flow.topics.matches("flights.delayed")
    assert not flow.topics.matches("flights-scratch")
    assert not flow.groups.matches("__internal")
    assert configuration.coordination.path == "/kafka-dr"
    assert configuration.failover.initial_active == "dc1"
    assert configuration.audit.output == tmp_path / "audit"


def test_addresses_of_version_6_keep_their_brackets_for_other_clients(tmp_path: Path) -> None:
    """kazoo and librdkafka take `::1:2183` for a host without a name."""
    configuration = load(write(tmp_path, GOOD.replace("127.0.0.1:2183", '"[::1]:2183,zk:2181"')))
    assert configuration.clusters["dc2"].bootstrap_servers == "127.0.0.1:9192,[::1]:9193"
    assert configuration.coordination.zookeeper == "[::1]:2183,zk:2181"
    assert collect_hosts(configuration.coordination.zookeeper) == (
        [("::1", 2183), ("zk", 2181)],
        None,
    )


def test_heartbeats_are_mirrored_beside_the_patterns_and_unseen_by_promotions(
    tmp_path: Path,
) -> None:
    text = GOOD.replace(
        "    target: dc2\n", "    target: dc2\n    mirrormaker: {heartbeats: true}\n"
    )
    (flow,) = load(write(tmp_path, text.replace("flights.*", ".*"))).flows
    assert flow.mirrors("heartbeats")
    assert flow.mirrors("dc3.heartbeats")
    assert not flow.mirrors("dc2.heartbeats")
    assert not flow.topics.matches("heartbeats")
    assert not flow.topics.matches("dc3.heartbeats")
    assert flow.topics.matches("engine-heartbeats")


def test_with_prefixed_names_both_directions_run_whichever_site_is_active(tmp_path: Path) -> None:
    back = (
        "failover: {initial_active: dc1}\nflows:\n  - {source: dc2, target: dc1, names: prefixed}\n"
    )
    flows = load(write(tmp_path, GOOD.replace("flows:\n", back))).flows
    assert [flow.heeds_promotions for flow in flows] == [False, True]


@pytest.mark.parametrize("bound", ["difference", "before", "after"])
def test_bounds_on_times_stay_at_home(tmp_path: Path, bound: str) -> None:
    """The target would refuse a backlog that the source took when it was new."""
    (flow,) = load(write(tmp_path, GOOD)).flows
    assert flow.settings.names.matches("retention.ms")
    assert not flow.settings.names.matches(f"message.timestamp.{bound}.max.ms")


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (
            "    target: dc2",
            "    tarqet: dc2",
            ":7: flows[0].tarqet: unknown key; did you mean 'target'?",
        ),
        ("    target: dc2\n", "", ":6: flows[0].target: is missing"),
        (
            "flows:\n",
            ALIKE,
            ":8: flows: dc1-a->dc2 and dc1->a-dc2 are both 'dc1-a-dc2' to the witness and to",
        ),
        (
            "    target: dc2",
            "    target: dc2\n    separator: /",
            ":8: flows[0].separator: '/' cannot be part of a topic's name",
        ),
        (
            "    target: dc2",
            "    target: dc2\n    active_active: true",
            ":6: flows: dc1->dc2 has `active_active: true`, and no flow from dc2 to dc1 has it",
        ),
        (
            "    target: dc2",
            "    target: dc2\n    names: prefixed\n    active_active: true",
            ":9: flows[0].active_active: with `names: prefixed` there is nothing to say it for",
        ),
        ("    target: dc2", "    ? [target]\n    : dc2", ":7: flows[0]: a key must be a text"),
        ("    target: dc2", "    target: dc9", ":7: flows[0].target: unknown cluster 'dc9'; there"),
        ("    target: dc2", "    target: dc1", ":7: flows[0].target: is the source too: 'dc1'"),
        (
            "    target: dc2",
            "    target: dc2\n    topcs: {}",
            ":8: flows[0].topcs: unknown key; did you mean 'topics'?",
        ),
        (
            "    target: dc2",
            "    target: dc2\n    in_flight_bytes: many",
            ":8: flows[0].in_flight_bytes: must be a whole number, not 'many'",
        ),
        (
            "    target: dc2",
            "    target: dc2\n    in_flight_bytes: 3",
            ":8: flows[0].in_flight_bytes: 3 is not between 1024 and",
        ),
        (
            "    target: dc2",
            "    target: dc2\n    partition_fetch_bytes: 2147483648",
            ":8: flows[0].partition_fetch_bytes: 2147483648 is not between 1024 and 134217728",
        ),
        (
            "    target: dc2",
            "    target: dc2\n    fetch_max_bytes: 2147483648",
            ":8: flows[0].fetch_max_bytes: 2147483648 is not between 1024 and 134217728",
        ),
        ('["flights.*"]', '["flights.("]', ":8: flows[0].topics.include: 'flights.('"),
        ('["flights.*"]', '["a{9999999999}"]', ":8: flows[0].topics.include: 'a{9999999999}'"),
        ('"127.0.0.1:9092"', "127.0.0.1", ":2: clusters.dc1.bootstrap: '127.0.0.1' is not host"),
        ('"127.0.0.1:9092"', "host:70000", ":2: clusters.dc1.bootstrap: port 70000 of"),
        ('"127.0.0.1:9092"', "kafka1..dc1:1", "'kafka1..dc1:1': each part of a host's name has 1"),
        ('"127.0.0.1:9092"', f"{'x' * 64}:1", "x:1': each part of a host's name has 1 to 63"),
        ('"127.0.0.1:9092"', "[]", ":2: clusters.dc1.bootstrap: needs at least one host:port"),
        ("  zookeeper: 127.0.0.1:2183", "  zookeeper: 12", ":10: coordination.zookeeper: must be"),
        ("  zookeeper: 127.0.0.1:2183", "  path: /x", ":10: coordination.zookeeper: is missing"),
        (
            "  zookeeper: 127.0.0.1:2183",
            "  path: /a/../b\n  zookeeper: h:1",
            ":10: coordination.path: '/a/../b' must not have '.' or '..' for a part",
        ),
        (
            "    target: dc2",
            '    target: dc2\n    client_rack: "a\\0"',
            ":8: flows[0].client_rack: must not hold the character NUL",
        ),
        (
            "    target: dc2",
            '    target: dc2\n    client_rack: "\\ud800"',
            ":8: flows[0].client_rack: cannot be said in UTF-8",
        ),
        ("coordination:", "clusters:", ":9: clusters: stands here twice"),
        ("flows:", "flows: 3\nflow:", ":5: flows: must be a list"),
        ("flows:", "flows: []\nflow:", ":5: flows: must be a list of one or more"),
        ("flows:", "flow:", ":6: flow: unknown key; did you mean 'flows'?"),
        ("flows:", "{", "not YAML"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_key(
    tmp_path: Path, old: str, new: str, complaint: str
) -> None:
    file = write(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(ConfigurationError) as caught:
        load(file)
    text = str(caught.value)
    assert complaint in text
    assert all(line.startswith(f"{file}:") for line in text.splitlines())


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"dc\.yaml: No such file"):
        load(tmp_path / "dc.yaml")


@pytest.mark.parametrize(
    "text",
    [
        "clusters: \x01",
        "[\n" * 50_000,
        "a: 1\n---\nb: 2\n",
        'a: 1\nb: "\\U00110000"\n',
        'a: "\\UFFFFFFFF"\n',
    ],
)
def test_what_is_no_configuration_is_said_in_one_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"dc\.yaml:[0-9: ]*not ") as caught:
        load(write(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_an_empty_and_a_binary_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is empty"):
        load(write(tmp_path, "# nothing\n"))
    (tmp_path / "dc.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigurationError, match="not UTF-8 at byte 0"):
        load(tmp_path / "dc.yaml")
