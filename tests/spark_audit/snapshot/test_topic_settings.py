"""Settings of topics that differ between the sites: those that lose records are findings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_audit.snapshot.topic_settings import (
    DifferentSetting,
    Setting,
    different_settings,
    is_compacted,
)

DAY_MS, WEEK_MS = "86400000", "604800000"


def own(**values: str) -> dict[str, Setting]:
    """Return these settings, set on a topic; an underscore stands for a dot."""
    return {name.replace("_", "."): Setting(value, True) for name, value in values.items()}


def different(
    source: dict[str, Setting], target: dict[str, Setting], *held_back: str
) -> list[DifferentSetting]:
    return list(different_settings("t", source, target, lambda name: name not in held_back))


@pytest.mark.parametrize(
    ("source", "target", "loses"),
    [
        (own(cleanup_policy="compact"), own(cleanup_policy="delete"), "deletes records"),
        (own(cleanup_policy="delete"), own(cleanup_policy="compact,delete"), "compacts records"),
        (own(retention_ms=WEEK_MS), own(retention_ms=DAY_MS), "deletes records earlier"),
        (own(retention_ms="-1"), own(retention_ms=DAY_MS), "deletes records earlier"),
        (own(retention_bytes="-1"), own(retention_bytes="1000"), "deletes records earlier"),
        (
            own(max_message_bytes="2000"),
            own(max_message_bytes="1000"),
            "refuses batches that the source takes",
        ),
        (
            own(min_insync_replicas="2"),
            own(min_insync_replicas="1"),
            "acknowledges records with fewer copies",
        ),
    ],
)
def test_a_target_that_keeps_less_is_a_finding_and_one_that_keeps_more_a_warning(
    source: dict[str, Setting], target: dict[str, Setting], loses: str
) -> None:
    [one] = different(source, target)
    assert one.loses == loses
    assert f"the target {one.loses}; set it on the topic there with `kafka-configs`" in one.words
    if source.keys() != {"cleanup.policy"}:
        [other] = different(target, source)
        assert other.loses is None


def test_a_target_that_keeps_all_that_the_source_deletes_is_a_warning() -> None:
    [one] = different(own(cleanup_policy="compact,delete"), own(cleanup_policy="compact"))
    assert one.loses is None
    kept = own(cleanup_policy="compact", retention_ms=WEEK_MS)
    assert different(kept, own(cleanup_policy="compact", retention_ms=DAY_MS))[0].loses is None


def test_what_the_file_holds_back_is_a_warning_where_it_bears_on_records_and_else_no_matter() -> (
    None
):
    source, target = own(min_insync_replicas="2"), own(min_insync_replicas="1")
    [one] = different(source, target, "min.insync.replicas")
    assert (one.loses, one.words) == (
        None,
        "t: min.insync.replicas is 2 on the source, 1 on the target",
    )
    assert not different(own(flush_ms="1"), own(flush_ms="2"), "flush.ms")


def test_a_brokers_default_counts_only_where_it_bears_on_records() -> None:
    source = {"retention.ms": Setting(WEEK_MS, False), "flush.ms": Setting("1", False)}
    target = {"retention.ms": Setting(DAY_MS, False), "flush.ms": Setting("2", False)}
    assert [one.name for one in different(source, target)] == ["retention.ms"]
    assert [one.name for one in different(source, {**target, **own(flush_ms="2")})] == [
        "flush.ms",
        "retention.ms",
    ]


def test_a_setting_that_one_site_does_not_know_is_a_warning() -> None:
    [one] = different(own(local_retention_ms="5"), {})
    assert one.words == "t: local.retention.ms is 5 on the source, not set on the target"
    assert one.loses is None


settings = st.dictionaries(
    st.sampled_from(["cleanup.policy", "retention.ms", "max.message.bytes", "flush.ms"]),
    st.builds(
        Setting, st.sampled_from(["", "delete", "compact", "-1", "7", "x", "9"]), st.booleans()
    ),
)


@given(settings, settings)
def test_equal_values_are_never_named_and_no_value_ends_an_audit(
    source: dict[str, Setting], target: dict[str, Setting]
) -> None:
    assert not different(source, source)
    for one in different(source, target):
        assert one.source != one.target
        assert one.words


def test_the_policy_says_whether_a_cleaner_runs() -> None:
    assert is_compacted(own(cleanup_policy="delete, compact"))
    assert not is_compacted({})
