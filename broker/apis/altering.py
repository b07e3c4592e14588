"""The steps of both requests that change settings: check, write to ZooKeeper, tell every broker."""

from collections.abc import Callable, Mapping
from typing import Final

from broker.apis.describe_configs import ALL_BROKERS, BROKER, TOPIC
from broker.context import Call
from broker.controller.topics import INTERNAL_TOPICS
from broker.dynamic_config import check_default_broker, check_no_fence, check_one_broker
from broker.log.config import InvalidConfig, LogConfig
from runtime.coordination.zookeeper import ZooKeeperFault
from wire.errors import ErrorCode
from wire.values import frozen

CLEANUP_POLICY: Final = "cleanup.policy"
STILL_IN_USE: Final = "must be compact for an internal topic: what is old in it is still in use"
"""Time retention would take positions that groups still go on from."""


@frozen
class Alteration:
    """One resource's change: from its present settings to those it shall have."""

    resource_type: int
    resource_name: str
    change: Callable[[Mapping[str, str]], Mapping[str, str]]
    """May raise InvalidConfig."""
    validate_only: bool


async def alter(alteration: Alteration, call: Call) -> tuple[ErrorCode, str]:
    """Change one resource; return an error code and what to tell the client.

    It holds on this broker when this returns, and on the others as soon as their watch fires.
    """
    try:
        if alteration.resource_type == TOPIC:
            return await _alter_topic(alteration, call)
        if alteration.resource_type != BROKER:
            kind = alteration.resource_type
            return ErrorCode.INVALID_REQUEST, f"resource type {kind} has no settings"
        if alteration.resource_name != ALL_BROKERS:
            return await _alter_one_broker(alteration, call)
        return await _alter_all_brokers(alteration, call)
    except InvalidConfig as error:
        # Kafka's word for a broker's setting that cannot be is another one than for a topic's.
        of_topic = alteration.resource_type == TOPIC
        return ErrorCode.INVALID_CONFIG if of_topic else ErrorCode.INVALID_REQUEST, str(error)
    except ZooKeeperFault as error:
        return ErrorCode.UNKNOWN_SERVER_ERROR, f"not stored: {error}"


async def _alter_one_broker(alteration: Alteration, call: Call) -> tuple[ErrorCode, str]:
    """Change what this broker has for itself; clients ask the broker that they mean."""
    node = call.node
    if alteration.resource_name != str(node.broker_id):
        reason = f"expected broker {node.broker_id}, not {alteration.resource_name!r}"
        return ErrorCode.INVALID_REQUEST, reason

    def change(present: Mapping[str, str]) -> Mapping[str, str]:
        changed = alteration.change(present)
        check_one_broker(node.config, changed)
        return changed

    if alteration.validate_only:
        change(await node.store.broker_config(node.broker_id))
        return ErrorCode.NONE, ""
    node.dynamic.set_broker(await node.store.change_broker_config(node.broker_id, change))
    node.reconfigure()
    return ErrorCode.NONE, ""


async def _alter_topic(alteration: Alteration, call: Call) -> tuple[ErrorCode, str]:
    node, topic = call.node, alteration.resource_name
    if node.metadata.topic(topic) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no topic {topic!r}"

    def change(present: Mapping[str, str]) -> Mapping[str, str]:
        changed = alteration.change(present)
        check_topic(topic, changed)
        return changed

    if alteration.validate_only:
        change(await node.store.topic_config(topic))
        return ErrorCode.NONE, ""
    node.dynamic.set_topic(topic, await node.store.change_topic_config(topic, change))
    node.partitions.reconfigure(topic)
    return ErrorCode.NONE, ""


def check_topic(topic: str, settings: Mapping[str, str]) -> None:
    """Refuse settings that a topic cannot have. Raises InvalidConfig.

    AlterConfigs takes the policy of an internal topic away by not naming it.
    """
    config = LogConfig().with_overrides(settings)
    if topic in INTERNAL_TOPICS and (config.deletes or not config.compacts):
        raise InvalidConfig(CLEANUP_POLICY, settings.get(CLEANUP_POLICY), STILL_IN_USE)


async def _alter_all_brokers(alteration: Alteration, call: Call) -> tuple[ErrorCode, str]:
    node = call.node

    def change(present: Mapping[str, str]) -> Mapping[str, str]:
        changed = alteration.change(present)
        check_default_broker(changed)
        if not node.config.write_fence_enable:
            check_no_fence(changed)
        return changed

    if alteration.validate_only:
        change(await node.store.default_broker_config())
        return ErrorCode.NONE, ""
    node.dynamic.set_default_broker(await node.store.change_default_broker_config(change))
    node.reconfigure()
    return ErrorCode.NONE, ""
