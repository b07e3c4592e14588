"""Audits: what the last one compared, found and could not tell."""

from typing import Final

from deploy.grafana.source.model import (
    FLOW,
    JOB,
    Dashboard,
    DashboardPanel,
    DashboardRow,
    PanelKind,
    PanelQuery,
    folded,
    series,
)

AUDITS: Final = Dashboard(
    uid="kafka-dr-audits",
    title="Kafka disaster recovery / Audits",
    variables=(
        JOB,
        FLOW,
    ),
    rows=(
        DashboardRow(
            "Last audit",
            (
                DashboardPanel(
                    title="Verdict",
                    kind=PanelKind.STAT,
                    queries=(PanelQuery(f"{series('audit_verdict')} == 1", "{{verdict}}"),),
                ),
                DashboardPanel(
                    title="How long ago",
                    kind=PanelKind.STAT,
                    queries=(
                        PanelQuery(
                            f"time() - {series('audit_last_run_timestamp_seconds')}", "ended"
                        ),
                    ),
                    unit="s",
                ),
                DashboardPanel(
                    title="How long it took",
                    kind=PanelKind.STAT,
                    queries=(PanelQuery(series("audit_duration_seconds"), "took"),),
                    unit="s",
                ),
                DashboardPanel(
                    title="Topics it was asked for",
                    kind=PanelKind.STAT,
                    queries=(PanelQuery(series("audit_topics_asked_for"), "topics"),),
                    help="0: all.",
                ),
                DashboardPanel(
                    title="Partitions not compared, or not wholly",
                    kind=PanelKind.STAT,
                    queries=(
                        PanelQuery(
                            folded("max", "flow", "audit_partitions_not_compared", "flow"),
                            "{{flow}}",
                        ),
                    ),
                    bad_from=1,
                ),
                DashboardPanel(
                    title="Oldest record in flight",
                    kind=PanelKind.STAT,
                    queries=(
                        PanelQuery(
                            f"time() - {series('audit_oldest_in_flight_timestamp_seconds')}",
                            "by its producer's clock",
                        ),
                    ),
                    unit="s",
                    empty="the mirror had brought everything",
                ),
            ),
        ),
        DashboardRow(
            "What it compared",
            (
                DashboardPanel(
                    title="Offsets by what became of them",
                    queries=(
                        PanelQuery(
                            folded("sum", "flow, side, share", "audit_offsets", "flow"),
                            "{{flow}} {{side}} {{share}}",
                        ),
                    ),
                    width=12,
                ),
                DashboardPanel(
                    title="Records compared",
                    queries=(
                        PanelQuery(
                            folded("sum", "flow, side", "audit_records_compared", "flow"),
                            "{{flow}} {{side}}",
                        ),
                    ),
                    width=12,
                ),
            ),
        ),
        DashboardRow(
            "What it found",
            (
                DashboardPanel(
                    title="Findings",
                    queries=(
                        PanelQuery(
                            folded("sum", "flow, kind", "audit_findings", "flow"),
                            "{{flow}} {{kind}}",
                        ),
                    ),
                    bad_from=1,
                ),
                DashboardPanel(
                    title="Differences that are explained",
                    queries=(
                        PanelQuery(
                            folded("sum", "flow, kind", "audit_records_explained", "flow"),
                            "{{flow}} {{kind}}",
                        ),
                    ),
                ),
                DashboardPanel(
                    title="Positions of groups",
                    queries=(
                        PanelQuery(
                            folded("sum", "flow, standing", "audit_positions", "flow"),
                            "{{flow}} {{standing}}",
                        ),
                    ),
                ),
                DashboardPanel(
                    title="Keys of compacted topics",
                    queries=(
                        PanelQuery(
                            folded("sum", "flow, kind", "audit_keys", "flow"), "{{flow}} {{kind}}"
                        ),
                    ),
                ),
                DashboardPanel(
                    title="Settings that differ",
                    queries=(
                        PanelQuery(
                            folded(
                                "sum", "flow, loses_records", "audit_settings_different", "flow"
                            ),
                            "{{flow}} loses records: {{loses_records}}",
                        ),
                    ),
                ),
                DashboardPanel(
                    title="Rights that differ",
                    queries=(
                        PanelQuery(
                            folded("sum", "flow, explained", "audit_rights_different", "flow"),
                            "{{flow}} explained: {{explained}}",
                        ),
                    ),
                ),
            ),
        ),
    ),
)
