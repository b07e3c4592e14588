"""Applications with `failover.client` between two sites of Apache Kafka, one of which is lost.

Transactions leave holes in the source's offsets, so a position there is another number at the
target.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, Final, TypeAlias, cast

import pytest

from failover.client import SiteConsumer, SiteProducer
from tests.failover.promoting import (
    PARTITIONS,
    Application,
    failover,
    finish,
    numbers_in_order_per_partition,
    open_witness,
)
from tests.failover.two_sites import Sites as BundledSites
from tests.interop.peers import KAFKA_3_KRAFT, KAFKA_3_ZOOKEEPER, KAFKA_4_KRAFT
from tests.interop.sites import (
    QUIET,
    Pair,
    RunningPair,
    committed,
    create_topic,
    end_of,
    read_committed,
    run_sites,
    write,
    write_transactions,
)
from tests.mirror.daemon import MirrorProcess, run_mirror

pytestmark = pytest.mark.matrix(subject="Applications that change sites")

PATIENCE_S: Final = 120
CONSUMER: Final[dict[str, Any]] = {
    "auto.offset.reset": "earliest",
    "session.timeout.ms": 6_000,
    **QUIET,
}
PAIRS: Final = (
    Pair(source=KAFKA_3_ZOOKEEPER, target=KAFKA_4_KRAFT),
    Pair(source=KAFKA_4_KRAFT, target=KAFKA_3_KRAFT),
)

Content: TypeAlias = tuple[int, bytes | None]
"""A record by its partition and value."""


@pytest.fixture(scope="module", params=PAIRS, ids=str)
def sites(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningPair]:
    pair: Pair = request.param
    with run_sites(tmp_path_factory.mktemp("sites"), pair) as running:
        yield running


@dataclass(slots=True)
class Group:
    """Members that are polled in turn, and all that they have read."""

    members: Sequence[SiteConsumer]
    seen: list[Content] = field(default_factory=list)

    def take(self) -> None:
        """Read a few records with each member."""
        for member in self.members:
            for message in member.consume(20, 0.05):
                assert message.error() is None, message.error()
                self.seen.append((message.partition() or 0, message.value()))

    def read_until(self, what: str, is_done: Callable[[], bool]) -> None:
        """Read until it is so."""
        deadline = monotonic() + PATIENCE_S
        while not is_done():
            assert monotonic() < deadline, f"{len(self.seen)} records read, but not {what}"
            self.take()


def fill(sites: RunningPair, topic: str) -> Counter[Content]:
    """Write transactions, a third of them aborted, and more; return what a reader should see."""
    write_transactions(sites.dc1, topic, count=30, each=7)
    write(sites.dc1, topic, 10_000, 1_000)
    return Counter(
        (partition, value)
        for partition in range(PARTITIONS)
        for _, _, value in read_committed(sites.dc1, topic, partition)
    )


def wait_all_mirrored(sites: RunningPair, mirror: MirrorProcess, topic: str) -> None:
    """Wait until dc2 has all that dc1 has."""
    for partition in range(PARTITIONS):
        mirror.wait_mirrored(topic, end_of(sites.dc1, topic, partition), partition)


@contextmanager
def source_lost(
    sites: RunningPair, file: Path, work: Callable[[Callable[[], bool]], None] = lambda _: None
) -> Iterator[None]:
    """Kill dc1 and promote dc2 while the application does `work` until a condition holds.

    Without work nobody polls meanwhile, so that nothing is read that was fetched from dc1 before.
    """
    sites.dc1.kill()
    try:
        program = failover("promote", "dc2", "--source-lost", str(file))
        work(lambda: program.process.poll() is not None)
        ended = finish(program)
        assert ended.status == 0, ended
        yield
    finally:
        sites.dc1.start()


def test_members_go_on_exactly_where_each_of_them_was(sites: RunningPair, tmp_path: Path) -> None:
    create_topic(sites.dc1, "shared", PARTITIONS)
    rarely = {**CONSUMER, "auto.commit.interval.ms": 600_000}
    file = sites.configure(tmp_path, "shared")
    with (
        run_mirror(file) as mirror,
        SiteConsumer(file, "sharing", ["shared"], consumer_config=rarely) as one,
        SiteConsumer(file, "sharing", ["shared"], consumer_config=rarely) as other,
    ):
        group = Group([one, other])
        group.read_until("shared", lambda: bool(one.assignment() and other.assignment()))
        written = fill(sites, "shared")
        wait_all_mirrored(sites, mirror, "shared")
        group.read_until("400", lambda: len(group.seen) >= 400)
        assert len(group.seen) < written.total()
        assert all(committed(sites.dc2, "sharing", "shared", p) < 0 for p in range(PARTITIONS))
        with source_lost(sites, file):
            group.read_until("the end", lambda: len(set(group.seen)) == len(written))
            group.read_until("both moved", lambda: {one.site, other.site} == {"dc2"})
    assert Counter(group.seen) == written


def test_with_commits_by_hand_only_the_uncommitted_is_read_again(
    sites: RunningPair, tmp_path: Path
) -> None:
    create_topic(sites.dc1, "by-hand", PARTITIONS)
    written = fill(sites, "by-hand")
    by_hand = {**CONSUMER, "enable.auto.commit": False}
    file = sites.configure(tmp_path, "by-hand")
    with (
        run_mirror(file) as mirror,
        SiteConsumer(file, "by-hand", ["by-hand"], consumer_config=by_hand) as member,
    ):
        wait_all_mirrored(sites, mirror, "by-hand")
        group = Group([member])
        group.read_until("500", lambda: len(group.seen) >= 500)
        member.commit(asynchronous=False)
        known = len(group.seen)
        group.read_until("100 more", lambda: len(group.seen) >= known + 100)
        with source_lost(sites, file):
            uncommitted = group.seen[known:]
            group.read_until("the end", lambda: len(set(group.seen)) == len(written))
    assert Counter(group.seen) == written + Counter(uncommitted)


def test_what_was_acknowledged_and_mirrored_is_there_once_and_read_once(
    sites: RunningPair, tmp_path: Path
) -> None:
    create_topic(sites.dc1, "events", PARTITIONS)
    file = sites.configure(tmp_path, "events")
    application = Application(file, "events", "events")
    like_bundled = cast("BundledSites", sites)  # only addresses are used, which both have
    with (
        run_mirror(file) as mirror,
        SiteProducer(file, producer_config=QUIET) as producer,
        SiteConsumer(file, "events", ["events"], consumer_config=CONSUMER) as consumer,
    ):
        for partition in range(PARTITIONS):
            mirror.wait_state("events", "streaming", partition)
        application.work_until(producer, consumer, lambda: len(application.read) > 1_000)

        def work(is_promoted: Callable[[], bool]) -> None:
            application.work_until(producer, consumer, is_promoted)

        with source_lost(sites, file, work):
            more = application.sent + 500
            application.work_until(
                producer, consumer, lambda: application.sent > more and consumer.site == "dc2"
            )
            application.catch_up(producer, consumer)
            on_dc2 = numbers_in_order_per_partition(like_bundled, "events")
    with open_witness(like_bundled.witness, f"/{tmp_path.name}") as witness:
        [journal] = witness.journals()
    mirrored_to = {ends.partition: ends.mirrored_source_end for ends in journal.partitions}
    lost = {
        number
        for number, (site, partition, offset) in application.delivered.items()
        if site == "dc1" and offset >= mirrored_to[partition]
    }
    assert len(on_dc2) == len(set(on_dc2))
    assert set(range(application.sent)) - set(on_dc2) == lost
    assert len(application.read) == len(set(application.read))
    assert set(on_dc2) <= set(application.read)
