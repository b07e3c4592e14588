"""What an administrator may not do to the topics in which groups keep their positions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from broker.apis import alter_configs, incremental_alter_configs
from broker.apis.describe_configs import TOPIC
from broker.apis.incremental_alter_configs import OpType
from broker.context import Call, Node
from broker.dynamic_config import DynamicConfig
from broker.led_partition import CONSUMER_OFFSETS
from broker.metadata_cache import MetadataCache
from tests.broker.rig import TOPIC_ID, config, view
from wire.errors import ErrorCode
from wire.messages.alter_configs import (
    AlterConfigsAlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)

POLICY = "cleanup.policy"


@dataclass
class FakeStore:
    """Settings of topics, as ZooKeeper would hold them."""

    settings: dict[str, Mapping[str, str]] = field(default_factory=dict)

    async def change_topic_config(
        self, topic: str, change: Callable[[Mapping[str, str]], Mapping[str, str]]
    ) -> Mapping[str, str]:
        self.settings[topic] = change(self.settings[topic])
        return self.settings[topic]


def call(store: FakeStore) -> Call:
    metadata = MetadataCache("cluster")
    for topic in store.settings:
        metadata.put_partitions(topic, TOPIC_ID, [view(0)])
    partitions = SimpleNamespace(reconfigure=lambda _: None)
    node: Any = SimpleNamespace(
        metadata=metadata, store=store, dynamic=DynamicConfig(config()), partitions=partitions
    )
    return Call(node=cast("Node", node), api_version=1, client_id=None, client_host="h")


async def set_exactly(store: FakeStore, topic: str, settings: Mapping[str, str]) -> int:
    configs = tuple(AlterConfigsAlterableConfig(name=n, value=v) for n, v in settings.items())
    resource = AlterConfigsResource(resource_type=TOPIC, resource_name=topic, configs=configs)
    request = AlterConfigsRequest(resources=(resource,), validate_only=False)
    (answer,) = (await alter_configs.handle(request, call(store))).responses
    return answer.error_code


async def change_policy(store: FakeStore, operation: OpType, value: str | None) -> int:
    change = IncrementalAlterConfigsAlterableConfig(
        name=POLICY, config_operation=operation, value=value
    )
    resource = IncrementalAlterConfigsResource(
        resource_type=TOPIC, resource_name=CONSUMER_OFFSETS, configs=(change,)
    )
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    (answer,) = (await incremental_alter_configs.handle(request, call(store))).responses
    return answer.error_code


async def test_positions_are_not_given_over_to_retention_by_settings_that_name_no_policy() -> None:
    store = FakeStore({CONSUMER_OFFSETS: {POLICY: "compact"}, "t": {POLICY: "compact"}})
    assert await set_exactly(store, CONSUMER_OFFSETS, {"segment.bytes": "1000"}) == (
        ErrorCode.INVALID_CONFIG
    )
    assert store.settings[CONSUMER_OFFSETS] == {POLICY: "compact"}
    both = {POLICY: "compact", "segment.bytes": "1000"}
    assert await set_exactly(store, CONSUMER_OFFSETS, both) == ErrorCode.NONE
    assert store.settings[CONSUMER_OFFSETS] == both
    assert await set_exactly(store, "t", {"segment.bytes": "1000"}) == ErrorCode.NONE


@pytest.mark.parametrize(
    ("operation", "value"),
    [
        (OpType.SET, "delete"),
        (OpType.APPEND, "delete"),
        (OpType.DELETE, None),
        (OpType.SUBTRACT, "compact"),
        (OpType.SET, ""),
    ],
)
async def test_positions_are_not_given_over_to_retention_by_another_policy(
    operation: OpType, value: str | None
) -> None:
    store = FakeStore({CONSUMER_OFFSETS: {POLICY: "compact"}})
    assert await change_policy(store, operation, value) == ErrorCode.INVALID_CONFIG
    assert store.settings[CONSUMER_OFFSETS] == {POLICY: "compact"}
