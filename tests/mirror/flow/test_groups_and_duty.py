"""Group positions on the target, the failover's commands, standby, the witness, and `status`."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from offset_translation.checkpoint import Checkpoint
from offset_translation.group_positions import Leave
from runtime.coordination.witness import ActiveSite, FlowCommand
from runtime.process.ports import free_port
from tests.clusters import RunningCluster
from tests.commands import run_mirror_command
from tests.failover.two_sites import (
    QUIET,
    Sites,
    commit_by_hand,
    committed,
    create_topic,
    pause,
    produce,
    read_all,
    values_of,
)
from tests.forked import call_program
from tests.mirror.daemon import (
    TIMEOUT_S,
    MirrorProcess,
    append_batches,
    checkpoints,
    configure,
    run_mirror,
    wait_until,
    witness_of,
    witness_on,
)
from wire.record_batch import Record, build_batch

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def sites(shared_sites: Sites) -> Sites:
    return shared_sites


MOVED_BY_ITSELF = Leave.TARGET_IS_AHEAD.value
HAS_MEMBERS = Leave.GROUP_IS_ACTIVE.value


def wait_committed(cluster: RunningCluster, group: str, topic: str, offset: int) -> None:
    wait_until(
        f"{group} at {offset} on {topic}", lambda: committed(cluster, group, topic) == offset
    )


def test_positions_follow_their_groups(sites: Sites, tmp_path: Path) -> None:
    for topic in ("pos", "pos-empty", "not-mirrored"):
        create_topic(sites.dc1, topic)
    produce(sites.dc1, "pos", range(100))
    commit_by_hand(sites.dc1, "early", "pos", 40)
    commit_by_hand(sites.dc1, "of-empty", "pos-empty", 0)
    commit_by_hand(sites.dc1, "elsewhere", "not-mirrored", 5)
    with run_mirror(configure(sites, tmp_path, "pos.*")) as mirror:
        wait_committed(sites.dc2, "early", "pos", 40)
        wait_committed(sites.dc2, "of-empty", "pos-empty", 0)
        commit_by_hand(sites.dc1, "late", "pos", 70)
        wait_committed(sites.dc2, "late", "pos", 70)
        wait_until("late", lambda: state_of(mirror, "late", "pos") == "settled")
        line = mirror.group("late", "pos")
        assert line is not None
        assert (line["source_lag"], line["target_lag"]) == (30, 30)
        commit_by_hand(sites.dc1, "late", "pos", 20)
        wait_committed(sites.dc2, "late", "pos", 20)
        commit_by_hand(sites.dc2, "late", "pos", 90)
        commit_by_hand(sites.dc1, "late", "pos", 60)
        wait_until("looked", lambda: state_of(mirror, "late", "pos") == MOVED_BY_ITSELF)
        assert committed(sites.dc2, "late", "pos") == 90
        assert checkpoints(sites)["late", "pos"] == Checkpoint(
            group="late", topic="pos", partition=0, upstream_offset=20, downstream_offset=20
        )
        assert committed(sites.dc2, "elsewhere", "not-mirrored") < 0
        assert ("elsewhere", "not-mirrored") not in checkpoints(sites)


def test_polled_positions_follow_their_groups_too(sites: Sites, tmp_path: Path) -> None:
    create_topic(sites.dc1, "polled")
    produce(sites.dc1, "polled", range(20))
    for group, offset in (("asked", 5), ("asked-too", 7)):
        commit_by_hand(sites.dc1, group, "polled", offset)
    more = "group_offsets: poll\n    group_poll_interval_ms: 100"
    with run_mirror(configure(sites, tmp_path, "polled", more)) as mirror:
        wait_committed(sites.dc2, "asked", "polled", 5)
        wait_committed(sites.dc2, "asked-too", "polled", 7)
        commit_by_hand(sites.dc1, "asked", "polled", 20)
        wait_committed(sites.dc2, "asked", "polled", 20)
        commit_by_hand(sites.dc1, "asked", "polled", 3)
        wait_committed(sites.dc2, "asked", "polled", 3)
        assert mirror.status()["groups_by"] == "polled: as configured"
        delete_group(sites.dc1, "asked-too")
        wait_until("forgotten", lambda: mirror.group("asked-too", "polled") is None)
        assert committed(sites.dc2, "asked-too", "polled") == 7


def delete_group(cluster: RunningCluster, group: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    for future in admin.delete_consumer_groups([group]).values():
        future.result()


def state_of(mirror: MirrorProcess, group: str, topic: str) -> str | None:
    line = mirror.group(group, topic)
    return None if line is None else line["state"]


def test_a_position_ahead_of_the_data_waits_at_the_data(sites: Sites, tmp_path: Path) -> None:
    create_topic(sites.dc1, "ahead")
    produce(sites.dc1, "ahead", range(10))
    commit_by_hand(sites.dc1, "eager", "ahead", 15)
    with run_mirror(configure(sites, tmp_path, "ahead")) as mirror:
        wait_committed(sites.dc2, "eager", "ahead", 10)
        wait_until("eager", lambda: state_of(mirror, "eager", "ahead") == "waiting for data")
        produce(sites.dc1, "ahead", range(10, 30))
        wait_committed(sites.dc2, "eager", "ahead", 15)


def test_a_group_with_members_on_the_target_is_left_alone(sites: Sites, tmp_path: Path) -> None:
    create_topic(sites.dc1, "active")
    produce(sites.dc1, "active", range(50))
    with run_mirror(configure(sites, tmp_path, "active")) as mirror:
        mirror.wait_mirrored("active", 50)
        with joined(sites.dc2, "busy", "active"):
            commit_by_hand(sites.dc1, "busy", "active", 30)
            wait_until("the refusal", lambda: state_of(mirror, "busy", "active") == HAS_MEMBERS)
            assert committed(sites.dc2, "busy", "active") < 0
        wait_committed(sites.dc2, "busy", "active", 30)


@contextmanager
def joined(cluster: RunningCluster, group: str, topic: str) -> Iterator[None]:
    """Be a member of the group, without committing."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            **QUIET,
        }
    )
    consumer.subscribe([topic])
    deadline = monotonic() + TIMEOUT_S
    while consumer.assignment() != [TopicPartition(topic, 0)]:
        consumer.poll(0.1)
        assert monotonic() < deadline
    yield
    consumer.close()


def test_a_flow_stops_and_starts_by_command_and_says_so(sites: Sites, tmp_path: Path) -> None:
    create_topic(sites.dc1, "commanded")
    produce(sites.dc1, "commanded", range(10))
    file = configure(sites, tmp_path, "commanded")
    with run_mirror(file) as mirror, witness_of(sites.witness, file) as (client, paths):
        mirror.wait_mirrored("commanded", 10)
        stop, start = FlowCommand(epoch=1, run=False), FlowCommand(epoch=1, run=True)
        client.create(paths.command("dc1", "dc2"), stop.encode())

        def acknowledged() -> FlowCommand | None:
            path = paths.acknowledged("dc1", "dc2")
            return FlowCommand.decode(client.get(path)[0]) if client.exists(path) else None

        wait_until("the stop acknowledged", lambda: acknowledged() == stop)
        assert mirror.status()["role"] == "paused"
        assert [one["lag_seconds"] for one in mirror.status()["partitions"]] == [None]
        produce(sites.dc1, "commanded", range(10, 20))
        pause(0.7)
        assert values_of(read_all(sites.dc2, "commanded")) == list(range(10))
        client.set(paths.command("dc1", "dc2"), start.encode())
        wait_until("the start acknowledged", lambda: acknowledged() == start)
        mirror.wait_mirrored("commanded", 20)
        client.set(paths.active, ActiveSite(site="dc2", epoch=1).encode())
        wait_until("paused", lambda: mirror.status()["role"] == "paused")
        assert mirror.status()["reason"] == "dc2 is the active site, not the source dc1"
        assert [one["lag_seconds"] for one in mirror.status()["partitions"]] == [None]


def test_a_second_daemon_waits_for_partitions_and_takes_over(sites: Sites, tmp_path: Path) -> None:
    create_topic(sites.dc1, "standby")
    produce(sites.dc1, "standby", range(10))
    file = configure(sites, tmp_path, "standby")
    with run_mirror(file, "first") as first:
        first.wait_mirrored("standby", 10)
        with run_mirror(file, "second") as second:
            wait_until("a share of nothing", lambda: ": 0 partitions, 0 taken" in second.log)
            assert second.status()["partitions"] == []
            produce(sites.dc1, "standby", range(10, 20))
            first.kill()
            second.wait_mirrored("standby", 20)
    assert values_of(read_all(sites.dc2, "standby")) == list(range(20))


@pytest.mark.story
def test_a_daemon_that_slept_through_its_replacement_does_no_harm(
    sites: Sites, tmp_path: Path
) -> None:
    create_topic(sites.dc1, "zombie")
    file = configure(sites, tmp_path, "zombie", "partition_fetch_bytes: 1024")
    produce_one_by_one(sites, "zombie", range(300))
    with run_mirror(file, "first") as first:
        wait_until("the first records", lambda: first.mirrored_end("zombie") > 0)
        os.kill(first.pid, signal.SIGSTOP)
        try:
            with run_mirror(file, "second") as second:
                wait_until("taken over", lambda: second.partition("zombie") is not None)
                produce_one_by_one(sites, "zombie", range(300, 600))
                os.kill(first.pid, signal.SIGCONT)
                wait_until("given up", lambda: first.status()["partitions"] == [])
                produce_one_by_one(sites, "zombie", range(600, 700))
                second.wait_mirrored("zombie", 700)
                second.wait_state("zombie", "streaming")
        finally:
            os.kill(first.pid, signal.SIGCONT)
    assert values_of(read_all(sites.dc2, "zombie")) == list(range(700))


def produce_one_by_one(sites: Sites, topic: str, numbers: range) -> None:
    """Write a batch for each number."""
    batches = [build_batch([Record(0, 1_000 + number, None, b"%d" % number)]) for number in numbers]
    append_batches(sites.dc1, topic, batches)


def test_without_the_witness_nothing_is_written(sites: Sites, tmp_path: Path) -> None:
    create_topic(sites.dc1, "cut")
    produce(sites.dc1, "cut", range(10))
    port, file = free_port(), configure(sites, tmp_path, "cut")
    file.write_text(file.read_text().replace(sites.witness, f"127.0.0.1:{port}"))
    mirror = MirrorProcess(file)
    with witness_on(tmp_path / "witness", port):
        mirror.start()
        try:
            mirror.wait_mirrored("cut", 10)
        except BaseException:
            mirror.end()
            raise
    try:
        wait_until("held", lambda: mirror.status()["role"] in {"held", "no witness"})
        produce(sites.dc1, "cut", range(10, 20))
        pause(0.7)
        assert values_of(read_all(sites.dc2, "cut")) == list(range(10))
        wait_until("given up", lambda: mirror.status()["role"] == "no witness")
        with witness_on(tmp_path / "witness", port):
            mirror.wait_mirrored("cut", 20)
    finally:
        mirror.end()
    assert values_of(read_all(sites.dc2, "cut")) == list(range(20))


def run_program(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return call_program("mirror.cli", *arguments).finish(180)


def test_status_asks_the_daemon_and_without_one_looks_itself(sites: Sites, tmp_path: Path) -> None:
    create_topic(sites.dc1, "shown")
    produce(sites.dc1, "shown", range(10))
    commit_by_hand(sites.dc1, "readers", "shown", 4)
    file = configure(sites, tmp_path, "shown", 'groups: {include: ["readers"]}')
    with run_mirror(file) as mirror:
        mirror.wait_mirrored("shown", 10)
        wait_until("readers", lambda: state_of(mirror, "readers", "shown") == "settled")
        asked = run_mirror_command("status", file)
        assert asked.returncode == 0
        assert "flow dc1->dc2: running for" in asked.stdout
        assert " ".join(asked.stdout.split()).count("readers shown 0 4 6 4 6 settled") == 1
        assert mirror.stop() == 0
    looked = run_mirror_command("status", file, "--json")
    [flow] = json.loads(looked.stdout)["flows"]
    assert (flow["role"], flow["reason"]) == ("not running", "no daemon runs this flow")
    [partition] = flow["partitions"]
    assert (partition["mirrored_source_end"], partition["lag_records"]) == (10, 0)
    [group] = flow["groups"]
    assert (group["source_offset"], group["target_offset"]) == (4, 4)


def test_check_says_what_a_run_would_do_and_changes_nothing(sites: Sites, tmp_path: Path) -> None:
    create_topic(sites.dc1, "checked", 2)
    file = configure(sites, tmp_path, "checked")
    file.chmod(0o600)
    done = run_mirror_command("check", file)
    assert done.returncode == 0
    said = done.stdout.splitlines()
    open_to_all = [one for one in said if "warning: everybody may write" in one]
    assert len(open_to_all) == 2, "bundled brokers keep no rights"
    of_other_tests = [one for one in said if "registered" in one or " of each mirror" in one]
    lines = [one for one in said if one not in open_to_all + of_other_tests]
    assert lines[-5:] == [
        "flow dc1->dc2: mirrors 1 topics, 2 partitions: checked",
        "flow dc1->dc2: would run",
        "flow dc1->dc2: no daemon runs it at present",
        next(line for line in lines if " would keep the positions of " in line),
        "flow dc1->dc2: would create checked with 2 partitions, replication factor 1",
    ]
    assert any(line.startswith("clock of the witness: 0.") for line in lines), lines
    for site in ("dc1", "dc2"):
        assert any(line.startswith(f"{site}: brokers ") for line in lines), lines
        assert any(line.startswith(f"clock of {site}") for line in lines), lines
    warnings = [line for line in lines if "warning: " in line]
    assert all(line.endswith(": rights are not copied") for line in warnings), warnings
    assert not read_topics(sites.dc2) & {"checked"}


def read_topics(cluster: RunningCluster) -> set[str]:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "x", **QUIET})
    topics = set(consumer.list_topics(timeout=60).topics)
    consumer.close()
    return topics


def test_bad_input_is_one_line_and_status_two(sites: Sites, tmp_path: Path) -> None:
    file = configure(sites, tmp_path, "x", "colour: red")
    done = run_program("run", file)
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert line.startswith(f"mirror: {file}:")
    assert "colour" in line
    missing = run_mirror_command("status", tmp_path / "none.yaml")
    assert missing.returncode == 2
    assert len(missing.stderr.splitlines()) == 1


def test_a_port_in_use_is_named(sites: Sites, tmp_path: Path) -> None:
    file = configure(sites, tmp_path, "port")
    with run_mirror(file) as mirror:
        mirror.status()
        port = mirror.log.rpartition("metrics on port ")[2].split()[0]
        other = tmp_path / "other.yaml"
        other.write_text(file.read_text().replace("mirror_port: 0", f"mirror_port: {port}"))
        done = run_program("run", other)
    assert done.returncode == 2
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
    assert len(done.stderr.splitlines()) == 1
