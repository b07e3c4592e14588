"""Positions of groups of every kind that Apache Kafka has, on their way through the mirror."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from offset_translation.group_positions import Leave
from tests.interop.sites import (
    PAIRS,
    QUIET,
    TIMEOUT_S,
    Pair,
    RunningPair,
    commit,
    committed,
    create_topic,
    run_sites,
    write,
)
from tests.mirror.daemon import run_mirror, wait_until

pytestmark = pytest.mark.matrix(subject="The mirror between kinds of clusters")

COUNT = 400


@pytest.fixture(scope="module", params=[pair for pair in PAIRS if pair.has_apache_source], ids=str)
def sites(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningPair]:
    pair: Pair = request.param
    with run_sites(tmp_path_factory.mktemp("sites"), pair) as running:
        yield running


def read_some(sites: RunningPair, topic: str, group: str, count: int, **settings: Any) -> Consumer:
    """Read as a member of a group, commit what was read, and stay a member."""
    consumer = Consumer(
        {
            "bootstrap.servers": sites.dc1.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **QUIET,
            **settings,
        }
    )
    consumer.subscribe([topic])
    read = 0
    while read < count:
        message = consumer.poll(TIMEOUT_S)
        assert message is not None, f"{read} of {count} read"
        assert message.error() is None
        read += 1
    consumer.commit(asynchronous=False)
    return consumer


def test_a_live_member_and_its_leaving_are_followed(sites: RunningPair, tmp_path: Path) -> None:
    create_topic(sites.dc1, "live")
    write(sites.dc1, "live", 0, COUNT)
    with run_mirror(sites.configure(tmp_path, "live")) as mirror:
        mirror.wait_mirrored("live", COUNT)
        consumer = read_some(sites, "live", "live-group", 150)
        wait_until("150", lambda: committed(sites.dc2, "live-group", "live") == 150)
        consumer.close()
        commit(sites.dc1, "live-group", "live", 160)
        wait_until("160", lambda: committed(sites.dc2, "live-group", "live") == 160)
        assert mirror.stop() == 0


WAYS = {"read": "", "polled": "group_offsets: poll\n    group_poll_interval_ms: 100"}
MODERN = {"group.protocol": "consumer"}


@pytest.mark.parametrize("way", WAYS)
def test_a_group_of_the_new_protocol_is_followed(
    sites: RunningPair, tmp_path: Path, way: str
) -> None:
    if "4." not in str(sites.pair.source):
        pytest.skip("only Kafka 4 has the new group protocol by default")
    topic = f"modern-{way}"
    group = f"{topic}-group"
    create_topic(sites.dc1, topic)
    write(sites.dc1, topic, 0, COUNT)
    with run_mirror(sites.configure(tmp_path, topic, WAYS[way])) as mirror:
        mirror.wait_mirrored(topic, COUNT)
        consumer = read_some(sites, topic, group, 77, **MODERN)
        wait_until("77", lambda: committed(sites.dc2, group, topic) == 77)
        consumer.close()
        commit(sites.dc1, group, topic, 80)
        wait_until("80", lambda: committed(sites.dc2, group, topic) == 80)
        # What the new protocol keeps beside the positions is neither one nor damage.
        assert "mirror_malformed_records_total{" not in mirror.metrics()
        assert mirror.status()["groups_by"].startswith("__" if way == "read" else way)
        assert mirror.stop() == 0


def test_a_group_with_members_of_the_new_protocol_on_the_target_is_left_alone(
    sites: RunningPair, tmp_path: Path
) -> None:
    if "4." not in str(sites.pair.target):
        pytest.skip("only Kafka 4 has the new group protocol by default")
    create_topic(sites.dc1, "guarded")
    write(sites.dc1, "guarded", 0, COUNT)
    with run_mirror(sites.configure(tmp_path, "guarded")) as mirror:
        mirror.wait_mirrored("guarded", COUNT)
        there = RunningPair(pair=sites.pair, dc1=sites.dc2, dc2=sites.dc1, witness=sites.witness)
        consumer = read_some(there, "guarded", "guards", 5, **MODERN)
        commit(sites.dc1, "guards", "guarded", 90)

        def is_refused() -> bool:
            line = mirror.group("guards", "guarded")
            return line is not None and line["state"] == Leave.GROUP_IS_ACTIVE.value

        wait_until("the refusal", is_refused)
        assert committed(sites.dc2, "guards", "guarded") == 5
        consumer.close()
        wait_until("90", lambda: committed(sites.dc2, "guards", "guarded") == 90)
        assert mirror.stop() == 0


def test_positions_in_transactions_arrive_when_committed_and_not_when_aborted(
    sites: RunningPair, tmp_path: Path
) -> None:
    create_topic(sites.dc1, "inside")
    write(sites.dc1, "inside", 0, COUNT)
    consumer = read_some(sites, "inside", "inside-group", 10)
    producer = Producer(
        {"bootstrap.servers": sites.dc1.bootstrap, "transactional.id": "inside", **QUIET}
    )
    producer.init_transactions(TIMEOUT_S)

    def commit_inside(offset: int, *, is_kept: bool) -> None:
        producer.begin_transaction()
        producer.send_offsets_to_transaction(
            [TopicPartition("inside", 0, offset)], consumer.consumer_group_metadata(), TIMEOUT_S
        )
        (producer.commit_transaction if is_kept else producer.abort_transaction)(TIMEOUT_S)

    with run_mirror(sites.configure(tmp_path, "inside")) as mirror:
        mirror.wait_mirrored("inside", COUNT)
        commit_inside(100, is_kept=True)
        wait_until("100", lambda: committed(sites.dc2, "inside-group", "inside") == 100)
        commit_inside(300, is_kept=False)
        commit_inside(200, is_kept=True)
        wait_until("200", lambda: committed(sites.dc2, "inside-group", "inside") == 200)
        commit_inside(399, is_kept=False)
        commit(sites.dc1, "marker-group", "inside", 1)
        wait_until("1", lambda: committed(sites.dc2, "marker-group", "inside") == 1)
        assert committed(sites.dc2, "inside-group", "inside") == 200
        assert mirror.stop() == 0
    consumer.close()
