"""The gauges of `/metrics`, read off the flows when somebody scrapes."""

from collections.abc import Iterable, Sequence
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from mirror.duty import Role
from mirror.flow import FlowRunner
from mirror.measurements import export
from mirror.status import (
    FlowReport,
    GroupReport,
    PartitionReport,
    faults_by_part,
    flow_reports,
)
from runtime.clock import now_ms

PARTITION_LABELS: Final = ("flow", "topic", "partition")
GROUP_LABELS: Final = ("flow", "group", "topic", "partition")

_PARTITION_GAUGES: Final = (
    ("mirror_lag_records", "Source offsets not yet mirrored", "lag_records"),
    ("mirror_lag_seconds", "Time since the partition was last level", "lag_seconds"),
    ("mirror_source_end_offset", "The source's high watermark", "source_end"),
    ("mirror_mirrored_source_offset", "Everything before is mirrored", "mirrored_source_end"),
    ("mirror_mirrored_target_offset", "Where the mirrored part ends", "mirrored_target_end"),
    ("mirror_partition_in_flight_bytes", "Fetched, not acknowledged", "in_flight_bytes"),
    ("mirror_lost_records", "Offsets deleted before they were mirrored", "lost_records"),
    ("mirror_skipped_records", "Offsets left out by a policy or a command", "skipped_records"),
)
_GROUP_GAUGES: Final = (
    ("mirror_group_source_offset", "A group's position on the source", "source_offset"),
    ("mirror_group_target_offset", "A group's position on the target", "target_offset"),
    ("mirror_group_source_lag_records", "Offsets behind the source's end", "source_lag"),
    ("mirror_group_target_lag_records", "Offsets behind the mirrored end", "target_lag"),
)


class FlowCollector(Collector):
    """Yields one sample for each thing that is known; what is unknown is absent, not zero."""

    def __init__(self, runners: Sequence[FlowRunner], pid: int) -> None:
        """Read these flows."""
        self._runners = runners
        self._pid = pid

    def collect(self) -> Iterable[Metric]:
        """Return all families."""
        now = now_ms()
        flows = flow_reports(self._runners, now)
        yield from export([runner.measurements for runner in self._runners])
        yield _roles(flows)
        yield from _partition_states(flows, now)
        yield _refused_settings(flows)
        yield _faults(self._runners)
        for name, text, field in _PARTITION_GAUGES:
            family = GaugeMetricFamily(name, text, labels=PARTITION_LABELS)
            for flow in flows:
                for one in flow["partitions"]:
                    _add(family, (flow["flow"], one["topic"], str(one["partition"])), one, field)
            yield family
        for name, text, field in _GROUP_GAUGES:
            family = GaugeMetricFamily(name, text, labels=GROUP_LABELS)
            for flow in flows:
                for group in flow["groups"]:
                    place = (group["group"], group["topic"], str(group["partition"]))
                    _add(family, (flow["flow"], *place), group, field)
            yield family


def _add(
    family: GaugeMetricFamily,
    labels: Sequence[str],
    one: PartitionReport | GroupReport,
    field: str,
) -> None:
    value = one.get(field)
    if isinstance(value, int | float):
        family.add_metric(labels, value)


def _roles(flows: Sequence[FlowReport]) -> Metric:
    family = GaugeMetricFamily(
        "mirror_role", "1 for the role that this daemon has in the flow", labels=("flow", "role")
    )
    for flow in flows:
        for role in Role:
            family.add_metric((flow["flow"], role.value), float(flow["role"] == role.value))
    return family


def _refused_settings(flows: Sequence[FlowReport]) -> Metric:
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


def _partition_states(flows: Sequence[FlowReport], now: int) -> Iterable[Metric]:
    state = GaugeMetricFamily(
        "mirror_partition_state",
        "1 for the state that the partition is in",
        labels=(*PARTITION_LABELS, "state"),
    )
    age = GaugeMetricFamily(
        "mirror_partition_state_age_seconds", "How long it has been in it", labels=PARTITION_LABELS
    )
    for flow in flows:
        for one in flow["partitions"]:
            labels = (flow["flow"], one["topic"], str(one["partition"]))
            state.add_metric((*labels, one["state"]), 1)
            age.add_metric(labels, (now - one["since_ms"]) / 1000)
    yield state
    yield age
