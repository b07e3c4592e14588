"""Overview: which site is active, what a disaster would cost now, and what needs somebody."""

from typing import Final

from deploy.grafana.source.model import (
    FLOW,
    JOB,
    SET,
    SITE,
    Dashboard,
    DashboardPanel,
    DashboardRow,
    PanelKind,
    PanelQuery,
    folded,
    quantiles,
    rate,
    series,
    speed,
)

STANDS_STILL: Final = 'state!~"discovering|positioning|catching up|streaming|paused"'
UP: Final = ((1, "up", "green"), (0, "down", "red"))
ACTIVE: Final = ((1, "active", "green"), (0, "idle", "text"))
READY: Final = ((1, "ready", "green"), (0, "not ready", "orange"))
NO_YES: Final = ((0, "no", "green"), (1, "yes", "orange"))

OVERVIEW: Final = Dashboard(
    uid="kafka-dr-overview",
    title="Kafka disaster recovery / Overview",
    variables=(JOB, FLOW, SET, SITE),
    rows=(
        DashboardRow(
            "Sites",
            (
                DashboardPanel(
                    title="Active site",
                    kind=PanelKind.STAT,
                    queries=(
                        PanelQuery(
                            folded("max", "set, site", "failover_role", "set", "site"),
                            "{{set}} {{site}}",
                        ),
                    ),
                    words=ACTIVE,
                    width=6,
                ),
                DashboardPanel(
                    title="Sites and witness",
                    kind=PanelKind.STAT,
                    queries=(
                        PanelQuery(folded("min", "site", "failover_site_up", "site"), "{{site}}"),
                        PanelQuery(f"min({series('failover_witness_up')})", "witness"),
                    ),
                    words=UP,
                    width=6,
                ),
                DashboardPanel(
                    title="Could be promoted now",
                    kind=PanelKind.STAT,
                    queries=(
                        PanelQuery(
                            folded("min", "set, site, reason", "failover_ready", "set", "site"),
                            "{{set}} {{site}} {{reason}}",
                        ),
                    ),
                    words=READY,
                    width=6,
                ),
                DashboardPanel(
                    title="Last audit",
                    kind=PanelKind.STAT,
                    queries=(
                        PanelQuery(f"{series('audit_verdict')} == 1", "{{verdict}}"),
                        PanelQuery(
                            f"time() - {series('audit_last_run_timestamp_seconds')}", "seconds ago"
                        ),
                    ),
                    width=6,
                ),
                DashboardPanel(
                    title="A promotion is unfinished, or held",
                    kind=PanelKind.STAT,
                    queries=(
                        PanelQuery(
                            folded("max", "set", "failover_unfinished", "set"),
                            "unfinished {{set}}",
                        ),
                        PanelQuery(folded("max", "set", "failover_held", "set"), "held {{set}}"),
                    ),
                    words=NO_YES,
                    width=6,
                ),
                DashboardPanel(
                    title="Partitions that stand still",
                    kind=PanelKind.STAT,
                    queries=(
                        PanelQuery(
                            folded("sum", "flow", "mirror_partitions", "flow", STANDS_STILL),
                            "{{flow}}",
                        ),
                    ),
                    bad_from=1,
                    width=6,
                ),
                DashboardPanel(
                    title="Alerts that fire",
                    kind=PanelKind.TABLE,
                    queries=(PanelQuery('ALERTS{alertstate="firing"}'),),
                    width=12,
                    empty="no alert fires",
                ),
            ),
        ),
        DashboardRow(
            "What a disaster now would cost",
            (
                DashboardPanel(
                    title="Lag in seconds",
                    queries=(
                        PanelQuery(folded("max", "flow", "mirror_lag_seconds", "flow"), "{{flow}}"),
                    ),
                    unit="s",
                    help="The recovery point: records of this time would be lost.",
                ),
                DashboardPanel(
                    title="Lag in records",
                    queries=(
                        PanelQuery(folded("sum", "flow", "mirror_lag_records", "flow"), "{{flow}}"),
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
                    help="Theirs is in no other figure here.",
                ),
            ),
        ),
        DashboardRow(
            "Mirroring",
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
                    title="Added latency",
                    queries=quantiles("mirror_added_latency_seconds", "flow", "flow"),
                    unit="s",
                    help="From a record's time at its producer to the target's acknowledgement.",
                ),
            ),
        ),
        DashboardRow(
            "Programs",
            (
                DashboardPanel(
                    title="Versions",
                    kind=PanelKind.TABLE,
                    queries=(
                        PanelQuery(
                            f"count by (program, version) ({series('kafka_dr_build_info')})",
                        ),
                    ),
                ),
                DashboardPanel(
                    title="Processor",
                    queries=(
                        PanelQuery(
                            f"{rate('process_cpu_seconds_total')} * on (job, instance) "
                            "group_left (program) kafka_dr_build_info",
                            "{{program}} {{instance}}",
                        ),
                    ),
                    help="In cores.",
                ),
                DashboardPanel(
                    title="Memory",
                    queries=(
                        PanelQuery(
                            f"{series('process_resident_memory_bytes')} * on (job, instance) "
                            "group_left (program) kafka_dr_build_info",
                            "{{program}} {{instance}}",
                        ),
                    ),
                    unit="bytes",
                ),
            ),
        ),
    ),
)
