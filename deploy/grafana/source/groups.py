"""Consumer groups: how far each is behind on both sites, and whether its positions travel."""

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
    speed,
    top,
)

ON_TARGET: Final = folded(
    "sum", "flow, group", "mirror_group_target_lag_records", "flow", "group", "topic"
)
ON_SOURCE: Final = folded(
    "sum", "flow, group", "mirror_group_source_lag_records", "flow", "group", "topic"
)
GROUP_OF_FLOW: Final = DashboardVariable(
    name="group",
    label="Group",
    of='mirror_group_source_lag_records{job=~"$job",flow=~"$flow"}',
)
TOPIC_OF_GROUP: Final = DashboardVariable(
    name="topic",
    label="Topic",
    of='mirror_group_source_lag_records{job=~"$job",flow=~"$flow",group=~"$group"}',
)

GROUPS: Final = Dashboard(
    uid="kafka-dr-groups",
    title="Kafka disaster recovery / Consumer groups",
    variables=(
        JOB,
        FLOW,
        GROUP_OF_FLOW,
        TOPIC_OF_GROUP,
    ),
    rows=(
        DashboardRow(
            "Lag on the source",
            (
                DashboardPanel(
                    title="Lag in seconds",
                    queries=(
                        PanelQuery(
                            folded(
                                "max",
                                "flow, group",
                                "mirror_group_source_lag_seconds",
                                "flow",
                                "group",
                                "topic",
                            ),
                            "{{group}}",
                        ),
                    ),
                    unit="s",
                    width=12,
                    help="Since the group last had everything; unknown until it was there once.",
                ),
                DashboardPanel(
                    title="Lag in records",
                    queries=(
                        PanelQuery(
                            folded(
                                "sum",
                                "flow, group",
                                "mirror_group_source_lag_records",
                                "flow",
                                "group",
                                "topic",
                            ),
                            "{{group}}",
                        ),
                    ),
                    width=12,
                ),
                DashboardPanel(
                    title="The 20 largest by topic",
                    kind=PanelKind.TABLE,
                    queries=(
                        PanelQuery(
                            top(
                                folded(
                                    "sum",
                                    "group, topic",
                                    "mirror_group_source_lag_records",
                                    "flow",
                                    "group",
                                    "topic",
                                )
                            )
                        ),
                    ),
                    width=12,
                ),
                DashboardPanel(
                    title="Positions committed a second on the source",
                    queries=(
                        PanelQuery(
                            moved(
                                "group, topic",
                                "mirror_group_source_offset",
                                "flow",
                                "group",
                                "topic",
                            ),
                            "{{group}} {{topic}}",
                        ),
                    ),
                    unit="cps",
                    width=12,
                    help="By how far groups move. With metrics.granularity: partition alone.",
                ),
            ),
        ),
        DashboardRow(
            "On the target",
            (
                DashboardPanel(
                    title="Records that a group would read again or first on the target",
                    queries=(
                        PanelQuery(
                            folded(
                                "sum",
                                "flow, group",
                                "mirror_group_target_lag_records",
                                "flow",
                                "group",
                                "topic",
                            ),
                            "{{group}}",
                        ),
                    ),
                    width=12,
                ),
                DashboardPanel(
                    title="Source and target lag apart",
                    queries=(
                        PanelQuery(
                            f"{ON_TARGET} - {ON_SOURCE}",
                            "{{group}}",
                        ),
                    ),
                    width=12,
                    help="Above 0 by what would be read again after a failover.",
                ),
                DashboardPanel(
                    title="Positions committed a second on the target",
                    queries=(
                        PanelQuery(speed("flow", "mirror_group_commits_total", "flow"), "{{flow}}"),
                    ),
                    unit="cps",
                    width=12,
                ),
                DashboardPanel(
                    title="Positions that the target refused",
                    queries=(
                        PanelQuery(
                            speed("flow, error", "mirror_group_commit_errors_total", "flow"),
                            "{{flow}} {{error}}",
                        ),
                    ),
                    unit="cps",
                    width=12,
                    empty="the target refused none since the mirror began",
                ),
            ),
        ),
    ),
)
