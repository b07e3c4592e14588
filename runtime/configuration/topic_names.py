"""The names of a flow's topics on the target: as on the source, prefixed as MirrorMaker 2, given.

The mirror, its map and its commands know topics by the source's names. Only code that talks to the
target asks for the other ones, and only this module knows them.

The rules are those of org.apache.kafka.connect.mirror's DefaultReplicationPolicy (prefixed) and
IdentityReplicationPolicy (identical), and of MirrorSourceConnector for what is never mirrored.
Pure.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Final

from wire.values import frozen

HEARTBEATS: Final = "heartbeats"
DEFAULT_SEPARATOR: Final = "."
SEPARATOR: Final = re.compile(r"[A-Za-z0-9._-]+")
"""The characters of a topic's name."""
DIVERGED: Final = ".diverged"


def diverged_topic(topic: str) -> str:
    """Return the topic, on both sites, of records that were set aside from this one."""
    return topic + DIVERGED


@frozen(kw_only=False)
class Renames:
    """The topics that have been given names of their own on the target; no two share one."""

    to_target: Mapping[str, str] = field(default_factory=dict)
    to_source: Mapping[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Turn the names round. Two sources of one target are our own bug: the file has none."""
        back = {target: source for source, target in self.to_target.items()}
        assert len(back) == len(self.to_target), "two topics would have one name on the target"
        object.__setattr__(self, "to_source", MappingProxyType(back))

    def __bool__(self) -> bool:
        """Whether any topic has been given a name."""
        return bool(self.to_target)


NO_RENAMES: Final = Renames()


@frozen
class TopicNames:
    """The names of one flow; ``source`` and ``target`` are the clusters' names."""

    source: str
    target: str
    is_prefixed: bool = False
    separator: str = DEFAULT_SEPARATOR
    has_heartbeats: bool = False
    """Whether MirrorMaker's heartbeats are mirrored, which are prefixed in every flow."""
    renames: Renames = NO_RENAMES
    """They go before the prefix."""

    @property
    def prefix(self) -> str:
        """Return what stands before each mirrored name on the target, but for given names."""
        return f"{self.source}{self.separator}" if self.is_prefixed else ""

    # --- both ways ---------------------------------------------------------------------------

    def on_target(self, topic: str) -> str:
        """Return the target's name of a source topic (formatRemoteTopic)."""
        given = self.renames.to_target.get(topic)
        return self._by_rule(topic) if given is None else given

    def on_source(self, topic: str) -> str | None:
        """Return the source topic that the flow mirrors under this name, None if it mirrors none.

        The inverse of ``on_target``, but for topics that are ``ousted``: those are not mirrored.
        """
        renamed = self.renames.to_source.get(topic)
        if renamed is not None:
            return renamed
        upstream = self._by_rule_on_source(topic)
        return None if upstream in self.renames.to_target else upstream

    def ousted_by(self, topic: str) -> str | None:
        """Return the source topic that was given the name that this one would have on the target.

        None for a topic whose name is free: no two topics have one name on the target, so the
        one that no name was given stays behind.
        """
        if topic in self.renames.to_target:
            return None
        return self.renames.to_source.get(self._by_rule(topic))

    def comes_back(self, topic: str) -> bool:
        """Whether the flow back would bring a source topic's copy into that topic.

        By a prefix, copies have topics to themselves on each site.
        """
        return topic in self.renames.to_target or self._by_rule(topic) == topic

    def words(self, topic: str) -> str:
        """Return what a source topic is called, with its name on the target where it differs."""
        name = self.on_target(topic)
        return topic if name == topic else f"{topic} as {name}"

    def home(self, topic: str) -> str | None:
        """Return the source topic into which the flow back brings a target topic, None for none."""
        source = self.on_source(topic)
        return source if source is not None and self.comes_back(source) else None

    def turned_round(self) -> "TopicNames":
        """Return the names of the way back, of a flow without a prefix."""
        assert not self.is_prefixed, "what is prefixed does not come back"
        return TopicNames(
            source=self.target,
            target=self.source,
            separator=self.separator,
            has_heartbeats=self.has_heartbeats,
            renames=Renames(self.renames.to_source),
        )

    @property
    def way_home(self) -> Callable[[str], str | None] | None:
        """Return ``home``; None where a topic has one name on both sites, which spares asking."""
        return self.home if self.is_prefixed or self.renames else None

    def _by_rule(self, topic: str) -> str:
        if self.is_prefixed or (self.has_heartbeats and self.is_heartbeats(topic)):
            return f"{self.source}{self.separator}{topic}"
        return topic

    def _by_rule_on_source(self, topic: str) -> str | None:
        prefix = f"{self.source}{self.separator}"
        upstream = topic.removeprefix(prefix) if topic.startswith(prefix) else None
        if self.is_prefixed:
            return upstream
        if self.has_heartbeats and self.is_heartbeats(topic):
            return upstream
        return topic

    # --- what a name says --------------------------------------------------------------------

    def topic_source(self, topic: str) -> str | None:
        """Return the cluster that a prefixed name comes from, None for one without prefix.

        Java's split drops empty parts at the end, so `orders.` has no prefix and `.orders` has an
        empty one.
        """
        source, found, rest = topic.partition(self.separator)
        return source if found and _has_part(rest, self.separator) else None

    def upstream_topic(self, topic: str) -> str | None:
        """Return the name of a prefixed topic on the cluster that it comes from, None without."""
        source = self.topic_source(topic)
        return None if source is None else topic[len(source) + len(self.separator) :]

    def original_topic(self, topic: str) -> str:
        """Return the name at the first of all hops."""
        while (upstream := self.upstream_topic(topic)) is not None:
            topic = upstream
        return topic

    def is_heartbeats(self, topic: str) -> bool:
        """Whether a topic holds heartbeats, of whatever cluster.

        IdentityReplicationPolicy takes every name that ends so for heartbeats; an application's
        `engine-heartbeats` keeps its name here.
        """
        return self.original_topic(topic) == HEARTBEATS

    def is_internal(self, topic: str) -> bool:
        """Whether the name is kept for brokers, Connect, MirrorMaker or this mirror.

        Records that were set aside are on both sites already: to mirror them would double them, and
        nobody is kept from reading them by a fence or a promotion.
        """
        suffixes = (f"{self.separator}internal", ".internal", "-internal", DIVERGED)
        return topic.startswith(("__", ".")) or topic.endswith(suffixes)

    def is_cycle(self, topic: str) -> bool:
        """Whether a source topic has come from the target, over however many hops.

        Identical names say nothing of it: there the producer ids do (mirror.forward.loops).
        """
        if not self.is_prefixed and not (self.has_heartbeats and self.is_heartbeats(topic)):
            return False
        upstream: str | None = topic
        while upstream is not None:
            if self.topic_source(upstream) == self.target:
                return True
            upstream = self.upstream_topic(upstream)
        return False

    # --- MirrorMaker's own topics --------------------------------------------------------------

    @property
    def checkpoints_topic(self) -> str:
        """Return the target's topic of translated group positions."""
        return f"{self.source}{self.separator}checkpoints{self.separator}internal"

    def offset_syncs_topic(self, other: str) -> str:
        """Return the topic of offset syncs, on the one cluster, named for the other."""
        return f"mm2-offset-syncs{self.separator}{other}{self.separator}internal"


def _has_part(rest: str, separator: str) -> bool:
    """Whether anything but separators is left."""
    return any(rest.split(separator))
