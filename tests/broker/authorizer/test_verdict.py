"""Verdicts are those of Kafka's rules, whatever entries there are: held against a naive model."""

from collections import defaultdict
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.authorizer.acl_index import GARBLED
from broker.authorizer.authorizer import (
    EVERY_RIGHT,
    LONGEST_KEPT_CHARS,
    Authorizer,
    AuthorizerSettings,
)
from broker.authorizer.verdict import Asker
from tests.broker.authorizer.entries import (
    BINDINGS,
    NAMES,
    OPERATIONS,
    PREFIXED,
    TOPIC,
    allow,
    deny,
)
from wire.acls import (
    CLUSTER_NAME,
    AccessControlEntry,
    AclBinding,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)

ALICE = Asker("User:alice", "10.0.0.1")


def authorizer(
    held: Sequence[AclBinding] = (), *, allows_where_no_acl_is: bool = False
) -> Authorizer:
    by_pattern: dict[ResourcePattern, set[AccessControlEntry]] = defaultdict(set)
    for one in held:
        by_pattern[one.resource].add(one.entry)
    made = Authorizer(AuthorizerSettings(allows_where_no_acl_is=allows_where_no_acl_is))
    made.replace_all({resource: frozenset(held) for resource, held in by_pattern.items()})
    return made


def model(
    held: Sequence[AclBinding],
    asker: Asker,
    operation: Operation,
    kind: ResourceType,
    name: str,
    *,
    where_none_speak: bool,
) -> bool:
    """Go through all entries, as the documentation of Kafka's authorizer words it."""

    def speaks(resource: ResourcePattern) -> bool:
        if resource.type is not kind:
            return False
        if resource.pattern is PatternType.PREFIXED:
            return name.startswith(resource.name)
        return resource.name in (name, "*")

    speaking = [one.entry for one in held if speaks(one.resource)]
    if not speaking:
        return where_none_speak and operation is not Operation.CLUSTER_ACTION
    mine = [
        entry
        for entry in speaking
        if entry.principal in (asker.principal, "User:*")
        and (entry.host in ("*", asker.host) or (entry.host[:2] == "0:" and asker.host == "::1"))
    ]

    def has(permission: Permission, *operations: Operation) -> bool:
        return any(e.permission is permission and e.operation in operations for e in mine)

    if has(Permission.DENY, operation, Operation.ALL):
        return False
    if has(Permission.ALLOW, operation, Operation.ALL):
        return True
    if operation is Operation.DESCRIBE:
        return has(
            Permission.ALLOW,
            Operation.READ,
            Operation.WRITE,
            Operation.DELETE,
            Operation.ALTER,
        )
    return operation is Operation.DESCRIBE_CONFIGS and has(
        Permission.ALLOW, Operation.ALTER_CONFIGS
    )


ASKERS = st.builds(
    Asker,
    st.sampled_from(["User:alice", "User:bob", "User:carol"]),
    st.sampled_from(["10.0.0.1", "::1", "10.0.0.2"]),
)


@given(BINDINGS, ASKERS, OPERATIONS, NAMES, st.booleans())
def test_a_verdict_is_what_going_through_all_entries_says(
    held: list[AclBinding], asker: Asker, operation: Operation, name: str, everyone: bool
) -> None:
    decided = authorizer(held, allows_where_no_acl_is=everyone)
    expected = model(held, asker, operation, TOPIC, name, where_none_speak=everyone)
    for _ in range(2):  # the second answer is a remembered one
        assert decided.allows(asker, operation, TOPIC, name) is expected


@given(BINDINGS, ASKERS, OPERATIONS)
def test_somewhere_is_allowed_what_is_allowed_with_some_name(
    held: list[AclBinding], asker: Asker, operation: Operation
) -> None:
    """Implied rights do not count, as in Kafka."""
    exact = [one for one in held if one.entry.operation in (operation, Operation.ALL)]
    names = {"zz"} | {one.resource.name for one in exact if one.resource.name != "*"}
    names |= {f"{name}zz" for name in names}
    expected = any(
        model(exact, asker, operation, TOPIC, name, where_none_speak=False) for name in names
    )
    assert authorizer(held).allows_somewhere(asker, operation, TOPIC) is expected


def test_where_no_entry_is_everyone_may_somewhere_but_not_past_a_denial_of_everything() -> None:
    denied = AclBinding(ResourcePattern(TOPIC, "*"), deny(Operation.WRITE))
    rights = authorizer(allows_where_no_acl_is=True)
    assert rights.allows_somewhere(ALICE, Operation.WRITE, TOPIC)
    rights = authorizer([denied], allows_where_no_acl_is=True)
    assert not rights.allows_somewhere(ALICE, Operation.WRITE, TOPIC)


def test_nobody_becomes_a_broker_for_want_of_entries() -> None:
    rights = authorizer(allows_where_no_acl_is=True).rights_of("User:alice", "10.0.0.1")
    assert rights.may_cluster(Operation.ALTER)
    assert not rights.may_cluster(Operation.CLUSTER_ACTION)


@pytest.mark.parametrize(
    "resource",
    [
        ResourcePattern(TOPIC, "orders"),
        ResourcePattern(TOPIC, "*"),
        ResourcePattern(TOPIC, "ord", PREFIXED),
    ],
)
def test_what_cannot_be_read_closes_what_it_speaks_of(resource: ResourcePattern) -> None:
    rights = authorizer(
        [AclBinding(ResourcePattern(TOPIC, "*"), allow(Operation.ALL))],
        allows_where_no_acl_is=True,
    )
    mine = rights.rights_of("User:alice", "10.0.0.1")
    assert mine.may(Operation.READ, TOPIC, "orders")
    rights.put(resource, GARBLED)
    assert not mine.may(Operation.READ, TOPIC, "orders")
    assert not mine.may_somewhere(Operation.WRITE, TOPIC)
    assert mine.may(Operation.READ, ResourceType.GROUP, "orders")
    rights.put(resource, frozenset({allow(Operation.READ)}))
    assert mine.may(Operation.READ, TOPIC, "orders")


def test_a_verdict_is_forgotten_when_an_entry_changes() -> None:
    rights = authorizer()
    mine = rights.rights_of("User:alice", "10.0.0.1")
    resource = ResourcePattern(TOPIC, "ord", PREFIXED)
    assert not mine.may(Operation.READ, TOPIC, "orders")
    rights.put(resource, frozenset({allow(Operation.READ)}))
    assert mine.may(Operation.READ, TOPIC, "orders")
    rights.put(resource, frozenset())
    assert not mine.may(Operation.READ, TOPIC, "orders")
    assert not rights.held()


def test_super_users_pass_by_every_denial() -> None:
    made = Authorizer(AuthorizerSettings(super_users=frozenset({"User:root"})))
    made.put(ResourcePattern(TOPIC, "t"), frozenset({deny(Operation.ALL, "User:*")}))
    assert made.rights_of("User:root", "10.0.0.1") is EVERY_RIGHT
    assert not made.rights_of("User:alice", "10.0.0.1").may(Operation.READ, TOPIC, "t")


def test_names_longer_than_a_topics_are_not_remembered() -> None:
    rights = authorizer()
    for length in (LONGEST_KEPT_CHARS, LONGEST_KEPT_CHARS + 1):
        assert not rights.allows(ALICE, Operation.READ, ResourceType.GROUP, "g" * length)
    assert rights._remembered.cache_info().currsize == 1


@pytest.mark.parametrize("peer", ["::ffff:10.0.0.1", "10.0.0.1"])
def test_an_address_is_the_same_in_each_form(peer: str) -> None:
    held = AclBinding(ResourcePattern(TOPIC, "t"), allow(Operation.READ, host="10.0.0.1"))
    assert authorizer([held]).rights_of("User:alice", peer).may(Operation.READ, TOPIC, "t")
    other = authorizer([held]).rights_of("User:alice", "10.0.0.2")
    assert not other.may(Operation.READ, TOPIC, "t")


def test_authorized_operations_are_told_as_bits() -> None:
    cluster = ResourcePattern(ResourceType.CLUSTER, CLUSTER_NAME)
    held = [
        AclBinding(ResourcePattern(TOPIC, "t"), allow(Operation.READ)),
        AclBinding(cluster, allow(Operation.ALL)),
    ]
    rights = authorizer(held).rights_of("User:alice", "10.0.0.1")
    assert rights.told(TOPIC, "t") == 1 << Operation.READ | 1 << Operation.DESCRIBE
    assert rights.told(ResourceType.CLUSTER, CLUSTER_NAME) == 0b1_1111_1010_0000
