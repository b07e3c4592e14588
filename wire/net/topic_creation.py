"""Topics are made and grown here: for the mirror, for a promotion, for the evidence of a pair."""

from collections.abc import Mapping
from typing import Final

import trio

from wire.errors import ErrorCode
from wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from wire.net.cluster import Cluster
from wire.net.errors import NetworkFault
from wire.net.retries import code_of

BROKERS_DEFAULT: Final = -1
"""As a replication factor: the broker's default.replication.factor (KIP-464, Kafka 2.4)."""
MOST_REPLICAS: Final = 3
"""Of an internal topic, where nothing else is said; fewer where there are fewer brokers."""
TIMEOUT_MS: Final = 15_000
LEADERS_TIMEOUT_S: Final = 15.0
LOOK_AGAIN_S: Final = 0.05


class TopicRefused(NetworkFault):
    """A cluster would not create or change a topic; the message names topic and error."""

    def __init__(self, topic: str, code: int, message: str | None) -> None:
        self.topic = topic
        self.code = code_of(code)
        self.reason = message or self.code.name
        super().__init__(f"topic {topic}: {self.code.name}{': ' + message if message else ''}")


async def create_topic(
    cluster: Cluster,
    topic: str,
    *,
    partition_count: int,
    replication_factor: int,
    configs: Mapping[str, str],
    validate_only: bool = False,
) -> bool:
    """Create a topic, or only ask whether it may be created; return False if it was there.

    Raises TopicRefused, and NetworkFault of the connection.
    """
    creatable = CreatableTopic(
        name=topic,
        num_partitions=partition_count,
        replication_factor=replication_factor,
        assignments=(),
        configs=tuple(
            CreatableTopicConfig(name=name, value=value) for name, value in sorted(configs.items())
        ),
    )
    answer = await cluster.request_controller(
        CreateTopicsRequest(topics=(creatable,), timeout_ms=TIMEOUT_MS, validate_only=validate_only)
    )
    result = answer.topics[0]
    if result.error_code not in {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}:
        raise await refusal(cluster, topic, result.error_code, result.error_message)
    return result.error_code == ErrorCode.NONE


async def grow_topic(
    cluster: Cluster, topic: str, partition_count: int, *, validate_only: bool = False
) -> bool:
    """Give a topic as many partitions in all; return False if it had as many or more.

    Raises TopicRefused, and NetworkFault of the connection.
    """
    growing = CreatePartitionsTopic(name=topic, count=partition_count, assignments=None)
    answer = await cluster.request_controller(
        CreatePartitionsRequest(
            topics=(growing,), timeout_ms=TIMEOUT_MS, validate_only=validate_only
        )
    )
    result = answer.results[0]
    if result.error_code not in {ErrorCode.NONE, ErrorCode.INVALID_PARTITIONS}:
        raise await refusal(cluster, topic, result.error_code, result.error_message)
    return result.error_code == ErrorCode.NONE


async def ensure_topic(
    cluster: Cluster,
    topic: str,
    *,
    replication_factor: int | None,
    configs: Mapping[str, str],
    partition_count: int = 1,
) -> None:
    """Return when the topic exists and its partitions have leaders.

    One that is there keeps its partitions. Without a ``replication_factor`` it gets MOST_REPLICAS,
    and never more than there are brokers. Raises TopicRefused, and NetworkFault of the connection.
    """
    with trio.move_on_after(LEADERS_TIMEOUT_S):
        while True:
            view = await cluster.metadata([topic], refresh=True)
            known = view.topics.get(topic)
            if known is not None and known.error_code == ErrorCode.NONE:
                if all(partition.leader >= 0 for partition in known.partitions.values()):
                    return
            else:
                factor = max(1, min(replication_factor or MOST_REPLICAS, len(view.brokers)))
                await create_topic(
                    cluster,
                    topic,
                    partition_count=partition_count,
                    replication_factor=factor,
                    configs=configs,
                )
            await trio.sleep(LOOK_AGAIN_S)
    raise TopicRefused(topic, ErrorCode.LEADER_NOT_AVAILABLE, "no leader in time")


async def refusal(cluster: Cluster, topic: str, code: int, message: str | None) -> TopicRefused:
    """Return what to raise; after NOT_CONTROLLER another one is looked up for the next try."""
    if code == ErrorCode.NOT_CONTROLLER:
        await cluster.metadata(refresh=True)
    return TopicRefused(topic, code, message)
