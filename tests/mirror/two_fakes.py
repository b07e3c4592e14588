"""The clusters of a flow as fakes, and the mirror's links to them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mirror.clusters.links import Links
from tests.doubles.fake_cluster import FakeCluster, run_fake_cluster
from wire.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from wire.net import open_cluster


@asynccontextmanager
async def two_fakes(brokers: int = 1) -> AsyncIterator[tuple[FakeCluster, FakeCluster, Links]]:
    """Run the source and the target, each of so many brokers."""
    async with (
        run_fake_cluster(brokers) as dc1,
        run_fake_cluster(brokers) as dc2,
        open_cluster(dc1.bootstrap, client_id="test") as source,
        open_cluster(dc2.bootstrap, client_id="test") as target,
    ):
        yield (
            dc1,
            dc2,
            Links(
                source_data=source,
                source_groups=source,
                source_admin=source,
                target_data=target,
                target_admin=target,
            ),
        )


def let_create(fake: FakeCluster) -> dict[str, str | None]:
    """Have the cluster make topics; return the settings that it will be asked to give them."""
    asked: dict[str, str | None] = {}

    async def create(_: object, request: CreateTopicsRequest) -> CreateTopicsResponse:
        [topic] = request.topics
        asked.update({one.name: one.value for one in topic.configs})
        fake.create_topic(topic.name, 0)
        return CreateTopicsResponse(topics=(CreatableTopicResult(name=topic.name, error_code=0),))

    fake.versions[CreateTopicsRequest.API_KEY] = CreateTopicsRequest.VERSIONS
    fake.brokers[0].scripts[CreateTopicsRequest.API_KEY] = create
    return asked
