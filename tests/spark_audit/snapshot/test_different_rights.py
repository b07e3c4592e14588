"""Rights that differ between the sites: findings where the mirror carries them, else explained."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.configuration.config import load
from runtime.configuration.flow_section import AclSync, PatternSet
from runtime.rights.closing import FenceNote, barring, closing, noting
from runtime.rights.travelling import Travelled, rights_to_give
from spark_audit.snapshot.cluster_bounds import AuditedCluster
from spark_audit.snapshot.different_rights import (
    GROUPS_KEPT,
    KEPT_BACK,
    MOST_LISTED,
    NOT_CARRIED,
    OF_CLUSTER,
    OF_FENCE,
    SURPLUS,
    DifferentRight,
    different_rights,
)
from spark_audit.snapshot.rights import ask_rights
from tests.dc_yaml import dc_yaml
from tests.doubles.fake_cluster import run_fake_cluster
from tests.doubles.fake_rights import FakeRights
from wire.acls import ResourceType
from wire.errors import ErrorCode
from wire.net import open_cluster
from wire.net.rights import (
    ALL_OPERATIONS,
    ALLOW,
    DENY,
    LITERAL,
    PREFIXED,
    READ,
    WRITE,
    Right,
)


def right(
    operation: int = READ,
    permission: int = ALLOW,
    topic: str = "t",
    pattern: int = LITERAL,
    kind: int = ResourceType.TOPIC,
) -> Right:
    return Right(
        name=topic,
        principal="User:a",
        host="*",
        operation=operation,
        permission=permission,
        pattern=pattern,
        kind=kind,
    )


ANYTHING = PatternSet(include=(re.compile(".*"),), exclude=())
ONE_TOPIC = Travelled(topics={"t": "t"}, groups={"billing-1"}, group_names=ANYTHING)


def differing(
    source: set[Right], target: set[Right], sync: AclSync = AclSync.DOWNGRADED
) -> list[DifferentRight]:
    return different_rights(source, target, ONE_TOPIC, sync)


def test_a_right_that_the_mirror_carries_and_the_target_lacks_is_a_finding() -> None:
    [one] = differing({right()}, set())
    assert one.explained is None
    assert one.words == (
        "t: ALLOW READ to User:a from *: only on the source; "
        "give it on the target with `kafka-acls`; see the mirror's log"
    )
    for other in (right(WRITE, DENY), right(topic="*"), right(topic="t", pattern=PREFIXED)):
        [found] = differing({other}, set())
        assert found.explained is None


@pytest.mark.parametrize(
    ("source", "target", "sync", "why"),
    [
        (right(WRITE), None, AclSync.DOWNGRADED, KEPT_BACK),
        (right(), None, AclSync.OFF, NOT_CARRIED),
        (right(WRITE, topic="*"), None, AclSync.DOWNGRADED, KEPT_BACK),
        (right(topic="t", pattern=PREFIXED), None, AclSync.OFF, NOT_CARRIED),
        (None, right(), AclSync.IDENTICAL, SURPLUS),
        (closing("t"), None, AclSync.IDENTICAL, OF_FENCE),
        (
            None,
            noting(closing("t"), FenceNote(client="mirror-dc2-dc1")),
            AclSync.IDENTICAL,
            OF_FENCE,
        ),
    ],
)
def test_what_the_mirror_does_not_carry_is_explained(
    source: Right | None, target: Right | None, sync: AclSync, why: str
) -> None:
    sides = [set() if one is None else {one} for one in (source, target)]
    [one] = differing(sides[0], sides[1], sync)
    assert (one.explained, one.is_on_source) == (why, source is not None)
    assert why in one.words


def test_a_fence_that_keeps_topics_from_being_made_is_explained_and_another_denial_is_not() -> None:
    bar = barring("t", pattern=PREFIXED)
    both = {bar, noting(bar, FenceNote(client="mirror-dc2-dc1"))}
    for found in (differing(both, set()), differing(set(), both)):
        assert {one.explained for one in found} == {OF_FENCE}
    [own] = differing({bar}, set())
    assert own.explained is None


def test_a_right_that_arrives_as_another_is_looked_for_as_that() -> None:
    everything = right(ALL_OPERATIONS)
    assert [one.explained for one in differing({everything}, {right()})] == [KEPT_BACK]
    found = differing({everything}, set())
    assert [one.explained for one in found] == [None, KEPT_BACK]
    assert found[0].right == "ALLOW READ to User:a from *"
    assert not differing({everything}, {everything, right()})


def test_rights_are_looked_for_under_the_name_that_the_topic_has_on_the_target() -> None:
    copied = Travelled(topics={"t": "dc1.t"})
    find = partial(different_rights, travelled=copied, sync=AclSync.DOWNGRADED)
    assert not find({right()}, {right(topic="dc1.t")})
    [lacking] = find({right()}, {right()})
    assert (lacking.resource, lacking.is_on_source, lacking.explained) == ("t", True, None)
    many = {right(topic="*"), right(topic="t", pattern=PREFIXED)}
    prefixed = replace(copied, prefix="dc1.")
    there = {right(topic="dc1.", pattern=PREFIXED), right(topic="dc1.t", pattern=PREFIXED)}
    assert not find(many, there, travelled=prefixed)
    assert len(find(many, set(), travelled=prefixed)) == 2
    [surplus] = find(set(), {right(topic="dc1.t")})
    assert (surplus.is_on_source, surplus.explained) == (False, SURPLUS)


def test_a_right_to_names_that_begin_alike_is_looked_for_at_each_copy_of_another_name() -> None:
    travelled = Travelled(topics={"legacy.invoices": "invoices", "legacy.x": "legacy.x"})
    find = partial(different_rights, travelled=travelled, sync=AclSync.DOWNGRADED)
    denied = right(READ, DENY, topic="legacy.", pattern=PREFIXED)
    assert not find({denied}, {denied, replace(denied, name="invoices", pattern=LITERAL)})
    [lacking] = find({denied}, {denied})
    assert (lacking.resource, lacking.is_on_source, lacking.explained) == ("legacy.*", True, None)
    [surplus] = find(set(), {right(topic="invoices")})
    assert (surplus.resource, surplus.is_on_source) == ("legacy.invoices", False)


def test_rights_to_other_topics_are_no_matter_and_very_many_are_counted() -> None:
    assert not differing({right(topic="other")}, {right(topic="u", pattern=PREFIXED)})
    many = {Right(**{**_fields(right()), "principal": f"User:{n}"}) for n in range(1_200)}
    found = differing(many, set())
    assert len(found) == MOST_LISTED
    assert found[-1].right == "201 more entries"


def _fields(one: Right) -> dict[str, Any]:
    return {name: getattr(one, name) for name in Right.__slots__}


def test_rights_to_a_cluster_are_shown_and_explained() -> None:
    of_cluster = replace(right(12, topic="kafka-cluster"), kind=ResourceType.CLUSTER)
    [one] = differing({of_cluster}, set())
    assert one == DifferentRight(
        "the cluster", "ALLOW IDEMPOTENT_WRITE to User:a from *", True, OF_CLUSTER
    )
    [one] = differing({of_cluster}, set(), AclSync.IDENTICAL)
    assert one.explained is None
    assert not differing({of_cluster}, {of_cluster}, AclSync.IDENTICAL)
    assert differing(set(), {of_cluster})[0].explained == OF_CLUSTER


GROUP, TRANSACTIONAL_ID = ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID


@pytest.mark.parametrize(
    ("kind", "name", "pattern", "shown"),
    [
        (GROUP, "billing", LITERAL, "group billing"),
        (GROUP, "bill", PREFIXED, "group bill*"),
        (GROUP, "*", LITERAL, "every group"),
        (TRANSACTIONAL_ID, "tx", LITERAL, "transactional id tx"),
        (TRANSACTIONAL_ID, "tx", PREFIXED, "transactional id tx*"),
        (TRANSACTIONAL_ID, "*", LITERAL, "every transactional id"),
        (ResourceType.TOPIC, "*", LITERAL, "every topic"),
        (ResourceType.TOPIC, "t", PREFIXED, "t*"),
    ],
)
def test_rights_to_groups_and_transactional_ids_prefixes_and_all_are_compared(
    kind: ResourceType, name: str, pattern: int, shown: str
) -> None:
    describes = replace(right(8, topic=name, pattern=pattern), kind=kind)
    [lacking] = differing({describes}, set())
    assert (lacking.resource, lacking.explained) == (shown, None)
    assert not differing({describes}, {describes})
    [surplus] = differing(set(), {describes})
    assert (surplus.resource, surplus.explained) == (shown, SURPLUS)


def test_rights_to_delete_groups_and_to_write_by_a_transactional_id_stay_on_the_source() -> None:
    deletes = replace(right(6, topic="billing"), kind=GROUP)
    assert [one.explained for one in differing({deletes}, set())] == [GROUPS_KEPT]
    writes = replace(right(WRITE, topic="tx"), kind=TRANSACTIONAL_ID)
    assert [one.explained for one in differing({writes}, set())] == [KEPT_BACK]
    assert [one.explained for one in differing({writes}, set(), AclSync.IDENTICAL)] == [None]


def test_rights_to_groups_that_the_flow_leaves_out_and_of_other_kinds_are_no_matter() -> None:
    none = replace(ONE_TOPIC, group_names=PatternSet(include=(), exclude=()), groups=())
    reads = replace(right(topic="billing"), kind=GROUP)
    assert not different_rights({reads}, set(), none, AclSync.IDENTICAL)
    token = replace(right(topic="token"), kind=ResourceType.DELEGATION_TOKEN)
    assert not differing({token}, set())


rights = st.sets(
    st.builds(
        right,
        st.sampled_from([ALL_OPERATIONS, READ, WRITE, 8]),
        st.sampled_from([ALLOW, DENY]),
        st.sampled_from(["t", "*", "t1"]),
        st.sampled_from([LITERAL, PREFIXED]),
        st.sampled_from([ResourceType.TOPIC, GROUP, TRANSACTIONAL_ID, ResourceType.CLUSTER]),
    )
)


@given(rights, rights, st.sampled_from(AclSync))
def test_what_the_mirror_would_give_is_what_is_found_and_behind_it_nothing(
    source: set[Right], target: set[Right], sync: AclSync
) -> None:
    given_now = rights_to_give(source, target, ONE_TOPIC, sync)
    found = [one for one in differing(source, target, sync) if one.explained is None]
    assert len(found) == len(given_now)
    assert all(one.explained for one in differing(source, target | {*given_now}, sync))


@asynccontextmanager
async def two_sites() -> AsyncIterator[tuple[list[AuditedCluster], list[FakeRights]]]:
    async with run_fake_cluster() as dc1, run_fake_cluster() as dc2:
        held = [FakeRights(dc1, right()), FakeRights(dc2)]
        async with (
            open_cluster(dc1.bootstrap, client_id="test") as first,
            open_cluster(dc2.bootstrap, client_id="test") as second,
        ):
            wants: Any = SimpleNamespace()
            yield (
                [
                    AuditedCluster(cluster=one, name=name, servers="", wants=wants)
                    for one, name in ((first, "dc1"), (second, "dc2"))
                ],
                held,
            )


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (ErrorCode.SECURITY_DISABLED, "dc2: no authorizer"),
        (
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            "dc2: to describe rights: CLUSTER_AUTHORIZATION_FAILED",
        ),
    ],
)
async def test_a_cluster_that_has_no_rights_or_tells_none_is_not_compared(
    tmp_path: Path, error: ErrorCode, why: str
) -> None:
    file = tmp_path / "dc.yaml"
    file.write_text(dc_yaml())
    [flow] = load(file).flows
    async with two_sites() as (sites, held):
        ask = partial(ask_rights, sites[0], sites[1], flow, {"t": "t"})
        found, not_compared = await ask()
        assert ([one.explained for one in found], not_compared) == ([None], None)
        held[1].error = error
        assert await ask() == ((), why)
