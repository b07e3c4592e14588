"""Flows: how far and how fast each mirror is, what it left out, and what keeps it from working."""

from typing import Final

from deploy.grafana.source.model import (
    FLOW,
    JOB,
    Dashboard,
    DashboardPanel,
    DashboardRow,
    DashboardVariable,
    PanelKind,
    PanelQuery,
    folded,
    moved,
    quantiles,
    series,
    speed,
    top,
)

TOPIC_OF_FLOW: Final = DashboardVariable(
    name="topic", label="Topic", of='mirror_lag_records{job=~"$job",flow=~"$flow"}'
)

FLOWS: Final = Dashboard(
    uid="kafka-dr-flows",
    title="Kafka disaster recovery / Flows",
    variables=(
        JOB,
        FLOW,
        TOPIC_OF_FLOW,
    ),
    rows=(
        DashboardRow(
            "State",
            (
                DashboardPanel(
                    title="Role",
                    kind=PanelKind.TABLE,
                    queries=(
                        PanelQuery(
                            f"{series('mirror_role', 'flow')} == 1",
                            "{{flow}} {{role}} {{instance}}",
                        ),
                    ),
                    width=8,
                ),
                DashboardPanel(
                    title="Partitions by state",
                    queries=(
                        PanelQuery(
                            folded("sum", "flow, state", "mirror_partitions", "flow"),
                            "{{flow}} {{state}}",
                        ),
                    ),
                ),
                DashboardPanel(
                    title="Longest in their state",
                    kind=PanelKind.TABLE,
                    queries=(
                        PanelQuery(
                            top(series("mirror_partition_state_age_seconds", "flow", "topic")),
                            "{{topic}}-{{partition}}",
                        ),
                    ),
                    unit="s",
                    help="With metrics.granularity: partition alone.",
                ),
                DashboardPanel(
                    title="Parts that do not work",
                    queries=(
                        PanelQuery(
                            folded("max", "flow, part", "mirror_fault", "flow"), "{{flow}} {{part}}"
                        ),
                    ),
                    bad_from=1,
                ),
                DashboardPanel(
                    title="Walked by native code",
                    queries=(
                        PanelQuery(
                            folded("min", "flow", "mirror_chunk_kernel", "flow"), "{{flow}}"
                        ),
                    ),
                    help="0: Python does it. mirror status says why.",
                ),
                DashboardPanel(
                    title="Settings that the target refuses",
                    kind=PanelKind.TABLE,
                    queries=(PanelQuery(series("mirror_refused_topic_setting", "flow", "topic")),),
                    empty="the target refuses none",
                ),
            ),
        ),
        DashboardRow(
            "Lag",
            (
                DashboardPanel(
                    title="Lag in seconds",
                    queries=(
                        PanelQuery(
                            folded("max", "flow", "mirror_lag_seconds", "flow", "topic"), "{{flow}}"
                        ),
                    ),
                    unit="s",
                ),
                DashboardPanel(
                    title="Lag in records, the 20 largest topics",
                    queries=(
                        PanelQuery(
                            top(
                                folded("sum", "flow, topic", "mirror_lag_records", "flow", "topic")
                            ),
                            "{{flow}} {{topic}}",
                        ),
                    ),
                ),
                DashboardPanel(
                    title="Partitions of unknown lag",
                    queries=(
                        PanelQuery(
                            folded("sum", "flow", "mirror_unknown_lag_partitions", "flow"),
                            "{{flow}}",
                        ),
                    ),
                ),
            ),
        ),
        DashboardRow(
            "Speed",
            (
                DashboardPanel(
                    title="Records a second",
                    queries=(
                        PanelQuery(speed("flow", "mirror_records_total", "flow"), "{{flow}}"),
                    ),
                    unit="cps",
                ),
                DashboardPanel(
                    title="Bytes a second",
                    queries=(PanelQuery(speed("flow", "mirror_bytes_total", "flow"), "{{flow}}"),),
                    unit="Bps",
                ),
                DashboardPanel(
                    title="Batches a second",
                    queries=(
                        PanelQuery(speed("flow", "mirror_batches_total", "flow"), "{{flow}} sent"),
                        PanelQuery(
                            speed("flow", "mirror_batches_rebuilt_total", "flow"),
                            "{{flow}} rebuilt",
                        ),
                        PanelQuery(
                            speed("flow", "mirror_batches_left_out_total", "flow"),
                            "{{flow}} left out",
                        ),
                    ),
                    unit="cps",
                ),
                DashboardPanel(
                    title="Source offsets mirrored a second, the 20 fastest topics",
                    queries=(
                        PanelQuery(
                            top(
                                moved(
                                    "flow, topic", "mirror_mirrored_source_offset", "flow", "topic"
                                )
                            ),
                            "{{flow}} {{topic}}",
                        ),
                    ),
                    unit="cps",
                    help="With metrics.granularity: partition alone.",
                ),
                DashboardPanel(
                    title="Added latency",
                    queries=quantiles("mirror_added_latency_seconds", "flow", "flow"),
                    unit="s",
                    help="From a record's time at its producer to the target's acknowledgement.",
                ),
                DashboardPanel(
                    title="Time in the mirror",
                    queries=quantiles("mirror_forward_duration_seconds", "flow", "flow"),
                    unit="s",
                    help="From the fetch of a batch to the target's acknowledgement.",
                ),
                DashboardPanel(
                    title="Bytes under way",
                    queries=(
                        PanelQuery(
                            folded("sum", "flow", "mirror_in_flight_bytes", "flow", "topic"),
                            "{{flow}}",
                        ),
                    ),
                    unit="bytes",
                ),
            ),
        ),
        DashboardRow(
            "Left out and refused",
            (
                DashboardPanel(
                    title="Offsets lost, skipped; batches that came from the target",
                    queries=(
                        PanelQuery(
                            folded("sum", "flow", "mirror_lost_records", "flow", "topic"),
                            "{{flow}} lost",
                        ),
                        PanelQuery(
                            folded("sum", "flow", "mirror_skipped_records_total", "flow", "topic"),
                            "{{flow}} skipped",
                        ),
                        PanelQuery(
                            folded("sum", "flow", "mirror_looped_batches_total", "flow", "topic"),
                            "{{flow}} came from the target",
                        ),
                    ),
                ),
                DashboardPanel(
                    title="Errors a second",
                    queries=(
                        PanelQuery(
                            speed("flow, error", "mirror_produce_errors_total", "flow"),
                            "{{flow}} produce {{error}}",
                        ),
                        PanelQuery(
                            speed("flow, error", "mirror_fetch_errors_total", "flow"),
                            "{{flow}} fetch {{error}}",
                        ),
                    ),
                    unit="cps",
                    empty="no request was refused since the mirror began",
                ),
                DashboardPanel(
                    title="Records of internal topics that are not believed",
                    queries=(
                        PanelQuery(
                            folded("max", "flow, topic", "mirror_unbelieved_records", "flow"),
                            "{{flow}} {{topic}}",
                        ),
                        PanelQuery(
                            folded("sum", "flow, topic", "mirror_malformed_records_total", "flow"),
                            "{{flow}} {{topic}} malformed",
                        ),
                    ),
                    empty="nobody else has written there",
                ),
                DashboardPanel(
                    title="Refused after a switch",
                    queries=(
                        PanelQuery(
                            folded("max", "flow, principal", "mirror_refused_after_switch", "flow"),
                            "{{flow}} {{principal}}",
                        ),
                        PanelQuery(
                            folded("max", "flow", "mirror_missing_scram_users", "flow"),
                            "{{flow}} SCRAM users",
                        ),
                    ),
                    empty="no site has an authorizer, or nobody would be refused",
                ),
            ),
        ),
    ),
)
