"""Several `mirror run` of one flow: killed, put to sleep beyond their session, woken, replaced.

Both logs are read by librdkafka and compared by the drill's comparer, which knows nothing of the
mirror.
"""

import os
import random
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest

from offset_translation.map_records import map_topic_name, mirror_producer
from runtime.coordination.witness import FlowCommand
from tests.clusters import is_alive
from tests.commands import run_mirror_command
from tests.failover.two_sites import Sites, commit_by_hand, committed, create_topic
from tests.mirror.daemon import (
    MirrorProcess,
    append_batches,
    configure,
    map_batch,
    register_map_writer,
    run_mirror,
    wait_until,
    witness_of,
)
from tests.mirror.working_together import (
    LOOP,
    PARTITIONS,
    Writer,
    assert_mirrored_once_in_order,
    logs,
    shares,
    wait_shared,
)
from wire.record_batch import Record, build_batch

pytestmark = pytest.mark.integration


NAMES = ("a", "b", "c")
SLOWLY = "partition_fetch_bytes: 2048\n    fetch_max_bytes: 4096"
"""A little at a time, so that who is stopped has a lot on its way and before it."""


@pytest.fixture(scope="module")
def sites(sites: Sites) -> Sites:
    """Two clusters, the first of which knows of another mirror."""
    create_topic(sites.dc1, map_topic_name("dc2"))
    append_batches(sites.dc1, map_topic_name("dc2"), [map_batch(mirror_producer(LOOP))])
    return sites


@pytest.fixture
def workers(sites: Sites, tmp_path: Path) -> Iterator[dict[str, MirrorProcess]]:
    """Three workers of one flow of the topic `shared`."""
    register_map_writer(sites, tmp_path, "dc2", "dc1")
    file = configure(
        sites, tmp_path, f"shared-{tmp_path.name}", SLOWLY, back=f"shared-{tmp_path.name}"
    )
    with ExitStack() as stack:
        yield {name: stack.enter_context(run_mirror(file, name)) for name in NAMES}


@pytest.mark.story
def test_a_dead_workers_partitions_go_on_elsewhere_and_nothing_else_stops(
    sites: Sites, tmp_path: Path, workers: dict[str, MirrorProcess]
) -> None:
    topic = f"shared-{tmp_path.name}"
    create_topic(sites.dc1, topic, PARTITIONS)
    before = wait_shared(workers, NAMES)
    writer = Writer(sites.dc1, topic, 1)
    writer.write(40)
    commit_by_hand(sites.dc1, "readers", topic, 7)
    workers["b"].kill()
    left = ("a", "c")
    seen: list[dict[str, set[int]]] = []

    def is_taken_over() -> bool:
        writer.write(2)
        seen.append(shares(workers, left))
        return set().union(*seen[-1].values()) == set(range(PARTITIONS))

    wait_until("all shared among two", is_taken_over)
    for one in seen:
        assert all(before[name] <= one[name] for name in left), "somebody else paused"
    assert_mirrored_once_in_order(sites, topic)
    wait_until("group positions", lambda: committed(sites.dc2, "readers", topic) >= 0)
    workers["b"].start()
    after = wait_shared(workers, NAMES)
    assert all(after[name] <= before[name] | seen[-1][name] for name in left)
    writer.write(20)
    assert [workers[name].stop() for name in NAMES] == [0, 0, 0]
    workers["a"].start()
    assert_mirrored_once_in_order(sites, topic)


@pytest.mark.story
def test_workers_that_wake_up_too_late_write_nothing_twice_nor_out_of_order(
    sites: Sites, tmp_path: Path, workers: dict[str, MirrorProcess]
) -> None:
    """And a stop is acknowledged when all of them have stopped."""
    topic = f"shared-{tmp_path.name}"
    create_topic(sites.dc1, topic, PARTITIONS)
    wait_shared(workers, NAMES)
    writer = Writer(sites.dc1, topic, 2)
    chance = random.Random(3)
    for victims in (("a",), ("b", "c")):
        writer.write(30)
        for name in victims:
            os.kill(workers[name].pid, signal.SIGSTOP)
        killed = chance.choice(victims) if len(victims) > 1 else None
        awake = [name for name in NAMES if name not in victims]
        wait_until(
            f"{victims} given up",
            lambda: set().union(*shares(workers, awake).values()) == set(range(PARTITIONS)),  # noqa: B023
        )
        writer.write(30)
        for name in victims:
            if name == killed:
                workers[name].kill()
                workers[name].start()
            else:
                os.kill(workers[name].pid, signal.SIGCONT)
        writer.write(20)
    wait_shared(workers, NAMES)
    assert_mirrored_once_in_order(sites, topic)
    require_stopped_and_started(sites, workers, writer, topic)
    wait_shared(workers, NAMES)
    assert_mirrored_once_in_order(sites, topic)


def require_stopped_and_started(
    sites: Sites, workers: dict[str, MirrorProcess], writer: Writer, topic: str
) -> None:
    """Command a stop and a start; between both answers nothing of what is written is mirrored."""
    stop, start = FlowCommand(epoch=1, run=False), FlowCommand(epoch=1, run=True)
    with witness_of(sites.witness, workers["a"].configuration) as (client, paths):
        client.create(paths.command("dc1", "dc2"), stop.encode())

        def is_acknowledged(command: FlowCommand) -> bool:
            path = paths.acknowledged("dc1", "dc2")
            return bool(client.exists(path)) and client.get(path)[0] == command.encode()

        wait_until("the stop acknowledged", lambda: is_acknowledged(stop))
        assert client.get_children(paths.workers("dc1", "dc2")) == []
        assert {workers[name].status()["role"] for name in NAMES} == {"paused"}
        stopped = logs(sites.dc2, topic)
        writer.write(20)
        assert logs(sites.dc2, topic) == stopped
        client.set(paths.command("dc1", "dc2"), start.encode())
        wait_until("the start acknowledged", lambda: is_acknowledged(start))


@pytest.mark.story
def test_partitions_move_by_what_they_carry_while_the_others_go_on(
    sites: Sites, tmp_path: Path
) -> None:
    topic = f"load-{tmp_path.name}"
    create_topic(sites.dc1, topic, PARTITIONS)
    file = configure(sites, tmp_path, topic, "balance_interval_ms: 500")
    numbers = count()
    with run_mirror(file, "a") as one, run_mirror(file, "b") as other:
        pair = {"a": one, "b": other}
        before = wait_shared(pair, ("a", "b"))
        seen: list[dict[str, set[int]]] = []

        def has_moved() -> bool:
            for partition in before["a"]:
                value = f"{next(numbers)} {'x' * 100_000}".encode()
                heavy = build_batch([Record(0, 1_000, None, value)])
                append_batches(sites.dc1, topic, [heavy], partition)
            seen.append(shares(pair, ("a", "b")))
            return bool(before["a"] & seen[-1]["b"])

        wait_until("a partition moved", has_moved)
        wait_until("all mirrored again", lambda: sum(map(len, shares(pair, "ab").values())) == 6)
        moved = before["a"] - shares(pair, "ab")["a"]
        assert 0 < len(moved) < len(before["a"])
        for now in seen:
            assert before["a"] - moved <= now["a"], "who stays has paused"
            assert before["b"] <= now["b"], "who is not concerned has paused"
    with run_mirror(file):
        assert_mirrored_once_in_order(sites, topic)


@pytest.mark.story
def test_one_command_runs_several_workers_and_starts_a_dead_one_again(
    sites: Sites, tmp_path: Path
) -> None:
    topic = f"many-{tmp_path.name}"
    create_topic(sites.dc1, topic, PARTITIONS)
    file = configure(sites, tmp_path, topic, f"{SLOWLY}\n    balance_interval_ms: 500")
    writer = Writer(sites.dc1, topic, 4)
    with run_mirror(file, "many", "--workers", "2") as both:

        def children() -> dict[str, str]:
            return dict(re.findall(r"worker (\d) is process (\d+)", both.log))

        def is_shared() -> bool:
            lines = program("status", str(file)).splitlines()
            return sum(" 3 partitions, lag" in line for line in lines) == 2

        wait_until("shared by two", is_shared)
        writer.write(15)
        first = children()
        os.kill(int(first["1"]), signal.SIGKILL)
        writer.write(15)
        wait_until("a new child", lambda: children()["1"] != first["1"])
        wait_until("shared by two again", is_shared)
        assert_mirrored_once_in_order(sites, topic)
        assert children()["0"] == first["0"]
        program("restart", "--from-earliest", "dc1-dc2", topic, str(file))
        wait_until("begun anew", lambda: f"{topic}: deleted on the target" in both.log)
        writer.write(5)
        wait_until("shared by two once more", is_shared)
        assert_mirrored_once_in_order(sites, topic)
        assert both.stop() == 0
        assert not any(is_alive(int(pid)) for pid in children().values())


def program(*words: str) -> str:
    """Run the program `mirror`; return what it says."""
    return run_mirror_command(*words).stdout
