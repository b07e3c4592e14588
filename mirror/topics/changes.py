"""Apply the actions planned for a topic, without the settings that the target refuses."""

from collections.abc import Collection, Mapping
from dataclasses import field, replace
from typing import Final, TypeAlias

from mirror.clusters.admin import CreateTopic, GrowTopic, SetConfigs, TopicAction, apply
from mirror.topics.refused_settings import Setting, surely_refused, to_be_tried, to_leave_out
from wire.errors import ErrorCode
from wire.net.cluster import Cluster
from wire.net.topic_creation import TopicRefused
from wire.values import frozen

ABOUT_SETTINGS: Final = frozenset({ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST})
"""INVALID_REQUEST: how brokers in ZooKeeper mode refuse some changes of settings."""

WithSettings: TypeAlias = CreateTopic | SetConfigs


@frozen
class Applied:
    """The outcome of an action."""

    action: TopicAction
    """As it was accepted."""
    was_done: bool
    """False if it was done already."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """The settings that were left out, with the target's reasons."""


async def apply_acceptable(
    cluster: Cluster, action: TopicAction, suspects: Collection[Setting]
) -> Applied:
    """Do as much of an action as the cluster accepts. Raises TopicRefused for all but settings.

    Every round leaves out one setting at least, so there are no more rounds than settings.
    """
    if isinstance(action, GrowTopic):
        return Applied(action=action, was_done=await apply(cluster, action))
    refused: dict[str, str] = {}
    while action.configs or isinstance(action, CreateTopic):
        try:
            was_done = await apply(cluster, action)
        except TopicRefused as refusal:
            if refusal.code not in ABOUT_SETTINGS or not action.configs:
                raise
            left_out = await _refused_settings(cluster, action, refusal.reason, suspects)
        else:
            return Applied(action=action, was_done=was_done, refused=refused)
        refused |= left_out
        action = _with_only(action, action.configs.keys() - left_out.keys())
    return Applied(action=action, was_done=False, refused=refused)


async def _refused_settings(
    cluster: Cluster, action: WithSettings, message: str, suspects: Collection[Setting]
) -> dict[str, str]:
    """Return the settings to do without, each with the reason; asks for them one by one if needed.

    Brokers name the setting in most messages; "Tiered Storage functionality is disabled" does not.
    """
    names = surely_refused(action.configs, message, suspects)
    if names:
        return dict.fromkeys(names, message)
    alone: dict[str, str] = {}
    for name in to_be_tried(action.configs, message):
        try:
            await apply(cluster, _with_only(action, {name}), validate_only=True)
        except TopicRefused as refusal:
            if refusal.code not in ABOUT_SETTINGS:
                raise
            alone[name] = refusal.reason
    return alone or dict.fromkeys(to_leave_out(action.configs, message, alone), message)


def _with_only(action: WithSettings, names: Collection[str]) -> WithSettings:
    configs = {name: value for name, value in action.configs.items() if name in names}
    return replace(action, configs=configs)
