"""A consumer that follows the active site, over real brokers and a real witness.

The promotion and the mirror are played by hand, so that each moment can be looked at by itself. No
test polls between the loss of a site and the switch: the first member of a librdkafka group can
deliver its whole prefetch queue after its site has died.
"""

from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaException, Message, TopicPartition

from failover.client import SiteConsumer, group_membership
from tests.failover.two_sites import (
    QUIET,
    Sites,
    commit_by_hand,
    committed,
    create_topic,
    hanging,
    prepare,
    produce,
    values_of,
)

pytestmark = pytest.mark.integration

CONSUMER: dict[str, Any] = {"auto.offset.reset": "earliest", "session.timeout.ms": 6_000, **QUIET}


def take(consumer: SiteConsumer, count: int, timeout_s: float = 80) -> list[int]:
    """Read so many records."""
    found: list[Message] = []
    deadline = monotonic() + timeout_s
    while len(found) < count and monotonic() < deadline:
        found += consumer.consume(count - len(found), 0.2)
    assert [message.error() for message in found if message.error()] == []
    return values_of(found)


def test_a_planned_move_goes_on_at_the_next_record(sites: Sites, tmp_path: Path) -> None:
    mirror = prepare(sites, "by-hand", 100)
    file = sites.configure(tmp_path, "/by-hand")
    with (
        sites.active_site("/by-hand") as active,
        SiteConsumer(file, "g-by-hand", ["by-hand"], consumer_config=CONSUMER) as consumer,
    ):
        assert take(consumer, 60) == list(range(60))
        active.set("dc1", 0, consumer, moving_to="dc2")
        assert consumer.consume(10, 1.0) == []
        assert consumer.is_between_sites
        assert committed(sites.dc1, "g-by-hand", "by-hand") == 60
        mirror.copy(100)
        commit_by_hand(sites.dc2, "g-by-hand", "by-hand", 60)
        active.set("dc2", 1, consumer)
        assert take(consumer, 40) == list(range(60, 100))
        assert consumer.site == "dc2"
        produce(sites.dc2, "by-hand", [100])
        assert take(consumer, 1) == [100]
    assert committed(sites.dc2, "g-by-hand", "by-hand") == 101


@pytest.mark.parametrize("is_manual", [False, True])
def test_a_member_that_has_read_nothing_yet_misses_nothing_of_what_comes_next(
    sites: Sites, tmp_path: Path, is_manual: bool
) -> None:
    """It began at the end of the old site; on the new one more is written before it has joined."""
    name = f"quiet-{is_manual}"
    mirror = prepare(sites, name, 10)
    mirror.copy(10)
    file = sites.configure(tmp_path, f"/{name}")
    settings = CONSUMER | {"auto.offset.reset": "latest", "enable.auto.commit": not is_manual}
    with (
        sites.active_site(f"/{name}") as active,
        SiteConsumer(file, name, [name], consumer_config=settings) as consumer,
    ):
        while not consumer.assignment():
            assert consumer.consume(1, 0.2) == []
        active.set("dc1", 0, consumer, moving_to="dc2")
        assert consumer.consume(10, 1.0) == []
        at = committed(sites.dc1, name, name)
        assert at == (OFFSET_INVALID if is_manual else 10)
        if not is_manual:
            commit_by_hand(sites.dc2, name, name, at)
        produce(sites.dc2, name, [10])
        active.set("dc2", 1, consumer)
        assert take(consumer, 1) == [10]


def test_a_lost_site_is_abandoned_and_nothing_processed_is_read_again(
    sites: Sites, tmp_path: Path
) -> None:
    mirror = prepare(sites, "lost-with-dc1", 100)
    mirror.copy(80)
    file = sites.configure(tmp_path, "/lost")
    with (
        sites.active_site("/lost") as active,
        SiteConsumer(file, "g-lost", ["lost-with-dc1"], consumer_config=CONSUMER) as consumer,
    ):
        assert take(consumer, 70) == list(range(70))
        active.set("dc2", 1, consumer)
        assert take(consumer, 10) == list(range(70, 80))
        assert consumer.site == "dc2"


def test_a_member_whose_session_was_lost_before_the_switch_still_reads_nothing_again(
    sites: Sites, tmp_path: Path
) -> None:
    mirror = prepare(sites, "expired", 60)
    mirror.copy(60)
    produce(sites.dc2, "expired", range(60, 100))
    file = sites.configure(tmp_path, "/expired")
    config = {**CONSUMER, "heartbeat.interval.ms": 300, "session.timeout.ms": 1_000}
    with (
        sites.active_site("/expired") as active,
        SiteConsumer(file, "g-expired", ["expired"], consumer_config=config) as consumer,
    ):
        assert take(consumer, 60) == list(range(60))
        with hanging(sites.dc1):
            deadline = monotonic() + 120
            while consumer.assignment() and monotonic() < deadline:
                assert consumer.consume(10, 0.1) == []
            assert consumer.assignment() == []
            active.set("dc2", 1, consumer)
            assert take(consumer, 40) == list(range(60, 100))


def test_with_manual_commits_only_what_was_committed_counts(sites: Sites, tmp_path: Path) -> None:
    mirror = prepare(sites, "manual", 100)
    mirror.copy(100)
    file = sites.configure(tmp_path, "/manual")
    revoked: list[list[TopicPartition]] = []
    config = {**CONSUMER, "enable.auto.commit": False}
    with (
        sites.active_site("/manual") as active,
        SiteConsumer(
            file,
            "g-manual",
            ["manual"],
            consumer_config=config,
            on_revoke=lambda _, partitions: revoked.append(partitions),
        ) as consumer,
    ):
        assert take(consumer, 30) == list(range(30))
        consumer.commit(asynchronous=False)
        assert take(consumer, 20) == list(range(30, 50))
        active.set("dc1", 0, consumer, moving_to="dc2")
        assert consumer.poll(1.0) is None
        assert [(p.topic, p.partition) for p in revoked[0]] == [("manual", 0)]
        active.set("dc2", 1, consumer)
        assert take(consumer, 70) == list(range(30, 100))


def commit_all(consumer: SiteConsumer, _: list[TopicPartition]) -> None:
    """What an application does when its partitions are taken."""
    consumer.commit(asynchronous=False)


def test_on_revoke_may_commit_before_the_member_leaves(sites: Sites, tmp_path: Path) -> None:
    mirror = prepare(sites, "revoking", 100)
    mirror.copy(100)
    file = sites.configure(tmp_path, "/revoking")
    with (
        sites.active_site("/revoking") as active,
        SiteConsumer(
            file,
            "g-revoking",
            ["revoking"],
            consumer_config={**CONSUMER, "enable.auto.commit": False},
            on_revoke=commit_all,
        ) as consumer,
    ):
        assert take(consumer, 50) == list(range(50))
        active.set("dc1", 0, consumer, moving_to="dc2")
        assert consumer.poll(1.0) is None
        assert committed(sites.dc1, "g-revoking", "revoking") == 50
        active.set("dc2", 1, consumer)
        assert take(consumer, 50) == list(range(50, 100))


def test_after_a_rollback_the_member_goes_on_where_it_was(sites: Sites, tmp_path: Path) -> None:
    prepare(sites, "rolled-back", 100)
    file = sites.configure(tmp_path, "/rolled-back")
    with (
        sites.active_site("/rolled-back") as active,
        SiteConsumer(file, "g-back", ["rolled-back"], consumer_config=CONSUMER) as consumer,
    ):
        assert take(consumer, 60) == list(range(60))
        active.set("dc1", 0, consumer, moving_to="dc2")
        assert consumer.poll(1.0) is None
        active.set("dc1", 0, consumer)
        assert take(consumer, 40) == list(range(60, 100))
        assert consumer.site == "dc1"


def test_two_members_share_the_group_on_both_sites(sites: Sites, tmp_path: Path) -> None:
    for cluster in (sites.dc1, sites.dc2):
        create_topic(cluster, "shared", 2)
    for partition in range(2):
        produce(sites.dc1, "shared", range(50), partition)
        produce(sites.dc2, "shared", range(50), partition)
    file = sites.configure(tmp_path, "/shared")
    with (
        sites.active_site("/shared") as active,
        SiteConsumer(file, "g-shared", ["shared"], consumer_config=CONSUMER) as one,
        SiteConsumer(file, "g-shared", ["shared"], consumer_config=CONSUMER) as other,
    ):
        found: list[int] = []
        deadline = monotonic() + 120
        while len(found) < 100 and monotonic() < deadline:
            found += values_of(one.consume(10, 0.1)) + values_of(other.consume(10, 0.1))
        assert sorted(found) == sorted([*range(50)] * 2)
        active.set("dc2", 1, one, other)
        deadline = monotonic() + 120
        while not (one.assignment() and other.assignment()) and monotonic() < deadline:
            one.poll(0.1)
            other.poll(0.1)
        assert {one.site, other.site} == {"dc2"}
        assert sorted(p.partition for p in one.assignment() + other.assignment()) == [0, 1]


def test_a_member_takes_over_where_another_one_was_when_the_site_was_lost(
    sites: Sites, tmp_path: Path
) -> None:
    mirror = prepare(sites, "handed", 100)
    mirror.copy(100)
    file = sites.configure(tmp_path, "/handed")
    with (
        sites.active_site("/handed") as active,
        SiteConsumer(file, "g-handed", ["handed"], consumer_config=CONSUMER) as owner,
    ):
        assert take(owner, 60) == list(range(60))
        with SiteConsumer(file, "g-handed", ["handed"], consumer_config=CONSUMER) as other:
            assert other.consume(10, 0.2) == []
            active.set("dc2", 1, owner, other)
            first = values_of(other.consume(100, 0.5))
            found = [*first, *values_of(owner.consume(100, 0.2))]
            deadline = monotonic() + 120
            while len(found) < 40 and monotonic() < deadline:
                found += values_of(other.consume(100, 0.1)) + values_of(owner.consume(100, 0.1))
    assert first == []
    assert sorted(found) == list(range(60, 100))


def test_a_member_that_says_nothing_is_not_waited_for_long(sites: Sites, tmp_path: Path) -> None:
    mirror = prepare(sites, "silent", 20)
    mirror.copy(20)
    file = sites.configure(tmp_path, "/silent")
    with (
        sites.active_site("/silent") as active,
        SiteConsumer(file, "g-silent", ["silent"], consumer_config=CONSUMER) as silent,
        SiteConsumer(file, "g-silent", ["silent"], consumer_config=CONSUMER) as other,
    ):
        assert silent.consume(0, 0.1) == []
        assert other.consume(0, 0.1) == []
        active.set("dc2", 1, silent, other)
        assert take(other, 20) == list(range(20))


def test_a_commit_that_waits_for_a_lost_site_ends_with_the_switch(
    sites: Sites, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_membership, "COMMIT_TIMEOUT_S", 3_600.0)  # only the switch can end it
    mirror = prepare(sites, "waiting-commit", 50)
    mirror.copy(50)
    file = sites.configure(tmp_path, "/waiting-commit")
    config = {**CONSUMER, "enable.auto.commit": False}
    with (
        sites.active_site("/waiting-commit") as active,
        SiteConsumer(file, "g-waiting", ["waiting-commit"], consumer_config=config) as consumer,
    ):
        assert take(consumer, 20) == list(range(20))
        consumer.commit(asynchronous=False)
        assert take(consumer, 10) == list(range(20, 30))
        with hanging(sites.dc1):
            active.set("dc2", 1, consumer)
            with pytest.raises(KafkaException, match="does not acknowledge a commit"):
                consumer.commit(asynchronous=False)
            assert take(consumer, 30) == list(range(20, 50))


def test_a_consumer_leaves_a_site_that_hangs(sites: Sites, tmp_path: Path) -> None:
    mirror = prepare(sites, "hanging", 100)
    mirror.copy(80)
    file = sites.configure(tmp_path, "/hanging")
    with (
        sites.active_site("/hanging") as active,
        SiteConsumer(file, "g-hanging", ["hanging"], consumer_config=CONSUMER) as consumer,
    ):
        assert take(consumer, 50) == list(range(50))
        with hanging(sites.dc1):
            active.set("dc1", 0, consumer, moving_to="dc2")
            assert consumer.poll(0.1) is None  # the commit that nobody answers is given up
            active.set("dc2", 1, consumer)
            assert take(consumer, 30) == list(range(50, 80))
