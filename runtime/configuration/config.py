"""The one YAML file that every program reads, as values; each program validates all of it."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from runtime.configuration import (
    audit_section,
    console_section,
    coordination_section,
    failover_section,
    flow_section,
    log_section,
    metrics_section,
    security_section,
)
from runtime.configuration.audit_section import AuditConfig, read_audit
from runtime.configuration.console_section import ConsoleConfig, read_console
from runtime.configuration.coordination_section import CoordinationConfig, joined, read_coordination
from runtime.configuration.failover_section import FailoverConfig, read_failover
from runtime.configuration.flow_section import (
    FlowConfig,
    PatternSet,
    Policy,
    read_flow,
)
from runtime.configuration.log_section import read_log
from runtime.configuration.metrics_section import MetricsConfig, read_metrics
from runtime.configuration.reading.addresses import Address
from runtime.configuration.reading.mistakes import ConfigurationError
from runtime.configuration.reading.section import Key, Section
from runtime.configuration.reading.yaml_file import read_file
from runtime.configuration.renamed_flows import why_unfit
from runtime.configuration.security_section import confluent_settings, read_security
from runtime.configuration.topic_sets import (
    DEFAULT_SET,
    REHEARSAL_SET,
    TopicSets,
    flow_of_set,
)
from runtime.process.logs import LogSettings
from wire.net.security import PLAINTEXT, Security
from wire.values import frozen

__all__ = [
    "Address",
    "Configuration",
    "ConfigurationError",
    "FlowConfig",
    "PatternSet",
    "Policy",
    "load",
]

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "clusters.<name>.bootstrap": "The brokers that are asked first.",
        **{f"clusters.<name>.{key}": meaning for key, meaning in security_section.MEANINGS.items()},
        **{f"flows[].{key}": meaning for key, meaning in flow_section.MEANINGS.items()},
        **coordination_section.MEANINGS,
        **failover_section.MEANINGS,
        **audit_section.MEANINGS,
        **metrics_section.MEANINGS,
        **console_section.MEANINGS,
        **log_section.MEANINGS,
    }
)
"""What each key of the file is for; the reference page has a line for each."""


OWN_LOGIN: Final = frozenset(
    {"security.protocol", "sasl.mechanism", "sasl.mechanisms", "sasl.oauthbearer.method"}
)
"""Settings of an application that say how it logs in."""


@frozen
class ClusterConfig:
    """How to reach one Kafka cluster; `name` is its site, `dc1`."""

    name: str
    bootstrap: tuple[Address, ...]
    security: Security = PLAINTEXT

    def client_settings(self, own: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
        """Return confluent-kafka's settings that reach this cluster.

        An application's `own` go before, so that it may have credentials of its own; but the
        addresses are the cluster's. An application that logs in by another mechanism, or gets
        tokens in its own way, is not asked to use the cluster's.
        """
        reach = confluent_settings(self.security)
        if not OWN_LOGIN.isdisjoint(own):
            reach.pop("oauth_cb", None)
        return {**reach, **own, "bootstrap.servers": self.bootstrap_servers}

    @property
    def bootstrap_servers(self) -> str:
        """Return the addresses as librdkafka's `bootstrap.servers` wants them."""
        return joined(self.bootstrap)


@frozen
class Configuration:
    """All of the file, or what one set of topics has of it."""

    clusters: Mapping[str, ClusterConfig]
    flows: tuple[FlowConfig, ...]
    coordination: CoordinationConfig
    failover: FailoverConfig
    audit: AuditConfig
    metrics: MetricsConfig
    console: ConsoleConfig = field(default_factory=ConsoleConfig)
    log: LogSettings = field(default_factory=LogSettings)
    file: Path = Path()
    literal_secrets: tuple[str, ...] = field(default=(), compare=False)
    """The keys whose secrets stand in the file itself."""
    topic_set: str | None = None
    """The set whose configuration this is; None of the whole file."""
    file_as_a_whole: "Configuration | None" = None
    """What the configuration of a set was taken from."""

    @property
    def sets(self) -> TopicSets:
        """Return all sets of topics of the file."""
        return self.failover.sets

    @property
    def whole(self) -> "Configuration":
        """Return the configuration of the whole file."""
        return self.file_as_a_whole or self

    def of_set(self, name: str) -> "Configuration":
        """Return what one set has of the file: its own path in the witness and its own flows.

        All else is the file's, and the set of rehearsals has no hooks: those lead applications. Of
        a file without sets that is all of it.
        """
        whole = self.whole
        assert name in whole.sets.names, f"{name} is no set"
        if not whole.sets.named:
            return whole
        is_default = name == DEFAULT_SET
        bootstraps = {one.name: one.bootstrap for one in whole.sets.named}
        bootstrap = bootstraps.get(name, whole.failover.bootstrap)
        flows = tuple(flow_of_set(flow, whole.sets, name) for flow in whole.flows)
        return replace(
            whole,
            flows=flows,
            coordination=whole.coordination.of_set(name, is_default=is_default),
            failover=replace(
                whole.failover,
                bootstrap=bootstrap,
                hooks=() if name == REHEARSAL_SET else whole.failover.hooks,
            ),
            audit=whole.audit if is_default else whole.audit.of_set(name),
            topic_set=name,
            file_as_a_whole=whole,
        )

    def has(self, topic: str) -> bool:
        """Tell whether a topic is of this set; every topic is the whole file's."""
        return self.topic_set is None or self.whole.sets.set_of(topic) == self.topic_set

    def by_set(self) -> Mapping[str, "Configuration"]:
        """Return what each set has of the file, by its name, the default set first."""
        return {name: self.of_set(name) for name in self.whole.sets.names}


def load(path: Path) -> Configuration:
    """Return the file's content.

    Raises ConfigurationError, with a line of file, line and key for each mistake.
    """
    return _read(read_file(path), path)


def asked_keys(path: Path) -> Mapping[str, Key]:
    """Return how each key is read that reading this file asks for; raises what `load` raises."""
    top = read_file(path)
    _read(top, path)
    return top.reading.asked


def _read(top: Section, path: Path) -> Configuration:
    """Return the content; raises ConfigurationError with all that is wrong."""
    try:
        return _content(top, path)
    except ConfigurationError as wrong:
        top.reading.mistakes.add(wrong)
    raise top.reading.mistakes.together()


def _content(top: Section, path: Path) -> Configuration:
    """Return the content; raises ConfigurationError once all is read, and remembers all."""
    coordination = top.attempt(lambda: read_coordination(top.section("coordination")))
    metrics = top.part("metrics", read_metrics)
    clusters = top.section("clusters")
    names = clusters.values
    sites = top.attempt(lambda: _clusters(clusters))
    flows = top.attempt(lambda: _flows(top, names, path))
    failover = top.attempt(
        lambda: read_failover(top.section("failover", required=False), top, names, flows)
    )
    audit = top.attempt(lambda: read_audit(top.section("audit", required=False), path, names))
    console = top.attempt(
        lambda: read_console(
            top.section("console", required=False),
            is_guarded=metrics is None or metrics.door.is_guarded,
        )
    )
    log = top.part("log", read_log)
    top.finish()
    # Nothing is wrong, so there are all of them.
    assert coordination is not None
    assert metrics is not None
    assert sites is not None
    assert flows is not None
    assert audit is not None
    assert failover is not None
    assert console is not None
    assert log is not None
    if failover.sets.named:  # what is told of all sets is of the pair: any set leads to it
        flows = tuple(replace(flow, told_set=DEFAULT_SET) for flow in flows)
    return Configuration(
        clusters=sites,
        flows=flows,
        coordination=coordination.with_sets(one.name for one in failover.sets.named),
        failover=failover,
        audit=audit,
        metrics=metrics,
        console=console,
        log=log,
        file=path.absolute(),
        literal_secrets=tuple(top.reading.literal_secrets),
    )


def _flows(top: Section, names: Collection[str], path: Path) -> tuple[FlowConfig, ...]:
    sections = list(top.sections("flows"))
    found = [section.attempt(partial(read_flow, section, names)) for section in sections]
    flows = tuple(flow for flow in found if flow is not None)
    wrong = top.reading.mistakes.within("flows")
    if wrong is not None:
        raise wrong
    if len({flow.name for flow in flows}) < len(flows):
        raise top.error("flows", "two flows go from the same source to the same target")
    _refuse_alike(top, flows)
    _refuse_renames(sections, flows)
    ways = {(flow.source, flow.target) for flow in flows}
    flows = tuple(
        replace(
            flow,
            has_way_back=(flow.target, flow.source) in ways,
            diverged_folder=path.absolute().parent / flow.diverged_folder,
        )
        for flow in flows
    )
    both_ways = {(flow.source, flow.target) for flow in flows if flow.is_active_active}
    for source, target in sorted(both_ways):
        if (target, source) not in both_ways:
            raise top.error(
                "flows",
                f"{source}->{target} has `active_active: true`, and no flow from {target} to "
                f"{source} has it",
            )
    return flows


def _refuse_alike(top: Section, flows: Sequence[FlowConfig]) -> None:
    """Refuse `a-b` to `c` beside `a` to `b-c`: nodes in the witness and commands say `a-b-c`."""
    known: dict[str, FlowConfig] = {}
    for flow in flows:
        short = f"{flow.source}-{flow.target}"
        other = known.setdefault(short, flow)
        if other is not flow:
            raise top.error(
                "flows",
                f"{other.name} and {flow.name} are both {short!r} to the witness and to commands: "
                "call one of the clusters something else",
            )


def _refuse_renames(sections: Sequence[Section], flows: Sequence[FlowConfig]) -> None:
    """Raise what is wrong with the names that flows give topics, beside the other flows."""
    for section, flow in zip(sections, flows, strict=True):
        for topic, problem in why_unfit(flow, flows):
            section.section("rename").complain(topic, problem)
        section.finish()


def _clusters(section: Section) -> Mapping[str, ClusterConfig]:
    clusters: dict[str, ClusterConfig] = {}
    for name, cluster in section.named_sections():
        if not _NAME.fullmatch(name):
            section.complain(name, "a name has 1 to 64 letters, digits, '-' or '_'")
        found = cluster.attempt(partial(_cluster, name, cluster))
        if found is not None:
            clusters[name] = found
    section.known.extend(section.values)
    if len(section.values) < 2:
        raise section.complaint("needs two clusters or more")
    section.finish()
    return MappingProxyType(clusters)


def _cluster(name: str, section: Section) -> ClusterConfig:
    bootstrap = section.attempt(lambda: section.addresses("bootstrap"), ())
    security = section.attempt(lambda: read_security(section), PLAINTEXT)
    section.finish()
    return ClusterConfig(name=name, bootstrap=bootstrap, security=security)
