"""The page about metrics and alerts: the collectors are asked, with samples of what they export."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import yaml
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from broker.log.cleaner_metrics import CleanerMetrics, CleanerState
from broker.metrics import BrokerCollector, BrokerState, RequestMetrics
from broker.partition_gauges import FAMILIES, HeldCounts
from broker.replication.isr_changes import IsrCounts
from docs.generate.markdown import literal, page, section, sentence, table
from failover.bootstrap.active_site import FollowedSite
from failover.bootstrap.endpoint_metrics import EndpointCollector
from failover.canary.watch import CanaryCollector, latency_histogram
from failover.journal.journal import Journal
from failover.journal.steps import PromotionKind, PromotionState
from failover.serve.automatic_metrics import AutomaticCollector
from failover.serve.readiness import ReadinessCollector
from failover.serve.rehearsal_metrics import RehearsalCollector
from failover.serve.status_collector import StatusCollector
from failover.view.status import Status
from mirror.report.exporter import FlowCollector
from mirror.report.gauges import families
from runtime.configuration.metrics_section import Granularity
from runtime.configuration.rehearsal_section import RehearsalConfig
from runtime.coordination.witness import ActiveSite
from runtime.pages.exposition import ManyFamily, program_registry
from spark_audit.result.prometheus import VerdictCollector
from spark_audit.result.verdict import Answer, Verdict

ALERTS: Final = Path(__file__).parents[2] / "deploy" / "prometheus" / "alerts.yml"

_TEMPLATE: Final = re.compile(r"\{\{ \$(?:labels\.)?(\w+)[^}]*\}\}")
"""What Prometheus fills in."""

_EACH: Final = Granularity.PARTITION

INTRODUCTION: Final = """
Every program serves `/metrics`, `/health/live` and `/health/ready` over HTTP. A value that a
program does not know is absent, not zero. [Monitoring](../operate/monitoring.md) says where each
program listens.
"""

Row = tuple[str, str, str, str]


def metrics_page() -> str:
    """Return the page."""
    return page(
        "Metrics and alerts",
        INTRODUCTION,
        section("Every program", _table(_rows(program_registry("mirror").collect()))),
        section("`mirror run`", _table([*_rows(_mirror()), *_many(families(_EACH))])),
        section(
            "`failover serve`",
            _table(_rows(_failover())),
        ),
        section("`failover bootstrap`", _table(_rows(_bootstrap()))),
        section("`spark-audit`", _table(_rows(_audit()))),
        section("Bundled brokers", _table([*_rows(_broker()), *_many(FAMILIES)])),
        section("Alerts", ALERTS_ARE, _alerts()),
    )


ALERTS_ARE: Final = """
`deploy/prometheus/alerts.yml` holds these rules. The recovery point objective is the 30 s in
`RecoveryPointExceeded`. Each leads to its [runbook](../runbooks/index.md).
""".strip()


def _canary() -> Iterator[Metric]:
    registry = CollectorRegistry()
    latency_histogram(registry)
    yield from CanaryCollector().collect()
    for family in registry.collect():
        vars(family)["_labelnames"] = ("flow",)  # a histogram keeps them in its samples
        yield family


def _table(rows: Iterable[Row]) -> str:
    return table(("metric", "type", "labels", "meaning"), rows)


def _rows(families: Iterable[Metric]) -> Iterator[Row]:
    for family in families:
        # A family without samples keeps its labels nowhere else.
        labels: tuple[str, ...] = vars(family)["_labelnames"]
        name = f"{family.name}_total" if family.type == "counter" else family.name
        yield _row(name, family.type, labels, family.documentation)


def _many(families: Iterable[ManyFamily]) -> Iterator[Row]:
    for one in families:
        yield _row(one.name, one.kind, one.labels, one.text)


def _row(name: str, kind: str, labels: Iterable[str], text: str) -> Row:
    return literal(name), kind, ", ".join(map(literal, labels)), sentence(text)


def _mirror() -> Iterable[Metric]:
    return FlowCollector([]).collect()


def _failover() -> Iterable[Metric]:
    collector = StatusCollector()
    done = Journal(
        epoch=1,
        site="dc2",
        source="dc1",
        kind=PromotionKind.PLANNED,
        state=PromotionState.DONE,
        started_ms=0,
        switched_ms=0,
    )
    collector.status = Status(
        active=ActiveSite(site="dc2", epoch=1), sites=(), flows=(), unfinished=None, last=done
    )
    return [
        *collector.collect(),
        *ReadinessCollector().collect(),
        *RehearsalCollector(RehearsalConfig()).collect(),
        *AutomaticCollector({}).collect(),
        *_canary(),
    ]


def _bootstrap() -> Iterable[Metric]:
    return EndpointCollector(FollowedSite()).collect()


def _audit() -> Iterable[Metric]:
    return VerdictCollector(Verdict(answer=Answer.CLEAN, started_ms=0, ended_ms=0)).collect()


def _broker() -> Iterable[Metric]:
    cleaner = CleanerMetrics(dedupe_buffer_size=1, last_run_ms=0)
    state = BrokerState(
        held=HeldCounts(),
        offline_partitions=0,
        offline_log_folders=0,
        is_controller=False,
        isr=IsrCounts(),
        cleaner=CleanerState(gauges=cleaner.gauges(0), uncleanable={}),
    )
    yield from BrokerCollector(RequestMetrics(), lambda: state).collect()


def _alerts() -> str:
    rules: list[dict[str, Any]] = [
        rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]
    ]
    return table(("alert", "severity", "after", "what it says"), map(_alert, rules))


def _alert(rule: dict[str, Any]) -> tuple[str, str, str, str]:
    notes = rule["annotations"]
    words = [sentence(notes[part]) for part in ("summary", "description") if part in notes]
    runbook = notes["runbook_url"].partition("/runbooks/")[2]
    return (
        f"[{literal(rule['alert'])}](../runbooks/{runbook})",
        rule["labels"]["severity"],
        rule.get("for", "at once"),
        _TEMPLATE.sub(r"*\1*", " ".join(words)),
    )
