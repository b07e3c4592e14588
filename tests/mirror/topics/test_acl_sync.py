"""Rights that travel between two clusters, and clusters that keep none."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

import pytest

from mirror.flow.flow_state import FlowState
from mirror.state.measurements import FlowMeasurements
from mirror.topics.acl_sync import AclFollower, RightsUntold
from runtime.configuration.flow_section import AclSync, PatternSet
from runtime.rights.closing import FenceNote, barring, closing, noting, of_fence
from runtime.rights.creation import OF_CLUSTER
from tests.doubles.fake_rights import FakeRights
from tests.mirror.building import CONFIG
from tests.mirror.two_fakes import two_fakes
from wire.errors import ErrorCode
from wire.net.rights import ALL_OPERATIONS, ALLOW, DENY, READ, WRITE, Right, RightsOff
from wire.topic_partition import TopicPartition


def allowed(*rights: tuple[str, int]) -> set[Right]:
    """What (principal, operation) may do with topic t."""
    return {
        Right(name="t", principal=principal, host="*", operation=operation, permission=ALLOW)
        for principal, operation in rights
    }


OLD: Final = allowed(("User:old", WRITE))


@asynccontextmanager
async def watch_between(
    sync: AclSync,
) -> AsyncIterator[tuple[AclFollower, FakeRights, FakeRights]]:
    """Give the watch of a flow that mirrors topic t, and what both clusters hold."""
    everything = PatternSet(include=(re.compile(".*"),), exclude=())
    config = replace(CONFIG, acls=sync, topics=everything)
    flow = FlowState(config=config, measurements=FlowMeasurements(config.name))
    flow.share.see({TopicPartition("t", 0)})  # another worker may have it
    async with two_fakes() as (dc1, dc2, links):
        rights = allowed(("User:r", READ), ("User:w", WRITE), ("User:o", ALL_OPERATIONS))
        denied = closing("t"), barring("t"), OF_CLUSTER
        fence = (*denied, *(noting(one, FenceNote(client="mirror-b-a")) for one in denied))
        yield (
            AclFollower(flow.live_config, flow.share, links),
            FakeRights(dc1, *rights, *fence),
            FakeRights(dc2, *OLD),
        )


async def test_rights_are_given_downgraded_and_only_once() -> None:
    async with watch_between(AclSync.DOWNGRADED) as (watch, _, target):
        for _ in range(2):
            await watch.copy_rights()
            assert target.rights == OLD | allowed(("User:r", READ), ("User:o", READ))


async def test_identical_rights_are_those_of_the_source_but_for_what_fences_it() -> None:
    async with watch_between(AclSync.IDENTICAL) as (watch, source, target):
        await watch.copy_rights()
        fence = of_fence(source.rights)
        assert len(fence) == 6
        assert target.rights == (source.rights - fence) | OLD


@pytest.mark.parametrize("is_super_user", [False, True])
async def test_what_would_shut_the_mirror_out_is_given_to_a_super_user_alone(
    monkeypatch: pytest.MonkeyPatch, *, is_super_user: bool
) -> None:
    everybody = Right(
        name="t", principal="User:*", host="*", operation=ALL_OPERATIONS, permission=DENY
    )
    told = replace(everybody, operation=WRITE)
    bits = 1 << WRITE if is_super_user else 1 << READ

    async def operations(_: object, topics: list[str]) -> dict[str, int]:
        return dict.fromkeys(topics, bits)

    monkeypatch.setattr("runtime.rights.withheld.topic_operations", operations)
    async with watch_between(AclSync.DOWNGRADED) as (watch, source, target):
        source.rights.add(everybody)
        await watch.copy_rights()
        assert everybody not in target.rights, "nothing tells who we are"
        target.rights.add(told)
        await watch.copy_rights()
        assert (everybody in target.rights) == is_super_user
        assert watch.outlook is not None
        assert watch.outlook.withheld == (() if is_super_user else (everybody,))
        summary = watch.outlook.summary(None) or ""
        assert ("1 rules that deny something are withheld" in summary) != is_super_user


async def test_a_cluster_without_an_authorizer_is_no_fault_and_a_missing_right_is() -> None:
    async with watch_between(AclSync.DOWNGRADED) as (watch, _, target):
        target.error = ErrorCode.SECURITY_DISABLED
        with pytest.raises(RightsOff, match="dc2 has no authorizer"):
            await watch.copy_rights()
        target.error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        with pytest.raises(RightsUntold, match="dc2: to describe rights: CLUSTER_AUTH"):
            await watch.copy_rights()


async def test_who_would_be_refused_all_the_same_is_known_behind_each_look() -> None:
    async with watch_between(AclSync.DOWNGRADED) as (watch, _, _):
        await watch.copy_rights()
        assert watch.outlook is not None
        assert [one.words("dc2") for one in watch.outlook.refused] == [
            "User:o would be refused on dc2: WRITE of topic t",
            "User:w would be refused on dc2: WRITE of topic t",
        ]
        assert (watch.outlook.summary(None) or "").startswith(
            "2 principals would be refused on dc2"
        )
