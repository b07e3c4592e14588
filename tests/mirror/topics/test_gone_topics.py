"""When the deletion of a topic is believed."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from mirror.clusters.admin import hidden_topics
from mirror.clusters.links import Links
from mirror.flow.flow_state import FlowState
from mirror.map.map_log import MapLog
from mirror.state.measurements import FlowMeasurements
from mirror.state.orders import Orders, Pause, Scope
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from mirror.topics.gone_topics import (
    AGAIN_MS,
    DELETED,
    LEAST_GRACE_MS,
    UNSEEN_MS,
    GoneTopics,
    due,
    gone_ends,
)
from offset_translation.offset_map import OffsetMap
from runtime.configuration.config import PatternSet
from tests.doubles.fake_cluster import run_fake_cluster
from tests.doubles.map_writers import MemoryWriters
from tests.mirror.building import CONFIG
from wire.headers import RequestHeader
from wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsResponse
from wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from wire.net import Cluster, open_cluster
from wire.topic_partition import TopicPartition

METADATA = 3
DELETE_TOPICS = 20
ALL = {"a", "b", "c", "d", "e"}


def test_a_topic_goes_after_its_grace_time() -> None:
    since = {"a": 1_000, "b": 5_000}
    assert due(since, ALL, now_ms=10_999, grace_ms=10_000) == []
    assert due(since, ALL, now_ms=11_000, grace_ms=10_000) == ["a"]
    assert due(since, ALL, now_ms=15_000, grace_ms=10_000) == ["a", "b"]


def test_a_source_that_has_lost_half_of_all_is_not_believed() -> None:
    assert due(dict.fromkeys("abc", 0), ALL, now_ms=99, grace_ms=1) == []
    assert due(dict.fromkeys("ab", 0), {"a", "b"}, now_ms=99, grace_ms=1) == []
    assert due(dict.fromkeys("ab", 0), ALL, now_ms=99, grace_ms=1) == ["a", "b"]


def test_the_only_topic_may_go() -> None:
    assert due({"a": 0}, {"a"}, now_ms=99, grace_ms=1) == ["a"]


@asynccontextmanager
async def flow_after_a_deletion() -> AsyncIterator[tuple[GoneTopics, FlowState, Cluster]]:
    """Give a flow with three topics of two records; `leaves` and `theirs` are not on the source."""
    config = replace(
        CONFIG,
        topics=PatternSet(include=(re.compile(".*"),), exclude=()),
        delete_gone_after_ms=LEAST_GRACE_MS,
    )
    flow = FlowState(config=config, measurements=FlowMeasurements(config.name))
    async with run_fake_cluster() as dc2:

        async def delete(_: RequestHeader, request: Any) -> DeleteTopicsResponse:
            (topic,) = request.topics
            del dc2.topics[topic.name]
            return DeleteTopicsResponse(
                responses=(
                    DeletableTopicResult(name=topic.name, topic_id=UUID(int=0), error_code=0),
                )
            )

        dc2.brokers[0].scripts[DELETE_TOPICS] = delete
        dc2.versions |= {DELETE_TOPICS: range(7)}
        async with open_cluster(dc2.bootstrap, client_id="test") as target:
            links = Links(
                source_data=target,
                source_groups=target,
                source_admin=target,
                target_data=target,
                target_admin=target,
            )
            map_log = MapLog(target, "dc1", None, MemoryWriters())
            for topic in ("leaves", "theirs", "stays", "stays-too", "stays-as-well"):
                dc2.create_topic(topic, 0).partitions[0].end = 3 if topic == "theirs" else 2
                map_log.state.topic_ids[topic] = UUID(int=7)
                partition = MirroredPartition(
                    topic,
                    0,
                    topic_id=UUID(int=7),
                    offset_map=OffsetMap.from_starts([(0, 0)], 2),
                    now_ms=0,
                )
                flow.partitions.take(partition)
                partition.target.find_position()
                if not topic.startswith("stays"):
                    partition.stop(PartitionState.SOURCE_GONE, "gone", 1)
            yield (
                GoneTopics(
                    flow.live_config,
                    partitions=flow.partitions,
                    share=flow.share,
                    orders=flow.orders,
                    links=links,
                    map_log=map_log,
                ),
                flow,
                target,
            )


async def test_what_others_have_mirrored_goes_by_their_word() -> None:
    async with flow_after_a_deletion() as (gone, flow, target):
        there = await target.metadata(refresh=True)
        stays = {name: view for name, view in there.topics.items() if name.startswith("stays")}
        source = replace(there, topics=stays)
        told = {
            place: end
            for place, end in gone_ends(flow.config, flow.partitions).items()
            if place[0] == "leaves"
        }
        assert told == {("leaves", 0): 2}
        for topic in ("leaves", "theirs"):
            flow.partitions.let_go(TopicPartition(topic, 0))
        await gone.delete_due(source.topics, there, 1_000)
        await gone.delete_due(source.topics, there, 1_000 + LEAST_GRACE_MS)
        assert (await target.metadata(refresh=True)).topics.keys() == there.topics.keys()
        ends = {**told, TopicPartition("theirs", 0): 2}
        flow.share.hear_of_peers(ends, frozenset())
        due_ms = 1_000 + LEAST_GRACE_MS + AGAIN_MS
        await gone.delete_due(source.topics, there, due_ms, kept={"leaves"})
        assert (await target.metadata(refresh=True)).topics.keys() == there.topics.keys()
        await gone.delete_due(source.topics, there, due_ms + 1)
        await gone.delete_due(source.topics, there, due_ms + LEAST_GRACE_MS + 1)
        left = (await target.metadata(refresh=True)).topics
        assert there.topics.keys() - left.keys() == {"leaves"}


async def test_who_does_not_lead_hears_of_a_deletion() -> None:
    async with flow_after_a_deletion() as (gone, flow, target):
        there = await target.metadata(refresh=True)
        gone.hear_of_deleted((), there, 5)
        assert flow.partitions.own[TopicPartition("leaves", 0)].status.reason == "gone"
        others = {name: view for name, view in there.topics.items() if name != "leaves"}
        gone.hear_of_deleted({"leaves"}, replace(there, topics=others), 5)
        assert flow.partitions.own[TopicPartition("leaves", 0)].status.reason == "gone", (
            "it has fewer partitions now"
        )
        gone.hear_of_deleted((), replace(there, topics=others), 5)
        assert flow.partitions.own[TopicPartition("leaves", 0)].status.reason == DELETED
        assert flow.partitions.own[TopicPartition("theirs", 0)].status.reason == "gone"


async def test_a_topic_that_may_not_be_seen_any_more_is_told_from_one_that_is_gone() -> None:
    async with run_fake_cluster() as dc1:

        async def refuse(_: RequestHeader, request: Any) -> MetadataResponse:
            broker = dc1.brokers[0]
            topics = () if request.topics is None else [one.name for one in request.topics]
            codes = {"secret": 29}
            return MetadataResponse(
                brokers=(
                    MetadataResponseBroker(
                        node_id=0, host=broker.address[0], port=broker.address[1]
                    ),
                ),
                cluster_id="fake",
                controller_id=0,
                topics=tuple(
                    MetadataResponseTopic(error_code=codes.get(topic, 3), name=topic, partitions=())
                    for topic in topics
                ),
            )

        dc1.brokers[0].scripts[METADATA] = refuse
        async with open_cluster(dc1.bootstrap, client_id="test") as source:
            listed = await source.metadata(refresh=True)
            assert listed.topics == {}
            assert await hidden_topics(source, {"secret", "gone"}) == {"secret"}
            assert await hidden_topics(source, set()) == frozenset()


async def test_only_what_nobody_else_has_written_to_is_deleted() -> None:
    async with flow_after_a_deletion() as (gone, flow, target):
        there = await target.metadata(refresh=True)
        stays = {name: view for name, view in there.topics.items() if name.startswith("stays")}
        source = replace(there, topics=stays)
        await gone.delete_due(source.topics, there, 1_000)
        assert (await target.metadata(refresh=True)).topics.keys() == there.topics.keys()
        await gone.delete_due(source.topics, there, 1_000 + LEAST_GRACE_MS)
        left = (await target.metadata(refresh=True)).topics
        assert there.topics.keys() - left.keys() == {"leaves"}
        assert flow.partitions.own[TopicPartition("leaves", 0)].status.reason == DELETED
        assert flow.partitions.own[TopicPartition("theirs", 0)].status.reason == "gone"


@pytest.mark.parametrize("scope", [Scope(topic="leaves"), Scope(topic="leaves", partition=0)])
async def test_what_somebody_has_paused_is_kept(scope: Scope) -> None:
    async with flow_after_a_deletion() as (gone, flow, target):
        flow.orders.follow(Orders(pauses=(Pause(scope=scope, by="somebody", since_ms=1),)))
        there = await target.metadata(refresh=True)
        stays = {name: view for name, view in there.topics.items() if name.startswith("stays")}
        for now in (1_000, 1_000 + LEAST_GRACE_MS):
            await gone.delete_due(stays, there, now)
        assert (await target.metadata(refresh=True)).topics.keys() == there.topics.keys()
        flow.orders.follow(Orders())
        await gone.delete_due(stays, there, 1_000 + LEAST_GRACE_MS + AGAIN_MS)
        left = (await target.metadata(refresh=True)).topics
        assert there.topics.keys() - left.keys() == {"leaves"}


async def test_time_in_which_nobody_could_look_is_no_grace() -> None:
    """A broker that has just started knows no topics: that twice, with a long outage between."""
    async with flow_after_a_deletion() as (gone, _, target):
        there = await target.metadata(refresh=True)
        stays = {name: view for name, view in there.topics.items() if name.startswith("stays")}
        source = replace(there, topics=stays)
        outage_ms = 10 * (LEAST_GRACE_MS + UNSEEN_MS)
        for now in (1_000, 1_000 + outage_ms):
            await gone.delete_due(source.topics, there, now)
        assert (await target.metadata(refresh=True)).topics.keys() == there.topics.keys()
        await gone.delete_due(source.topics, there, 1_000 + outage_ms + LEAST_GRACE_MS)
        left = (await target.metadata(refresh=True)).topics
        assert there.topics.keys() - left.keys() == {"leaves"}
