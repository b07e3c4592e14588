"""The mirror's requests to a cluster about topics: shape, delete and describe them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final
from uuid import UUID

import trio

from wire.errors import ErrorCode
from wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from wire.net.cluster import Cluster
from wire.net.topic_creation import TopicRefused, create_topic, grow_topic, refusal
from wire.values import frozen

DYNAMIC_TOPIC_CONFIG: Final = 1
"""DescribeConfigs: a value set for this topic, not inherited from a broker or a default."""


STATIC_BROKER_CONFIG: Final = 4
"""DescribeConfigs: from a broker's own file; MirrorMaker 2 never copies these."""


@frozen
class CreateTopic:
    """The target lacks the topic."""

    topic: str
    partition_count: int
    replication_factor: int
    configs: Mapping[str, str]


@frozen
class GrowTopic:
    """The target has fewer partitions; keys are hashed by count, so it must grow first."""

    topic: str
    partition_count: int


@frozen
class SetConfigs:
    """The target's settings differ from what the source has set."""

    topic: str
    configs: Mapping[str, str]


TopicAction = CreateTopic | GrowTopic | SetConfigs


TOPIC_RESOURCE: Final = 2
SET: Final = 0
RESET: Final = 1
"""AlterConfigOp, as it travels: to give a value, and to take it back."""
TIMEOUT_MS: Final = 15_000
GONE_TIMEOUT_S: Final = 15.0
TOPIC_STATES_SINCE: Final = 6
"""The version of DeleteTopics that names topics in structs of their own."""


async def hidden_topics(cluster: Cluster, missing: Collection[str]) -> frozenset[str]:
    """Return those of the topics that are not listed because we may not see them.

    Raises NetworkFault.

    A broker leaves them out when it is asked for all, so that a right that was taken away looks
    like a deletion; asked by name it says why.
    """
    if not missing:
        return frozenset()
    view = await cluster.metadata(sorted(missing), refresh=True)
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return frozenset(name for name, seen in view.topics.items() if seen.error_code == refused)


async def apply(cluster: Cluster, action: TopicAction, *, validate_only: bool = False) -> bool:
    """Apply an action to a topic, or only ask whether it may be applied. Raises TopicRefused.

    Return False if it was applied already.
    """
    match action:
        case CreateTopic():
            return await create_topic(
                cluster,
                action.topic,
                partition_count=action.partition_count,
                replication_factor=action.replication_factor,
                configs=action.configs,
                validate_only=validate_only,
            )
        case GrowTopic():
            return await grow_topic(
                cluster, action.topic, action.partition_count, validate_only=validate_only
            )
        case SetConfigs():
            return await _set_configs(cluster, action, validate_only=validate_only)


async def _set_configs(cluster: Cluster, action: SetConfigs, *, validate_only: bool) -> bool:
    changes = [
        IncrementalAlterConfigsAlterableConfig(name=name, config_operation=SET, value=value)
        for name, value in sorted(action.configs.items())
    ]
    await _alter(cluster, action.topic, changes, validate_only=validate_only)
    return True


async def reset_configs(cluster: Cluster, topic: str, names: Iterable[str]) -> None:
    """Let the cluster's defaults hold for a topic again; raises TopicRefused."""
    changes = [
        IncrementalAlterConfigsAlterableConfig(name=name, config_operation=RESET, value=None)
        for name in names
    ]
    await _alter(cluster, topic, changes, validate_only=False)


async def _alter(
    cluster: Cluster,
    topic: str,
    changes: Sequence[IncrementalAlterConfigsAlterableConfig],
    *,
    validate_only: bool,
) -> None:
    answer = await cluster.request(
        IncrementalAlterConfigsRequest(
            resources=(
                IncrementalAlterConfigsResource(
                    resource_type=TOPIC_RESOURCE, resource_name=topic, configs=tuple(changes)
                ),
            ),
            validate_only=validate_only,
        )
    )
    result = answer.responses[0]
    if result.error_code != ErrorCode.NONE:
        raise await refusal(cluster, topic, result.error_code, result.error_message)


async def delete_topic(cluster: Cluster, topic: str) -> None:
    """Return when the topic is gone; raises TopicRefused."""
    controller = await cluster.controller()
    request = DeleteTopicsRequest(topic_names=(topic,), timeout_ms=TIMEOUT_MS)
    if controller.version_of(DeleteTopicsRequest) >= TOPIC_STATES_SINCE:
        state = DeleteTopicState(name=topic, topic_id=UUID(int=0))
        request = DeleteTopicsRequest(topics=(state,), timeout_ms=TIMEOUT_MS)
    result = (await controller.request(request)).responses[0]
    if result.error_code not in {ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}:
        raise await refusal(cluster, topic, result.error_code, result.error_message)
    gone_from = 0
    with trio.move_on_after(GONE_TIMEOUT_S):
        while True:
            # Brokers forget it one after the other, and in the meantime it cannot be made anew.
            # Each look asks another one: none may show it again, as if it were not deleted yet.
            view = await cluster.metadata([topic], refresh=True)
            seen = view.topics.get(topic)
            if seen is None or seen.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                gone_from += 1
                if gone_from >= len(view.brokers):
                    return
            else:
                gone_from = 0
                await trio.sleep(0.1)
    raise TopicRefused(topic, ErrorCode.REQUEST_TIMED_OUT, "is deleted, but still there")


async def topic_configs(
    cluster: Cluster, topics: Collection[str], *, with_defaults: bool = False
) -> dict[str, dict[str, str]]:
    """Return the settings of each topic itself; topics that would not say are left out.

    `with_defaults` adds settings that hold because nothing was set, except brokers' own files.
    """
    if not topics:
        return {}
    answer = await cluster.request(
        DescribeConfigsRequest(
            resources=tuple(
                DescribeConfigsResource(
                    resource_type=TOPIC_RESOURCE, resource_name=topic, configuration_keys=None
                )
                for topic in sorted(topics)
            )
        )
    )
    return {
        result.resource_name: {
            config.name: config.value
            for config in result.configs
            if config.value is not None
            and not config.read_only
            and (
                config.config_source == DYNAMIC_TOPIC_CONFIG
                or (with_defaults and config.config_source != STATIC_BROKER_CONFIG)
            )
        }
        for result in answer.results
        if result.error_code == ErrorCode.NONE
    }
