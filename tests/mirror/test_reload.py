"""A configuration read again: what is taken over, what needs a restart, and what is said."""

from dataclasses import replace
from pathlib import Path

import pytest

from mirror.reload import Reloaded, reloaded
from runtime.configuration.config import Policy, load
from runtime.configuration.topic_sets import TopicSets
from tests.with_sets import SETS, having, with_sets

FILE = """\
clusters:
  dc1: {bootstrap: "127.0.0.1:9092"}
  dc2: {bootstrap: "127.0.0.1:9192"}
flows:
  - source: dc1
    target: dc2
    discovery_interval_ms: 3000
coordination: {zookeeper: "127.0.0.1:2183"}
"""
FLOW = "dc1->dc2"
INTERVAL = "discovery_interval_ms: 3000"


def reload(folder: Path, old: str, new: str) -> Reloaded:
    """Compare the file with one in which a part stands otherwise."""
    file = folder / "dc.yaml"
    file.write_text(FILE)
    before = load(file)
    file.write_text(FILE.replace(old, new, 1))
    return reloaded(before, {flow.name: flow for flow in before.flows}, load(file))


def test_nothing_changed_is_nothing_said(tmp_path: Path) -> None:
    found = reload(tmp_path, "x", "x")
    assert (found.taken, found.needs_restart) == ((), ())


def test_throttles_policies_patterns_and_sizes_are_taken_over(tmp_path: Path) -> None:
    found = reload(
        tmp_path,
        INTERVAL,
        "on_record_too_large: skip\n"
        "    topics: {include: [a, b], exclude: []}\n"
        "    in_flight_bytes: 1000000\n"
        "    throttle: {bytes_per_second: 2000000, topics: {'logs.*': 50000}}",
    )
    assert found.needs_restart == ()
    assert found.taken == (
        (
            "flow dc1->dc2: topics: include .*, exclude .*[\\-\\.]internal, .*\\.replica, __.* -> "
            "include a, b, exclude nothing"
        ),
        "flow dc1->dc2: in_flight_bytes: None -> 1000000",
        "flow dc1->dc2: record_too_large: stop -> skip",
        "flow dc1->dc2: throttle: none -> 2000000 B/s, logs.* 50000 B/s",
    )
    flow = found.flows[FLOW]
    assert flow.policies["record_too_large"] is Policy.SKIP
    assert (flow.in_flight_bytes, flow.throttle.flow) == (1_000_000, 2_000_000)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("9092", "9093", "clusters.dc1"),
        ("2183", "2184", "coordination"),
        (INTERVAL, "replication_factor: 2", "flow dc1->dc2: replication_factor"),
        ("coordination:", "metrics: {mirror_port: 1}\ncoordination:", "metrics"),
    ],
)
def test_what_is_wired_in_needs_a_restart_and_is_left_as_it_was(
    tmp_path: Path, old: str, new: str, told: str
) -> None:
    found = reload(tmp_path, old, new)
    assert found.needs_restart == (told,)
    assert found.taken == ()
    assert found.flows[FLOW].replication_factor is None


def test_flows_that_come_and_go_need_a_restart(tmp_path: Path) -> None:
    found = reload(tmp_path, "source: dc1\n    target: dc2", "source: dc2\n    target: dc1")
    assert found.needs_restart[:2] == (
        "flow dc1->dc2 is not in the file any more",
        "flow dc2->dc1 is new",
    )
    assert set(found.flows) == {FLOW}


def test_flows_of_sets_are_compared_with_those_that_run(tmp_path: Path) -> None:
    old = with_sets(tmp_path)
    running = {flow.name: flow for one in old.by_set().values() for flow in one.flows}
    faster = tuple(replace(flow, discovery_interval_ms=500) for flow in old.flows)
    found = reloaded(old, running, replace(old, flows=faster))
    assert found.needs_restart == ()
    assert {flow.discovery_interval_ms for flow in found.flows.values()} == {500}
    assert [flow.topics for flow in found.flows.values()] == [
        flow.topics for flow in running.values()
    ]


def test_other_sets_need_a_restart_and_nothing_is_taken_over_before(tmp_path: Path) -> None:
    old = with_sets(tmp_path)
    running = {flow.name: flow for one in old.by_set().values() for flow in one.flows}
    found = reloaded(old, running, having(old, TopicSets(named=SETS.named[:1])))
    assert found == Reloaded(
        flows=running, taken=(), needs_restart=("failover.sets, and all else",)
    )
