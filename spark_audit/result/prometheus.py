"""A verdict as Prometheus metrics: for node_exporter's textfile collector, and served. Pure."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from spark_audit.compare.mapped import Standing
from spark_audit.compare.outcomes import FINDINGS, OF_KEYS, Kind
from spark_audit.result.coverage import SIDES, Share
from spark_audit.result.verdict import Answer, Verdict


class VerdictCollector(Collector):
    """Gives the metrics of one verdict: gauges all, because a run starts from zero."""

    def __init__(self, verdict: Verdict) -> None:
        self._verdict = verdict

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics. Unknown is not zero: such a run has no counts."""
        verdict = self._verdict
        answers = GaugeMetricFamily(
            "audit_verdict", "The last audit's verdict: 1 for the one it gave", labels=["verdict"]
        )
        for answer in Answer:
            answers.add_metric([answer.value], float(answer is verdict.answer))
        yield answers
        yield GaugeMetricFamily(
            "audit_last_run_timestamp_seconds",
            "When the last audit ended, by the clock",
            value=verdict.ended_ms / 1_000,
        )
        yield GaugeMetricFamily(
            "audit_topics_asked_for",
            "How many topics the last audit was asked to look at alone, 0 for all",
            value=len(verdict.only),
        )
        yield GaugeMetricFamily(
            "audit_duration_seconds",
            "How long the last audit took",
            value=(verdict.ended_ms - verdict.started_ms) / 1_000,
        )
        left_out = GaugeMetricFamily(
            "audit_partitions_not_compared",
            "Partitions of which the last audit compared nothing, or not all",
            labels=["flow"],
        )
        for flow in verdict.flows:
            left_out.add_metric([flow.flow], len(flow.left_out))
        yield left_out
        yield from self._coverage()
        if verdict.answer is not Answer.UNKNOWN:
            yield from self._counts()

    def _coverage(self) -> Iterator[Metric]:
        offsets = GaugeMetricFamily(
            "audit_offsets",
            "What became of the offsets in the last audit's snapshot; the shares of a side add up",
            labels=["flow", "side", "share"],
        )
        for flow in self._verdict.flows:
            for side in SIDES:
                shares = flow.coverage(side)
                for share in Share:
                    offsets.add_metric([flow.flow, side, share.value], shares[share])
        yield offsets
        positions = GaugeMetricFamily(
            "audit_positions",
            "Positions of groups on the target, by how they stand to what was read on the source",
            labels=["flow", "standing"],
        )
        for flow in self._verdict.flows:
            for standing in Standing:
                number = flow.total(f"positions_{standing.name.lower()}")
                positions.add_metric([flow.flow, standing.value], number)
        yield positions
        oldest = GaugeMetricFamily(
            "audit_oldest_in_flight_timestamp_seconds",
            "The time of the oldest record that was not mirrored yet, as its producer set it",
            labels=[],
        )
        if (oldest_ms := self._verdict.oldest_in_flight_ms) is not None:
            oldest.add_metric([], oldest_ms / 1_000)
        yield oldest
        settings = GaugeMetricFamily(
            "audit_settings_different",
            "Settings of topics that hold another value on the target; only those that lose "
            "records are findings",
            labels=["flow", "loses_records"],
        )
        for flow in self._verdict.flows:
            losing = sum(one.loses is not None for one in flow.settings)
            settings.add_metric([flow.flow, "true"], losing)
            settings.add_metric([flow.flow, "false"], len(flow.settings) - losing)
        yield settings
        rights = GaugeMetricFamily(
            "audit_rights_different",
            "Rights to topics and clusters that one site alone has; only those that nothing "
            "explains are findings",
            labels=["flow", "explained"],
        )
        for flow in self._verdict.flows:
            unexplained = sum(one.explained is None for one in flow.rights)
            rights.add_metric([flow.flow, "false"], unexplained)
            rights.add_metric([flow.flow, "true"], len(flow.rights) - unexplained)
        yield rights

    def _counts(self) -> Iterator[Metric]:
        compared = GaugeMetricFamily(
            "audit_records_compared", "Records the last audit compared", labels=["flow", "side"]
        )
        findings = GaugeMetricFamily(
            "audit_findings", "Findings of the last audit", labels=["flow", "kind"]
        )
        others = GaugeMetricFamily(
            "audit_records_explained",
            "Records that differ for a reason that is no finding",
            labels=["flow", "kind"],
        )
        keys = GaugeMetricFamily(
            "audit_keys",
            "Keys of compacted topics by their last values on both sites; those not compared are "
            "at least so many",
            labels=["flow", "kind"],
        )
        for flow in self._verdict.flows:
            for kind in (*OF_KEYS, Kind.ENDS_DIFFERENTLY):
                keys.add_metric([flow.flow, kind.value], flow.total(kind.column))
            for side in SIDES:
                compared.add_metric([flow.flow, side], flow.coverage(side)[Share.COMPARED])
            for kind in (one for one in Kind if one not in OF_KEYS):
                family = findings if kind in FINDINGS else others
                family.add_metric([flow.flow, kind.value], flow.total(kind.column))
        yield from (compared, findings, others, keys)


def textfile(verdict: Verdict) -> str:
    """Return the metrics in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(VerdictCollector(verdict))
    return generate_latest(registry).decode()
