"""Topic settings that the target refuses: which, and for how long. Pure.

Kinds and versions of brokers differ in the settings that they know and in the values that they
take: Kafka 4 has no `message.downconversion.enable` and wants segments of 1 MiB at least. A topic
is mirrored without what its target refuses, because its data matters more.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final, TypeAlias

from wire.values import frozen

ASK_AGAIN_MS: Final = 600_000
"""A refusal holds for so long: the target may be upgraded or reconfigured."""

Setting: TypeAlias = tuple[str, str]
"""Name and value."""


@frozen
class RefusedSetting:
    """One setting of one topic, as it is on the source."""

    topic: str
    name: str
    value: str
    reason: str


def named_settings(configs: Iterable[str], message: str) -> list[str]:
    """Return the settings that an error message names, in its order.

    `local.retention.ms` does not name `retention.ms`.
    """
    places = {
        name: found.start()
        for name in configs
        if (found := re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)", message))
    }
    return sorted(places, key=places.__getitem__)


def surely_refused(
    configs: Mapping[str, str], message: str, suspects: Collection[Setting]
) -> list[str]:
    """Return the settings that a refusal is about, if that can be told without asking further.

    They are the one setting that the message names, or else those that the target has already
    refused to another topic.
    """
    named = named_settings(configs, message)
    if len(named) == 1:
        return named
    return [name for name, value in configs.items() if (name, value) in suspects]


def to_be_tried(configs: Mapping[str, str], message: str) -> list[str]:
    """Return the settings to ask for one by one: those that are named, or else all."""
    return named_settings(configs, message) or sorted(configs)


def to_leave_out(
    configs: Mapping[str, str], message: str, refused_alone: Collection[str]
) -> list[str]:
    """Return the settings to leave out after each was tried alone; at least one.

    When each alone is accepted and only their combination is not, the first that is named goes, or
    all when none is.
    """
    if refused_alone:
        return sorted(refused_alone)
    return named_settings(configs, message)[:1] or sorted(configs)


class RefusedSettings:
    """The settings that one target has refused to the topics of a flow. Time is an argument."""

    def __init__(self) -> None:
        self._refused: dict[tuple[str, str], tuple[RefusedSetting, int]] = {}

    @property
    def known(self) -> list[RefusedSetting]:
        """Return the settings that topics are mirrored without, in order."""
        return [refused for _, (refused, _) in sorted(self._refused.items())]

    @property
    def suspects(self) -> frozenset[Setting]:
        """Return the settings that were refused to any topic."""
        return frozenset((refused.name, refused.value) for refused, _ in self._refused.values())

    def acceptable(self, topic: str, configs: Mapping[str, str], now_ms: int) -> dict[str, str]:
        """Return the settings to ask for: without those that were refused a short while ago."""
        return {
            name: value
            for name, value in configs.items()
            if not self._is_refused(topic, name, value, now_ms)
        }

    def _is_refused(self, topic: str, name: str, value: str, now_ms: int) -> bool:
        refused, at_ms = self._refused.get((topic, name), (None, 0))
        return refused is not None and refused.value == value and now_ms - at_ms < ASK_AGAIN_MS

    def note(self, refused: RefusedSetting, now_ms: int) -> bool:
        """Remember one; return whether it is news."""
        setting = refused.topic, refused.name
        before, _ = self._refused.get(setting, (None, 0))
        self._refused[setting] = refused, now_ms
        return before != refused

    def forget(self, topic: str, names: Iterable[str]) -> None:
        """The target has taken these."""
        for name in names:
            self._refused.pop((topic, name), None)

    def keep(self, topics: Mapping[str, Mapping[str, str]]) -> None:
        """Forget refusals of settings that the source, with these settings, has not any more."""
        self._refused = {
            setting: (refused, at_ms)
            for setting, (refused, at_ms) in self._refused.items()
            if topics.get(refused.topic, {}).get(refused.name) == refused.value
        }
