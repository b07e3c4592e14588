"""The one YAML file that every program reads, as values; each program validates all of it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from runtime.configuration import (
    bootstrap_section,
    coordination_section,
    flow_section,
    metrics_section,
    security_section,
)
from runtime.configuration.bootstrap_section import BootstrapConfig, read_bootstrap
from runtime.configuration.coordination_section import CoordinationConfig, joined, read_coordination
from runtime.configuration.flow_section import FlowConfig, PatternSet, Policy, read_flow, read_site
from runtime.configuration.metrics_section import MetricsConfig, read_metrics
from runtime.configuration.security_section import confluent_settings, read_security
from runtime.configuration.yaml_section import (
    Address,
    ConfigurationError,
    Key,
    Section,
    read_file,
)
from wire.net.security import PLAINTEXT, Security

__all__ = [
    "Address",
    "Configuration",
    "ConfigurationError",
    "FlowConfig",
    "PatternSet",
    "Policy",
    "load",
]

STANDBY: Final = ("closed", "open")
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "clusters.<name>.bootstrap": "The brokers that are asked first.",
        **{f"clusters.<name>.{key}": meaning for key, meaning in security_section.MEANINGS.items()},
        **{f"flows[].{key}": meaning for key, meaning in flow_section.MEANINGS.items()},
        **coordination_section.MEANINGS,
        "failover.initial_active": "The site that is active before the first promotion. It may be "
        "left out where all flows have the same source, which it then is.",
        "failover.drain_timeout_ms": "How long a promotion waits for the last records.",
        "failover.max_lag_before_fence": "So many offsets, all partitions together, may be "
        "unmirrored when a planned promotion closes the active site.",
        "failover.catch_up_timeout_ms": "How long a planned promotion waits for that; the active "
        "site takes writes meanwhile.",
        "failover.source_lost_after_ms": "How long `promote --source-lost` looks at a site that "
        "keeps silent before it takes the site for lost.",
        "failover.loss_budget.records": "With more records lost than this, or an unknown number, "
        "`promote --source-lost` is refused unless `--accept-loss` is given.",
        "failover.loss_budget.seconds": "The same for the time of which records are lost.",
        "failover.standby": "Whether `failover serve` closes the topics of flows for writes on the "
        "site that is not active, before any promotion too: what applications wrote there would "
        "stand between the mirror's records.",
        "failover.orphan_after_ms": "When a promotion has had no controller for so long, "
        "`failover serve` finishes it behind the switch, and takes it back before.",
        "failover.group_drain_timeout_ms": "How long a promotion waits for members of "
        "groups to leave: before the fence for plain consumers, behind it for those that follow "
        "the active site.",
        "failover.stop_timeout_ms": "How long a promotion waits for the mirror to stop the flow.",
        **bootstrap_section.MEANINGS,
        "audit.output": "The folder of the results. Later audits compare with what lies there, so "
        "keep it.",
        "audit.driver_memory": "The memory of Spark's driver.",
        "audit.cores": "The processors that Spark may take.",
        "audit.master": "The master of a Spark cluster, as Spark writes it: `spark://host:7077`, "
        "`yarn`, `k8s://https://host:6443`. Without it Spark runs inside of the program.",
        "audit.in_flight_limit_ms": "How long a record may wait for the mirror. One that has "
        "waited longer when the audit looks is a finding.",
        "audit.evidence.<name>": "Where `spark-audit digest NAME` keeps what it has read of a "
        "cluster: a folder, or an address as Hadoop writes it (`s3a://bucket/dc1`). An audit reads "
        "only what is new since.",
        "audit.reread_nights": "In so many days `spark-audit digest` reads all that it remembers "
        "again, a part each night.",
        **metrics_section.MEANINGS,
    }
)
"""What each key of the file is for; the reference page has a line for each."""


OWN_LOGIN: Final = frozenset(
    {"security.protocol", "sasl.mechanism", "sasl.mechanisms", "sasl.oauthbearer.method"}
)
"""Settings of an application that say how it logs in."""


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LossBudget:
    """What a promotion may give up of a lost source unasked; None sets no limit."""

    records: int | None = None
    seconds: int | None = None


NO_LIMIT: Final = LossBudget()


@dataclass(frozen=True, slots=True, kw_only=True)
class FailoverConfig:
    """Limits of a promotion; `initial_active` is the site that is active before the first."""

    initial_active: str
    drain_timeout_ms: int
    group_drain_timeout_ms: int
    stop_timeout_ms: int
    max_lag_before_fence: int
    """So many offsets may be unmirrored, all partitions together, when the source is closed."""
    catch_up_timeout_ms: int
    """So long a planned promotion waits for that; the source takes writes meanwhile."""
    is_standby_closed: bool
    """Whether `serve` closes the site that is not active before any promotion."""
    source_lost_after_ms: int
    """So long a site is looked at before it is taken for lost."""
    orphan_after_ms: int
    """A promotion that nobody has led for so long is finished or taken back by `serve`."""
    loss_budget: LossBudget
    bootstrap: BootstrapConfig | None = None
    """None where `failover bootstrap` is not to be run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditConfig:
    """Where the audit writes its results, and how much of the machine it takes."""

    output: Path
    driver_memory: str
    cores: int
    master: str | None
    in_flight_limit_ms: int
    """What has not been mirrored for longer is a finding."""
    evidence: Mapping[str, str]
    """By cluster, the path of what its nights remember, as Hadoop names it."""
    reread_nights: int
    """In so many nights all that is remembered is read again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """All of the file."""

    clusters: Mapping[str, ClusterConfig]
    flows: tuple[FlowConfig, ...]
    coordination: CoordinationConfig
    failover: FailoverConfig
    audit: AuditConfig
    metrics: MetricsConfig
    file: Path = Path()


def load(path: Path) -> Configuration:
    """Return the file's content; raises ConfigurationError, one line with file, line and key."""
    return _read(read_file(path), path)


def asked_keys(path: Path) -> Mapping[str, Key]:
    """Return how each key is read that reading this file asks for; raises what `load` raises."""
    top = read_file(path)
    _read(top, path)
    return top.asked


def _read(top: Section, path: Path) -> Configuration:
    clusters = _clusters(top.section("clusters"))
    flows = tuple(read_flow(section, clusters) for section in top.sections("flows"))
    if len({flow.name for flow in flows}) < len(flows):
        raise top.error("flows", "two flows go from the same source to the same target")
    _refuse_alike(top, flows)
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
    configuration = Configuration(
        clusters=clusters,
        flows=flows,
        coordination=read_coordination(top.section("coordination")),
        failover=_failover(top.section("failover", required=False), top, clusters, flows),
        audit=_audit(top.section("audit", required=False), path, clusters),
        metrics=read_metrics(top.section("metrics", required=False)),
        file=path.absolute(),
    )
    top.finish()
    return configuration


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


def _clusters(section: Section) -> Mapping[str, ClusterConfig]:
    clusters: dict[str, ClusterConfig] = {}
    for name, cluster in section.named_sections():
        if not _NAME.fullmatch(name):
            raise section.error(name, "a name has 1 to 64 letters, digits, '-' or '_'")
        clusters[name] = ClusterConfig(
            name=name,
            bootstrap=cluster.addresses("bootstrap"),
            security=read_security(cluster),
        )
        cluster.finish()
    if len(clusters) < 2:
        raise section.complaint("needs two clusters or more")
    return MappingProxyType(clusters)


def _failover(
    section: Section,
    top: Section,
    clusters: Mapping[str, ClusterConfig],
    flows: tuple[FlowConfig, ...],
) -> FailoverConfig:
    section.optional_string("initial_active")
    if "initial_active" in section.values:
        initial_active = read_site(section, "initial_active", clusters)
    elif len({flow.source for flow in flows}) == 1:
        initial_active = flows[0].source
    else:
        raise top.error("failover", "initial_active must say which site is active at first")
    failover = FailoverConfig(
        initial_active=initial_active,
        drain_timeout_ms=section.integer("drain_timeout_ms", 60_000, least=100),
        group_drain_timeout_ms=section.integer("group_drain_timeout_ms", 10_000, least=100),
        stop_timeout_ms=section.integer("stop_timeout_ms", 15_000, least=100),
        max_lag_before_fence=section.integer("max_lag_before_fence", 100_000, least=0),
        catch_up_timeout_ms=section.integer("catch_up_timeout_ms", 60_000, least=100),
        source_lost_after_ms=section.integer("source_lost_after_ms", 10_000, least=1_000),
        is_standby_closed=section.choice("standby", STANDBY, "closed") == "closed",
        orphan_after_ms=section.integer("orphan_after_ms", 60_000, least=1_000),
        loss_budget=_loss_budget(section.section("loss_budget", required=False)),
        bootstrap=read_bootstrap(section.section("bootstrap", required=False)),
    )
    section.finish()
    return failover


def _loss_budget(section: Section) -> LossBudget:
    budget = LossBudget(
        records=section.optional_integer("records", least=0),
        seconds=section.optional_integer("seconds", least=0),
    )
    section.finish()
    return budget


def _audit(section: Section, path: Path, clusters: Iterable[str]) -> AuditConfig:
    output = Path(section.string("output", "audit"))
    memory = section.string("driver_memory", "1g")
    if not re.fullmatch(r"[1-9][0-9]*[mg]", memory):
        raise section.error("driver_memory", f"{memory!r} is not like 512m or 2g")
    audit = AuditConfig(
        output=output if output.is_absolute() else path.parent / output,
        driver_memory=memory,
        cores=section.integer("cores", 2, least=1, most=1024),
        master=section.optional_string("master"),
        in_flight_limit_ms=section.integer("in_flight_limit_ms", 3_600_000, least=1_000),
        evidence=_evidence(section.section("evidence", required=False), path, clusters),
        reread_nights=section.integer("reread_nights", 90, least=1, most=10_000),
    )
    section.finish()
    return audit


def _evidence(section: Section, path: Path, clusters: Iterable[str]) -> Mapping[str, str]:
    """Return the place of each cluster's evidence; of a file, one beside the configuration."""
    places: dict[str, str] = {}
    for name in clusters:
        place = section.optional_string(name)
        if place is not None:
            is_named = re.match(r"[a-z][a-z0-9+.-]*:", place) is not None
            places[name] = place if is_named else str(path.parent.absolute() / place)
    section.finish()
    return places
