"""One flow of the configuration: what is mirrored, how, and what to do when it cannot go on."""

import re
from collections.abc import Collection, Mapping
from dataclasses import field, replace
from enum import Enum
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final

from runtime.configuration.flow_start import EARLIEST, FlowStart, parse_start
from runtime.configuration.reading.section import Section
from runtime.configuration.rename_section import MEANINGS as OF_RENAMES
from runtime.configuration.rename_section import read_renames
from runtime.configuration.topic_names import (
    DEFAULT_SEPARATOR,
    HEARTBEATS,
    NO_RENAMES,
    SEPARATOR,
    Renames,
    TopicNames,
)
from wire.values import frozen

# What MirrorMaker 2 leaves out by default: internal topics, and groups of tools.
EXCLUDED_TOPICS: Final = (r".*[\-\.]internal", r".*\.replica", r"__.*")
EXCLUDED_GROUPS: Final = (r"console-consumer-.*", r"connect-.*", r"__.*")


# Also MirrorMaker 2's list: what belongs to a cluster rather than to its topics.
EXCLUDED_SETTINGS: Final = (
    r"follower\.replication\.throttled\.replicas",
    r"leader\.replication\.throttled\.replicas",
    r"message\.timestamp\.(difference|before|after)\.max\.ms",
    r"message\.timestamp\.type",
    r"unclean\.leader\.election\.enable",
    r"min\.insync\.replicas",
)


DIVERGED_FOLDER: Final = "diverged"
ISOLATIONS: Final = ("read_committed", "read_uncommitted")
MOST_FETCH_BYTES: Final = 128 << 20
"""Of one fetch: no answer may be of more than 256 MiB, nor a request say more than 2 GiB."""


class Policy(Enum):
    """What to do with a partition that cannot go on; STOP loses nothing silently."""

    STOP = "stop"
    """Stay in the named state until somebody decides."""
    SKIP = "skip"
    """Go on behind what is lost or refused, count it, and say so."""
    RESTART = "restart"
    """Delete the target's topic and mirror it anew from the earliest record."""
    QUARANTINE = "quarantine"
    """Set aside what only the target has, and leave it out of the stream back."""
    MERGE = "merge"
    """Keep what only the target has where it is; the stream back appends it late."""


POLICIES: Final[Mapping[str, tuple[Policy, ...]]] = MappingProxyType(
    {
        "retention_overrun": (Policy.STOP, Policy.SKIP, Policy.RESTART),
        "topic_recreated": (Policy.STOP, Policy.RESTART),
        "source_went_back": (Policy.STOP, Policy.RESTART),
        "source_corrupt": (Policy.STOP, Policy.SKIP),
        "target_diverged": (Policy.STOP, Policy.QUARANTINE, Policy.MERGE, Policy.RESTART),
        "record_too_large": (Policy.STOP, Policy.SKIP),
        "target_refused": (Policy.STOP, Policy.SKIP),
    }
)
"""The policies that each cause allows, the default first; the keys are `on_<cause>`."""


MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "source": "The cluster that the flow reads.",
        "target": "The cluster that the flow writes.",
        "topics.include": "Patterns; a topic is mirrored if its whole name matches one.",
        "topics.exclude": "Patterns of topics that are left out. Topics called `__*`, `.*`, "
        "`*.internal`, `*-internal` or `*.diverged` are never mirrored, moved, closed or audited.",
        "groups.include": "Patterns; a group's positions are translated if its whole name matches "
        "one.",
        "groups.exclude": "Patterns of groups that are left out.",
        "start": "From where the partitions are mirrored that are there when the flow first runs: "
        "`earliest`, `latest`, or the first record of a time (`2026-01-31T08:00:00Z`). What comes "
        "into the flow later begins at its first record. See "
        "[where a flow starts](../operate/mirror.md#where-a-flow-starts).",
        "replication_factor": "The replication factor of topics that the mirror creates. Without "
        "it the mirror takes the source's.",
        "fetch_max_bytes": "The size of one fetch.",
        "partition_fetch_bytes": "The part of one fetch that one partition may take.",
        "in_flight_bytes": "Bytes that are fetched and not yet acknowledged. Without it 32 MiB, or "
        "64 MiB where a round trip to either cluster takes over 30 ms. It bounds the rate to a "
        "far cluster.",
        "partition_in_flight_bytes": "The same for one partition. Without it 4 MiB, or 8 MiB where "
        "a round trip takes over 30 ms.",
        "discovery_interval_ms": "How often the mirror looks for new topics.",
        "group_offsets_interval_ms": "How often the mirror applies translated positions.",
        "group_offsets": "`poll` asks for positions and does not read `__consumer_offsets`. `auto` "
        "polls only where that topic cannot be read.",
        "group_poll_interval_ms": "How often positions are asked for where they are polled.",
        "balance_interval_ms": "How often workers that share the flow compare what they carry.",
        **{
            f"on_{cause}": f"The policy for the state `{cause.replace('_', ' ')}`: see "
            "[partition states](partition-states.md)."
            for cause in POLICIES
        },
        "diverged_folder": "The folder of the files of records that were set aside "
        "(`on_target_diverged: quarantine`), on the machine of the worker.",
        "throttle.bytes_per_second": "The rate of the whole flow; all workers share it.",
        "throttle.topics.<pattern>": "The rate of each topic whose whole name matches. The first "
        "pattern that matches counts.",
        "topic_settings.defaults_of": "`source`: the source's defaults travel with the settings "
        "that are set.",
        "topic_settings.include": "Patterns of topic settings that travel.",
        "topic_settings.exclude": "Patterns of topic settings that do not travel.",
        "acls": "Which rights of applications travel, to topics, groups and transactional ids: "
        "`downgraded` only those to read, as MirrorMaker does it; `identical` all, and those to "
        "the cluster that applications use; `off` none.",
        "client_quotas": "Set the source's client quotas on the target, where that has none. "
        "What somebody has set there stays.",
        "delete_gone_topics_after_ms": "Delete a topic on the target when it has been gone from "
        "the source for so long. Without it nothing is deleted.",
        "names": "`prefixed`: `orders` of dc1 is `dc1.orders` on the target, and what has come "
        "from the target is not sent back (MirrorMaker's rules). Such a flow runs whichever site "
        "is active, without promotion.",
        "separator": "What stands between cluster and topic where names are prefixed.",
        **OF_RENAMES,
        "mirrormaker.heartbeats": "Write MirrorMaker's `heartbeats` on the source, and mirror "
        "them.",
        "mirrormaker.offset_syncs": "Write MirrorMaker's offset syncs on this side. Its "
        "checkpoints are always written.",
        "mirrormaker.interval_ms": "How often heartbeats and offset syncs are written.",
        "isolation": "`read_uncommitted` mirrors open and aborted transactions too, as plain "
        "records. An audit calls them phantoms.",
        "client_rack": "Fetch from the in-sync replica of this rack, where the source's brokers "
        "select replicas by rack (KIP-392).",
        "active_active": "Both directions run at once. It must be set in both flows.",
        "chunk_kernel": "Walk what is fetched in native code, where that was built; `mirror check` "
        "says. `false`: in Python, which does the same for more processor time.",
    }
)
"""What each key of a flow is for, in the order in which they are read."""


@frozen
class PatternSet:
    """Names that fully match some `include` pattern and no `exclude` pattern."""

    include: tuple[re.Pattern[str], ...]
    exclude: tuple[re.Pattern[str], ...]

    def matches(self, name: str) -> bool:
        """Return whether the name is in the set."""
        included = any(pattern.fullmatch(name) for pattern in self.include)
        return included and not any(pattern.fullmatch(name) for pattern in self.exclude)


class AclSync(Enum):
    """The choice of the source's rights that are given on the target as well."""

    OFF = "off"
    DOWNGRADED = "downgraded"
    """As MirrorMaker 2: no right to write, and of all rights only that to read."""
    IDENTICAL = "identical"


@frozen
class SettingsSync:
    """The topic settings that travel; ``takes_defaults`` of the source with them."""

    names: PatternSet
    takes_defaults: bool = False


MIRROR_MAKERS_SETTINGS: Final = SettingsSync(
    names=PatternSet(include=(re.compile(".*"),), exclude=tuple(map(re.compile, EXCLUDED_SETTINGS)))
)


@frozen
class ThrottleConfig:
    """Bytes per second that may be read: by the flow, and by each topic that matches a pattern."""

    flow: int | None = None
    topics: tuple[tuple[str, int], ...] = ()
    """The first pattern that matches a topic whole counts; each topic has the rate for itself."""

    def __str__(self) -> str:
        """Return it in words."""
        whole = [] if self.flow is None else [f"{self.flow} B/s"]
        words = [*whole, *(f"{pattern} {rate} B/s" for pattern, rate in self.topics)]
        return ", ".join(words) or "none"


class OffsetSyncs(Enum):
    """On which side MirrorMaker's offset syncs are written (offset-syncs.topic.location)."""

    OFF = "none"
    SOURCE = "source"
    TARGET = "target"


@frozen
class MirrorMakerConfig:
    """What is written for MirrorMaker 2's clients and dashboards, beside its checkpoints."""

    heartbeats: bool = False
    offset_syncs: OffsetSyncs = OffsetSyncs.OFF
    interval_ms: int = 1_000


@frozen
class FlowConfig:
    """One direction of mirroring; `name` is `dc1->dc2`."""

    name: str
    source: str
    target: str
    topics: PatternSet
    groups: PatternSet
    replication_factor: int | None
    fetch_max_bytes: int
    partition_fetch_bytes: int
    partition_in_flight_bytes: int | None
    in_flight_bytes: int | None
    """None, as of a partition: what suits the distance."""
    discovery_interval_ms: int
    group_offsets_interval_ms: int
    are_groups_polled: bool
    """Ask for group positions instead of reading the source's offsets topic."""
    group_poll_interval_ms: int
    balance_interval_ms: int = 30_000
    """How often workers that share the flow look whether they carry about the same."""
    start: FlowStart = EARLIEST
    """From where the partitions are mirrored that are there when the flow first runs."""
    policies: Mapping[str, Policy] = field(default_factory=dict)
    """By cause, a key of POLICIES; what is not there stops."""
    diverged_folder: Path = Path(DIVERGED_FOLDER)
    """Where the files of records are written that were set aside."""
    throttle: ThrottleConfig = ThrottleConfig()
    settings: SettingsSync = MIRROR_MAKERS_SETTINGS
    acls: AclSync = AclSync.DOWNGRADED
    copies_quotas: bool = False
    delete_gone_after_ms: int | None = None
    """Delete on the target what has been gone from the source for so long; None is never."""
    is_prefixed: bool = False
    """Topics are called `<source><separator><topic>` on the target, as MirrorMaker does it."""
    separator: str = DEFAULT_SEPARATOR
    renames: Renames = NO_RENAMES
    """Topics that have been given names of their own on the target, which go before a prefix."""
    mirrormaker: MirrorMakerConfig = MirrorMakerConfig()
    is_active_active: bool = False
    has_way_back: bool = True
    """A flow in the other direction is configured: its map on the source is read."""
    """The flow runs whichever site is active, and others write to its target topics as well."""
    reads_uncommitted: bool = False
    """Records of open and of aborted transactions are mirrored too, as plain records."""
    topic_set: str | None = None
    """The set of topics that these are; None of a flow of the whole file."""
    told_set: str | None = None
    """The set that messages about the flow give commands: one of a file with sets, always."""
    has_chunk_kernel: bool = True
    """What is fetched is walked in native code, where that was built."""
    client_rack: str | None = None
    """Where the mirror is: brokers with a replica selector name a follower nearby (KIP-392)."""

    @property
    def heeds_promotions(self) -> bool:
        """Whether it rests unless its source is the active site.

        A flow runs always where applications write to both sites: with `active_active`, and with
        prefixed names, by which records of each site have a topic to themselves. A promotion
        refuses both.
        """
        return not (self.is_active_active or self.is_prefixed)

    @property
    def isolation_level(self) -> int:
        """Return the isolation level by Fetch's number."""
        return 0 if self.reads_uncommitted else 1

    @property
    def names(self) -> TopicNames:
        """Return how topics are called on the target."""
        return TopicNames(
            source=self.source,
            target=self.target,
            is_prefixed=self.is_prefixed,
            separator=self.separator,
            has_heartbeats=self.mirrormaker.heartbeats,
            renames=self.renames,
        )

    def mirrors(self, topic: str) -> bool:
        """Whether a topic of the source is mirrored, by its name."""
        names = self.names
        return (
            (self.topics.matches(topic) or self.is_heartbeats(topic))
            and not names.is_internal(topic)
            and not names.is_cycle(topic)
            and names.ousted_by(topic) is None
        )

    def moves(self, topic: str) -> bool:
        """Whether a promotion moves a topic, and an audit compares it, by its name.

        All that is mirrored but heartbeats: on the target they have another name, even where all
        other names are identical. Promotions and audits go by one name, so they leave them out.
        """
        return self.mirrors(topic) and not self.is_heartbeats(topic)

    def brings(self, topic: str) -> bool:
        """Whether a topic of the target is the copy of one that `moves`, by the target's name."""
        source_topic = self.names.on_source(topic)
        return source_topic is not None and self.moves(source_topic)

    def moves_at(self, site: str, topic: str) -> bool:
        """Whether a promotion moves a topic, by its name on that end of the flow."""
        return self.moves(topic) if site == self.source else self.brings(topic)

    def is_heartbeats(self, topic: str) -> bool:
        """Whether a topic is mirrored as MirrorMaker's heartbeats, whatever the patterns say."""
        return self.mirrormaker.heartbeats and self.names.is_heartbeats(topic)

    @property
    def client_id(self) -> str:
        """Return the client id of the flow's connections, by which a fence lets it through."""
        return f"mirror-{self.source}-{self.target}"


def read_site(section: Section, key: str, clusters: Collection[str]) -> str:
    """Return the name of a cluster of the file; raises ConfigurationError for another name."""
    name = section.string(key)
    if name not in clusters:
        raise section.error(key, unknown_cluster(name, clusters))
    return name


def unknown_cluster(name: str, clusters: Collection[str]) -> str:
    """Return what is wrong with a name that is none of the file's clusters."""
    return f"unknown cluster {name!r}; there are {', '.join(clusters)}"


def _patterns(section: Section, exclude: tuple[str, ...]) -> PatternSet:
    found: dict[str, list[re.Pattern[str]]] = {"include": [], "exclude": []}
    for key, default in (("include", (".*",)), ("exclude", exclude)):
        for pattern in section.strings(key, default):
            compiled = section.attempt(partial(_pattern, section, key, pattern, re.DOTALL))
            found[key] += [] if compiled is None else [compiled]
    section.finish()
    return PatternSet(include=tuple(found["include"]), exclude=tuple(found["exclude"]))


def _read_patterns(section: Section, key: str, exclude: tuple[str, ...]) -> PatternSet:
    read = partial(section.section, key, required=False)
    return section.attempt(lambda: _patterns(read(), exclude), PatternSet(include=(), exclude=()))


def _pattern(section: Section, key: str, text: str, flags: int = 0) -> re.Pattern[str]:
    """Compile one; raises ConfigurationError, for what is too large as well."""
    try:
        return re.compile(text, flags)
    except (re.error, OverflowError, RecursionError) as problem:
        raise section.error(key, f"{text!r}: {problem}") from None


def read_flow(section: Section, clusters: Collection[str]) -> FlowConfig:
    """Return one flow of the file; raises ConfigurationError."""
    source = section.attempt(partial(read_site, section, "source", clusters), "")
    target = section.attempt(partial(read_site, section, "target", clusters), "")
    if source == target:
        section.complain("target", f"is the source too: {target!r}")
    mebibyte = 1 << 20
    flow = FlowConfig(
        name=f"{source}->{target}",
        source=source,
        target=target,
        topics=_read_patterns(section, "topics", EXCLUDED_TOPICS),
        groups=_read_patterns(section, "groups", EXCLUDED_GROUPS),
        start=_start(section),
        replication_factor=section.optional_integer("replication_factor", least=1, most=32767),
        fetch_max_bytes=section.integer(
            "fetch_max_bytes", 16 * mebibyte, least=1024, most=MOST_FETCH_BYTES
        ),
        partition_fetch_bytes=section.integer(
            "partition_fetch_bytes", mebibyte, least=1024, most=MOST_FETCH_BYTES
        ),
        partition_in_flight_bytes=section.optional_integer("partition_in_flight_bytes", least=1024),
        in_flight_bytes=section.optional_integer("in_flight_bytes", least=1024),
        discovery_interval_ms=section.integer("discovery_interval_ms", 3_000, least=100),
        group_offsets_interval_ms=section.integer("group_offsets_interval_ms", 100, least=10),
        are_groups_polled=_are_groups_polled(section),
        group_poll_interval_ms=section.integer("group_poll_interval_ms", 1_000, least=100),
        balance_interval_ms=section.integer("balance_interval_ms", 30_000, least=500),
        policies=_policies(section),
        diverged_folder=Path(section.string("diverged_folder", DIVERGED_FOLDER)),
        throttle=section.part("throttle", _throttle, ThrottleConfig()),
        settings=section.part("topic_settings", _settings, MIRROR_MAKERS_SETTINGS),
        acls=AclSync(
            section.choice("acls", tuple(one.value for one in AclSync), AclSync.DOWNGRADED.value)
        ),
        copies_quotas=section.boolean("client_quotas", default=False),
        delete_gone_after_ms=section.optional_integer(
            "delete_gone_topics_after_ms", least=1_000, most=1 << 40
        ),
        is_prefixed=section.choice("names", ("identical", "prefixed"), "identical") == "prefixed",
        separator=_separator(section),
        mirrormaker=section.part("mirrormaker", _mirrormaker, MirrorMakerConfig()),
        reads_uncommitted=section.choice("isolation", ISOLATIONS, ISOLATIONS[0]) == ISOLATIONS[1],
        client_rack=section.optional_string("client_rack"),
        is_active_active=section.boolean("active_active", default=False),
        has_chunk_kernel=section.boolean("chunk_kernel", default=True),
    )
    flow = replace(
        flow,
        renames=section.attempt(
            lambda: read_renames(section.section("rename", required=False), flow.names), NO_RENAMES
        ),
    )
    if flow.is_active_active and flow.is_prefixed:
        section.complain("active_active", "with `names: prefixed` there is nothing to say it for")
    if flow.is_active_active and flow.renames:
        section.complain("rename", "cannot be beside `active_active: true` yet")
    section.finish()
    return _without_heartbeats(flow)


def _start(section: Section) -> FlowStart:
    try:
        return parse_start(section.time_or_word("start", EARLIEST.text))
    except ValueError as problem:
        section.complain("start", str(problem))
        return EARLIEST


def _separator(section: Section) -> str:
    separator = section.string("separator", DEFAULT_SEPARATOR)
    if not SEPARATOR.fullmatch(separator):
        section.complain("separator", f"{separator!r} cannot be part of a topic's name")
    return separator


def _mirrormaker(section: Section) -> MirrorMakerConfig:
    sides = tuple(one.value for one in OffsetSyncs)
    config = MirrorMakerConfig(
        heartbeats=section.boolean("heartbeats", default=False),
        offset_syncs=OffsetSyncs(section.choice("offset_syncs", sides, OffsetSyncs.OFF.value)),
        interval_ms=section.integer("interval_ms", 1_000, least=100, most=3_600_000),
    )
    section.finish()
    return config


def _without_heartbeats(flow: FlowConfig) -> FlowConfig:
    """Return the flow with topics that leave heartbeats to ``is_heartbeats``."""
    if not flow.mirrormaker.heartbeats:
        return flow
    beats = re.compile(rf"(.*{re.escape(flow.separator)})?{HEARTBEATS}")
    return replace(flow, topics=replace(flow.topics, exclude=(*flow.topics.exclude, beats)))


def _are_groups_polled(section: Section) -> bool:
    return section.choice("group_offsets", ("auto", "poll"), "auto") == "poll"


def _settings(section: Section) -> SettingsSync:
    defaults_of = section.choice("defaults_of", ("target", "source"), "target")
    return SettingsSync(
        names=_patterns(section, EXCLUDED_SETTINGS), takes_defaults=defaults_of == "source"
    )


def _throttle(section: Section) -> ThrottleConfig:
    flow = section.optional_integer("bytes_per_second", least=1024, most=1 << 40)
    of_topics = section.section("topics", required=False)
    topics: list[tuple[str, int]] = []
    for pattern in of_topics.values:
        of_topics.attempt(partial(_pattern, of_topics, pattern, pattern))
        rate = of_topics.attempt(
            partial(of_topics.integer, pattern, None, least=1024, most=1 << 40)
        )
        topics += [] if rate is None else [(pattern, rate)]
    section.finish()
    return ThrottleConfig(flow=flow, topics=tuple(topics))


def _policies(section: Section) -> Mapping[str, Policy]:
    return MappingProxyType(
        {
            cause: Policy(
                section.choice(f"on_{cause}", tuple(one.value for one in allowed), allowed[0].value)
            )
            for cause, allowed in POLICIES.items()
        }
    )
