"""Who would be refused on the other site: entries of both compared by an authorizer's rules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.authorizer.verdict import Asker, is_allowed
from runtime.rights.refused import (
    MOST_ASKED,
    NOBODY,
    RefusedPrincipal,
    Seen,
    refused_after_switch,
)
from tests.runtime.rights.building import right
from wire.acls import AccessControlEntry, Operation, Permission, ResourceType
from wire.net.rights import ALL_OPERATIONS, ALLOW, DENY, LITERAL, PREFIXED, READ, WRITE, Right

GROUP = ResourceType.GROUP
TRANSACTIONAL = ResourceType.TRANSACTIONAL_ID
SEEN = Seen(topics={"t": "t", "t2": "t2"}, groups={"billing"})


def told(source: set[Right] | None, target: set[Right], seen: Seen = SEEN) -> list[str]:
    return [one.words("dc2") for one in refused_after_switch(source, target, seen).refused]


def test_a_producer_whose_right_stayed_behind_is_named_with_its_topics() -> None:
    source = {right(WRITE, name="*"), right(READ)}
    assert told(source, {right(READ)}) == [
        "User:a would be refused on dc2: WRITE of topics t, t2",
    ]


def test_a_group_that_its_reader_may_not_read_over_there_is_named() -> None:
    source = {right(READ, name="bill", pattern=PREFIXED, kind=GROUP)}
    assert told(source, set()) == ["User:a would be refused on dc2: READ of group billing"]
    assert not told(source, {right(READ, name="*", principal="User:*", kind=GROUP)})


@pytest.mark.parametrize(
    "target",
    [
        {right(ALL_OPERATIONS)},
        {right(READ, name="*")},
        {right(READ, name="t", pattern=PREFIXED)},
        {right(READ, principal="User:*")},
    ],
)
def test_a_wider_right_on_the_target_serves_as_well(target: set[Right]) -> None:
    assert not told({right(READ)}, target, Seen(topics={"t": "t"}, groups=()))


def test_what_is_denied_there_is_refused_and_what_is_denied_here_is_no_matter() -> None:
    both = {right(READ, name="*")}
    assert told(both, both | {right(READ, DENY)}) == [
        "User:a would be refused on dc2: READ of topic t"
    ]
    assert not told(both | {right(READ, DENY)}, both | {right(READ, DENY)})


def test_an_address_of_the_source_is_asked_about_as_such() -> None:
    source = {right(READ, host="10.0.0.1")}
    assert not told(source, {right(READ)})
    assert told(source, {right(READ, host="10.0.0.2")}) == [
        "User:a from 10.0.0.1 would be refused on dc2: READ of topic t"
    ]


def test_transactional_ids_are_held_against_each_other_by_their_entries() -> None:
    source = {right(WRITE, name="app-", pattern=PREFIXED, kind=TRANSACTIONAL)}
    assert not told(source, source)
    assert told(source, {right(WRITE, name="other", kind=TRANSACTIONAL)}) == [
        "User:a would be refused on dc2: WRITE of transactional id app-"
    ]


def test_where_the_source_keeps_no_rights_what_nobody_may_use_on_the_target_is_named() -> None:
    target = {right(READ), right(READ, name="t2")}
    assert told(None, target) == [
        "nobody has a right on dc2 to WRITE of topics t, t2",
        "nobody has a right on dc2 to READ of group billing",
    ]


def test_what_no_entry_of_either_site_speaks_of_is_alike_on_both() -> None:
    assert not told({right(READ)}, {right(READ)})
    closed = {right(READ, DENY, name="b", pattern=PREFIXED, kind=GROUP)}
    assert told(set(), closed) == ["nobody has a right on dc2 to READ of group billing"]


def test_names_of_the_source_are_told_where_the_target_has_others() -> None:
    seen = Seen(topics={"orders": "dc1.orders"}, groups=())
    source = {right(READ, name="orders")}
    assert not told(source, {right(READ, name="dc1.orders")}, seen)
    assert told(source, {right(READ, name="orders")}, seen) == [
        "User:a would be refused on dc2: READ of topic orders"
    ]


def test_very_many_questions_are_cut_and_that_is_said() -> None:
    many = {f"t{number}": f"t{number}" for number in range(MOST_ASKED // 100)}
    source = {right(READ, name="*", principal=f"User:{number}") for number in range(120)}
    compared = refused_after_switch(source, set(), Seen(topics=many, groups=()))
    assert compared.is_cut
    assert all(one.principal != NOBODY for one in compared.refused)


def test_many_resources_are_counted() -> None:
    refused = RefusedPrincipal(
        principal="User:a",
        kind=ResourceType.TOPIC,
        operation=Operation.READ,
        names=tuple(f"t{number}" for number in range(8)),
    )
    assert refused.words("dc2").endswith("READ of topics t0, t1, t2, t3, t4 and 3 more")


entries = st.sets(
    st.builds(
        right,
        st.sampled_from([ALL_OPERATIONS, READ, WRITE, 6]),
        st.sampled_from([ALLOW, ALLOW, DENY]),
        name=st.sampled_from(["t", "t2", "*", "u"]),
        principal=st.sampled_from(["User:a", "User:b", "User:*"]),
        pattern=st.sampled_from([LITERAL, PREFIXED]),
    ),
    max_size=6,
)


@given(entries, entries)
def test_the_bundled_authorizer_agrees_on_who_is_refused(
    source: set[Right], target: set[Right]
) -> None:
    def lets(held: set[Right], principal: str, operation: Operation, topic: str) -> bool:
        about = [
            AccessControlEntry(
                one.principal, one.host, Operation(one.operation), Permission(one.permission)
            )
            for one in held
            if one.concerns(topic)
        ]
        return is_allowed(about, Asker(principal, "10.0.0.1"), operation, where_none_speak=False)

    expected = {
        (principal, operation, topic)
        for principal in {one.principal for one in source if one.permission == ALLOW}
        for operation in (Operation.READ, Operation.WRITE)
        for topic in SEEN.topics
        if lets(
            {one for one in source if one.principal == principal}
            | {one for one in source if one.permission == DENY},
            principal,
            operation,
            topic,
        )
        and not lets(target, principal, operation, topic)
    }
    found = refused_after_switch(source, target, Seen(topics=SEEN.topics, groups=())).refused
    assert {
        (one.principal, one.operation, name)
        for one in found
        if one.principal != NOBODY
        for name in one.names
    } == expected
