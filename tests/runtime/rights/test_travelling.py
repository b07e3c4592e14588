"""Which rights travel: MirrorMaker's downgrade as the default."""

import re

import pytest

from runtime.configuration.flow_section import AclSync, PatternSet
from runtime.configuration.name_patterns import NamePattern
from runtime.rights.closing import FenceNote, barring, closing, noting
from runtime.rights.creation import OF_CLUSTER
from runtime.rights.travelling import Travelled, rights_to_give
from tests.runtime.rights.building import ANYTHING, right
from wire.acls import Operation, ResourceType
from wire.net.rights import ALL_OPERATIONS, DENY, PREFIXED, READ, WRITE, Right

DESCRIBE = 8
DELETE = 6
GROUP = ResourceType.GROUP
CLUSTER = ResourceType.CLUSTER
TRANSACTIONAL = ResourceType.TRANSACTIONAL_ID
ONE_TOPIC = Travelled(topics={"t": "t"}, groups={"billing-1"}, group_names=ANYTHING)


def given_by_mode(there: Right, travelled: Travelled = ONE_TOPIC) -> dict[AclSync, list[Right]]:
    return {sync: rights_to_give([there], [], travelled, sync) for sync in AclSync}


@pytest.mark.parametrize(
    ("there", "downgraded", "identical"),
    [
        (right(READ), [right(READ)], [right(READ)]),
        (right(DESCRIBE), [right(DESCRIBE)], [right(DESCRIBE)]),
        (right(WRITE), [], [right(WRITE)]),
        (right(ALL_OPERATIONS), [right(READ)], [right(ALL_OPERATIONS)]),
        (right(WRITE, DENY), [right(WRITE, DENY)], [right(WRITE, DENY)]),
        (right(ALL_OPERATIONS, DENY), [right(ALL_OPERATIONS, DENY)], [right(ALL_OPERATIONS, DENY)]),
        (right(READ, name="other"), [], []),
        (right(READ, name="*"), [right(READ, name="*")], [right(READ, name="*")]),
        (right(WRITE, name="*"), [], [right(WRITE, name="*")]),
        (right(READ, name="other", pattern=PREFIXED), [], []),
    ],
)
def test_each_kind_of_right_travels_by_the_rules(
    there: Right, downgraded: list[Right], identical: list[Right]
) -> None:
    assert given_by_mode(there) == {
        AclSync.OFF: [],
        AclSync.DOWNGRADED: downgraded,
        AclSync.IDENTICAL: identical,
    }


@pytest.mark.parametrize(
    ("kind", "operation", "downgraded"),
    [
        (GROUP, READ, READ),
        (GROUP, DESCRIBE, DESCRIBE),
        (GROUP, DELETE, None),
        (GROUP, ALL_OPERATIONS, READ),
        (TRANSACTIONAL, WRITE, None),
        (TRANSACTIONAL, DESCRIBE, DESCRIBE),
        (TRANSACTIONAL, ALL_OPERATIONS, DESCRIBE),
        (CLUSTER, Operation.IDEMPOTENT_WRITE, None),
    ],
)
def test_other_kinds_lose_what_changes_anything_unless_all_is_identical(
    kind: ResourceType, operation: int, downgraded: int | None
) -> None:
    given = given_by_mode(right(operation, name="billing", kind=kind))
    assert given[AclSync.IDENTICAL] == [right(operation, name="billing", kind=kind)]
    assert [one.operation for one in given[AclSync.DOWNGRADED]] == (
        [] if downgraded is None else [downgraded]
    )


@pytest.mark.parametrize(
    "operation",
    [
        Operation.ALL,
        Operation.ALTER,
        Operation.ALTER_CONFIGS,
        Operation.CLUSTER_ACTION,
    ],
)
def test_nobody_becomes_administrator_or_broker_of_the_other_site(operation: Operation) -> None:
    for permitted in (right(operation, kind=CLUSTER), right(operation, DENY, kind=CLUSTER)):
        assert not any(given_by_mode(permitted).values())
    assert not any(given_by_mode(right(operation, kind=ResourceType.DELEGATION_TOKEN)).values())


def test_groups_that_are_not_kept_in_step_keep_their_rights_to_themselves() -> None:
    names = PatternSet(include=(re.compile("billing-.*"),), exclude=())
    travelled = Travelled(topics={}, groups={"billing-1"}, group_names=names)

    def is_given(name: str, pattern: int) -> bool:
        there = right(READ, name=name, kind=GROUP, pattern=pattern)
        return bool(rights_to_give([there], [], travelled, AclSync.DOWNGRADED))

    assert is_given("billing-7", 3)
    assert is_given("bill", PREFIXED)  # one of its groups was seen
    assert is_given("billing-x", PREFIXED)  # its groups are yet to come
    assert is_given("*", 3)
    assert not is_given("audit", 3)
    assert not is_given("audit", PREFIXED)


def test_where_names_are_prefixed_a_right_to_many_topics_is_one_to_the_mirrored_ones() -> None:
    travelled = Travelled(topics={"orders": "dc1.orders"}, prefix="dc1.")
    source = [
        right(READ, name=name, pattern=pattern)
        for name, pattern in (("orders", 3), ("ord", PREFIXED), ("*", 3))
    ]
    given = rights_to_give(source, [], travelled, AclSync.DOWNGRADED)
    assert [(one.name, one.pattern) for one in given] == [
        ("dc1.", PREFIXED),
        ("dc1.ord", PREFIXED),
        ("dc1.orders", 3),
    ]


RENAMED = Travelled(
    topics={"orders": "orders-eu", "legacy.invoices": "invoices", "legacy.x": "legacy.x"}
)


@pytest.mark.parametrize(
    ("name", "pattern", "given"),
    [
        ("orders", 3, [("orders-eu", 3)]),
        ("ord", PREFIXED, [("ord", PREFIXED)]),  # takes the copy as well
        ("legacy.", PREFIXED, [("invoices", 3), ("legacy.", PREFIXED)]),
        ("*", 3, [("*", 3)]),
        # Of these names there is the copy of `orders`, which they do not concern here.
        ("orders-eu", PREFIXED, []),
        ("orders-eu", 3, []),
    ],
)
def test_what_denies_or_allows_a_topic_does_so_under_the_name_of_its_copy(
    name: str, pattern: int, given: list[tuple[str, int]]
) -> None:
    for permission in (3, DENY):
        source = [right(READ, permission, name=name, pattern=pattern)]
        found = rights_to_give(source, [], RENAMED, AclSync.IDENTICAL)
        assert [(one.name, one.pattern) for one in found] == given
        assert {one.permission for one in found} <= {permission}


def test_names_that_begin_alike_take_no_copy_there_whose_topic_they_do_not_take_here() -> None:
    travelled = Travelled(topics={"secret": "orders-eu", "orders": "orders", "orders-x": "x"})
    found = rights_to_give(
        [right(READ, name="orders", pattern=PREFIXED)], [], travelled, AclSync.IDENTICAL
    )
    assert [(one.name, one.pattern) for one in found] == [("orders", 3), ("x", 3)]


@pytest.mark.parametrize(
    "fence",
    [
        closing("t"),
        noting(closing("t"), FenceNote(client="mirror-dc2-dc1")),
        right(WRITE, DENY, name="*", principal="User:*"),
        right(WRITE, DENY, name="t", principal="User:*", pattern=PREFIXED),
    ],
)
def test_what_closes_a_site_for_writes_stays_there(fence: Right) -> None:
    assert not any(given_by_mode(fence).values())


@pytest.mark.parametrize("bar", [barring("t", pattern=PREFIXED), barring("*"), OF_CLUSTER], ids=str)
def test_a_denial_of_creation_stays_with_its_fence_and_travels_where_it_is_somebodys_own(
    bar: Right,
) -> None:
    note = noting(bar, FenceNote(client="mirror-dc2-dc1"))
    assert rights_to_give({bar, note}, [], ONE_TOPIC, AclSync.IDENTICAL) == []
    assert rights_to_give({bar}, [], ONE_TOPIC, AclSync.IDENTICAL) == [bar]


def test_what_the_target_has_is_not_given_again_and_nothing_is_taken_away() -> None:
    source = [right(READ), right(ALL_OPERATIONS), right(DESCRIBE)]
    target = [right(READ), right(WRITE)]
    lacking = rights_to_give(source, target, ONE_TOPIC, AclSync.DOWNGRADED)
    assert lacking == [right(DESCRIBE)]


@pytest.mark.parametrize(
    ("there", "travels"),
    [
        (right(READ, name="pay.in"), True),
        (right(READ, name="pay.", pattern=PREFIXED), True),
        (right(READ, name="pay.in", pattern=PREFIXED), True),
        (right(READ, name="pay", pattern=PREFIXED), False),
        (right(READ, name="*"), False),
        (right(READ, name="billing-1", kind=GROUP), False),
        (right(DESCRIBE, name="tx", kind=TRANSACTIONAL), False),
        (right(DESCRIBE, name="kafka-cluster", kind=CLUSTER), False),
    ],
)
def test_with_a_named_set_travels_what_concerns_its_topics_alone(
    there: Right, *, travels: bool
) -> None:
    of_set = Travelled(
        topics={"pay.in": "pay.in"},
        groups={"billing-1"},
        group_names=ANYTHING,
        names_of_set=(NamePattern("pay.", is_prefix=True),),
    )
    assert rights_to_give([there], [], of_set, AclSync.IDENTICAL) == [there] * travels
