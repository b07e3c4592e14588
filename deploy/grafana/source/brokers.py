"""Bundled brokers: partitions, traffic, time of requests, replication, the log cleaner."""

from typing import Final

from deploy.grafana.source.model import (
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

BROKER_JOB: Final = DashboardVariable(name="job", label="Job", of="broker_leaders")
BROKER: Final = DashboardVariable(name="instance", label="Broker", of='broker_leaders{job=~"$job"}')
TOPIC_OF_BROKER: Final = DashboardVariable(
    name="topic", label="Topic", of='broker_log_end_offset{job=~"$job",instance=~"$instance"}'
)

BROKERS: Final = Dashboard(
    uid="kafka-dr-brokers",
    title="Kafka disaster recovery / Bundled brokers",
    variables=(
        BROKER_JOB,
        BROKER,
        TOPIC_OF_BROKER,
    ),
    rows=(
        DashboardRow(
            "Partitions",
            (
                DashboardPanel(
                    title="Without a leader",
                    kind=PanelKind.STAT,
                    queries=(
                        PanelQuery(
                            folded("max", "job", "broker_offline_partitions", "instance"), "{{job}}"
                        ),
                    ),
                    bad_from=1,
                ),
                DashboardPanel(
                    title="Led here, under-replicated",
                    kind=PanelKind.STAT,
                    queries=(
                        PanelQuery(
                            folded("sum", "job", "broker_under_replicated_partitions", "instance"),
                            "{{job}}",
                        ),
                    ),
                    bad_from=1,
                ),
                DashboardPanel(
                    title="Led here, below min.insync.replicas",
                    kind=PanelKind.STAT,
                    queries=(
                        PanelQuery(
                            folded("sum", "job", "broker_under_min_isr_partitions", "instance"),
                            "{{job}}",
                        ),
                    ),
                    bad_from=1,
                ),
                DashboardPanel(
                    title="Failed log folders",
                    kind=PanelKind.STAT,
                    queries=(
                        PanelQuery(
                            folded("sum", "job", "broker_offline_log_folders", "instance"),
                            "{{job}}",
                        ),
                    ),
                    bad_from=1,
                ),
                DashboardPanel(
                    title="Controllers",
                    kind=PanelKind.STAT,
                    queries=(
                        PanelQuery(
                            folded("sum", "job", "broker_is_controller", "instance"), "{{job}}"
                        ),
                    ),
                    help="1 for each cluster.",
                ),
                DashboardPanel(
                    title="Leaders",
                    queries=(
                        PanelQuery(series("broker_leaders", "instance"), "{{job}} {{instance}}"),
                    ),
                ),
                DashboardPanel(
                    title="Replicas",
                    queries=(
                        PanelQuery(series("broker_replicas", "instance"), "{{job}} {{instance}}"),
                    ),
                ),
                DashboardPanel(
                    title="Largest topics",
                    queries=(
                        PanelQuery(
                            top(
                                folded(
                                    "sum",
                                    "job, topic",
                                    "broker_log_size_bytes",
                                    "instance",
                                    "topic",
                                )
                            ),
                            "{{job}} {{topic}}",
                        ),
                    ),
                    unit="bytes",
                ),
                DashboardPanel(
                    title="Offsets written a second, the 20 fastest topics",
                    queries=(
                        PanelQuery(
                            top(moved("job, topic", "broker_log_end_offset", "instance", "topic")),
                            "{{job}} {{topic}}",
                        ),
                    ),
                    unit="cps",
                    help="Each replica counts.",
                ),
            ),
        ),
        DashboardRow(
            "Traffic",
            (
                DashboardPanel(
                    title="Bytes appended and fetched a second",
                    queries=(
                        PanelQuery(
                            speed("job", "broker_appended_bytes_total", "instance"),
                            "{{job}} appended",
                        ),
                        PanelQuery(
                            speed("job", "broker_fetched_bytes_total", "instance"),
                            "{{job}} fetched",
                        ),
                    ),
                    unit="Bps",
                ),
                DashboardPanel(
                    title="Records appended a second",
                    queries=(
                        PanelQuery(
                            speed("job", "broker_appended_records_total", "instance"), "{{job}}"
                        ),
                    ),
                    unit="cps",
                ),
                DashboardPanel(
                    title="Bytes on the network a second",
                    queries=(
                        PanelQuery(
                            speed("job", "broker_received_bytes_total", "instance"),
                            "{{job}} received",
                        ),
                        PanelQuery(
                            speed("job", "broker_sent_bytes_total", "instance"), "{{job}} sent"
                        ),
                    ),
                    unit="Bps",
                ),
                DashboardPanel(
                    title="Requests a second",
                    queries=(
                        PanelQuery(
                            speed("job, api", "broker_request_duration_seconds_count", "instance"),
                            "{{job}} {{api}}",
                        ),
                    ),
                    unit="cps",
                ),
                DashboardPanel(
                    title="Time of Produce",
                    queries=quantiles(
                        "broker_request_duration_seconds", "job", "instance", 'api="Produce"'
                    ),
                    unit="s",
                ),
                DashboardPanel(
                    title="Time of Fetch",
                    queries=quantiles(
                        "broker_request_duration_seconds", "job", "instance", 'api="Fetch"'
                    ),
                    unit="s",
                    help="A fetch waits for what is to come.",
                ),
                DashboardPanel(
                    title="Connections",
                    queries=(
                        PanelQuery(
                            series("broker_connections", "instance"), "{{job}} {{instance}}"
                        ),
                    ),
                ),
                DashboardPanel(
                    title="Clients let in and refused a second",
                    queries=(
                        PanelQuery(
                            speed("job", "broker_authentications_total", "instance"),
                            "{{job}} let in",
                        ),
                        PanelQuery(
                            speed("job", "broker_failed_authentications_total", "instance"),
                            "{{job}} refused",
                        ),
                        PanelQuery(
                            speed("job", "broker_failed_tls_handshakes_total", "instance"),
                            "{{job}} no TLS",
                        ),
                    ),
                    unit="cps",
                ),
                DashboardPanel(
                    title="Batches refused by the fence a second",
                    queries=(
                        PanelQuery(
                            speed("job", "broker_fenced_batches_total", "instance"), "{{job}}"
                        ),
                    ),
                    unit="cps",
                ),
            ),
        ),
        DashboardRow(
            "Replication",
            (
                DashboardPanel(
                    title="Replicas that left and joined the ISR a second",
                    queries=(
                        PanelQuery(
                            speed("job", "broker_isr_shrinks_total", "instance"), "{{job}} left"
                        ),
                        PanelQuery(
                            speed("job", "broker_isr_expands_total", "instance"), "{{job}} joined"
                        ),
                    ),
                    unit="cps",
                    width=12,
                ),
                DashboardPanel(
                    title="Records that followers lack, the 20 largest topics",
                    queries=(
                        PanelQuery(
                            top(
                                folded(
                                    "max",
                                    "job, topic",
                                    "broker_follower_lag_records",
                                    "instance",
                                    "topic",
                                )
                            ),
                            "{{job}} {{topic}}",
                        ),
                    ),
                    width=12,
                ),
            ),
        ),
        DashboardRow(
            "Log cleaner",
            (
                DashboardPanel(
                    title="Dirtiest log, buffer used, copied again",
                    queries=(
                        PanelQuery(
                            folded("max", "job", "broker_log_cleaner_max_dirty_ratio", "instance"),
                            "{{job}} dirty",
                        ),
                        PanelQuery(
                            folded(
                                "max",
                                "job",
                                "broker_log_cleaner_max_buffer_utilization_ratio",
                                "instance",
                            ),
                            "{{job}} buffer",
                        ),
                        PanelQuery(
                            folded(
                                "max", "job", "broker_log_cleaner_cleaner_recopy_ratio", "instance"
                            ),
                            "{{job}} copied again",
                        ),
                    ),
                    unit="percentunit",
                ),
                DashboardPanel(
                    title="Time of a cleaning, delay, since the last look",
                    queries=(
                        PanelQuery(
                            folded(
                                "max",
                                "job",
                                "broker_log_cleaner_max_clean_time_seconds",
                                "instance",
                            ),
                            "{{job}} cleaning",
                        ),
                        PanelQuery(
                            folded(
                                "max",
                                "job",
                                "broker_log_cleaner_max_compaction_delay_seconds",
                                "instance",
                            ),
                            "{{job}} delay",
                        ),
                        PanelQuery(
                            folded(
                                "max",
                                "job",
                                "broker_log_cleaner_time_since_last_run_seconds",
                                "instance",
                            ),
                            "{{job}} last look",
                        ),
                    ),
                    unit="s",
                ),
                DashboardPanel(
                    title="Not compacted until a restart",
                    queries=(
                        PanelQuery(
                            folded(
                                "sum",
                                "job",
                                "broker_log_cleaner_uncleanable_partitions",
                                "instance",
                            ),
                            "{{job}} partitions",
                        ),
                        PanelQuery(
                            folded(
                                "sum", "job", "broker_log_cleaner_uncleanable_bytes", "instance"
                            ),
                            "{{job}} bytes",
                        ),
                    ),
                    bad_from=1,
                ),
            ),
        ),
    ),
)
