"""What a promotion sees of a cluster."""

import re
from collections.abc import Mapping
from dataclasses import replace

from failover.moving.leaving import wait_left
from failover.sites.site import Site
from runtime.configuration.config import PatternSet
from runtime.configuration.topic_names import Renames
from tests.doubles.fake_cluster import FakePartition, run_fake_cluster
from tests.failover.plans import FLOW
from wire.errors import ErrorCode
from wire.headers import RequestHeader
from wire.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
)
from wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from wire.net import open_cluster
from wire.topic_partition import TopicPartition

EVERYTHING = PatternSet(include=(re.compile(".*"),), exclude=())
GROUPS = (
    ListedGroup(group_id="old", protocol_type="consumer"),
    ListedGroup(
        group_id="left", protocol_type="consumer", group_state="Empty", group_type="Classic"
    ),
    ListedGroup(
        group_id="at work", protocol_type="consumer", group_state="Stable", group_type="Consumer"
    ),
    ListedGroup(
        group_id="gone", protocol_type="consumer", group_state="Empty", group_type="consumer"
    ),
    ListedGroup(group_id="flows", protocol_type="", group_state="NotReady", group_type="Streams"),
    ListedGroup(group_id="shares", protocol_type="share", group_state="Stable", group_type="share"),
)
"""As Apache Kafka 4 lists them; DescribeGroups knows none of those of newer types."""


async def test_a_group_of_a_newer_protocol_has_members_until_it_is_empty() -> None:
    async with run_fake_cluster() as fake:

        async def list_groups(_: RequestHeader, __: ListGroupsRequest) -> ListGroupsResponse:
            return ListGroupsResponse(error_code=0, groups=GROUPS)

        fake.brokers[0].scripts[ListGroupsRequest.API_KEY] = list_groups
        async with open_cluster(fake.bootstrap, client_id="failover") as opened:
            site = Site(name="dc1", cluster=opened)
            assert await site.members(EVERYTHING) == {
                "at work": 1,
                "flows": 1,
                "gone": 0,
                "left": 0,
                "old": 0,
            }

            async def follow(members: Mapping[str, int]) -> Mapping[str, int]:
                return members

            facts = await wait_left(site, EVERYTHING, follow, plain={}, timeout_ms=100)
            assert facts["still_members"] == {"at work": 1, "flows": 1}


async def test_all_members_of_a_group_of_the_new_protocol_are_seen_where_brokers_describe_it() -> (
    None
):
    def member(number: int) -> Member:
        nothing = Assignment(topic_partitions=())
        return Member(
            member_id=f"m-{number}",
            member_epoch=1,
            client_id="c",
            client_host="/h",
            subscribed_topic_names=(),
            assignment=nothing,
            target_assignment=nothing,
        )

    async with run_fake_cluster() as fake:

        async def list_groups(_: RequestHeader, __: ListGroupsRequest) -> ListGroupsResponse:
            return ListGroupsResponse(error_code=0, groups=GROUPS)

        async def describe(
            _: RequestHeader, request: ConsumerGroupDescribeRequest
        ) -> ConsumerGroupDescribeResponse:
            known = {"at work": tuple(map(member, range(3))), "gone": ()}
            return ConsumerGroupDescribeResponse(
                groups=tuple(
                    DescribedGroup(
                        error_code=0 if name in known else ErrorCode.GROUP_ID_NOT_FOUND,
                        group_id=name,
                        group_state="Stable" if known.get(name) else "Empty",
                        group_epoch=1,
                        assignment_epoch=1,
                        assignor_name="uniform",
                        members=known.get(name, ()),
                    )
                    for name in request.group_ids
                )
            )

        fake.brokers[0].scripts[ListGroupsRequest.API_KEY] = list_groups
        fake.brokers[0].scripts[ConsumerGroupDescribeRequest.API_KEY] = describe
        fake.versions[ConsumerGroupDescribeRequest.API_KEY] = range(2)
        async with open_cluster(fake.bootstrap, client_id="failover") as opened:
            members = await Site(name="dc1", cluster=opened).members(EVERYTHING)
            assert members == {"at work": 3, "flows": 1, "gone": 0, "left": 0, "old": 0}


async def test_a_partition_that_was_not_there_is_looked_for_again() -> None:
    """The mirror makes it a moment later, and a promotion waits for that."""
    async with run_fake_cluster() as fake:
        orders = fake.create_topic("orders", 0)
        async with open_cluster(fake.bootstrap, client_id="failover") as opened:
            site = Site(name="dc2", cluster=opened)
            asked = [TopicPartition("orders", 0), TopicPartition("orders", 1)]
            assert await site.known_ends(asked) == {("orders", 0): 0}
            orders.partitions[1] = FakePartition(0, end=3)
            assert await site.known_ends(asked) == {("orders", 0): 0, ("orders", 1): 3}


RENAMED = replace(FLOW, topics=EVERYTHING, renames=Renames({"orders": "orders-eu"}))


async def test_a_site_with_names_is_asked_and_answers_by_those_of_the_flows_source() -> None:
    async with run_fake_cluster() as fake:
        orders = fake.create_topic("orders-eu", 0)
        orders.partitions[0].end = 7
        fake.create_topic("orders", 0).partitions[0].end = 9  # dc2's own, which nobody mirrors
        fake.create_topic("clicks", 0).partitions[0].end = 3
        async with open_cluster(fake.bootstrap, client_id="failover") as opened:
            here = Site(name="dc2", cluster=opened)
            site = replace(here, names=RENAMED.names)
            moved, clicks = TopicPartition("orders", 0), TopicPartition("clicks", 0)
            assert await site.partitions(RENAMED) == (clicks, moved)
            assert await here.partitions(RENAMED) == (clicks, TopicPartition("orders-eu", 0))
            assert await site.ends([moved, clicks]) == {moved: 7, clicks: 3}
            assert await site.known_ends([moved]) == await site.stable_ends([moved]) == {moved: 7}
            assert await site.starts([moved]) == {moved: 0}
            assert await site.topic_ids(["orders"]) == {"orders": orders.topic_id}
            assert await here.ends([moved]) == {moved: 9}
