"""Discovery between two fakes, and what it does to them."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

from mirror.clusters.admin import DYNAMIC_TOPIC_CONFIG
from mirror.flow.flow_state import FlowState
from mirror.map.map_log import MapLog
from mirror.start.positioning import Positioning, PositioningParts
from mirror.state.measurements import FlowMeasurements
from mirror.state.mirrored_progress import MirroredProgress
from mirror.state.wakeups import FlowGate
from mirror.topics.discovery import Discovery
from runtime.configuration.config import FlowConfig, PatternSet
from tests.doubles.fake_cluster import FakeCluster
from tests.doubles.map_writers import MemoryWriters
from tests.mirror.building import CONFIG
from tests.mirror.two_fakes import two_fakes
from wire.headers import RequestHeader
from wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)

EVERYTHING = PatternSet(include=(re.compile(".*"),), exclude=())


def tell_settings(fake: FakeCluster, settings: dict[str, str]) -> None:
    """Have each of a cluster's topics tell these as its own."""

    async def tell(_: RequestHeader, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        configs = tuple(
            DescribeConfigsResourceResult(
                name=name,
                value=value,
                read_only=False,
                config_source=DYNAMIC_TOPIC_CONFIG,
                is_sensitive=False,
            )
            for name, value in settings.items()
        )
        return DescribeConfigsResponse(
            results=tuple(
                DescribeConfigsResult(
                    error_code=0, resource_type=2, resource_name=one.resource_name, configs=configs
                )
                for one in request.resources
            )
        )

    fake.brokers[0].scripts[DescribeConfigsRequest.API_KEY] = tell
    fake.versions |= {DescribeConfigsRequest.API_KEY: range(5)}


def note_changes(fake: FakeCluster) -> list[str]:
    """Return what the cluster will be asked to change."""
    changed: list[str] = []

    async def alter(_: RequestHeader, request: Any) -> IncrementalAlterConfigsResponse:
        [resource] = request.resources
        changed.extend(f"{one.name}={one.value}" for one in resource.configs)
        result = IncrementalAlterConfigsResourceResponse(
            error_code=0,
            error_message=None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        return IncrementalAlterConfigsResponse(responses=(result,))

    async def grow(_: RequestHeader, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
        [topic] = request.topics
        changed.append(f"{topic.count} partitions")
        return CreatePartitionsResponse(
            results=(CreatePartitionsTopicResult(name=topic.name, error_code=0),)
        )

    for request, answer in (
        (IncrementalAlterConfigsRequest, alter),
        (CreatePartitionsRequest, grow),
    ):
        fake.brokers[0].scripts[request.API_KEY] = answer
        fake.versions |= {request.API_KEY: request.VERSIONS}
    return changed


@asynccontextmanager
async def discovery(
    config: FlowConfig = CONFIG, *, brokers: int = 1, leads: bool = True
) -> AsyncIterator[tuple[Discovery, FakeCluster, FakeCluster, MapLog]]:
    """Give the discovery of a worker, both clusters, and the map of the flow."""
    flow = FlowState(config=replace(config, topics=EVERYTHING), measurements=FlowMeasurements("f"))
    if leads:
        flow.share.lead()
    async with two_fakes(brokers) as (dc1, dc2, links):
        map_log = MapLog(links.target_admin, "dc1", None, MemoryWriters())
        yield Discovery(flow.for_discovery, links, map_log), dc1, dc2, map_log


def positioning_beside(discovery: Discovery) -> Positioning:
    """Return the positioning of the same flow."""
    parts = discovery._parts
    beside = PositioningParts(
        config=parts.config,
        partitions=parts.partitions,
        gate=FlowGate(parts.wakeups),
        reverse=parts.reverse,
        interruptions=parts.interruptions,
        progress=MirroredProgress(),
        wakeups=parts.wakeups,
    )
    return Positioning(beside, discovery._links, discovery._map_log, MemoryWriters())


def note_deletions(fake: FakeCluster) -> list[str]:
    """Return the topics that the cluster will be asked to delete, which it does."""
    deleted: list[str] = []

    async def delete(_: RequestHeader, request: Any) -> DeleteTopicsResponse:
        [topic] = request.topics
        deleted.append(topic.name)
        fake.topics.pop(topic.name)
        result = DeletableTopicResult(name=topic.name, topic_id=UUID(int=0), error_code=0)
        return DeleteTopicsResponse(responses=(result,))

    fake.brokers[0].scripts[DeleteTopicsRequest.API_KEY] = delete
    fake.versions |= {DeleteTopicsRequest.API_KEY: range(7)}
    return deleted
