"""Peers that cannot be had or do not start are named, and leave nothing behind."""

import hashlib
import os
import tarfile
from pathlib import Path

import pytest

from tests.interop.peers import (
    KAFKA_4_KRAFT,
    NEWEST_3,
    NEWEST_4,
    NEWEST_MIRROR_MAKER,
    PeerFailed,
    PeerLost,
    PeerUnavailable,
    Site,
    ToolFailed,
    maven,
    run_kafka,
    run_mirror_maker,
    run_tool,
    tools,
    why_not_run,
)
from tests.interop.peers.artifacts import class_path
from tests.interop.peers.child import start_child
from tests.interop.peers.maven import ARCHIVE, VERSION, run_maven
from tests.interop.peers.resources import require_disk, require_memory


def path_without(program: str, folder: Path) -> str:
    """Return a PATH with links to all programs but one."""
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for found in Path(place).glob("*"):
            link = folder / found.name
            if found.name != program and not link.is_symlink():
                link.symlink_to(found)
    return str(folder)


def test_a_missing_maven_is_fetched_from_the_repository_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / f"apache-maven-{VERSION}" / "bin" / "mvn"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho this is Maven\n")
    program.chmod(0o755)
    archive = tmp_path / "repository" / ARCHIVE
    archive.parent.mkdir(parents=True)
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(program.parents[1], program.parents[1].name)
    monkeypatch.setattr(maven, "SHA512", hashlib.sha512(archive.read_bytes()).hexdigest())
    monkeypatch.setenv("MVNW_REPOURL", (tmp_path / "repository").as_uri())
    monkeypatch.setenv("PATH", path_without("mvn", tmp_path / "bin"))
    cache = tmp_path / "cache"
    cache.mkdir()
    ended = run_maven(cache, ["--version"], timeout_s=60)
    assert ended.stdout == "this is Maven\n", ended.stderr
    assert not list(cache.glob("*.partial"))


@pytest.mark.parametrize("repository", [None, "https://127.0.0.1:1"])
def test_without_maven_and_its_repository_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repository: str | None
) -> None:
    monkeypatch.setenv("PATH", path_without("mvn", tmp_path / "bin"))
    if repository is None:
        monkeypatch.delenv("MVNW_REPOURL", raising=False)
    else:
        monkeypatch.setenv("MVNW_REPOURL", repository)
    with pytest.raises(PeerUnavailable, match="install it"):
        class_path(NEWEST_4, cache=tmp_path / "cache")


def test_an_archive_that_is_not_the_known_maven_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", path_without("mvn", tmp_path / "bin"))
    monkeypatch.setenv("MVNW_REPOURL", (tmp_path / "repository").as_uri())
    archive = tmp_path / "repository" / ARCHIVE
    archive.parent.mkdir(parents=True)
    archive.write_bytes(b"something else")
    with pytest.raises(PeerUnavailable, match="another checksum"):
        class_path(NEWEST_4, cache=tmp_path / "cache")


def test_a_registry_out_of_reach_is_named_with_the_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=1"
    monkeypatch.setenv("MAVEN_OPTS", proxy)
    with pytest.raises(PeerUnavailable, match=rf"cannot resolve Apache Kafka {NEWEST_4}: "):
        class_path(NEWEST_4, cache=tmp_path / "cache")
    assert not list((tmp_path / "cache").glob("*.classpath"))


def test_a_tool_of_groups_that_gives_up_has_failed_although_its_status_is_0(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tools, "GROUPS_PATIENCE", ("--timeout", "500"))
    with pytest.raises(ToolFailed, match="TimeoutException"):
        run_tool(NEWEST_3, tools.GROUPS, "--bootstrap-server", "127.0.0.1:1", "--list")


def test_too_little_memory_or_disk_is_said_beforehand(tmp_path: Path) -> None:
    with pytest.raises(PeerUnavailable, match=r"too little memory: 999999999 MB needed, \d+ MB"):
        require_memory(999_999_999)
    with pytest.raises(PeerUnavailable, match=r"too little disk for .*: 999999999 MB needed"):
        require_disk(tmp_path, 999_999_999)


def test_a_broker_that_does_not_start_is_named_with_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(PeerFailed) as told:  # noqa: SIM117 - the outer one is the subject
        with run_kafka(tmp_path, KAFKA_4_KRAFT, overrides={"log.segment.bytes": "many"}):
            pass
    assert str(KAFKA_4_KRAFT) in str(told.value)
    assert "log.segment.bytes" in str(told.value)


def test_a_peer_that_hangs_when_it_is_to_end_is_lost_and_no_row_that_was_not_run(
    tmp_path: Path,
) -> None:
    deaf = start_child(
        "deaf", ["sh", "-c", "trap '' TERM; echo up; sleep 60"], log=tmp_path / "out"
    )
    deaf.wait_until(lambda: "up" in deaf.said(), timeout_s=20)
    with pytest.raises(PeerLost, match="deaf did not stop within 0 s") as told:
        deaf.stop(patience_s=0.2)
    assert why_not_run(told.value) is None
    assert not deaf.is_running


def test_a_mirror_maker_without_clusters_ends_and_is_named(tmp_path: Path) -> None:
    nowhere = Site(alias="dc1", bootstrap="no-such-host.invalid:1")
    ended = rf"MirrorMaker {NEWEST_MIRROR_MAKER} dc1->dc2 ended with status"
    with pytest.raises(PeerFailed, match=ended):  # noqa: SIM117 - the outer one is the subject
        with run_mirror_maker(
            tmp_path / "mm2",
            version=NEWEST_MIRROR_MAKER,
            source=nowhere,
            target=Site(alias="dc2", bootstrap="no-such-host.invalid:2"),
        ):
            pass


def test_a_broker_that_ran_and_does_not_come_back_is_lost(tmp_path: Path) -> None:
    with run_kafka(tmp_path, KAFKA_4_KRAFT) as cluster:
        cluster.kill()
        (cluster.log_folder(0) / "meta.properties").write_text("node.id=7\n")
        with pytest.raises(PeerLost, match="node ID not found"):
            cluster.start()


def test_a_killed_cluster_is_gone_and_comes_back_with_its_data(tmp_path: Path) -> None:
    with run_kafka(tmp_path, KAFKA_4_KRAFT) as cluster:
        (pid,) = cluster.pids.values()
        addresses = cluster.addresses
        cluster.kill()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        assert cluster.pids == {}
        cluster.start()
        assert cluster.addresses == addresses
        assert cluster.pids[0] != pid
