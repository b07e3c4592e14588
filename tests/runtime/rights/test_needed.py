"""The rights that our own programs need, for the topics and groups that a file names."""

import re
from dataclasses import replace

import pytest

from runtime.configuration.flow_section import AclSync, FlowConfig, PatternSet
from runtime.configuration.topic_names import Renames
from runtime.rights.needed import (
    NEEDS,
    At,
    By,
    ClusterGrant,
    InternalTopics,
    Named,
    Thing,
    grants,
    named_by,
)
from tests.mirror.building import CONFIG
from wire.acls import Operation, PatternType, ResourceType

NAMES = InternalTopics(map="map", evidence="evidence")
FLOW = replace(
    CONFIG,
    topics=PatternSet(include=(re.compile("orders"),), exclude=()),
    groups=PatternSet(include=(re.compile("billing-.*"),), exclude=()),
)


def of(program: By, flow: FlowConfig = FLOW) -> dict[tuple[str, str], ClusterGrant]:
    return {(one.cluster, one.named.name): one for one in grants(flow, [program], NAMES)}


def by_orders(flow: FlowConfig) -> list[ClusterGrant]:
    return grants(flow, [By.MIRROR], NAMES, with_orders=True)


@pytest.mark.parametrize(
    ("pattern", "named"),
    [
        ("orders", [Named("orders")]),
        (r"orders\.v1", [Named("orders.v1")]),
        ("orders.*", [Named("orders", PatternType.PREFIXED)]),
        (r"orders\..*", [Named("orders.", PatternType.PREFIXED)]),
        (".*", [Named("*")]),
        ("a|b.*", [Named("a"), Named("b", PatternType.PREFIXED)]),
        ("(a|b)", [Named("*", widened="(a|b)")]),
        ("[a-c]+", [Named("*", widened="[a-c]+")]),
        ("a?", [Named("*", widened="a?")]),
    ],
)
def test_a_pattern_is_a_name_a_prefix_or_everything(pattern: str, named: list[Named]) -> None:
    assert list(named_by(PatternSet(include=(re.compile(pattern),), exclude=()))) == named


def test_a_thing_that_is_needed_for_several_reasons_is_one_grant() -> None:
    grant = of(By.MIRROR)[FLOW.target, "orders"]
    assert grant.kind is ResourceType.TOPIC
    assert {Operation.READ, Operation.WRITE, Operation.ALTER} <= {*grant.operations}
    assert "for new partitions" in grant.reasons
    assert of(By.MIRROR)[FLOW.source, "billing-"].named.pattern is PatternType.PREFIXED


def test_a_feature_that_is_off_needs_nothing() -> None:
    cluster = FLOW.target, "kafka-cluster"
    assert Operation.ALTER in of(By.MIRROR)[cluster].operations
    assert cluster not in of(By.MIRROR, replace(FLOW, acls=AclSync.OFF))
    quotas = replace(FLOW, acls=AclSync.OFF, copies_quotas=True)
    assert of(By.MIRROR, quotas)[cluster].operations == (
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    )
    assert Operation.DELETE not in of(By.MIRROR)[FLOW.target, "orders"].operations
    deleting = replace(FLOW, delete_gone_after_ms=60_000)
    assert Operation.DELETE in of(By.MIRROR, deleting)[FLOW.target, "orders"].operations


def test_what_only_a_command_needs_is_named_when_asked_for() -> None:
    aside = FLOW.source, "orders.diverged"
    given = {(one.cluster, one.named.name): one for one in by_orders(FLOW)}
    assert Operation.DELETE in given[FLOW.target, "orders"].operations
    assert Operation.DELETE in given[FLOW.target, "map"].operations
    assert Operation.CREATE in given[aside].operations
    assert aside not in of(By.MIRROR)
    assert Operation.DELETE not in of(By.MIRROR)[FLOW.target, "map"].operations


def test_where_names_are_prefixed_the_target_has_others() -> None:
    prefixed = replace(FLOW, is_prefixed=True)
    copy = f"{FLOW.source}.orders"
    assert (FLOW.target, copy) in of(By.MIRROR, prefixed)
    assert (FLOW.source, "orders") in of(By.MIRROR, prefixed)
    everything = replace(prefixed, topics=PatternSet(include=(re.compile(".*"),), exclude=()))
    grant = of(By.AUDIT, everything)[FLOW.target, f"{FLOW.source}."]
    assert grant.named.pattern is PatternType.PREFIXED


def test_copies_that_were_given_names_are_named_beside_those_that_begin_alike() -> None:
    renames = Renames({"orders": "late", "orders-b": "orders-c", "clicks": "other"})
    named = replace(FLOW, renames=renames)
    assert (FLOW.target, "late") in of(By.MIRROR, named)
    assert (FLOW.target, "orders") not in of(By.MIRROR, named)
    alike = PatternSet(include=(re.compile("orders.*"),), exclude=())
    found = of(By.MIRROR, replace(named, topics=alike))
    assert {(FLOW.target, "orders"), (FLOW.target, "late")} <= found.keys()
    assert not {(FLOW.target, "orders-c"), (FLOW.target, "other")} & found.keys()


def test_the_audit_and_applications_change_no_cluster() -> None:
    changing = {Operation.ALTER, Operation.ALTER_CONFIGS, Operation.CREATE, Operation.DELETE}
    for need in NEEDS:
        if need.program in {By.AUDIT, By.CLIENT}:
            assert not changing & {*need.operations}
        if need.program is By.AUDIT:
            assert Operation.WRITE not in need.operations


def test_each_thing_and_each_side_is_in_the_table() -> None:
    assert {need.thing for need in NEEDS} == {*Thing}
    assert {(need.program, need.at) for need in NEEDS} == {(one, at) for one in By for at in At}
