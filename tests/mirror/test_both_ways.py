"""Both sites are written to at once, under the same names: each record once on both, whatever dies.

Who compares knows nothing of the mirror: it reads both logs with a foreign client.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from offset_translation.both_ways import translate_both_ways
from offset_translation.map_records import map_topic_name
from offset_translation.map_state import MapState
from tests.auditing import compared
from tests.clusters import RunningCluster
from tests.dc_yaml import dc_yaml, flow
from tests.failover.two_sites import (
    QUIET,
    Sites,
    commit_by_hand,
    committed,
    create_topic,
    produce,
    read_all,
    run_sites,
    values_of,
)
from tests.mirror.daemon import (
    OFTEN,
    SHORT_SESSION,
    MirrorProcess,
    read_batches,
    run_mirror,
    wait_until,
)
from wire.record_batch import iterate_records
from wire.topic_partition import TopicPartition

pytestmark = pytest.mark.integration

SITES = {"dc1": 0, "dc2": 1_000_000}
"""The first number that is written on each."""


@pytest.fixture(scope="module")
def sites(witness: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    with run_sites(
        tmp_path_factory.mktemp("sites"), witness, brokers=2, shares_zookeeper=True
    ) as running:
        yield running


def configure(sites: Sites, folder: Path, topic: str) -> Path:
    file = folder / "dc.yaml"
    settings = OFTEN | {"active_active": True}
    file.write_text(
        dc_yaml(
            flow("dc1", "dc2", topic, **settings),
            flow("dc2", "dc1", topic, **settings),
            dc1=sites.dc1.bootstrap,
            dc2=sites.dc2.bootstrap,
            witness=sites.witness,
            path=f"/{folder.name}",
            coordination=SHORT_SESSION,
            failover={"initial_active": "dc1"},
        )
    )
    return file


class Writer:
    """Writes ascending numbers to one site, a few at a time."""

    def __init__(self, cluster: RunningCluster, topic: str, first: int, partition: int = 0) -> None:
        self.first = self.next = first
        self._topic = topic
        self._partition = partition
        self._chance = random.Random(first)
        settings = {"enable.idempotence": True, "linger.ms": 1, **QUIET}
        self._producer = Producer({"bootstrap.servers": cluster.bootstrap, **settings})

    def go_on(self) -> None:
        """Write in two bursts, so that what comes from the other site may come in between."""
        for _ in range(2):
            for _ in range(self._chance.randrange(1, 12)):
                self._producer.produce(self._topic, b"%d" % self.next, b"k", self._partition)
                self.next += 1
            self._producer.poll(0.002)

    def end(self) -> list[int]:
        """Return what was written, once all is acknowledged."""
        assert self._producer.flush(60) == 0
        return list(range(self.first, self.next))


def read_state(cluster: RunningCluster, source: str) -> MapState:
    """Return what the map topic on a cluster says."""
    state = MapState()
    for one in read_batches(cluster, map_topic_name(source)):
        for record in iterate_records(one.data):
            state.replay(record.key, record.value)
    assert state.rejected == []
    return state


@pytest.mark.story
def test_both_directions_at_once_over_kills_hold_each_record_once_in_its_order(
    sites: Sites, tmp_path: Path
) -> None:
    topic = "shared"
    create_topic(sites.dc1, topic)
    create_topic(sites.dc2, topic)
    clusters = {"dc1": sites.dc1, "dc2": sites.dc2}
    chance = random.Random(11)
    mirror = MirrorProcess(configure(sites, tmp_path, topic))
    writers = {name: Writer(clusters[name], topic, first) for name, first in SITES.items()}
    try:
        for _ in range(5):
            mirror.start()
            reached = mirror.mirrored_end(topic)

            def has_gone_on(reached: int = reached) -> bool:
                for writer in writers.values():
                    writer.go_on()
                return mirror.mirrored_end(topic) > reached + 40

            wait_until(f"{topic} mirrored behind {reached}", has_gone_on)
            for _ in range(chance.randrange(20)):
                has_gone_on()
            mirror.kill()
        mirror.start()
        written = {name: writer.end() for name, writer in writers.items()}
        count = sum(map(len, written.values()))
        logs: dict[str, list[int]] = {}

        def is_all_there() -> bool:
            logs.update({n: values_of(read_all(one, topic)) for n, one in clusters.items()})
            return all(len(log) >= count for log in logs.values())

        try:
            wait_until(f"{count} records on both sides", is_all_there)
        except AssertionError as late:
            raise AssertionError(f"{late}: {[*map(len, logs.values())]}; {mirror.log}") from late
        commit_by_hand(sites.dc1, "at-rest", topic, count)
        wait_until(
            "the group's position on dc2",
            lambda: committed(sites.dc2, "at-rest", topic) == count,
        )
    finally:
        mirror.end()
    for log in logs.values():
        assert len(log) == count, "nothing went round"
        for name, first in SITES.items():
            own = [number for number in log if first <= number < first + 1_000_000]
            assert own == written[name], f"what {name} wrote, once and in its order"
    assert logs["dc1"] != logs["dc2"], "written at once, they lie in another order on each site"
    assert_no_position_passes_an_unread_record(sites, topic, logs)
    sizes = [len(written[name]) for name in ("dc1", "dc2")]
    assert list(compared(mirror.configuration).values()) == [
        {"source_records": size, "target_records": size} for size in sizes
    ]


def assert_no_position_passes_an_unread_record(
    sites: Sites, topic: str, logs: dict[str, list[int]]
) -> None:
    """Every position of dc1, through the maps as they lie in their topics."""
    forward, backward = read_state(sites.dc2, "dc1"), read_state(sites.dc1, "dc2")
    place, count = TopicPartition(topic, 0), len(logs["dc1"])
    for state in (forward, backward):
        state.advance({place: count})
    dc2_offsets = {number: offset for offset, number in enumerate(logs["dc2"])}
    unread = count
    for position in range(count, -1, -1):
        if position < count:
            unread = min(unread, dc2_offsets[logs["dc1"][position]])
        answer = translate_both_ways(forward.maps[place], backward.bounded(place), position)
        assert answer is not None
        assert answer.target_offset == unread


def test_where_one_site_has_records_already_the_other_way_begins_behind_them(
    sites: Sites, tmp_path: Path
) -> None:
    topic = "joined-later"
    for cluster, first in ((sites.dc1, 0), (sites.dc2, 50)):
        create_topic(cluster, topic)
        produce(cluster, topic, range(first, first + 20))
    with run_mirror(configure(sites, tmp_path, topic)):
        for cluster, order in ((sites.dc1, (0, 50)), (sites.dc2, (50, 0))):
            wanted = [number for first in order for number in range(first, first + 20)]

            def is_there(cluster: RunningCluster = cluster, wanted: list[int] = wanted) -> bool:
                return values_of(read_all(cluster, topic)) == wanted

            wait_until(f"{topic} on {cluster.bootstrap}", is_there)


def is_long(cluster: RunningCluster, topic: str, partition: int, count: int) -> bool:
    return len(read_all(cluster, topic, partition)) >= count


@pytest.mark.story
def test_two_workers_share_both_directions_and_one_that_dies_leaves_nothing_out(
    sites: Sites, tmp_path: Path
) -> None:
    topic, partitions = "shared-by-two", range(2)
    clusters = {"dc1": sites.dc1, "dc2": sites.dc2}
    for cluster in clusters.values():
        create_topic(cluster, topic, len(partitions))
    writers = {
        (name, index): Writer(clusters[name], topic, first, index)
        for name, first in SITES.items()
        for index in partitions
    }
    configuration = configure(sites, tmp_path, topic)
    with (
        run_mirror(configuration, "one") as one,
        run_mirror(configuration, "two") as two,
    ):

        def has_gone_on(beyond: int) -> bool:
            for writer in writers.values():
                writer.go_on()
            lengths = [len(read_all(c, topic, n)) for c in clusters.values() for n in partitions]
            own = [len(range(w.first, w.next)) for w in writers.values()]
            return min(length - max(own) for length in lengths) > beyond

        wait_until("both directions", lambda: has_gone_on(10))
        two.kill()
        wait_until("both directions, by the one that is left", lambda: has_gone_on(60))
        written = {key: writer.end() for key, writer in writers.items()}
        for index in partitions:
            wanted = {name: written[name, index] for name in SITES}
            count = sum(map(len, wanted.values()))
            for cluster in clusters.values():
                wait_until(
                    f"{count} records in {topic}-{index}; {one.log}",
                    partial(is_long, cluster, topic, index, count),
                )
                log = values_of(read_all(cluster, topic, index))
                assert len(log) == count, "nothing went round"
                for name, first in SITES.items():
                    own = [number for number in log if first <= number < first + 1_000_000]
                    assert own == wanted[name], f"what {name} wrote, once and in its order"
        count = len(read_all(sites.dc1, topic))
        commit_by_hand(sites.dc1, "at-rest-of-two", topic, count)
        wait_until(
            "the group's position on dc2",
            lambda: committed(sites.dc2, "at-rest-of-two", topic) == count,
        )


def leaders(cluster: RunningCluster, topic: str) -> set[int]:
    """Return the leaders of a topic's partitions; below 0 nobody leads."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUIET})
    found = admin.list_topics(topic, timeout=60).topics[topic].partitions
    return {one.leader for one in found.values()}


@contextmanager
def a_leader_dead(cluster: RunningCluster, topic: str) -> Iterator[int]:
    dead = min(leaders(cluster, topic))
    cluster.kill_broker(dead)
    try:
        yield dead
    finally:
        cluster.start_broker(dead)


@pytest.mark.story
def test_leaders_that_die_and_a_mirror_killed_before_others_lead_leave_each_record_there_once(
    sites: Sites, tmp_path: Path
) -> None:
    """The site of the dead leader is one direction's source and the other one's target."""
    topic, partitions = "over-leaders", range(3)
    clusters = {"dc1": sites.dc1, "dc2": sites.dc2}
    for cluster in clusters.values():
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUIET})
        admin.create_topics([NewTopic(topic, len(partitions), 2)])[topic].result(60)
    writers = {
        (name, index): Writer(clusters[name], topic, first, index)
        for name, first in SITES.items()
        for index in partitions
    }

    def write() -> None:
        for writer in writers.values():
            writer.go_on()

    def wait_more(count: int) -> None:
        """Write until so much more of each partition of dc1 is on dc2."""
        wanted = [mirror.mirrored_end(topic, index) + count for index in partitions]

        def is_there() -> bool:
            write()
            return all(mirror.mirrored_end(topic, n) >= end for n, end in enumerate(wanted))

        wait_until(f"{topic} mirrored to {wanted}", is_there)

    def is_led_by_others(dead: int) -> bool:
        write()
        return not {dead, -1} & leaders(sites.dc2, topic)

    mirror = MirrorProcess(configure(sites, tmp_path, topic))
    try:
        mirror.start()
        wait_more(40)
        with a_leader_dead(sites.dc2, topic) as dead:
            write()
            mirror.kill()
            mirror.start()
            wait_until("other leaders", partial(is_led_by_others, dead))
            wait_more(40)
        written = {key: writer.end() for key, writer in writers.items()}
        for index in partitions:
            count = sum(len(written[name, index]) for name in SITES)
            for cluster in clusters.values():
                is_there = partial(is_long, cluster, topic, index, count)
                wait_until(f"{count} records in {topic}-{index}; {mirror.log}", is_there)
                log = values_of(read_all(cluster, topic, index))
                assert len(log) == count, "nothing went round"
                for name, first in SITES.items():
                    own = [number for number in log if first <= number < first + 1_000_000]
                    assert own == written[name, index], f"what {name} wrote, once, in its order"
    finally:
        mirror.end()
