"""Partitions that cannot go on, and who decides: policies of the flow, commands at run time."""

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from mirror.report.status import PartitionReport
from tests.commands import run_mirror_command
from tests.failover.two_sites import (
    QUIET,
    Sites,
    create_topic,
    produce,
    read_all,
    values_of,
)
from tests.mirror.daemon import append_batches, configure, run_mirror, wait_until
from wire.record_batch import Record, build_batch

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def sites(shared_sites: Sites) -> Sites:
    return shared_sites


def admin_of(cluster: Any) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.bootstrap, **QUIET})


def test_records_deleted_too_early_and_batches_too_large_are_left_out_and_counted(
    sites: Sites, tmp_path: Path
) -> None:
    create_topic(sites.dc1, "lost")
    small = NewTopic("narrow", 1, 1, config={"max.message.bytes": "1000"})
    dc1, dc2 = admin_of(sites.dc1), admin_of(sites.dc2)
    dc2.create_topics([small])["narrow"].result(60)
    create_topic(sites.dc1, "narrow")
    policies = "on_retention_overrun: skip\n    on_record_too_large: skip"
    with run_mirror(configure(sites, tmp_path, "lost|narrow", policies)) as mirror:
        produce(sites.dc1, "lost", range(10))
        mirror.wait_mirrored("lost", 10)
        assert mirror.stop() == 0
        produce(sites.dc1, "lost", range(10, 20))
        gone = TopicPartition("lost", 0, 15)
        dc1.delete_records([gone])[gone].result(60)
        mirror.start()
        mirror.wait_mirrored("lost", 20)
        line = mirror.wait_state("lost", "streaming")
        assert (line["skipped_records"], line["lost_records"]) == (5, 0)
        assert "lost-0: source offsets 10 to 14 are left out" in mirror.log

        produce(sites.dc1, "narrow", range(3))
        mirror.wait_mirrored("narrow", 3)
        large = build_batch([Record(0, 1_003, b"k", b"3".zfill(2_000), ())])
        append_batches(sites.dc1, "narrow", [large])
        produce(sites.dc1, "narrow", range(4, 6))
        mirror.wait_mirrored("narrow", 6)
        line = mirror.wait_state("narrow", "streaming")
        assert line["skipped_records"] == 1
        assert 'mirror_skipped_records_total{flow="dc1->dc2",topic="lost",partition="0"} 5.0' in (
            mirror.metrics()
        )
    assert values_of(read_all(sites.dc2, "lost")) == [*range(10), *range(15, 20)]
    assert values_of(read_all(sites.dc2, "narrow")) == [0, 1, 2, 4, 5]


def test_a_topic_made_again_is_mirrored_anew_where_the_policy_says_so(
    sites: Sites, tmp_path: Path
) -> None:
    create_topic(sites.dc1, "anew", 2)
    produce(sites.dc1, "anew", range(5), 0)
    with run_mirror(configure(sites, tmp_path, "anew", "on_topic_recreated: restart")) as mirror:
        mirror.wait_mirrored("anew", 5)
        dc1 = admin_of(sites.dc1)
        dc1.delete_topics(["anew"])["anew"].result(60)
        wait_until("gone", lambda: "anew" not in dc1.list_topics(timeout=60).topics)
        create_topic(sites.dc1, "anew", 2)
        produce(sites.dc1, "anew", range(100, 103), 0)
        produce(sites.dc1, "anew", range(200, 202), 1)
        wait_until("deleted", lambda: "anew: deleted on the target" in mirror.log)
        mirror.wait_state("anew", "streaming", 0)
        mirror.wait_state("anew", "streaming", 1)
        mirror.wait_mirrored("anew", 3, 0)
        mirror.wait_mirrored("anew", 2, 1)
    assert values_of(read_all(sites.dc2, "anew", 0)) == [100, 101, 102]
    assert values_of(read_all(sites.dc2, "anew", 1)) == [200, 201]


def order(file: Path, *words: str) -> str:
    """Give an order as people do; return what the program says."""
    ended = run_mirror_command(*words, file)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_pauses_hold_over_a_restart_of_the_daemon_until_they_are_taken_back(
    sites: Sites, tmp_path: Path
) -> None:
    create_topic(sites.dc1, "rest", 2)
    create_topic(sites.dc1, "work")
    file = configure(sites, tmp_path, "rest|work")
    with run_mirror(file) as mirror:
        mirror.wait_state("rest", "streaming", 1)
        assert "rest:1 is paused; process" in order(file, "pause", "dc1-dc2", "rest:1")
        line = mirror.wait_state("rest", "paused", 1)
        assert line["reason"].startswith("paused by ")
        for mistyped in ("rset", "rest:2"):
            nothing = f"{mistyped} is paused (nothing by that name is mirrored now)"
            assert nothing in order(file, "pause", "dc1-dc2", mistyped)
            order(file, "resume", "dc1-dc2", mistyped)
        assert mirror.stop() == 0
        produce(sites.dc1, "rest", range(4), 0)
        produce(sites.dc1, "rest", range(5), 1)
        mirror.start()
        mirror.wait_mirrored("rest", 4, 0)
        mirror.wait_state("rest", "paused", 1)
        order(file, "resume", "dc1-dc2", "rest:1")
        mirror.wait_mirrored("rest", 5, 1)

        order(file, "pause", "dc1->dc2")
        wait_until("the flow rests", lambda: mirror.status()["role"] == "paused")
        assert mirror.status()["reason"].startswith("paused by ")
        produce(sites.dc1, "work", range(3))
        order(file, "resume", "dc1-dc2")
        mirror.wait_mirrored("work", 3)


def test_a_restart_decides_what_no_policy_has_decided(sites: Sites, tmp_path: Path) -> None:
    create_topic(sites.dc1, "stuck")
    create_topic(sites.dc2, "stuck")
    produce(sites.dc2, "stuck", [7])
    produce(sites.dc1, "stuck", range(3))
    file = configure(sites, tmp_path, "stuck")
    with run_mirror(file) as mirror:
        mirror.wait_state("stuck", "target diverged")
        order(file, "restart", "dc1-dc2", "stuck")
        wait_until("looked again", lambda: "restart (retry) of stuck" in mirror.log)
        mirror.wait_state("stuck", "target diverged")
        mirror.kill()
        told = order(file, "restart", "--from-earliest", "dc1-dc2", "stuck")
        assert "stuck is to be restarted; " in told
        mirror.start()
        mirror.wait_mirrored("stuck", 3)
        mirror.wait_state("stuck", "streaming")
        log = mirror.log
        assert log.count("stuck: deleted on the target") == 1
    assert values_of(read_all(sites.dc2, "stuck")) == [0, 1, 2]


def test_a_hangup_reloads_what_may_change_and_a_throttled_topic_takes_its_time(
    sites: Sites, tmp_path: Path
) -> None:
    create_topic(sites.dc1, "brake")
    throttle = "throttle: {topics: {brake: 2048}}"
    file = configure(sites, tmp_path, "brake", throttle)
    with run_mirror(file) as mirror:
        mirror.wait_state("brake", "streaming")
        batches = [build_batch([Record(0, 1_000, b"k", b"1".zfill(4_000), ())]) for _ in range(30)]
        append_batches(sites.dc1, "brake", batches)
        mirror.wait_state("brake", "catching up")
        good = file.read_text()
        file.write_text(good.replace("flows:", "flow:"))
        mirror.hang_up()
        wait_until("complained", lambda: "not reloaded, all goes on as before" in mirror.log)
        assert mirror.mirrored_end("brake") < 30
        file.write_text(good.replace(throttle, "on_target_refused: skip"))
        mirror.hang_up()
        for told in ("throttle: brake 2048 B/s -> none", "target_refused: stop -> skip"):
            wait_until(told, lambda: told in mirror.log)  # noqa: B023
        mirror.wait_mirrored("brake", 30)
        file.write_text(good.replace('"brake"', '"other"'))
        mirror.hang_up()
        line = mirror.wait_state("brake", "paused")
        assert line["reason"] == "no longer among the flow's topics"
        assert mirror.stop() == 0


def test_topics_are_listed_with_what_is_left_out_and_why(sites: Sites, tmp_path: Path) -> None:
    create_topic(sites.dc1, "listed", 2)
    create_topic(sites.dc1, "unlisted")
    file = configure(sites, tmp_path, "listed")
    page = order(file, "topics")
    assert "flow dc1->dc2: 1 of " in page
    assert "listed" in page
    (flow,) = json.loads(order(file, "topics", "--json"))
    told = {one["topic"]: (one["is_mirrored"], one["left_out"]) for one in flow["topics"]}
    assert told["listed"] == (True, None)
    assert told["unlisted"] == (False, "no include pattern matches")


@pytest.mark.story
def test_a_topic_deleted_on_the_source_goes_after_a_while_unless_others_wrote_to_it(
    sites: Sites, tmp_path: Path
) -> None:
    for topic in ("leaves", "theirs", "stays-1", "stays-2", "stays-3"):
        create_topic(sites.dc1, topic, 2)
        for index in (0, 1):
            produce(sites.dc1, topic, range(3), index)
    grace = "delete_gone_topics_after_ms: 1000"
    file = configure(sites, tmp_path, "leaves|theirs|stays.*", grace)
    dc1, dc2 = admin_of(sites.dc1), admin_of(sites.dc2)
    with run_mirror(file, "a") as one, run_mirror(file, "b") as other:

        def lines(topic: str) -> list[PartitionReport]:
            reports = [*one.status()["partitions"], *other.status()["partitions"]]
            return [line for line in reports if line["topic"] == topic]

        def is_mirrored_by_both(topic: str) -> bool:
            found = [(line["state"], line["mirrored_source_end"]) for line in lines(topic)]
            # Of what was not positioned before it was gone, nobody knows where the copy ends.
            return found == [("streaming", 3)] * 2 and len(one.status()["partitions"]) == 5

        for topic in ("leaves", "theirs", "stays-3"):
            wait_until(f"{topic} mirrored", lambda: is_mirrored_by_both(topic))  # noqa: B023
        produce(sites.dc2, "theirs", [9])
        for done in dc1.delete_topics(["leaves", "theirs"]).values():
            done.result(60)
        wait_until("gone", lambda: "leaves" not in dc2.list_topics(timeout=60).topics)
        kept = "theirs is gone from the source, but kept: partition 0 holds records that"
        wait_until("kept", lambda: kept in one.log + other.log)
        told = "the topic was deleted on both sides"
        wait_until("told", lambda: [line["reason"] for line in lines("leaves")] == [told] * 2)
        assert {"theirs", "stays-1"} <= dc2.list_topics(timeout=60).topics.keys()
