"""The one YAML file that every program reads, as values; each program validates all of it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from runtime.security_section import confluent_settings, read_security
from runtime.yaml_section import Address, ConfigurationError, Section, read_file
from wire.net.security import PLAINTEXT, Security

__all__ = ["Address", "Configuration", "ConfigurationError", "load"]

# What MirrorMaker 2 leaves out by default: internal topics, and groups of tools.
EXCLUDED_TOPICS: Final = (r".*[\-\.]internal", r".*\.replica", r"__.*")
EXCLUDED_GROUPS: Final = (r"console-consumer-.*", r"connect-.*", r"__.*")
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """How to reach one Kafka cluster; `name` is its site, `dc1`."""

    name: str
    bootstrap: tuple[Address, ...]
    security: Security = PLAINTEXT

    def client_settings(self, own: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
        """Return confluent-kafka's settings that reach this cluster.

        An application's `own` go before, so that it may have credentials of its own; but the
        addresses are the cluster's.
        """
        reach = confluent_settings(self.security)
        return {**reach, **own, "bootstrap.servers": self.bootstrap_servers}

    @property
    def bootstrap_servers(self) -> str:
        """Return the addresses as librdkafka's `bootstrap.servers` wants them."""
        return ",".join(f"{host}:{port}" for host, port in self.bootstrap)


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternSet:
    """Names that fully match some `include` pattern and no `exclude` pattern."""

    include: tuple[re.Pattern[str], ...]
    exclude: tuple[re.Pattern[str], ...]

    def matches(self, name: str) -> bool:
        """Return whether the name is in the set."""
        included = any(pattern.fullmatch(name) for pattern in self.include)
        return included and not any(pattern.fullmatch(name) for pattern in self.exclude)


@dataclass(frozen=True, slots=True, kw_only=True)
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
    partition_in_flight_bytes: int
    in_flight_bytes: int
    discovery_interval_ms: int
    group_offsets_interval_ms: int
    are_groups_polled: bool
    """Ask for group positions instead of reading the source's offsets topic."""
    group_poll_interval_ms: int

    @property
    def client_id(self) -> str:
        """Return the client id of the flow's connections, by which a fence lets it through."""
        return f"mirror-{self.source}-{self.target}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinationConfig:
    """The witness: an ensemble apart from both sites, `host:port[,host:port]`."""

    zookeeper: str
    path: str
    session_timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FailoverConfig:
    """Limits of a promotion; `initial_active` is the site that is active before the first."""

    initial_active: str
    drain_timeout_ms: int
    group_drain_timeout_ms: int
    stop_timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditConfig:
    """Where the audit writes its results, and how much of the machine it takes."""

    output: Path
    driver_memory: str
    cores: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsConfig:
    """Where each program serves /metrics, /health and /status."""

    host: str
    mirror_port: int
    failover_port: int
    audit_port: int


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

    def flow_to(self, target: str) -> FlowConfig | None:
        """Return the flow that writes into `target`, None when there is none."""
        return next((flow for flow in self.flows if flow.target == target), None)


def load(path: Path) -> Configuration:
    """Return the file's content; raises ConfigurationError, one line with file, line and key."""
    top = read_file(path)
    clusters = _clusters(top.section("clusters"))
    flows = tuple(_flow(section, clusters) for section in top.sections("flows"))
    if len({flow.name for flow in flows}) < len(flows):
        raise top.error("flows", "two flows go from the same source to the same target")
    configuration = Configuration(
        clusters=clusters,
        flows=flows,
        coordination=_coordination(top.section("coordination")),
        failover=_failover(top.section("failover", required=False), top, clusters, flows),
        audit=_audit(top.section("audit", required=False), path),
        metrics=_metrics(top.section("metrics", required=False)),
        file=path.absolute(),
    )
    top.finish()
    return configuration


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


def _site(section: Section, key: str, clusters: Mapping[str, ClusterConfig]) -> str:
    name = section.string(key)
    if name not in clusters:
        raise section.error(key, f"unknown cluster {name!r}; there are {', '.join(clusters)}")
    return name


def _patterns(section: Section, exclude: tuple[str, ...]) -> PatternSet:
    texts = {
        "include": section.strings("include", (".*",)),
        "exclude": section.strings("exclude", exclude),
    }
    section.finish()
    compiled: dict[str, tuple[re.Pattern[str], ...]] = {}
    for key, patterns in texts.items():
        try:
            compiled[key] = tuple(re.compile(pattern) for pattern in patterns)
        except re.error as problem:
            raise section.error(key, f"{problem.pattern!r}: {problem}") from None
    return PatternSet(include=compiled["include"], exclude=compiled["exclude"])


def _flow(section: Section, clusters: Mapping[str, ClusterConfig]) -> FlowConfig:
    source = _site(section, "source", clusters)
    target = _site(section, "target", clusters)
    if source == target:
        raise section.error("target", f"is the source too: {target!r}")
    mebibyte = 1 << 20
    flow = FlowConfig(
        name=f"{source}->{target}",
        source=source,
        target=target,
        topics=_patterns(section.section("topics", required=False), EXCLUDED_TOPICS),
        groups=_patterns(section.section("groups", required=False), EXCLUDED_GROUPS),
        replication_factor=section.optional_integer("replication_factor", least=1, most=32767),
        fetch_max_bytes=section.integer("fetch_max_bytes", 16 * mebibyte, least=1024),
        partition_fetch_bytes=section.integer("partition_fetch_bytes", mebibyte, least=1024),
        partition_in_flight_bytes=section.integer(
            "partition_in_flight_bytes", 4 * mebibyte, least=1024
        ),
        in_flight_bytes=section.integer("in_flight_bytes", 32 * mebibyte, least=1024),
        discovery_interval_ms=section.integer("discovery_interval_ms", 3_000, least=100),
        group_offsets_interval_ms=section.integer("group_offsets_interval_ms", 100, least=10),
        are_groups_polled=_are_groups_polled(section),
        group_poll_interval_ms=section.integer("group_poll_interval_ms", 1_000, least=100),
    )
    section.finish()
    return flow


def _are_groups_polled(section: Section) -> bool:
    how = section.string("group_offsets", "auto")
    if how not in {"auto", "poll"}:
        raise section.error("group_offsets", f"{how!r} is neither 'auto' nor 'poll'")
    return how == "poll"


def _coordination(section: Section) -> CoordinationConfig:
    addresses = section.addresses("zookeeper")
    path = section.string("path", "/kafka-dr")
    if not path.startswith("/") or path.endswith("/"):
        raise section.error("path", f"{path!r} must begin with '/' and not end with it")
    coordination = CoordinationConfig(
        zookeeper=",".join(f"{host}:{port}" for host, port in addresses),
        path=path,
        session_timeout_ms=section.integer("session_timeout_ms", 6_000, least=2_000, most=60_000),
    )
    section.finish()
    return coordination


def _failover(
    section: Section,
    top: Section,
    clusters: Mapping[str, ClusterConfig],
    flows: tuple[FlowConfig, ...],
) -> FailoverConfig:
    if "initial_active" in section.values:
        initial_active = _site(section, "initial_active", clusters)
    elif len({flow.source for flow in flows}) == 1:
        initial_active = flows[0].source
    else:
        raise top.error("failover", "initial_active must say which site is active at first")
    section.known.append("initial_active")
    failover = FailoverConfig(
        initial_active=initial_active,
        drain_timeout_ms=section.integer("drain_timeout_ms", 60_000, least=100),
        group_drain_timeout_ms=section.integer("group_drain_timeout_ms", 10_000, least=100),
        stop_timeout_ms=section.integer("stop_timeout_ms", 15_000, least=100),
    )
    section.finish()
    return failover


def _audit(section: Section, path: Path) -> AuditConfig:
    output = Path(section.string("output", "audit"))
    memory = section.string("driver_memory", "1g")
    if not re.fullmatch(r"[1-9][0-9]*[mg]", memory):
        raise section.error("driver_memory", f"{memory!r} is not like 512m or 2g")
    audit = AuditConfig(
        output=output if output.is_absolute() else path.parent / output,
        driver_memory=memory,
        cores=section.integer("cores", 2, least=1, most=1024),
    )
    section.finish()
    return audit


def _metrics(section: Section) -> MetricsConfig:
    metrics = MetricsConfig(
        host=section.string("host", "127.0.0.1"),
        mirror_port=section.integer("mirror_port", 9401, least=0, most=65535),
        failover_port=section.integer("failover_port", 9402, least=0, most=65535),
        audit_port=section.integer("audit_port", 9403, least=0, most=65535),
    )
    section.finish()
    return metrics
