"""A witness that has lost its memory, and files that name the wrong clusters."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from runtime.coordination.witness import ActiveSite, WitnessPaths
from tests.failover.promoting import run_mirror, tell
from tests.failover.two_sites import Sites, create_topic, pause, produce
from tests.mirror.daemon import run_mirror as run_daemon
from tests.mirror.daemon import wait_until
from tests.zookeeper import look

pytestmark = pytest.mark.integration


RUNBOOK = Path(__file__).parents[2] / "docs" / "operate" / "lost-witness.md"


def nodes(witness: str, path: str, *, in_backup: bool = False) -> dict[str, bytes]:
    """Return every node below a path that holds something; a backup has no sessions' nodes."""
    client = look(witness)
    client.start()
    try:
        found: dict[str, bytes] = {}

        def walk(at: str) -> None:
            stat = client.exists(at)
            if stat:
                data = client.get(at)[0]
                if data and not (in_backup and stat.ephemeralOwner):
                    found[at] = data
                for child in client.get_children(at):
                    walk(f"{at}/{child}")

        walk(path)
        return found
    finally:
        client.stop()
        client.close()


def wipe(witness: str, path: str) -> None:
    client = look(witness)
    client.start()
    client.delete(path, recursive=True)
    client.stop()
    client.close()


def restore(witness: str, path: str, copied: dict[str, bytes]) -> None:
    """Have a witness hold an old copy of its tree."""
    wipe(witness, path)
    client = look(witness)
    client.start()
    for name, data in copied.items():
        client.create(name, data, makepath=True)
    client.stop()
    client.close()


def active(witness: str, path: str) -> ActiveSite:
    return ActiveSite.decode(nodes(witness, path)[WitnessPaths(root=path).active])


def wait_begun(witness: str, path: str) -> None:
    deadline = monotonic() + 60
    while WitnessPaths(root=path).worker("dc1", "dc2") not in nodes(witness, path):
        assert monotonic() < deadline, "the mirror does not run the flow"
        pause(0.05)


def test_looking_at_a_pair_that_nobody_has_started_writes_nothing(
    sites: Sites, tmp_path: Path
) -> None:
    file = str(sites.configure(tmp_path, "/untouched", "untouched-.*"))
    for command in (["status"], ["plan", "dc2"], ["recover", "--write"]):
        ended = tell(*command, file)
        said = ended.complaint + ended.output
        assert "nobody has started the pair" in said or "nothing to restore" in said, said
    assert nodes(sites.witness, "/untouched") == {}


def test_a_wiped_witness_is_refused_by_everybody_and_restored_from_the_clusters(
    sites: Sites, tmp_path: Path
) -> None:
    path = "/wiped"
    create_topic(sites.dc1, "wiped-orders")
    file = str(sites.configure(tmp_path, path, "wiped-.*"))
    produce(sites.dc1, "wiped-orders", range(100))
    with run_mirror(Path(file)):
        wait_begun(sites.witness, path)
        promoted = tell("promote", "dc2", file)
        assert promoted.status == 0, promoted
    assert active(sites.witness, path) == ActiveSite(site="dc2", epoch=1)
    wipe(sites.witness, path)
    for command in (["status"], ["plan", "dc2"], ["promote", "dc2"], ["promote", "dc1"]):
        ended = tell(*command, file)
        assert ended.status == 2, ended
        assert "active dc2, epoch 1" in ended.complaint
        assert "failover recover" in ended.complaint
    with run_mirror(Path(file)):
        pause(3)
    assert nodes(sites.witness, path) == {}, "the mirror has made a witness of its own"
    shown, written, looked = (tell(*command, file) for command in runbook())
    assert "nothing was changed" in shown.output, shown
    assert written.status == 0, written
    assert active(sites.witness, path) == ActiveSite(site="dc2", epoch=1)
    assert "active   dc2 (epoch 1)" in looked.output


def runbook() -> Iterator[list[str]]:
    """Yield the commands of the page about a lost witness, as they stand there."""
    for line in RUNBOOK.read_text().splitlines():
        if line.startswith("failover ") and line.endswith(" dc.yaml"):
            yield line.split()[1:-1]


def test_an_old_copy_of_the_witness_is_refused(sites: Sites, tmp_path: Path) -> None:
    path = "/old-copy"
    create_topic(sites.dc1, "old-copy-orders")
    file = str(sites.configure(tmp_path, path, "old-copy-.*"))
    with run_mirror(Path(file)):
        wait_begun(sites.witness, path)
        copied = {k: v for k, v in nodes(sites.witness, path).items() if not _is_live(k)}
        assert tell("promote", "dc2", file).status == 0
    restore(sites.witness, path, copied)
    assert active(sites.witness, path) == ActiveSite(site="dc1", epoch=0)
    refused = tell("status", file)
    assert refused.status == 2, refused
    assert "the witness says active dc1, epoch 0" in refused.complaint


@pytest.mark.story
def test_an_old_copy_of_before_a_promotion_that_was_taken_back_is_refused(
    sites: Sites, tmp_path: Path
) -> None:
    """It has the same active site, in the same epoch."""
    path, topic = "/taken-back-since", "taken-back-since"
    create_topic(sites.dc1, topic)
    produce(sites.dc1, topic, range(10))
    configured = sites.configure(tmp_path, path, topic)
    text = configured.read_text()
    configured.write_text(
        text.replace("drain_timeout_ms:", "catch_up_timeout_ms: 100, drain_timeout_ms:", 1)
    )
    file = str(configured)
    with run_mirror(Path(file)) as daemon:
        wait_begun(sites.witness, path)
        copied = {k: v for k, v in nodes(sites.witness, path).items() if not _is_live(k)}
        os.kill(daemon.pid, signal.SIGSTOP)
        produce(sites.dc1, topic, range(10, 20))
        ended = tell("promote", "dc2", file)
        os.kill(daemon.pid, signal.SIGCONT)
        assert ended.complaint.startswith("failover: rolled back, dc1 stays active"), ended
    restore(sites.witness, path, copied)
    assert active(sites.witness, path) == ActiveSite(site="dc1", epoch=0)
    for command in (["status"], ["promote", "dc2"]):
        refused = tell(*command, file)
        assert refused.status == 2, refused
        assert "it is an old copy: dc1 carries evidence number 1" in refused.complaint
    written = tell("recover", "--write", file)
    assert written.status == 0, written
    looked = tell("status", file)
    assert "active   dc1 (epoch 0)" in looked.output, looked


def _is_live(path: str) -> bool:
    return any(part in path for part in ("/worker", "/failover/lease"))


def test_one_cluster_under_two_names_is_refused(sites: Sites, tmp_path: Path) -> None:
    same: Any = Sites(sites.dc1, sites.dc1, sites.witness)
    file = str(same.configure(tmp_path, "/same", "same-.*"))
    ended = tell("plan", "dc2", file)
    assert ended.status == 2, ended
    assert "dc1 and dc2 are one cluster" in ended.complaint


def test_swapped_addresses_are_refused(sites: Sites, tmp_path: Path) -> None:
    path = "/swapped"
    file = sites.configure(tmp_path, path, "swapped-.*")
    with run_mirror(file):
        wait_begun(sites.witness, path)
    swapped: Any = Sites(sites.dc2, sites.dc1, sites.witness)
    ended = tell("status", str(swapped.configure(tmp_path, path, "swapped-.*")))
    assert ended.status == 2, ended
    assert "the address of dc1 leads to dc2" in ended.complaint


@pytest.mark.parametrize(
    "what",
    [
        "active",
        pytest.param("pair", marks=pytest.mark.story),
        pytest.param("evidence-number", marks=pytest.mark.story),
    ],
)
def test_a_garbled_node_about_the_pair_is_restored_by_the_command_that_is_named(
    sites: Sites, tmp_path: Path, what: str
) -> None:
    path = f"/garbled-{what}"
    create_topic(sites.dc1, f"garbled-{what}-orders")
    file = str(sites.configure(tmp_path, path, f"garbled-{what}-.*"))
    with run_mirror(Path(file)):
        wait_begun(sites.witness, path)
        assert tell("promote", "dc2", file).status == 0
    client = look(sites.witness)
    client.start()
    client.set(f"{path}/{what}", b"{half of a")
    client.stop()
    client.close()
    for command in (["status"], ["promote", "dc1"]):
        refused = tell(*command, file)
        assert refused.status == 2, refused
        assert "no valid" in refused.complaint
        assert "`failover recover`" in refused.complaint
    shown = tell("recover", file)
    assert "garbled     witness: no valid" in shown.output, shown
    assert "nothing was changed: --write does" in shown.output
    written = tell("recover", "--write", file)
    assert written.status == 0, written
    assert active(sites.witness, path) == ActiveSite(site="dc2", epoch=1)
    looked = tell("status", file)
    assert looked.status == 0, looked
    assert "active   dc2 (epoch 1)" in looked.output


@pytest.mark.story
def test_an_old_copy_that_lacks_a_writer_of_the_map_is_refused_and_restored(
    sites: Sites, tmp_path: Path
) -> None:
    """Nothing but the mirror was started anew since, so both clusters agree with the witness."""
    path, witness = "/old-writers", sites.witness
    for topic in ("written-1", "written-2"):
        create_topic(sites.dc1, topic)
    file = sites.configure(tmp_path, path, "written-.*")
    produce(sites.dc1, "written-1", range(100))
    with run_daemon(file) as mirror:
        mirror.wait_mirrored("written-1", 100)
    copied = nodes(witness, path, in_backup=True)
    produce(sites.dc1, "written-2", range(100))
    with run_daemon(file) as mirror:
        mirror.wait_mirrored("written-2", 100)
    restore(witness, path, copied)
    for command in (
        ["plan", "dc2"],
        ["promote", "dc2"],
        ["promote", "dc2", "--source-lost", "--force"],
    ):
        ended = tell(*command, str(file))
        assert ended.status == 2, ended
        assert "the witness is an old copy: writer" in ended.complaint
        assert "failover recover" in ended.complaint
    shown = tell("recover", str(file))
    assert shown.status == 0, shown
    assert "the witness is an old copy" in shown.output
    assert "nothing was changed" in shown.output
    with run_daemon(file) as mirror:
        wait_until("it is named", lambda: "the witness is an old copy" in mirror.log)
    ended = tell("recover", "--write", str(file))
    assert ended.status == 0, ended
    with run_daemon(file) as mirror:
        produce(sites.dc1, "written-2", range(100, 200))
        mirror.wait_mirrored("written-2", 200)
        promoted = tell("promote", "dc2", str(file))
        assert promoted.status == 0, promoted
