"""What concerns one partition of a flow with two workers: orders, policies, foreign writes.

The first worker leads; what is tried concerns the other one's partitions, and goes on to concern
them when they have moved.
"""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from mirror.report.status import PartitionReport
from mirror.state.orders import Orders
from tests.commands import run_mirror_command
from tests.failover.two_sites import (
    QUIET,
    Sites,
    create_topic,
    produce,
    read_all,
    values_of,
)
from tests.mirror.daemon import MirrorProcess, configure, run_mirror, wait_until, witness_of

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def sites(shared_sites: Sites) -> Sites:
    return shared_sites


PARTITIONS = 4
FLOWING = {"catching up", "streaming"}
MORE = "balance_interval_ms: 30000"
SLOWLY = ("session_timeout_ms: 2000", "session_timeout_ms: 6000")


@dataclass(slots=True)
class Pair:
    """Two workers of a flow of one topic; the first leads."""

    sites: Sites
    topic: str
    first: MirrorProcess
    second: MirrorProcess

    def lines(self, worker: MirrorProcess) -> dict[int, PartitionReport]:
        """Return what a worker says of its partitions."""
        return {one["partition"]: one for one in worker.status()["partitions"]}

    def wait_even(self, *also: str) -> set[int]:
        """Return the second worker's partitions once each has half of all, flowing or so."""
        found: list[dict[int, PartitionReport]] = []

        def is_even() -> bool:
            found[:] = [self.lines(self.first), self.lines(self.second)]
            states = {one["state"] for lines in found for one in lines.values()}
            return states <= FLOWING | set(also) and (
                [len(lines) for lines in found] == [PARTITIONS // 2] * 2
            )

        wait_until("shared evenly", is_even)
        return set(found[1])

    def order(self, *words: str) -> str:
        """Give an order as people do; return what the program says."""
        ended = run_mirror_command(*words, self.first.configuration)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def told(self, partition: int) -> PartitionReport:
        """Return what `mirror status` says of a partition, whoever has it."""
        (flow,) = json.loads(self.order("status", "--json"))["flows"]
        [line] = [one for one in flow["partitions"] if one["partition"] == partition]
        found: PartitionReport = line
        return found

    def wait_mirrored(self, end: int, partitions: set[int]) -> None:
        """Wait until these are mirrored up to a source offset, by whomever."""

        def ends() -> dict[int, int | None]:
            both = {**self.lines(self.first), **self.lines(self.second)}
            return {index: one["mirrored_source_end"] for index, one in both.items()}

        wait_until(f"{partitions} at {end}", lambda: all(ends().get(p) == end for p in partitions))

    def values(self, partition: int) -> list[int]:
        """Return what is in a partition of the target."""
        return values_of(read_all(self.sites.dc2, self.topic, partition))


_numbers = count()


@pytest.fixture
def pair(sites: Sites, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Pair]:
    """Two workers; a parameter is what to put instead of something in their configuration."""
    topic = f"pair-{next(_numbers)}"
    create_topic(sites.dc1, topic, PARTITIONS)
    file = configure(sites, tmp_path, topic, MORE)
    file.write_text(file.read_text().replace(*getattr(request, "param", (MORE, MORE))))
    with ExitStack() as stack:
        first = stack.enter_context(run_mirror(file, "a"))
        wait_until("a has all", lambda: len(first.status()["partitions"]) == PARTITIONS)
        yield Pair(sites, topic, first, stack.enter_context(run_mirror(file, "b")))


def write(pair: Pair, numbers: range) -> None:
    for index in range(PARTITIONS):
        produce(pair.sites.dc1, pair.topic, numbers, index)


def test_pauses_hold_for_who_has_the_partition_and_for_who_has_it_next(pair: Pair) -> None:
    theirs = pair.wait_even()
    mine = min(theirs)
    others = set(range(PARTITIONS)) - {mine}
    told = pair.order("pause", "dc1-dc2", f"{pair.topic}:{mine}")
    assert f"{pair.topic}:{mine} is paused; the 2 workers carry it out" in told
    pair.second.wait_state(pair.topic, "paused", mine)
    write(pair, range(5))
    pair.wait_mirrored(5, others)
    line = pair.told(mine)
    assert (line["state"], line["reason"][:10]) == ("paused", "paused by ")
    assert line.get("worker", "").endswith(f":{pair.second.pid}")
    assert pair.second.stop() == 0
    pair.first.wait_state(pair.topic, "paused", mine)
    write(pair, range(5, 7))
    for index in others:
        pair.first.wait_mirrored(pair.topic, 7, index)
    assert pair.told(mine)["state"] == "paused"
    pair.second.start()
    pair.wait_even("paused")
    assert pair.told(mine)["state"] == "paused"
    assert pair.values(mine) == []
    pair.order("resume", "dc1-dc2", f"{pair.topic}:{mine}")
    pair.wait_mirrored(7, set(range(PARTITIONS)))

    pair.order("pause", "dc1-dc2", pair.topic)
    both = (pair.first, pair.second)
    wait_until("the topic paused everywhere", lambda: states(pair, *both) == {"paused"})
    pair.order("pause", "dc1-dc2")
    wait_until("the flow rests", lambda: {w.status()["role"] for w in both} == {"paused"})
    pair.order("resume", "dc1-dc2")
    pair.wait_even()
    write(pair, range(7, 9))
    pair.wait_mirrored(9, set(range(PARTITIONS)))
    assert [pair.values(index) for index in range(PARTITIONS)] == [[*range(9)]] * PARTITIONS


def states(pair: Pair, *workers: MirrorProcess) -> set[str]:
    lines = [one for worker in workers for one in pair.lines(worker).values()]
    return {one["state"] for one in lines} if len(lines) == PARTITIONS else set()


@pytest.mark.story
@pytest.mark.parametrize("pair", [SLOWLY], indirect=True)
def test_a_restart_waits_for_a_worker_that_sleeps_and_reaches_who_takes_its_partition(
    pair: Pair,
) -> None:
    mine = min(pair.wait_even())
    write(pair, range(2))
    pair.wait_mirrored(2, {mine})
    pair.order("pause", "dc1-dc2", f"{pair.topic}:{mine}")
    pair.second.wait_state(pair.topic, "paused", mine)
    produce(pair.sites.dc1, pair.topic, range(2, 10), mine)
    admin = AdminClient({"bootstrap.servers": pair.sites.dc1.bootstrap, **QUIET})
    gone = TopicPartition(pair.topic, mine, 4)
    admin.delete_records([gone])[gone].result(60)
    pair.order("resume", "dc1-dc2", f"{pair.topic}:{mine}")
    pair.second.wait_state(pair.topic, "retention overrun", mine)
    os.kill(pair.second.pid, signal.SIGSTOP)
    pair.order("restart", "--skip", "dc1-dc2", f"{pair.topic}:{mine}")
    pair.first.wait_mirrored(pair.topic, 10, mine)
    line = pair.first.wait_state(pair.topic, "streaming", mine)
    assert line["skipped_records"] == 2
    os.kill(pair.second.pid, signal.SIGCONT)
    with witness_of(pair.sites.witness, pair.first.configuration) as (client, paths):
        orders = paths.orders("dc1", "dc2")
        wait_until("taken out", lambda: Orders.decode(client.get(orders)[0]) == Orders())
    pair.wait_even()
    assert pair.values(mine) == [0, 1, *range(4, 10)]


@pytest.mark.story
@pytest.mark.parametrize("pair", [(MORE, "on_topic_recreated: restart")], indirect=True)
def test_a_policy_that_begins_a_topic_anew_does_so_once_for_all_workers(pair: Pair) -> None:
    pair.wait_even()
    write(pair, range(5))
    pair.wait_mirrored(5, set(range(PARTITIONS)))
    admin = AdminClient({"bootstrap.servers": pair.sites.dc1.bootstrap, **QUIET})
    admin.delete_topics([pair.topic])[pair.topic].result(60)
    wait_until("gone", lambda: pair.topic not in admin.list_topics(timeout=60).topics)
    create_topic(pair.sites.dc1, pair.topic, PARTITIONS)
    write(pair, range(100, 103))
    pair.wait_mirrored(3, set(range(PARTITIONS)))
    pair.wait_even()
    write(pair, range(103, 105))
    pair.wait_mirrored(5, set(range(PARTITIONS)))
    assert [pair.values(index) for index in range(PARTITIONS)] == [[*range(100, 105)]] * PARTITIONS
    said = pair.first.log + pair.second.log
    assert said.count(f"{pair.topic}: deleted on the target") == 1


@pytest.mark.story
def test_a_target_topic_that_was_made_again_is_filled_again_unless_others_were_first(
    pair: Pair,
) -> None:
    mine = min(pair.wait_even())
    everything = set(range(PARTITIONS))
    write(pair, range(5))
    pair.wait_mirrored(5, everything)
    pair.order("pause", "dc1-dc2", pair.topic)
    wait_until("paused", lambda: states(pair, pair.first, pair.second) == {"paused"})
    admin = AdminClient({"bootstrap.servers": pair.sites.dc2.bootstrap, **QUIET})
    admin.delete_topics([pair.topic])[pair.topic].result(60)
    wait_until("made again", lambda: pair.first.log.count(f"CreateTopic(topic='{pair.topic}'") == 2)
    produce(pair.sites.dc2, pair.topic, range(90, 95), mine)
    pair.order("resume", "dc1-dc2", pair.topic)
    line = pair.second.wait_state(pair.topic, "target diverged", mine)
    assert "that no mirror has written" in line["reason"]
    write(pair, range(5, 7))
    for index in everything - {mine}:
        wait_until("filled again", lambda: pair.values(index) == [*range(7)])  # noqa: B023
    assert pair.values(mine) == [*range(90, 95)]


@pytest.mark.story
def test_a_foreign_write_stops_its_partition_alone_and_whoever_has_it_next_knows_it(
    pair: Pair,
) -> None:
    mine = min(pair.wait_even())
    others = set(range(PARTITIONS)) - {mine}
    write(pair, range(5))
    pair.wait_mirrored(5, set(range(PARTITIONS)))
    produce(pair.sites.dc2, pair.topic, [99], mine)
    write(pair, range(5, 7))
    pair.second.wait_state(pair.topic, "target diverged", mine)
    pair.wait_mirrored(7, others)
    line = pair.told(mine)
    assert line["state"] == "target diverged"
    assert "somebody else writes there" in line["reason"]
    assert line.get("worker", "").endswith(f":{pair.second.pid}")
    stopped = pair.values(mine)
    pair.second.kill()
    line = pair.first.wait_state(pair.topic, "target diverged", mine)
    assert "that no mirror has written" in line["reason"]
    write(pair, range(7, 12))
    pair.order("restart", "dc1-dc2", f"{pair.topic}:{mine}")
    wait_until("looked again", lambda: "restart (retry) of" in pair.first.log)
    pair.first.wait_state(pair.topic, "target diverged", mine)
    assert pair.values(mine) == stopped
    pair.second.start()
    pair.wait_even("target diverged")
    pair.wait_mirrored(12, others)
    pair.order("restart", "--from-earliest", "dc1-dc2", pair.topic)
    pair.wait_mirrored(12, set(range(PARTITIONS)))
    pair.wait_even()
    assert [pair.values(index) for index in range(PARTITIONS)] == [[*range(12)]] * PARTITIONS
