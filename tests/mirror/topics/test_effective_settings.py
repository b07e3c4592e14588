"""What the target does to records by its own settings, brokers' defaults included."""

from pathlib import Path

import pytest

from mirror.topics.effective_settings import Settings, warn_of_differences
from tests.clusters import run_cluster
from tests.commands import run_mirror_command
from tests.dc_yaml import dc_yaml, flow
from tests.failover.two_sites import create_topic

CREATED: Settings = {"message.timestamp.type": "CreateTime", "cleanup.policy": "delete"}


def warned(source: Settings, target: Settings) -> list[str]:
    return warn_of_differences(
        ("dc1", "dc2"), {"orders": ({**CREATED, **source}, {**CREATED, **target})}
    )


@pytest.mark.parametrize(
    ("source", "target", "told"),
    [
        ({}, {"message.timestamp.type": "LogAppendTime"}, "dc2 stamps records with its own time"),
        (
            {"retention.ms": "-1"},
            {"retention.ms": "604800000"},
            "dc2 deletes records earlier (retention.ms=604800000, in dc1 unlimited)",
        ),
        ({"retention.bytes": "9"}, {"retention.bytes": "8"}, "(retention.bytes=8, in dc1 9)"),
        (
            {"cleanup.policy": "compact", "retention.ms": "5"},
            {"retention.ms": "5"},
            "(retention.ms=5, in dc1 unlimited)",
        ),
        ({"max.message.bytes": "9"}, {"max.message.bytes": "8"}, "dc2 takes smaller batches"),
    ],
)
def test_what_the_target_does_by_itself_is_warned_of_by_topic(
    source: Settings, target: Settings, told: str
) -> None:
    [line] = warned(source, target)
    assert line.startswith("warning: ")
    assert told in line
    assert line.endswith(": orders")


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ({}, {}),
        ({"retention.ms": "5"}, {"retention.ms": "5"}),
        ({"retention.ms": "5"}, {"retention.ms": "-1"}),
        ({"retention.ms": "9"}, {"retention.ms": "5", "cleanup.policy": "compact"}),
        ({"message.timestamp.type": "LogAppendTime"}, {}),
        ({"max.message.bytes": "8"}, {"max.message.bytes": "x"}),
    ],
)
def test_what_hurts_no_record_is_not_warned_of(source: Settings, target: Settings) -> None:
    assert warned(source, target) == []


def test_topics_that_differ_alike_share_a_line() -> None:
    both = ({"retention.ms": "-1"}, {"retention.ms": "5"})
    [line] = warn_of_differences(("dc1", "dc2"), {f"t{n}": both for n in range(7)})
    assert line.endswith(": t0, t1, t2, t3, t4 and 2 more")


@pytest.mark.story
@pytest.mark.integration
def test_a_check_compares_brokers_defaults_too(tmp_path: Path) -> None:
    stamping = {
        "log.message.timestamp.type": "LogAppendTime",
        "log.retention.hours": "1",
    }
    with (
        run_cluster(tmp_path, name="dc1", overrides={"log.retention.ms": "-1"}) as dc1,
        run_cluster(tmp_path, name="dc2", overrides=stamping) as dc2,
    ):
        for cluster, topics in ((dc1, ("orders", "there")), (dc2, ("there",))):
            for topic in topics:
                create_topic(cluster, topic)
        file = tmp_path / "dc.yaml"
        file.write_text(
            dc_yaml(
                flow(topics=["orders", "there"]),
                dc1=dc1.bootstrap,
                dc2=dc2.bootstrap,
                witness=dc1.zookeeper,
            )
        )
        checked = run_mirror_command("check", file)
    assert checked.returncode == 0, checked.stderr
    lines = checked.stdout.splitlines()
    assert any(
        "stamps records with its own time" in one and "orders, there" in one for one in lines
    )
    told = "(retention.ms=3600000, in dc1 unlimited)"
    assert any(told in one and one.endswith(": orders, there") for one in lines)
