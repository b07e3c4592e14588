"""A standby that was open: what others have written there is decided about, and nothing is lost."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.auditing import compared
from tests.commands import run_mirror_command
from tests.failover.both_ways import (
    configure_both_ways,
    go_on_reading,
    promote,
    wait_logged,
    wait_same_logs,
)
from tests.failover.promoting import run_mirror, tell, wait_mirroring
from tests.failover.set_aside import divergence, set_aside
from tests.failover.two_sites import (
    Sites,
    committed,
    create_topic,
    pause,
    produce,
    read_all,
    values_of,
    wait_length,
)

pytestmark = pytest.mark.integration

FOREIGN = range(900, 906)


@contextmanager
def stopped_by_foreign_records(sites: Sites, file: Path, topic: str) -> Iterator[None]:
    """20 records are mirrored; while no mirror runs others write FOREIGN to dc2, then dc1 10."""
    with run_mirror(file):
        wait_mirroring(file)
        produce(sites.dc1, topic, range(20))
        wait_length(sites.dc2, topic, 20)
    produce(sites.dc2, topic, FOREIGN)
    produce(sites.dc1, topic, range(20, 30))
    with run_mirror(file):
        wait_logged(
            file,
            f"{topic}-0: target diverged: the target holds offsets 20 to 25 that no mirror has"
            " written",
        )
        yield


def begin_another_pair(sites: Sites, folder: Path) -> None:
    """Have a mirror in the same internal topics that stops before it mirrors anything."""
    topic = "opened-elsewhere"
    create_topic(sites.dc1, topic)
    (folder / "another").mkdir()
    file = configure_both_ways(sites, folder / "another", "/p-opened-elsewhere", topic)
    with run_mirror(file):
        wait_mirroring(file)


def restart(file: Path, topic: str, how: str) -> None:
    """Order the restart of a topic on the way to the standby."""
    ended = run_mirror_command("restart", "dc1->dc2", topic, file, how)
    assert ended.returncode == 0, ended.stderr


def wait_not_begun_anew(sites: Sites, file: Path, topic: str) -> None:
    """Order a copy anew that holds records of which the flow back knows: it stays as it is."""
    restart(file, topic, "--from-earliest")
    wait_logged(file, f"{topic}: not deleted on the target: it holds records of its own")
    assert len(read_all(sites.dc2, topic)) == 36


@pytest.mark.story
def test_what_others_wrote_to_a_standby_is_set_aside_and_both_streams_go_on(
    sites: Sites, tmp_path: Path
) -> None:
    topic = "opened-aside"
    create_topic(sites.dc1, topic)
    begin_another_pair(sites, tmp_path)
    file = configure_both_ways(sites, tmp_path, "/p-opened-aside", topic)
    with stopped_by_foreign_records(sites, file, topic):
        only_there = [("only there", "dc2", offset) for offset in range(20, 26)]
        assert divergence(file) == (1, only_there)
        advice = f"`mirror restart dc1-dc2 {topic}:0 --quarantine`"
        assert advice in tell("divergence", str(file)).output
        refused = tell("promote", "dc2", str(file))
        # By the plan, or a moment later by the preflight, once the mirror has told the witness.
        assert (
            f"{topic}-0 stands still: target diverged: the target holds offsets 20 to 25 that no"
            f" mirror has written; {advice} saves what only the target has"
        ) in refused.complaint
        restart(file, topic, "--quarantine")
        wait_length(sites.dc2, topic, 36)
        wait_not_begun_anew(sites, file, topic)
        assert values_of(read_all(sites.dc2, topic)) == [*range(20), *FOREIGN, *range(20, 30)]
        assert go_on_reading(sites.dc1, "readers", topic, 25) == [*range(25)]
        while committed(sites.dc2, "readers", topic) != 31:
            pause(0.1)
        promote("dc2", file)
        produce(sites.dc2, topic, range(30, 40))
        wait_length(sites.dc1, topic, 40)
        assert go_on_reading(sites.dc2, "readers", topic, 15) == [*range(25, 40)]
        promote("dc1", file)
        produce(sites.dc1, topic, range(40, 45))
        wait_length(sites.dc2, topic, 51)
        promote("dc2", file)
    assert values_of(read_all(sites.dc1, topic)) == [*range(45)]
    own = [*range(20), *FOREIGN, *range(20, 45)]
    assert values_of(read_all(sites.dc2, topic)) == own
    aside = list(zip(FOREIGN, range(20, 26), strict=True))
    assert set_aside(sites.dc1, topic, "dc2") == set_aside(sites.dc2, topic, "dc2") == aside
    assert compared(file) == {
        "dc1->dc2": {"source_records": 35, "target_records": 35},
        "dc2->dc1": {"source_records": 16, "target_records": 10, "lost": len(FOREIGN)},
    }


def test_what_others_wrote_to_a_standby_is_kept_and_comes_late_to_the_other_site(
    sites: Sites, tmp_path: Path
) -> None:
    topic = "opened-merged"
    create_topic(sites.dc1, topic)
    file = configure_both_ways(sites, tmp_path, "/p-opened-merged", topic)
    with stopped_by_foreign_records(sites, file, topic):
        restart(file, topic, "--merge")
        wait_length(sites.dc2, topic, 36)
        wait_not_begun_anew(sites, file, topic)
    waiting = [("only there", "dc2", offset) for offset in range(20, 26)]
    assert divergence(file) == (1, waiting), "they are not on the active site yet"
    assert "they are merged: the flow back appends them" in tell("divergence", str(file)).output
    with run_mirror(file):
        produce(sites.dc1, topic, [30])
        wait_length(sites.dc2, topic, 37)
        promote("dc2", file)
        wait_length(sites.dc1, topic, 37)
        produce(sites.dc2, topic, [31])
        wait_length(sites.dc1, topic, 38)
        promote("dc1", file)
    assert values_of(read_all(sites.dc1, topic)) == [*range(31), *FOREIGN, 31]
    assert divergence(file) == (0, [])


@pytest.mark.story
def test_a_copy_that_others_wrote_to_is_begun_anew(sites: Sites, tmp_path: Path) -> None:
    topic = "opened-anew"
    create_topic(sites.dc1, topic)
    file = configure_both_ways(sites, tmp_path, "/p-opened-anew", topic)
    with stopped_by_foreign_records(sites, file, topic):
        restart(file, topic, "--from-earliest")
        assert wait_same_logs(sites, topic, 30) == [*range(30)]


def test_a_flow_without_a_way_back_sets_aside_whenever_others_have_written(
    sites: Sites, tmp_path: Path
) -> None:
    topic = "opened-one-way"
    create_topic(sites.dc1, topic)
    file = sites.configure(tmp_path, "/p-opened-one-way", topic)
    with stopped_by_foreign_records(sites, file, topic):
        restart(file, topic, "--quarantine")
        wait_length(sites.dc2, topic, 36)
    produce(sites.dc2, topic, [910])
    with run_mirror(file):
        wait_logged(file, f"{topic}-0: target diverged: the target holds offsets 36 to 36 that no")
        restart(file, topic, "--quarantine")
        produce(sites.dc1, topic, [30])
        wait_length(sites.dc2, topic, 38)
    aside = [("set aside", "dc2", offset) for offset in [*range(20, 26), 36]]
    assert divergence(file) == (0, aside)
