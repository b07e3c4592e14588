"""dc1 is gone for ever; another cluster takes its place and is filled from dc2."""

from functools import partial
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from offset_translation import map_topic_name
from tests.auditing import compared
from tests.clusters import RunningCluster, run_cluster
from tests.commands import run_mirror_command
from tests.failover.both_ways import (
    configure_both_ways,
    go_on_reading,
    promote,
    wait_logged,
    wait_same_logs,
)
from tests.failover.promoting import run_mirror, wait_mirroring
from tests.failover.two_sites import (
    Sites,
    committed,
    create_topic,
    delete_records,
    produce,
    read_all,
    run_sites,
    values_of,
    wait_length,
)
from tests.mirror.daemon import append_batches, wait_until
from wire.record_batch import Record, build_batch

pytestmark = pytest.mark.integration

TOPIC, PATH = "refilled", "/p-refilled"
FOREIGN = build_batch([Record(0, 1, b"?", b"?"), Record(1, 1, b"", b"?")])
"""What somebody has written into a map's topic: it says nothing and stops nobody."""
TRIMMED = 5
"""What retention has taken from dc2 before dc1 is filled anew."""


def is_committed(cluster: RunningCluster, group: str, offset: int) -> bool:
    return committed(cluster, group, TOPIC) == offset


def refill(file: Path, *flags: str) -> CompletedProcess[str]:
    return run_mirror_command("refill", "dc1", file, *flags)


@pytest.mark.story
def test_a_new_dc1_is_filled_from_dc2_and_groups_fail_back_and_over_exactly(
    tmp_path: Path, witness: str
) -> None:
    read: dict[str, list[int]] = {"ahead": [], "behind": [], "slow": []}
    with run_sites(tmp_path, witness) as sites:
        create_topic(sites.dc1, TOPIC)
        file = configure_both_ways(sites, tmp_path, PATH, TOPIC)
        with run_mirror(file):
            wait_mirroring(file)
            produce(sites.dc1, TOPIC, range(40))
            wait_length(sites.dc2, TOPIC, 40)
            for group, count in (("ahead", 40), ("behind", 25), ("slow", TRIMMED + 2)):
                read[group] += go_on_reading(sites.dc1, group, TOPIC, count)
                wait_until(group, partial(is_committed, sites.dc2, group, count))
            assert "only the active site refills the other" in refused_to_write(file)
            append_batches(sites.dc2, map_topic_name("dc1"), [FOREIGN])
            sites.dc1.kill()
            promote("dc2", file, "--source-lost")
        produce(sites.dc2, TOPIC, range(40, 70))
        read["behind"] += go_on_reading(sites.dc2, "behind", TOPIC, 20)
        delete_records(sites.dc2, TOPIC, TRIMMED)
        with run_cluster(tmp_path, 1, "fresh") as fresh:
            work_with_the_new_site(Sites(fresh, sites.dc2, sites.witness), tmp_path, read)
    assert read == {group: list(range(100)) for group in read}


def refused_to_write(file: Path) -> str:
    ended = refill(file, "--write")
    assert ended.returncode == 2, ended
    return ended.stderr


def work_with_the_new_site(sites: Sites, folder: Path, read: dict[str, list[int]]) -> None:
    file = configure_both_ways(sites, folder, PATH, TOPIC)
    with run_mirror(file):
        wait_logged(file, "dc1 is another cluster than before")
    only_said = refill(file)
    assert (only_said.returncode, only_said.stderr) == (0, "")
    assert only_said.stdout.endswith("nothing was changed: --write does\n")
    assert refill(file, "--write").returncode == 0
    with run_mirror(file):
        wait_length(sites.dc1, TOPIC, 70 - TRIMMED)
        assert "stop it first" in refused_to_write(file)
        assert values_of(read_all(sites.dc1, TOPIC)) == list(range(TRIMMED, 70))
        append_batches(sites.dc1, map_topic_name("dc2"), [FOREIGN])
        promote("dc1", file)
        produce(sites.dc1, TOPIC, range(70, 90))
        for group, count in (("ahead", 90), ("behind", 80), ("slow", 30)):
            read[group] += go_on_reading(sites.dc1, group, TOPIC, count - len(read[group]))
        wait_same_logs(sites, TOPIC, 90 - TRIMMED)
        promote("dc2", file)
        produce(sites.dc2, TOPIC, range(90, 100))
        for found in read.values():
            assert found == list(range(len(found)))
        for group, found in read.items():
            found.extend(go_on_reading(sites.dc2, group, TOPIC, 100 - len(found)))
        assert wait_same_logs(sites, TOPIC, 100 - TRIMMED) == list(range(TRIMMED, 100))
    # What filled dc1 counts as dc2's own, whoever wrote it at first.
    assert compared(file) == {
        "dc1->dc2": {"source_records": 20, "target_records": 20},
        "dc2->dc1": {"source_records": 80 - TRIMMED, "target_records": 80 - TRIMMED},
    }
