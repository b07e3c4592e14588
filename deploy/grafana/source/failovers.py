"""Failover: who is active, what a promotion did, whether the next could begin; canary, endpoint."""

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
from deploy.grafana.source.overview import ACTIVE, NO_YES, READY, UP

BEGUN: Final = "failover_last_promotion_start_timestamp_seconds"
FAILOVERS: Final = Dashboard(
    uid="kafka-dr-failover",
    title="Kafka disaster recovery / Failover",
    variables=(
        JOB,
        SET,
        SITE,
        FLOW,
    ),
    rows=(
        DashboardRow(
            "Sites",
            (
                DashboardPanel(
                    title="Active site",
                    kind=PanelKind.TIMELINE,
                    queries=(
                        PanelQuery(
                            folded("max", "set, site", "failover_role", "set", "site"),
                            "{{set}} {{site}}",
                        ),
                    ),
                    words=ACTIVE,
                    width=12,
                ),
                DashboardPanel(
                    title="Sites and witness",
                    kind=PanelKind.TIMELINE,
                    queries=(
                        PanelQuery(folded("min", "site", "failover_site_up", "site"), "{{site}}"),
                        PanelQuery(f"min({series('failover_witness_up')})", "witness"),
                    ),
                    words=UP,
                    width=12,
                ),
                DashboardPanel(
                    title="Epoch",
                    queries=(
                        PanelQuery(folded("max", "set", "failover_epoch", "set"), "epoch {{set}}"),
                    ),
                ),
                DashboardPanel(
                    title="Topics closed for writes",
                    queries=(
                        PanelQuery(
                            folded("max", "set, site", "failover_fenced_topics", "set", "site"),
                            "{{set}} {{site}}",
                        ),
                    ),
                ),
                DashboardPanel(
                    title="Flows that run",
                    queries=(
                        PanelQuery(folded("max", "flow", "failover_flow_runs", "flow"), "{{flow}}"),
                    ),
                ),
                DashboardPanel(
                    title="Clusters contradict the witness",
                    kind=PanelKind.STAT,
                    queries=(
                        PanelQuery(
                            folded("max", "set", "failover_pair_contradicted", "set"), "{{set}}"
                        ),
                    ),
                    words=NO_YES,
                ),
            ),
        ),
        DashboardRow(
            "Promotions",
            (
                DashboardPanel(
                    title="Last promotion",
                    kind=PanelKind.STAT,
                    queries=(
                        PanelQuery(
                            f"time() - {series(BEGUN, 'set', 'site')}",
                            "{{set}} {{site}} {{kind}} {{state}}",
                        ),
                    ),
                    unit="s",
                    help="How long ago it began.",
                ),
                DashboardPanel(
                    title="Recovery time of the last promotion",
                    kind=PanelKind.STAT,
                    queries=(
                        PanelQuery(
                            series("failover_last_promotion_rto_seconds", "set", "site"),
                            "{{set}} {{site}} {{kind}}",
                        ),
                    ),
                    unit="s",
                    help="From the command to the switch.",
                ),
                DashboardPanel(
                    title="Unfinished, held",
                    kind=PanelKind.STAT,
                    queries=(
                        PanelQuery(
                            folded("max", "set", "failover_unfinished", "set"), "unfinished {{set}}"
                        ),
                        PanelQuery(folded("max", "set", "failover_held", "set"), "held {{set}}"),
                    ),
                    words=NO_YES,
                ),
                DashboardPanel(
                    title="Moving to",
                    queries=(
                        PanelQuery(
                            folded("max", "set, site", "failover_moving", "set", "site"),
                            "{{set}} {{site}}",
                        ),
                    ),
                ),
                DashboardPanel(
                    title="Could be promoted now",
                    kind=PanelKind.TIMELINE,
                    queries=(
                        PanelQuery(
                            folded("min", "set, site, reason", "failover_ready", "set", "site"),
                            "{{set}} {{site}} {{reason}}",
                        ),
                    ),
                    words=READY,
                    width=12,
                ),
                DashboardPanel(
                    title="Since the last look at readiness",
                    queries=(
                        PanelQuery(
                            f"time() - {series('failover_ready_checked_timestamp_seconds', 'set')}",
                            "{{set}}",
                        ),
                    ),
                    unit="s",
                ),
                DashboardPanel(
                    title="Voters",
                    queries=(
                        PanelQuery(
                            folded("max", "voter, place, sees", "failover_automatic_vote"),
                            "{{voter}} {{place}} {{sees}}",
                        ),
                        PanelQuery(
                            folded("max", "reason", "failover_automatic_in_the_way"),
                            "in the way: {{reason}}",
                        ),
                    ),
                    empty="no promotion begins by itself without failover.automatic",
                ),
            ),
        ),
        DashboardRow(
            "Rehearsals",
            (
                DashboardPanel(
                    title="Last rehearsal",
                    queries=(
                        PanelQuery(f"{series('failover_rehearsal_result')} == 1", "{{result}}"),
                        PanelQuery(
                            f"time() - {series('failover_rehearsal_passed_timestamp_seconds')}",
                            "seconds since one passed",
                        ),
                    ),
                    empty="nobody rehearses without failover.rehearsal",
                    width=12,
                ),
                DashboardPanel(
                    title="Times of the last rehearsal",
                    queries=(
                        PanelQuery(
                            folded("max", "site, phase", "failover_rehearsal_rto_seconds"),
                            "{{site}} {{phase}}",
                        ),
                    ),
                    unit="s",
                    empty="nobody rehearses without failover.rehearsal",
                    width=12,
                ),
            ),
        ),
        DashboardRow(
            "Canary",
            (
                DashboardPanel(
                    title="Records a second",
                    queries=(
                        PanelQuery(
                            speed("flow", "failover_canary_sent_total", "flow"), "{{flow}} sent"
                        ),
                        PanelQuery(
                            speed("flow", "failover_canary_arrived_total", "flow"),
                            "{{flow}} arrived",
                        ),
                    ),
                    unit="cps",
                ),
                DashboardPanel(
                    title="Latency",
                    queries=quantiles("failover_canary_latency_seconds", "flow", "flow"),
                    unit="s",
                ),
                DashboardPanel(
                    title="Lost, refused, out of order, unknown",
                    queries=(
                        PanelQuery(
                            folded("sum", "flow", "failover_canary_lost_total", "flow"),
                            "{{flow}} lost",
                        ),
                        PanelQuery(
                            folded("sum", "flow", "failover_canary_refused_total", "flow"),
                            "{{flow}} refused",
                        ),
                        PanelQuery(
                            folded("sum", "flow", "failover_canary_out_of_order_total", "flow"),
                            "{{flow}} out of order",
                        ),
                        PanelQuery(
                            folded("sum", "flow", "failover_canary_unknown_total", "flow"),
                            "{{flow}} unknown",
                        ),
                    ),
                ),
                DashboardPanel(
                    title="Oldest record on its way",
                    queries=(
                        PanelQuery(
                            folded("max", "flow", "failover_canary_oldest_seconds", "flow"),
                            "{{flow}}",
                        ),
                    ),
                    unit="s",
                ),
            ),
        ),
        DashboardRow(
            "Endpoint for clients of any language",
            (
                DashboardPanel(
                    title="Site that clients are shown",
                    kind=PanelKind.TIMELINE,
                    queries=(
                        PanelQuery(
                            folded("max", "set, site", "failover_bootstrap_site", "set", "site"),
                            "{{set}} {{site}}",
                        ),
                    ),
                    words=ACTIVE,
                    width=12,
                ),
                DashboardPanel(
                    title="Connections",
                    queries=(
                        PanelQuery(
                            folded("sum", "instance", "failover_bootstrap_connections"),
                            "{{instance}}",
                        ),
                    ),
                    width=12,
                ),
                DashboardPanel(
                    title="Connections carried, ended by a switch, refused",
                    queries=(
                        PanelQuery(f"sum({rate('failover_bootstrap_carried_total')})", "carried"),
                        PanelQuery(f"sum({rate('failover_bootstrap_moved_total')})", "ended"),
                        PanelQuery(
                            speed("reason", "failover_bootstrap_refused_total"),
                            "refused: {{reason}}",
                        ),
                    ),
                    unit="cps",
                ),
                DashboardPanel(
                    title="Requests held for a promotion",
                    queries=(
                        PanelQuery(
                            folded("sum", "instance", "failover_bootstrap_held_requests"),
                            "{{instance}}",
                        ),
                    ),
                ),
                DashboardPanel(
                    title="Bytes forwarded a second",
                    queries=(
                        PanelQuery(
                            speed("direction", "failover_bootstrap_forwarded_bytes_total"),
                            "{{direction}}",
                        ),
                    ),
                    unit="Bps",
                    empty="the endpoint carries nothing without failover.bootstrap.forward",
                ),
            ),
        ),
    ),
)
