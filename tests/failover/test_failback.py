"""Over to dc2, on with the work there, and back to dc1: every record once, every group exact."""

import json
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from offset_translation import map_topic_name
from runtime.coordination.witness import ActiveSite
from tests.auditing import audited, compared
from tests.clusters import RunningCluster
from tests.commands import run_mirror_command
from tests.failover.both_ways import (
    configure_both_ways,
    go_on_reading,
    promote,
    wait_logged,
    wait_same_logs,
)
from tests.failover.promoting import (
    open_witness,
    run_mirror,
    tell,
    wait_mirroring,
)
from tests.failover.set_aside import restart
from tests.failover.two_sites import (
    READ_TIMEOUT_S,
    Sites,
    commit_by_hand,
    committed,
    create_topic,
    delete_topic,
    produce,
    read_all,
    values_of,
    wait_length,
)

pytestmark = pytest.mark.integration


@pytest.mark.story
def test_to_dc2_and_back_and_over_again_reads_every_record_once(
    sites: Sites, tmp_path: Path
) -> None:
    """`ahead` has read everything when the site changes, `behind` half, `slow` next to nothing."""
    topic = "failback"
    read: dict[str, list[int]] = {"ahead": [], "behind": [], "slow": []}
    create_topic(sites.dc1, topic)
    file = configure_both_ways(sites, tmp_path, "/p-failback", topic)
    written = 0

    def work(cluster: RunningCluster, count: int) -> None:
        nonlocal written
        produce(cluster, topic, range(written, written + count))
        written += count
        for group, share in (("ahead", written), ("behind", written // 2), ("slow", written // 9)):
            unread = share - len(read[group])
            read[group] += go_on_reading(cluster, group, topic, unread)

    with run_mirror(file):
        wait_mirroring(file)
        for number, site in enumerate(("dc2", "dc1", "dc2", "dc1")):
            here = sites.dc1 if site == "dc2" else sites.dc2
            work(here, 60 + number)
            if number in {1, 2}:
                flow = "dc2->dc1" if site == "dc1" else "dc1->dc2"
                assert_commands_know_both_maps(file, topic, "behind", len(read["behind"]), flow)
            promote(site, file)
        work(sites.dc1, 50)
        for group in ("behind", "slow"):
            read[group] += go_on_reading(sites.dc1, group, topic, written - len(read[group]))
        assert wait_same_logs(sites, topic, written) == list(range(written))
    assert read == {group: list(range(written)) for group in read}
    with open_witness(sites.witness, "/p-failback") as witness:
        assert witness.active() == ActiveSite(site="dc1", epoch=4)


@pytest.mark.story
def test_a_topic_that_the_way_back_leaves_out_is_not_opened_without_its_records(
    sites: Sites, tmp_path: Path
) -> None:
    for topic in ("two-ways", "one-way"):
        create_topic(sites.dc1, topic)
    file = configure_both_ways(sites, tmp_path, "/p-one-way", "(one|two)-ways?")
    there, back, rest = file.read_text().partition("source: dc2")
    file.write_text(there + back + rest.replace("(one|two)-ways?", "two-ways", 1))
    assert file.read_text().count("(one|two)-ways?") == 1
    with run_mirror(file):
        wait_mirroring(file)
        promote("dc2", file)
        produce(sites.dc2, "one-way", range(10))
        refused = tell("promote", "dc1", str(file))
        assert refused.status == 2, refused
        assert (
            "dc1 is closed for one-way, and the flow dc2->dc1 does not bring" in refused.complaint
        )
        promote("dc1", file, "--force")


def assert_commands_know_both_maps(file: Path, topic: str, group: str, at: int, flow: str) -> None:
    """The logs of this test are equal on both sites, so every position is its own counterpart."""
    deadline = monotonic() + READ_TIMEOUT_S
    while (row := shown(file, group, flow)[0])["reread"] or row["exactness"] != "exact":
        assert monotonic() < deadline, row
    assert row["source_offset"] == row["translated"] == row["target_offset"] == at
    assert row["skipped"] == 0
    assert mirror(file, "offsets", "export", group, "--flow", flow) == f"{group},{topic},0,{at}\n"
    here, there = flow.split("->")
    place = f"{topic}:0:61"
    for ways, sides in (((), (here, there)), (("--reverse",), (there, here))):
        told = mirror(file, "translate", place, "--flow", flow, *ways)
        assert told == f"{sides[0]} {place} -> {sides[1]} {place} (exact)\n"


@pytest.mark.story
def test_maps_lost_behind_a_failback_are_rebuilt_one_by_the_other_and_both_logs(
    sites: Sites, tmp_path: Path
) -> None:
    topic = "ways-rebuilt"
    create_topic(sites.dc1, topic)
    file = configure_both_ways(sites, tmp_path, "/p-rebuilt-ways", topic)
    with run_mirror(file):
        wait_mirroring(file)
        produce(sites.dc1, topic, range(30))
        promote("dc2", file)
        produce(sites.dc2, topic, range(30, 50))
        promote("dc1", file)
        produce(sites.dc1, topic, range(50, 60))
        wait_same_logs(sites, topic, 60)
    for flow, there, count in (("dc1->dc2", sites.dc2, 40), ("dc2->dc1", sites.dc1, 20)):
        delete_topic(there, map_topic_name(flow[:3]))
        told = mirror(file, "rebuild-map", "--flow", flow, "--write")
        assert f"{topic}-0: {count} mirrored records, 3 boundaries\n" in told
        for at in (35, 55):
            place = f"{topic}:0:{at}"
            said = mirror(file, "translate", place, "--flow", flow)
            assert said == f"{flow[:3]} {place} -> {flow[-3:]} {place} (exact)\n"
    commit_by_hand(sites.dc1, "rebuilt", topic, 55)
    with run_mirror(file):
        produce(sites.dc1, topic, range(60, 65))
        wait_same_logs(sites, topic, 65)
        promote("dc2", file)
        produce(sites.dc2, topic, range(65, 70))
        assert wait_same_logs(sites, topic, 70) == list(range(70))
    assert committed(sites.dc2, "rebuilt", topic) == 55


@pytest.mark.story
def test_what_was_lost_with_dc1_is_named_when_it_comes_back_and_nothing_overwrites_it(
    mortal_sites: Sites, tmp_path: Path
) -> None:
    sites, topic, path = mortal_sites, "lost-tail", "/p-lost-tail"
    create_topic(sites.dc1, topic)
    file = configure_both_ways(sites, tmp_path, path, topic)
    with run_mirror(file) as daemon:
        wait_mirroring(file)
        produce(sites.dc1, topic, range(40))
        wait_same_logs(sites, topic, 40)
        daemon.kill()
        daemon.wait()
    produce(sites.dc1, topic, range(40, 47))
    sites.dc1.kill()
    promote("dc2", file, "--source-lost")
    produce(sites.dc2, topic, range(100, 130))
    sites.dc1.start()
    with run_mirror(file):
        said = wait_logged(file, "that the source never got")
        assert f"{topic}-0: target diverged: the target holds offsets 40 to 46" in said
        assert values_of(read_all(sites.dc1, topic)) == [*range(47)]
        restart(file, topic, "--from-earliest")
        wait_logged(file, "not deleted on the target: it holds records of its own")
        assert values_of(read_all(sites.dc1, topic)) == [*range(47)]
        restart(file, topic, "--merge")
        wait_length(sites.dc1, topic, 77)
        wait_logged(file, "stay, and are appended late on dc2: 1 of 1 keys end with different")
        assert values_of(read_all(sites.dc1, topic)) == [*range(47), *range(100, 130)]
        assert values_of(read_all(sites.dc2, topic)) == [*range(40), *range(100, 130)]
        assert committed(sites.dc1, "nobody", topic) < 0
        told = audited(file, status=1)
        assert told == {
            "dc1->dc2": {"source_records": 47, "target_records": 40, "lost": 7},
            "dc2->dc1": {"source_records": 30, "target_records": 30},
        }
        assert compared(file) == told
        fail_back_with_the_tail_that_was_kept(sites, file, topic)


def fail_back_with_the_tail_that_was_kept(sites: Sites, file: Path, topic: str) -> None:
    """Nobody passes over 40 to 46, which only dc1 had; dc2 gets them behind its own."""
    for group, at_dc2 in (("before", 20), ("among", 55), ("at-end", 70)):
        commit_by_hand(sites.dc2, group, topic, at_dc2)
    [row] = shown(file, "at-end", "dc2->dc1")
    assert (row["translated"], row["exactness"]) == (
        40,
        "written to at both sites: it has read some records behind it",
    )
    promote("dc1", file)
    for group, at_dc1 in (("before", 20), ("among", 40), ("at-end", 40)):
        assert committed(sites.dc1, group, topic) == at_dc1
    wait_length(sites.dc2, topic, 77)
    assert values_of(read_all(sites.dc2, topic)) == [*range(40), *range(100, 130), *range(40, 47)]
    assert go_on_reading(sites.dc1, "at-end", topic, 37) == [*range(40, 47), *range(100, 130)]
    said = promote("dc2", file, status=1)
    assert "group    among was left as it is" in said, "it stands behind its position here"
    assert committed(sites.dc2, "at-end", topic) == 77
    # It has not moved since, and nothing that it has not read lies before where it stood.
    assert committed(sites.dc2, "among", topic) == 55
    assert compared(file) == {
        "dc1->dc2": {"source_records": 47, "target_records": 47},
        "dc2->dc1": {"source_records": 30, "target_records": 30},
    }


def shown(file: Path, group: str, flow: str) -> list[dict[str, Any]]:
    """Return what `mirror offsets` says of a group."""
    told = mirror(file, "offsets", group, "--flow", flow, "--json")
    rows: list[dict[str, Any]] = json.loads(told)["positions"]
    return rows


def mirror(file: Path, *words: str) -> str:
    """Run a command of `mirror`, flags last, and return what it says."""
    flags = words.index("--flow") if "--flow" in words else len(words)
    ended = run_mirror_command(*words[:flags], file, *words[flags:])
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
