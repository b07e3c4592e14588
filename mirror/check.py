"""`mirror check`: do both clusters answer, and what would a run do? Nothing is changed."""

from collections.abc import AsyncIterator
from typing import Final

import trio

from mirror.admin import topic_configs
from mirror.links import Links, open_links
from mirror.rights import (
    SOURCE_RIGHTS,
    TARGET_RIGHTS,
    lacking,
    told_lacking,
    topic_operations,
)
from mirror.topic_choice import wanted_topics
from mirror.topic_plan import CreateTopic, GrowTopic, SetConfigs, TopicAction, plan_topics
from mirror.topics import topic_shape
from runtime.config import Configuration, FlowConfig
from runtime.zookeeper import ZooKeeperFault, open_zookeeper
from wire.errors import ErrorCode
from wire.net import NetworkFault

TIMEOUT_S: Final = 20.0


class CheckFailed(Exception):
    """A run would not work; the message names what does not answer."""


async def check(configuration: Configuration) -> AsyncIterator[str]:
    """Yield what was found, line by line; raises CheckFailed."""
    coordination = configuration.coordination
    try:
        async with open_zookeeper(
            coordination.zookeeper, session_timeout_ms=coordination.session_timeout_ms
        ):
            yield f"witness {coordination.zookeeper}: answers"
    except ZooKeeperFault as fault:
        raise CheckFailed(str(fault)) from fault
    for flow in configuration.flows:
        for line in await _check_flow(configuration, flow):
            yield line


async def _check_flow(configuration: Configuration, flow: FlowConfig) -> list[str]:
    clusters = configuration.clusters
    try:
        with trio.fail_after(TIMEOUT_S):
            async with open_links(flow, clusters[flow.source], clusters[flow.target]) as links:
                return await _plan(flow, links)
    except trio.TooSlowError as fault:
        raise CheckFailed(f"flow {flow.name}: no answer within {TIMEOUT_S:g} s") from fault


async def _plan(flow: FlowConfig, links: Links) -> list[str]:
    try:
        source = await links.source_admin.metadata(refresh=True)
    except NetworkFault as fault:
        raise CheckFailed(f"flow {flow.name}: source {fault}") from fault
    try:
        target = await links.target_admin.metadata(refresh=True)
        wanted = wanted_topics(flow, source)
        on_target = {flow.names.on_target(name): name for name in wanted}
        there = {
            name
            for name in on_target
            if name in target.topics and target.topics[name].error_code == ErrorCode.NONE
        }
        source_configs = await topic_configs(
            links.source_admin, set(wanted), with_defaults=flow.settings.takes_defaults
        )
        target_configs = await topic_configs(links.target_admin, there)
        rights = [
            *told_lacking(
                flow.source,
                lacking(await topic_operations(links.source_admin, set(wanted)), SOURCE_RIGHTS),
            ),
            *told_lacking(
                flow.target,
                lacking(await topic_operations(links.target_admin, there), TARGET_RIGHTS),
            ),
        ]
    except NetworkFault as fault:
        raise CheckFailed(f"flow {flow.name}: target {fault}") from fault
    actions = plan_topics(
        {
            name: topic_shape(wanted[topic], source_configs.get(topic))
            for name, topic in on_target.items()
        },
        {name: topic_shape(target.topics[name], target_configs.get(name)) for name in there},
        replication_factor=flow.replication_factor,
        live_brokers=len(target.brokers),
        settings=flow.settings,
    )
    count = sum(len(topic.partitions) for topic in wanted.values())
    brokers = f"{len(source.brokers)} brokers in {flow.source}, {len(target.brokers)} in"
    names = ", ".join(sorted(wanted)) or "none matches"
    return [
        f"flow {flow.name}: both sites answer: {brokers} {flow.target}",
        f"flow {flow.name}: mirrors {len(wanted)} topics, {count} partitions: {names}",
        *(f"flow {flow.name}: {line}" for line in rights),
        *(f"flow {flow.name}: would {describe(action)}" for action in actions),
    ]


def describe(action: TopicAction) -> str:
    """Return what an action does, as words after "would"."""
    match action:
        case CreateTopic():
            return (
                f"create {action.topic} with {action.partition_count} partitions, "
                f"replication factor {action.replication_factor}"
            )
        case GrowTopic():
            return f"grow {action.topic} to {action.partition_count} partitions"
        case SetConfigs():
            settings = ", ".join(f"{name}={value}" for name, value in action.configs.items())
            return f"set {settings} on {action.topic}"
