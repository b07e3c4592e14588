"""A planned promotion between two bundled sites that are closed by rights, as Apache Kafka is."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast

import pytest
from confluent_kafka import (
    KafkaError,
)
from confluent_kafka.admin import (
    AclOperation,
    AclPermissionType,
    ResourceType,
)

from failover.journal.steps import StepName
from tests.clusters import RunningCluster
from tests.dc_yaml import dc_yaml, flow
from tests.failover.by_rights import BY_RIGHTS, GROUP, NONE, REFUSED, SiteByRights
from tests.failover.held import held_promotion
from tests.failover.promoting import tell
from tests.failover.two_sites import (
    commit_by_hand,
    committed,
    create_topic,
    produce,
    values_of,
)
from tests.failover.two_sites import read_all as read_as_administrator
from tests.mirror.daemon import run_mirror, wait_until
from tests.secured_cluster import USER, run_secured_cluster
from wire.acls import CLUSTER_NAME

pytestmark = pytest.mark.integration

TOPIC: Final = "moving"
PATTERNS: Final = [f"{TOPIC}.*", "(yet|another).kind"]
OFTEN: Final[dict[str, Any]] = {
    "discovery_interval_ms": 300,
    "group_offsets_interval_ms": 300,
    "acls": "identical",
}


@pytest.fixture
def at(tmp_path: Path, witness: str) -> Iterator[tuple[SiteByRights, SiteByRights, Path]]:
    """Two sites with authorizers, and the programs' configuration."""
    with (
        run_secured_cluster(tmp_path, name="dc1", more=BY_RIGHTS) as dc1,
        run_secured_cluster(tmp_path, name="dc2", more=BY_RIGHTS) as dc2,
    ):
        file = tmp_path / "dc.yaml"
        file.write_text(
            dc_yaml(
                flow("dc1", "dc2", PATTERNS, **OFTEN),
                flow("dc2", "dc1", PATTERNS, **OFTEN),
                dc1=dc1.bootstrap,
                dc2=dc2.bootstrap,
                witness=witness,
                path="/by-rights",
                coordination={"session_timeout_ms": 4_000},
                failover={
                    "initial_active": "dc1",
                    "drain_timeout_ms": 20_000,
                    "group_drain_timeout_ms": 2_000,
                },
            )
        )
        create_topic(cast("RunningCluster", dc1), TOPIC)
        yield SiteByRights(dc1, TOPIC), SiteByRights(dc2, TOPIC), file


def fenced(file: Path) -> dict[str, list[str]]:
    """Return what `failover status` calls closed, by site."""
    sites = json.loads(tell("status", "--json", str(file)).output)["sites"]
    return {site["name"]: site["fenced_topics"] for site in sites}


@pytest.mark.story
def test_a_planned_promotion_closes_bundled_brokers_by_rights_and_the_way_back_opens_them(
    at: tuple[SiteByRights, SiteByRights, Path],
) -> None:
    """The rights of applications travel with the topic; those of the fence stay at their site."""
    dc1, dc2, file = at
    refused = dc1.write(b"-1")
    assert refused is not None
    assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    dc1.give(ResourceType.TOPIC, TOPIC, AclOperation.READ, AclOperation.WRITE)
    for site in (dc1, dc2):
        site.give(ResourceType.GROUP, GROUP, AclOperation.ALL)
    of_applications = {
        (f"User:{USER}", one, AclPermissionType.ALLOW)
        for one in (AclOperation.READ, AclOperation.WRITE)
    }
    with run_mirror(file) as mirror:
        produce(dc1.cluster, TOPIC, range(500))
        assert dc1.write(b"500") is None
        commit_by_hand(dc1.cluster, GROUP, TOPIC, 100)
        mirror.wait_mirrored(TOPIC, 501)
        wait_until("the rights travel", lambda: dc2.held() == of_applications)
        for site in (dc1, dc2):
            site.give(ResourceType.BROKER, CLUSTER_NAME, AclOperation.CREATE)
        with held_promotion("dc2", file, StepName.FENCE) as there:
            assert "1 partitions refuse writes" in there.lines[-1]
            assert dc1.denied_creation() == {TOPIC, "*", CLUSTER_NAME}
            assert [dc1.create(name) for name in ("moving-1", "another.kind", "other")] == (
                [REFUSED] * 3
            )
            assert dc1.create_by_writing("moving-1") == REFUSED
            assert there.end() == 0, there.lines
        assert dc1.denied_creation() == {TOPIC}
        assert not dc2.denied_creation()
        assert dc1.create("other") == NONE
        assert dc2.create("moving-1") == NONE
        assert fenced(file) == {"dc1": [TOPIC], "dc2": []}
        assert committed(dc2.cluster, GROUP, TOPIC) == 100
        refused = dc1.write(b"-1")
        assert refused is not None
        assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
        assert dc1.read() == b"0"
        assert dc2.write(b"501") is None
        everything = list(range(502))
        wait_until(
            "the way back",
            lambda: values_of(read_as_administrator(dc1.cluster, TOPIC)) == everything,
        )
        assert dc2.held() == of_applications, "no fence travels"
        back = tell("promote", "dc1", str(file))
        assert back.status == 0, back
        assert fenced(file)["dc1"] == []
        assert TOPIC in fenced(file)["dc2"]
        assert not dc1.denied_creation()
        assert dc2.denied_creation() == {TOPIC}
        assert dc1.create("moving-2") == NONE
        assert dc1.held() == of_applications
        assert dc1.write(b"502") is None
        refused = dc2.write(b"-1")
        assert refused is not None
        assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
