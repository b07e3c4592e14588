"""What the target's topics must look like."""

import re

from mirror.clusters.admin import CreateTopic, GrowTopic, SetConfigs
from mirror.topics.plan import ClusterTopic, plan_topics
from runtime.configuration.flow_section import PatternSet, SettingsSync


def shape(partitions: int, factor: int = 3, **configs: str) -> ClusterTopic:
    named = {name.replace("_", "."): value for name, value in configs.items()}
    return ClusterTopic(partition_count=partitions, replication_factor=factor, configs=named)


def test_a_missing_topic_is_created_with_what_travels() -> None:
    source = shape(12, retention_ms="5", min_insync_replicas="2", message_timestamp_type="X")
    assert plan_topics({"t": source}, {}, replication_factor=None, live_brokers=3) == [
        CreateTopic(
            topic="t", partition_count=12, replication_factor=3, configs={"retention.ms": "5"}
        )
    ]


def test_the_flows_replication_factor_counts_and_live_brokers_bound_it() -> None:
    [action] = plan_topics({"t": shape(1)}, {}, replication_factor=2, live_brokers=1)
    assert isinstance(action, CreateTopic)
    assert action.replication_factor == 1


def test_a_target_with_fewer_partitions_grows_and_one_with_more_is_left() -> None:
    sources = {"a": shape(4), "b": shape(4)}
    targets = {"a": shape(2), "b": shape(6)}
    assert plan_topics(sources, targets, replication_factor=None, live_brokers=3) == [
        GrowTopic(topic="a", partition_count=4)
    ]


def test_only_settings_that_differ_are_set() -> None:
    sources = {"t": shape(1, retention_ms="5", cleanup_policy="compact")}
    targets = {"t": shape(1, retention_ms="7", cleanup_policy="compact", segment_ms="9")}
    assert plan_topics(sources, targets, replication_factor=None, live_brokers=1) == [
        SetConfigs(topic="t", configs={"retention.ms": "5"})
    ]


def test_the_flow_says_which_settings_travel() -> None:
    sources = {"t": shape(1, retention_ms="5", cleanup_policy="compact", segment_ms="7")}
    names = PatternSet(
        include=(re.compile("retention.*|segment.*"),), exclude=(re.compile("segment.ms"),)
    )
    [action] = plan_topics(
        sources,
        {},
        replication_factor=None,
        live_brokers=1,
        settings=SettingsSync(names=names),
    )
    assert isinstance(action, CreateTopic)
    assert action.configs == {"retention.ms": "5"}
