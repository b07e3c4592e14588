"""A promotion believes nothing that it found earlier: what changed meanwhile is found and moved."""

import os
import signal
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
import trio
from confluent_kafka.admin import AdminClient

from failover.sites.fence import Fence, set_fence
from runtime.configuration.config import load
from tests.failover.promoting import At, die, run_mirror, tell, wait_mirroring
from tests.failover.two_sites import (
    QUIET,
    Sites,
    commit_by_hand,
    committed,
    create_topic,
    delete_topic,
    pause,
    produce,
    read_all,
    values_of,
    wait_length,
)
from wire.net import open_cluster

pytestmark = pytest.mark.integration


def lift_fence(file: Path, site: str) -> None:
    """Open a site by hand, also while a promotion runs in this thread."""

    async def lift() -> None:
        cluster = load(file).clusters[site]
        async with open_cluster(cluster.bootstrap, client_id="by-hand") as opened:
            await set_fence(opened, Fence())

    with ThreadPoolExecutor(1) as another:
        another.submit(trio.run, lift).result()
    pause(0.5)


@pytest.fixture
def stage(sites: Sites, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator["Stage"]:
    name = f"again-{zlib.crc32(request.node.name.encode()):08x}"
    file = sites.configure(tmp_path, f"/{name}", f"{name}.*")
    create_topic(sites.dc1, name)
    produce(sites.dc1, name, range(20))
    with run_mirror(file) as daemon:
        wait_mirroring(file)
        wait_length(sites.dc2, name, 20)
        yield Stage(sites, file, name, daemon.pid)
    lift_fence(file, "dc1")
    for cluster in (sites.dc1, sites.dc2):
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUIET})
        ours = [topic for topic in admin.list_topics(timeout=30).topics if topic.startswith(name)]
        for topic in ours:
            delete_topic(cluster, topic)


class Stage:
    """Two sites between which one topic is mirrored."""

    def __init__(self, sites: Sites, file: Path, topic: str, mirror: int) -> None:
        self.sites, self.file, self.topic, self.mirror = sites, file, topic, mirror

    def promote(self) -> tuple[int, str]:
        ended = tell("promote", "dc2", str(self.file))
        return ended.status, ended.output + ended.complaint

    def on_dc2(self, topic: str) -> list[int]:
        return values_of(read_all(self.sites.dc2, topic))


@pytest.mark.story
def test_a_topic_made_while_no_controller_lives_moves(stage: Stage, when_step_ends: At) -> None:
    new = f"{stage.topic}-new"
    when_step_ends("open-target", die)
    stage.promote()
    lift_fence(stage.file, "dc1")  # which would close it from its first moment on
    create_topic(stage.sites.dc1, new)
    produce(stage.sites.dc1, new, range(100))
    status, said = stage.promote()
    assert status == 0, said
    assert stage.on_dc2(new) == list(range(100))


def test_records_taken_through_a_lifted_fence_move(stage: Stage, when_step_ends: At) -> None:
    when_step_ends("verify-fence", die)
    stage.promote()
    lift_fence(stage.file, "dc1")
    produce(stage.sites.dc1, stage.topic, range(20, 70))
    status, said = stage.promote()
    assert status == 0, said
    assert stage.on_dc2(stage.topic) == list(range(70))
    assert "fenced" in tell("status", str(stage.file)).output


@pytest.mark.story
def test_positions_committed_while_no_controller_lives_move(
    stage: Stage, when_step_ends: At
) -> None:
    group = f"{stage.topic}-group"
    commit_by_hand(stage.sites.dc1, group, stage.topic, 5)
    when_step_ends("stop-flow", die)
    stage.promote()
    commit_by_hand(stage.sites.dc1, group, stage.topic, 18)
    status, said = stage.promote()
    assert status == 0, said
    assert committed(stage.sites.dc2, group, stage.topic) == 18


@pytest.mark.story
def test_positions_committed_behind_the_move_of_groups_are_moved_again(
    stage: Stage, when_step_ends: At
) -> None:
    group = f"{stage.topic}-group"
    commit_by_hand(stage.sites.dc1, group, stage.topic, 5)
    when_step_ends("groups-move", partial(commit_by_hand, stage.sites.dc1, group, stage.topic, 18))
    status, said = stage.promote()
    assert status == 0, said
    assert committed(stage.sites.dc2, group, stage.topic) == 18


def test_a_record_that_slips_through_before_the_switch_is_listed_by_offset(
    stage: Stage, when_step_ends: At
) -> None:
    def slip() -> None:
        lift_fence(stage.file, "dc1")
        produce(stage.sites.dc1, stage.topic, range(20, 23))

    when_step_ends("open-target", slip)
    status, said = stage.promote()
    assert status == 1, said
    assert f"{stage.topic}-0 holds records at offsets 20 to 22 that are not on dc2" in said
    assert stage.on_dc2(stage.topic) == list(range(20))


@pytest.mark.story
def test_an_empty_topic_that_is_made_before_the_switch_is_made_on_the_new_site(
    stage: Stage, when_step_ends: At
) -> None:
    new = f"{stage.topic}-new"
    when_step_ends("open-target", partial(create_topic, stage.sites.dc1, new, 3))
    status, said = stage.promote()
    assert status == 0, said
    assert f"{new} on dc2" in said
    assert [stage.on_dc2(new)] == [[]]


@pytest.mark.story
def test_a_write_to_the_new_site_behind_its_seal_ends_in_a_rollback(
    stage: Stage, when_step_ends: At
) -> None:
    when_step_ends("seal", partial(produce, stage.sites.dc2, stage.topic, range(7, 8)))
    status, said = stage.promote()
    assert status == 1, said
    assert f"dc2 {stage.topic}-0 was sealed at 20 and ends at 21" in said
    assert "rolled back, dc1 stays active" in said


@pytest.mark.story
def test_a_mirror_that_stops_behind_the_fence_ends_in_a_rollback(
    stage: Stage, when_step_ends: At
) -> None:
    text = stage.file.read_text()
    stage.file.write_text(text.replace("drain_timeout_ms: 20000", "drain_timeout_ms: 500"))

    def stop() -> None:
        os.kill(stage.mirror, signal.SIGSTOP)
        produce(stage.sites.dc1, stage.topic, range(20, 30))

    when_step_ends("preflight", stop)
    status, said = stage.promote()
    os.kill(stage.mirror, signal.SIGCONT)
    assert status == 1, said
    assert "drain: 10 records in 1 partitions did not arrive" in said
    produce(stage.sites.dc1, stage.topic, range(30, 40))
    wait_length(stage.sites.dc2, stage.topic, 40)


def test_a_promotion_that_was_left_behind_the_fence_can_be_taken_back(
    stage: Stage, when_step_ends: At
) -> None:
    when_step_ends("stop-flow", die)
    stage.promote()
    aborted = tell("abort", str(stage.file))
    assert aborted.status == 0, aborted
    produce(stage.sites.dc1, stage.topic, range(20, 30))
    wait_length(stage.sites.dc2, stage.topic, 30)


@pytest.mark.story
def test_records_of_the_flow_back_are_not_taken_for_ones_that_slipped_through(
    sites: Sites, tmp_path: Path, when_step_ends: At
) -> None:
    """The controller dies behind the switch, and applications go on at the new site."""
    name = "again-both-ways"
    file = sites.configure(tmp_path, f"/{name}", name, is_both_ways=True)
    create_topic(sites.dc1, name)
    produce(sites.dc1, name, range(20))
    with run_mirror(file):
        wait_mirroring(file)
        wait_length(sites.dc2, name, 20)
        when_step_ends("switch", die)
        tell("promote", "dc2", str(file))
        produce(sites.dc2, name, range(20, 30))
        pause(5)  # so long a flow back that ran would need at most
        ended = tell("promote", "dc2", str(file))
        assert ended.status == 0, ended.output + ended.complaint
        wait_length(sites.dc1, name, 30)
        assert tell("promote", "dc1", str(file)).status == 0
    lift_fence(file, "dc2")
