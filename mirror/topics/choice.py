"""The choice of the topics that a flow mirrors, and why the others are left out. Pure."""

import re
from collections.abc import Iterable

from runtime.configuration.config import FlowConfig
from wire.errors import ErrorCode
from wire.net.metadata import ClusterView, TopicView
from wire.net.retries import code_of
from wire.values import frozen


@frozen
class Choice:
    """One topic of the source; ``left_out`` says why, None for a topic that is mirrored."""

    topic: str
    partition_count: int
    left_out: str | None
    target_topic: str


def wanted_topics(flow: FlowConfig, source: ClusterView) -> dict[str, TopicView]:
    """Return the topics of the source that the flow mirrors."""
    return {name: topic for name, topic in source.topics.items() if left_out(flow, topic) is None}


def choices(flow: FlowConfig, source: ClusterView) -> list[Choice]:
    """Return all topics of the source by name."""
    return [
        Choice(
            topic=name,
            partition_count=len(topic.partitions),
            left_out=left_out(flow, topic),
            target_topic=flow.names.on_target(name),
        )
        for name, topic in sorted(source.topics.items())
    ]


def left_out(flow: FlowConfig, topic: TopicView) -> str | None:
    """Return why the flow does not mirror a topic, None if it does."""
    if topic.is_internal:
        return "it is internal to the cluster"
    if (reason := _by_name(flow, topic.name)) is not None:
        return reason
    if topic.error_code != ErrorCode.NONE:
        return f"the source says {code_of(topic.error_code).name}"
    return None if topic.partitions else "it has no partitions"


def _by_name(flow: FlowConfig, topic: str) -> str | None:
    """Return why no topic of this name is mirrored, None if it may be."""
    names = flow.names
    if not flow.is_heartbeats(topic):
        excluding = _matching(flow.topics.exclude, topic)
        if excluding is not None:
            return f"excluded by {excluding}"
        if _matching(flow.topics.include, topic) is None:
            return "no include pattern matches"
    if names.is_internal(topic):
        return "its name is one of internal topics"
    if names.is_cycle(topic):
        return f"it has come from {names.target}"
    if (owner := names.ousted_by(topic)) is not None:
        return f"its name on {names.target} was given to {owner} (`rename`): give it another"
    return None


def _matching(patterns: Iterable[re.Pattern[str]], name: str) -> str | None:
    return next((one.pattern for one in patterns if one.fullmatch(name)), None)
