"""The gauges of `/metrics`, read off the flows when somebody scrapes.

Those of partitions and groups are many: `mirror.report.pages`.
"""

from collections.abc import Iterable, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from mirror.flow.run_decision import Role
from mirror.flow.runner import FlowRunner
from mirror.report.status import (
    FlowHead,
    faults_by_part,
    flow_head,
)
from mirror.state.measurements import export
from wire.kernel.chosen import walker


class FlowCollector(Collector):
    """Yields one sample for each thing that is known; what is unknown is absent, not zero."""

    def __init__(self, runners: Sequence[FlowRunner]) -> None:
        self._runners = runners

    def collect(self) -> Iterable[Metric]:
        """Return all families."""
        flows = [flow_head(runner) for runner in self._runners]
        yield from export([runner.measurements for runner in self._runners])
        yield _roles(flows)
        yield _kernels(self._runners)
        yield _refused_settings(flows)
        yield _faults(self._runners)
        yield _unbelieved_records(self._runners)
        yield from _refused_after_switch(self._runners)


def _roles(flows: Sequence[FlowHead]) -> Metric:
    family = GaugeMetricFamily(
        "mirror_role", "1 for the role that this daemon has in the flow", labels=("flow", "role")
    )
    for flow in flows:
        for role in Role:
            family.add_metric((flow["flow"], role.value), float(flow["role"] == role.value))
    return family


def _kernels(runners: Sequence[FlowRunner]) -> Metric:
    family = GaugeMetricFamily(
        "mirror_chunk_kernel",
        "1 where native code walks what the flow fetches, 0 where Python does; the status says why",
        labels=("flow",),
    )
    for runner in runners:
        by = walker(may_be_native=runner.config.has_chunk_kernel)
        family.add_metric((runner.config.name,), float(by.is_native))
    return family


def _refused_settings(flows: Sequence[FlowHead]) -> Metric:
    family = GaugeMetricFamily(
        "mirror_refused_topic_setting",
        "1 for a setting that the target refuses; the topic is mirrored without it",
        labels=("flow", "topic", "setting"),
    )
    for flow in flows:
        for one in flow["refused_settings"]:
            family.add_metric((flow["flow"], one["topic"], one["setting"]), 1)
    return family


def _faults(runners: Sequence[FlowRunner]) -> Metric:
    family = GaugeMetricFamily(
        "mirror_fault",
        "1 while something keeps this part of the flow from working; the status says what",
        labels=("flow", "part"),
    )
    for runner in runners:
        for part, fault in faults_by_part(runner).items():
            family.add_metric((runner.config.name, part), float(fault is not None))
    return family


def _unbelieved_records(runners: Sequence[FlowRunner]) -> Metric:
    family = GaugeMetricFamily(
        "mirror_unbelieved_records",
        "Records of an internal topic that no registered producer has written; not believed",
        labels=("flow", "topic"),
    )
    for runner in runners:
        if runner.engine is not None:
            for topic, unbelieved in runner.engine.unbelieved_watch.unbelieved_records.items():
                family.add_metric((runner.config.name, topic), unbelieved.count)
    return family


def _refused_after_switch(runners: Sequence[FlowRunner]) -> Iterable[Metric]:
    refused = GaugeMetricFamily(
        "mirror_refused_after_switch",
        "Topics, groups and transactional ids that the principal may use on the source alone; "
        "without a principal, those that nobody may use on the target",
        labels=("flow", "principal"),
    )
    users = GaugeMetricFamily(
        "mirror_missing_scram_users",
        "SCRAM users of the source, each with each mechanism, that the target does not know",
        labels=("flow",),
    )
    for runner in runners:
        outlook = None if runner.engine is None else runner.engine.acls.outlook
        if outlook is None:
            continue
        for principal, count in outlook.principals.items():
            refused.add_metric((runner.config.name, principal), count)
        if outlook.missing_users is not None:
            users.add_metric((runner.config.name,), len(outlook.missing_users))
    yield refused
    yield users
