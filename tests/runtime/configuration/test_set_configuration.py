"""What one set of topics has of the file: a path in the witness, flows and results of its own."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.configuration.config import Configuration, ConfigurationError, load
from runtime.configuration.topic_sets import DEFAULT_SET, TopicSets
from runtime.coordination.witness import WitnessPaths
from tests.with_sets import with_sets


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Configuration:
    """Read a file, with two sets."""
    return with_sets(tmp_path_factory.mktemp("sets"))


def test_each_set_has_a_path_and_results_of_its_own(whole: Configuration) -> None:
    by_set = whole.by_set()
    assert {name: one.coordination.path for name, one in by_set.items()} == {
        "default": "/dr",
        "payments": "/dr/sets/payments",
        "stock": "/dr/sets/stock",
    }
    payments = by_set["payments"]
    assert payments.audit.output == Path("/results/sets/payments")
    assert payments.audit.evidence == {"dc1": "s3a://bucket/dc1/sets/payments"}
    assert by_set["default"].audit == whole.audit
    assert payments.whole is whole
    assert payments.of_set("stock") == by_set["stock"]


def test_what_is_the_pairs_is_not_a_sets() -> None:
    pair = WitnessPaths(root="/dr")
    paths = pair.of_set("payments")
    assert paths.of_set("stock") == pair.of_set("stock")
    assert paths.active == "/dr/sets/payments/active"
    assert paths.journal(1) == "/dr/sets/payments/failover/journal/0000000001"
    assert paths.assignment("dc1", "dc2") == "/dr/sets/payments/mirror/dc1-dc2/assignment"
    shared = "lease", "hold", "groups"
    assert [getattr(paths, one) for one in shared] == [getattr(pair, one) for one in shared]
    assert paths.map_writers("dc1", "dc2") == pair.map_writers("dc1", "dc2")
    assert paths.checkpoint_writers("dc1", "dc2") == pair.checkpoint_writers("dc1", "dc2")


def test_a_sets_flow_has_a_name_of_its_own_and_nothing_that_belongs_to_no_topic(
    whole: Configuration,
) -> None:
    by_set = whole.by_set()
    assert [flow.name for flow in by_set["default"].flows] == ["dc1->dc2", "dc2->dc1"]
    there, back = by_set["payments"].flows
    assert [there.name, back.name] == ["payments:dc1->dc2", "payments:dc2->dc1"]
    assert there.client_id == "mirror-dc1-dc2"
    assert not there.copies_quotas
    assert not there.mirrormaker.heartbeats
    assert by_set["default"].flows[0].copies_quotas
    assert there.topic_set == "payments"


@given(topic=st.text("pay.stock", min_size=1, max_size=6))
def test_each_topic_is_moved_by_the_flow_of_one_set(whole: Configuration, topic: str) -> None:
    flow = whole.flows[0]
    moving = [name for name, one in whole.by_set().items() if one.flows[0].moves(topic)]
    assert moving == ([whole.sets.set_of(topic)] if flow.moves(topic) else [])


def test_without_sets_all_is_the_default_set(tmp_path: Path) -> None:
    whole = with_sets(tmp_path, TopicSets())
    assert whole.of_set("default") is whole
    assert list(whole.by_set()) == ["default"]


TWO_WAYS = """
clusters: {dc1: {bootstrap: "a:1"}, dc2: {bootstrap: "b:1"}%s}
flows:
  - {source: dc1, target: dc2, topics: {include: [%s]}%s}
  - {source: dc2, target: dc1, topics: {include: ["pay.*", "orders.*"]}%s}
coordination: {zookeeper: "w:1"}
failover: {initial_active: dc1, sets: {payments: {topics: ["pay.*"]}}%s}
"""
BOTH = '"pay.*", "orders.*"'


@pytest.mark.parametrize(
    ("parts", "complaint"),
    [
        (("", '"orders.*"', "", "", ""), "failover.sets: payments has pay.*, of which dc1->dc2"),
        (
            ("", '".*"', "", "", ""),
            "failover.sets: need the same `topics` in all flows, not as",
        ),
        (
            ("", BOTH, ", active_active: true", ", active_active: true", ""),
            "failover.sets: are promoted, and dc1->dc2 heeds no promotion",
        ),
        ((', dc3: {bootstrap: "c:1"}', BOTH, "", "", ""), "failover.sets: need a file of two clus"),
        (("", BOTH, "", "", ", canary: {}"), None),
        (("", BOTH, "", "", ", canary: {topic: c}"), "failover.sets: cannot be beside failover.ca"),
    ],
)
def test_sets_beside_what_goes_by_the_whole_file_are_refused_by_name(
    tmp_path: Path, parts: tuple[str, ...], complaint: str | None
) -> None:
    file = tmp_path / "dc.yaml"
    file.write_text(TWO_WAYS % parts)
    if complaint is None:
        assert load(file).sets.names == (DEFAULT_SET, "payments")
        return
    with pytest.raises(ConfigurationError, match=re.escape(complaint)):
        load(file)


@pytest.mark.parametrize(
    ("default", "payments", "port"),
    [
        ('"h:9000"', '"h:9000"', 9000),
        ('"h:9000"', '"0.0.0.0:9000"', 9000),
        ('"h:9000"', '"i:9000"', None),
        ('"h:9000", forward: {host: b, ports: 9100-9110}', '"h:9105"', 9105),
        ('"h:1", forward: {host: b, ports: 9-12}', '"h:2", forward: {host: b, ports: 12-14}', 12),
        ('"h:1", forward: {host: b, ports: 9-11}', '"h:2", forward: {host: b, ports: 12-14}', None),
    ],
)
def test_endpoints_of_two_sets_at_one_port_are_refused_by_name(
    tmp_path: Path, default: str, payments: str, port: int | None
) -> None:
    file = tmp_path / "dc.yaml"
    text = TWO_WAYS % ("", BOTH, "", "", f", bootstrap: {{listen: {default}}}")
    of_set = f'topics: ["pay.*"], bootstrap: {{listen: {payments}}}'
    assert 'topics: ["pay.*"]' in text
    file.write_text(text.replace('topics: ["pay.*"]', of_set))
    if port is None:
        assert load(file).sets.named[0].bootstrap is not None
        return
    said = f"failover.sets.payments.bootstrap listens at port {port}, as failover.bootstrap does"
    with pytest.raises(ConfigurationError, match=re.escape(said)):
        load(file)


def test_applications_may_follow_the_active_site_of_each_set(tmp_path: Path) -> None:
    file = tmp_path / "dc.yaml"
    auth = 'auth: {username: u, password: p, applications: "sasl:app"}'
    file.write_text((TWO_WAYS % ("", BOTH, "", "", "")).replace('"w:1"', f'"w:1", {auth}'))
    coordination = load(file).coordination
    shared = coordination.access.shared
    paths = coordination.paths
    assert shared[paths.of_set("payments").active] == shared[paths.active]
    assert paths.of_set("payments").groups in shared
