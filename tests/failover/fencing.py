"""A fake cluster that can be fenced as the bundled brokers can."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, cast

from failover.sites.shared_fence import SharedFence
from runtime.configuration.config import Configuration
from runtime.coordination.zookeeper import ZooKeeper
from tests.doubles.fake_answers import ANSWERS
from tests.doubles.fake_cluster import FakeCluster
from wire.errors import ErrorCode
from wire.headers import RequestHeader
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
from wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from wire.messages.table import APIS


def fence_of_one_set(configuration: Configuration) -> SharedFence:
    """Return the fences of a file without sets, for which the witness is not asked."""
    return SharedFence(configuration=configuration, zookeeper=cast("ZooKeeper", None))


async def nothing() -> None:
    """Do nothing."""


@dataclass(slots=True)
class FencedCluster:
    """What its fence says. `on_probe` is done once, when a partition is next written to."""

    cluster: FakeCluster
    topics: tuple[str, ...] = ()
    times_set: int = 0
    on_probe: Callable[[], Awaitable[None]] = field(default=nothing)

    def serve(self) -> None:
        """Let the first broker answer to this fence."""
        broker = self.cluster.brokers[0]
        api = IncrementalAlterConfigsRequest.API_KEY
        self.cluster.versions[api] = APIS[api].VERSIONS
        broker.scripts[api] = self._alter
        api = DescribeConfigsRequest.API_KEY
        self.cluster.versions[api] = APIS[api].VERSIONS
        broker.scripts[api] = self._describe
        broker.scripts[ProduceRequest.API_KEY] = self._produce

    async def _describe(self, _: RequestHeader, __: object) -> Any:
        values = {"write.fence.topics": ",".join(self.topics)}
        values["write.fence.allowed.client.ids"] = ""
        configs = tuple(
            DescribeConfigsResourceResult(
                name=name, value=value, read_only=False, is_sensitive=False, synonyms=()
            )
            for name, value in values.items()
        )
        result = DescribeConfigsResult(
            error_code=0, resource_type=4, resource_name="", configs=configs
        )
        return DescribeConfigsResponse(results=(result,))

    async def _alter(self, _: RequestHeader, request: Any) -> Any:
        [resource] = request.resources
        [topics] = [one.value for one in resource.configs if one.name == "write.fence.topics"]
        self.topics = tuple((topics or "").split(",")) if topics else ()
        self.times_set += 1
        answer = IncrementalAlterConfigsResourceResponse(
            error_code=0, error_message=None, resource_type=4, resource_name=""
        )
        return IncrementalAlterConfigsResponse(responses=(answer,))

    async def _produce(self, header: RequestHeader, request: ProduceRequest) -> Any:
        then, self.on_probe = self.on_probe, nothing
        if header.client_id != "failover":
            return ANSWERS[header.api_key](self.cluster.brokers[0], header.api_version, request)
        answer = ProduceResponse(
            responses=tuple(
                TopicProduceResponse(
                    name=topic.name,
                    partition_responses=tuple(
                        PartitionProduceResponse(
                            index=data.index, error_code=self._code(topic.name), base_offset=-1
                        )
                        for data in topic.partition_data
                    ),
                )
                for topic in request.topic_data
            )
        )
        await then()
        return answer

    def _code(self, topic: str) -> ErrorCode:
        is_fenced = topic in self.topics
        return ErrorCode.NOT_ENOUGH_REPLICAS if is_fenced else ErrorCode.CORRUPT_MESSAGE
