"""Rights that travel between two clusters, and clusters that keep none."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from mirror.acl_sync import AclsOff, AclWatch
from mirror.acls import ALL_OPERATIONS, ALLOW, READ, WRITE
from mirror.flow_state import FlowState
from mirror.measurements import FlowMeasurements
from runtime.flow_section import AclSync, PatternSet
from tests.doubles.fake_cluster import FakeCluster
from tests.mirror.test_policies import CONFIG
from tests.mirror.two_fakes import two_fakes
from wire.errors import ErrorCode
from wire.headers import RequestHeader
from wire.messages.create_acls import AclCreationResult, CreateAclsResponse
from wire.messages.describe_acls import AclDescription, DescribeAclsResource, DescribeAclsResponse
from wire.net import RequestRefused

DESCRIBE_ACLS, CREATE_ACLS = 29, 30


class Authorizer:
    """The rights of one fake cluster: (topic, principal, operation), all of them to allow."""

    def __init__(self, cluster: FakeCluster, *rights: tuple[str, str, int]) -> None:
        self.rights = set(rights)
        self.error = ErrorCode.NONE
        for broker in cluster.brokers.values():
            broker.scripts[DESCRIBE_ACLS] = self._describe
            broker.scripts[CREATE_ACLS] = self._create
        cluster.versions |= {DESCRIBE_ACLS: range(4), CREATE_ACLS: range(4)}

    async def _describe(self, _: RequestHeader, __: object) -> DescribeAclsResponse:
        return DescribeAclsResponse(
            error_code=self.error,
            resources=tuple(
                DescribeAclsResource(
                    resource_type=2,
                    resource_name=topic,
                    pattern_type=3,
                    acls=(
                        AclDescription(
                            principal=principal,
                            host="*",
                            operation=operation,
                            permission_type=ALLOW,
                        ),
                    ),
                )
                for topic, principal, operation in sorted(self.rights)
            ),
        )

    async def _create(self, _: RequestHeader, request: Any) -> CreateAclsResponse:
        for one in request.creations:
            self.rights.add((one.resource_name, one.principal, one.operation))
        return CreateAclsResponse(
            results=tuple(AclCreationResult(error_code=0) for _ in request.creations)
        )


@asynccontextmanager
async def watch_between(
    sync: AclSync,
) -> AsyncIterator[tuple[AclWatch, Authorizer, Authorizer]]:
    """Give the watch of a flow that mirrors topic t, and what both clusters hold."""
    everything = PatternSet(include=(re.compile(".*"),), exclude=())
    config = replace(CONFIG, acls=sync, topics=everything)
    flow = FlowState(config=config, measurements=FlowMeasurements(config.name))
    flow.places.add(("t", 0))  # another worker may have it
    async with two_fakes() as (dc1, dc2, links):
        there = Authorizer(
            dc1, ("t", "User:r", READ), ("t", "User:w", WRITE), ("t", "User:o", ALL_OPERATIONS)
        )
        yield AclWatch(flow, links), there, Authorizer(dc2, ("t", "User:old", WRITE))


async def test_rights_are_given_downgraded_and_only_once() -> None:
    async with watch_between(AclSync.DOWNGRADED) as (watch, _, target):
        for _ in range(2):
            await watch.look()
            assert target.rights == {
                ("t", "User:old", WRITE),
                ("t", "User:r", READ),
                ("t", "User:o", READ),
            }


async def test_identical_rights_are_those_of_the_source() -> None:
    async with watch_between(AclSync.IDENTICAL) as (watch, source, target):
        await watch.look()
        assert target.rights == source.rights | {("t", "User:old", WRITE)}


async def test_a_cluster_without_an_authorizer_is_no_fault_and_a_missing_right_is() -> None:
    async with watch_between(AclSync.DOWNGRADED) as (watch, _, target):
        target.error = ErrorCode.SECURITY_DISABLED
        with pytest.raises(AclsOff, match="dc2 has no authorizer"):
            await watch.look()
        target.error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        with pytest.raises(RequestRefused, match="dc2: to describe rights: CLUSTER_AUTH"):
            await watch.look()
