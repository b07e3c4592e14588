"""Topics and partitions that only the idle site has: listed, and decided about by one command."""

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from offset_translation.map_records import map_topic_name
from tests.clusters import RunningCluster
from tests.failover.both_ways import configure_both_ways, promote, wait_logged
from tests.failover.promoting import run_mirror, tell, wait_mirroring
from tests.failover.set_aside import divergence, restart, set_aside
from tests.failover.two_sites import (
    QUIET,
    Sites,
    create_topic,
    produce,
    read_all,
    values_of,
    wait_length,
)

pytestmark = pytest.mark.integration

OWN = range(900, 903)
MAP = map_topic_name("dc1")


def grow(cluster: RunningCluster, topic: str, partitions: int) -> None:
    """Give a topic more partitions."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUIET})
    admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(30)


def only_there(offsets: range) -> tuple[int, list[tuple[str, str, int]]]:
    """What `failover divergence` tells of undecided records of dc2."""
    return 1, [("only there", "dc2", offset) for offset in offsets]


@pytest.mark.story
def test_a_topic_that_only_the_idle_site_has_is_decided_about(sites: Sites, tmp_path: Path) -> None:
    """One topic for each decision: all three were made on dc2 by somebody, and not on dc1."""
    topics = {how: f"lone{how[1:]}" for how in ("--quarantine", "--merge", "--from-earliest")}
    file = configure_both_ways(sites, tmp_path, "/p-lone", "lone-.*")
    create_topic(sites.dc1, "lone-base")
    for topic in topics.values():
        create_topic(sites.dc2, topic)
        produce(sites.dc2, topic, OWN)
    with run_mirror(file):
        wait_mirroring(file)
        status, listed = divergence(file)
        assert (status, len(listed)) == (1, 3 * len(OWN))
        assert "dc1 does not have it: the restart makes it there, empty" in (
            tell("divergence", str(file)).output
        )
        for how, topic in topics.items():
            restart(file, f"{topic}:0" if how != "--from-earliest" else topic, how, "dc1->dc2")
        for how, topic in topics.items():
            length = 1 if how == "--from-earliest" else len(OWN) + 1
            wait_logged(file, f"{topic}: made on dc1, empty")
            produce(sites.dc1, topic, [1])
            wait_length(sites.dc2, topic, length)
        aside, merged = topics["--quarantine"], topics["--merge"]
        assert [value for value, _ in set_aside(sites.dc2, aside, "dc2")] == [*OWN]
        promote("dc2", file)
        wait_length(sites.dc1, merged, 1 + len(OWN))
        assert values_of(read_all(sites.dc1, aside)) == [1]
        assert values_of(read_all(sites.dc2, aside)) == [*OWN, 1]


def test_a_partition_that_only_the_idle_site_has_is_set_aside(sites: Sites, tmp_path: Path) -> None:
    topic = "grown-there"
    create_topic(sites.dc1, topic)
    file = configure_both_ways(sites, tmp_path, "/p-grown-there", topic)
    with run_mirror(file):
        wait_mirroring(file)
        produce(sites.dc1, topic, range(5))
        wait_length(sites.dc2, topic, 5)
        grow(sites.dc2, topic, 2)
        produce(sites.dc2, topic, OWN, partition=1)
        assert divergence(file) == only_there(range(3))
        restart(file, f"{topic}:1", "--quarantine", "dc1->dc2")
        wait_logged(file, f"{topic}: 2 partitions on dc1")
        produce(sites.dc1, topic, [1], partition=1)
        wait_length(sites.dc2, topic, len(OWN) + 1, 1)
        assert divergence(file)[0] == 0


def test_copies_whose_map_is_gone_are_not_called_the_idle_sites_own(
    sites: Sites, tmp_path: Path
) -> None:
    topic = "map-gone"
    create_topic(sites.dc1, topic)
    file = configure_both_ways(sites, tmp_path, "/p-map-gone", topic)
    with run_mirror(file):
        wait_mirroring(file)
        produce(sites.dc1, topic, range(5))
        wait_length(sites.dc2, topic, 5)
        admin = AdminClient({"bootstrap.servers": sites.dc2.bootstrap, **QUIET})
        admin.delete_topics([MAP])[MAP].result(30)
        told = tell("divergence", str(file))
    assert told.status == 1
    assert (
        f"{topic}-0: dc2 has 5 records at offsets 0 to 4 that may be copies of dc1's: the map of"
        " them is empty. `mirror rebuild-map --flow 'dc1->dc2'`"
    ) in told.output
