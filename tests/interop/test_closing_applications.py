"""Applications that write while `failover` closes their site of Apache Kafka."""

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Final

import pytest
import trio
from confluent_kafka import Consumer, KafkaError, Message, Producer
from confluent_kafka.admin import AclOperation, ResourceType

from failover.client import SiteProducer
from failover.journal.steps import StepName
from runtime.coordination.witness import WitnessPaths
from tests.failover.held import Held, held_promotion
from tests.failover.promoting import failover, finish
from tests.forked import Call
from tests.interop.closing import (
    GROUP,
    TIMEOUT_S,
    TOPIC,
    Stage,
    applications_may,
    let_applications_in,
    of_any_kind,
    stage,
)
from tests.interop.peers import KAFKA_3_ZOOKEEPER, KAFKA_4_KRAFT
from tests.interop.rights import give, held
from tests.interop.sites import (
    QUIET,
    Site,
    end_of,
    read_committed,
)
from tests.mirror.daemon import MirrorProcess, run_mirror, wait_until
from tests.secured_cluster import USER
from tests.zookeeper import look
from wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from wire.messages.end_txn import EndTxnRequest
from wire.messages.init_producer_id import InitProducerIdRequest
from wire.net import open_cluster

pytestmark = of_any_kind


@dataclass(slots=True)
class Writer:
    """An application that writes numbers all the time."""

    producer: SiteProducer
    sent: int = 0
    delivered: list[int] = field(default_factory=list)

    def write_until(self, is_done: Callable[[], bool], at_least: int = 0) -> None:
        """Write a number every other millisecond."""
        deadline = monotonic() + TIMEOUT_S
        least = self.sent + at_least
        while not (is_done() and self.sent >= least):
            assert monotonic() < deadline, f"{self.sent} sent, {len(self.delivered)} delivered"
            number = self.sent
            self.sent += 1

            def told(error: KafkaError | None, _: Message, number: int = number) -> None:
                assert error is None, error
                self.delivered.append(number)

            self.producer.produce(TOPIC, b"%d" % number, b"%d" % (number % 10), on_delivery=told)
            self.producer.poll(0.002)


def numbers_by_key(site: Site) -> dict[bytes | None, list[int]]:
    found: dict[bytes | None, list[int]] = {}
    for partition in range(2):
        for _, key, value in read_committed(site, TOPIC, partition):
            found.setdefault(key, []).append(int(value or b"-1"))
    return found


def each_once_in_order(count: int) -> dict[bytes | None, list[int]]:
    return {b"%d" % key: list(range(key, count, 10)) for key in range(10)}


def test_a_producer_without_the_right_to_write_hears_of_it(tmp_path: Path) -> None:
    with stage(tmp_path, KAFKA_4_KRAFT, KAFKA_4_KRAFT) as at, run_mirror(at.file) as mirror:
        mirror.wait_state(TOPIC, "streaming")
        applications_may(at.dc1.cluster, AclOperation.DESCRIBE)
        give(at.dc1.cluster, USER, ResourceType.TOPIC, "other", AclOperation.WRITE)
        outcome: list[KafkaError | None] = []

        def delivered(error: KafkaError | None, _: Message) -> None:
            outcome.append(error)

        with SiteProducer(at.applications, producer_config=QUIET) as producer:
            for _ in range(3):
                producer.produce(TOPIC, b"not mine", b"k", on_delivery=delivered)
                assert producer.flush(TIMEOUT_S) == 0
        refused = KafkaError.TOPIC_AUTHORIZATION_FAILED
        assert [error and error.code() for error in outcome] == [refused] * 3


@contextmanager
def writing(at: Stage, mirror: MirrorProcess) -> Iterator[Writer]:
    """Let an application write; what it has given librdkafka leaves that up to a second later.

    So some of it comes upon the fence.
    """
    for partition in range(2):
        mirror.wait_state(TOPIC, "streaming", partition)
    late = {**QUIET, "linger.ms": 1_000}
    with SiteProducer(at.applications, producer_config=late) as producer:
        writer = Writer(producer)
        writer.write_until(lambda: True, at_least=500)
        yield writer
    assert sorted(writer.delivered) == list(range(writer.sent))


def are_equal(at: Stage) -> bool:
    return numbers_by_key(at.dc1.cluster) == numbers_by_key(at.dc2.cluster)


def begun_anew(log: pytest.LogCaptureFixture, site: str) -> int:
    """Return how often a producer looked up what has arrived at a site, and went on there."""
    return sum(line.startswith(f"on {site}: ") for line in log.messages)


def test_a_producer_goes_on_at_the_new_site_each_record_once_in_its_order(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "failover.client")
    with stage(tmp_path, KAFKA_3_ZOOKEEPER, KAFKA_4_KRAFT) as at, run_mirror(at.file) as mirror:
        let_applications_in(at)
        with writing(at, mirror) as writer:
            for site in ("dc2", "dc1"):
                promotion = failover("promote", site, str(at.file))
                writer.write_until(partial(has_ended, promotion), at_least=500)
                assert finish(promotion).status == 0
                assert writer.producer.flush(TIMEOUT_S) == 0
                assert writer.producer.site == site
                assert begun_anew(caplog, site) == 1
                wait_until("the same on both sites", lambda: are_equal(at))
        assert numbers_by_key(at.dc1.cluster) == each_once_in_order(writer.sent)


def test_a_producer_goes_on_at_the_old_site_when_a_promotion_is_taken_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "failover.client")
    # A session that outlives the drain: without a mirror it would be over before the next batch.
    both = stage(tmp_path, KAFKA_4_KRAFT, KAFKA_4_KRAFT, session_ms=20_000)
    with both as at, run_mirror(at.file) as mirror:
        let_applications_in(at)
        with writing(at, mirror) as writer:
            with held_promotion("dc2", at.file, StepName.PREFLIGHT) as promotion:
                os.kill(mirror.pid, signal.SIGSTOP)
                try:
                    status = write_until_ended(writer, promotion)
                finally:
                    os.kill(mirror.pid, signal.SIGCONT)
            assert status == 1, promotion.lines
            assert writer.producer.flush(TIMEOUT_S) == 0
            assert writer.producer.site == "dc1"
            assert begun_anew(caplog, "dc1") == 1
        assert numbers_by_key(at.dc1.cluster) == each_once_in_order(writer.sent)
        wait_until("the same on both sites", lambda: are_equal(at))


def write_until_ended(writer: Writer, promotion: Held) -> int:
    """Let a promotion go on, and write until it ends; return its exit status."""
    with ThreadPoolExecutor(1) as thread:
        ending = thread.submit(promotion.end)
        writer.write_until(ending.done, at_least=500)
        return ending.result()


def has_ended(program: Call) -> bool:
    return program.process.poll() is not None


EMPTY: Final = "empty"


async def begin_empty_transaction(site: Site) -> tuple[int, int]:
    """Add a partition to a transaction that writes nothing; return its producer id and epoch."""
    async with open_cluster(site.addresses, client_id=EMPTY) as cluster:
        given = InitProducerIdRequest(transactional_id=EMPTY, transaction_timeout_ms=60_000)
        producer = await cluster.request(given)
        assert producer.error_code == 0
        connection = await cluster.any_connection()
        added = await connection.request(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=EMPTY,
                v3_and_below_producer_id=producer.producer_id,
                v3_and_below_producer_epoch=producer.producer_epoch,
                v3_and_below_topics=(AddPartitionsToTxnTopic(name=TOPIC, partitions=(0, 1)),),
            ),
            version=3,
        )
        [topic] = added.results_by_topic_v3_and_below
        assert all(each.partition_error_code == 0 for each in topic.results_by_partition)
        return producer.producer_id, producer.producer_epoch


async def end_empty_transaction(site: Site, producer_id: int, producer_epoch: int) -> None:
    async with open_cluster(site.addresses, client_id=EMPTY) as cluster:
        request = EndTxnRequest(
            transactional_id=EMPTY,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            committed=False,
        )
        assert (await cluster.request(request)).error_code == 0


def open_transaction(at: Stage) -> Producer:
    """Let an application write ten numbers and not commit them."""
    give(at.dc1.cluster, USER, ResourceType.TRANSACTIONAL_ID, "*", AclOperation.ALL)
    patient = at.dc1.client(
        "SASL_PLAINTEXT", transactional_id="late", transaction_timeout_ms=600_000
    )
    producer = Producer(patient)
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    for number in range(10):
        producer.produce(TOPIC, b"%d" % number, b"k", 0)
    assert producer.flush(TIMEOUT_S) == 0
    return producer


def test_a_transaction_that_does_not_end_is_named_and_may_be_committed_afterwards(
    tmp_path: Path,
) -> None:
    with stage(tmp_path, KAFKA_3_ZOOKEEPER, KAFKA_4_KRAFT) as at, run_mirror(at.file) as mirror:
        let_applications_in(at)
        for partition in range(2):
            mirror.wait_state(TOPIC, "streaming", partition)
        open_in = f"; a transaction is open in {TOPIC}-0 from 0 on (1 partitions)"
        with held_promotion("dc2", at.file, StepName.PREFLIGHT) as promotion:
            late = open_transaction(at)
            assert promotion.end() == 1, promotion.lines
        assert open_in in "".join(promotion.lines)
        hasty = at.file.with_name("hasty.yaml")
        patience = "catch_up_timeout_ms: 5000, drain_timeout_ms:"
        hasty.write_text(at.file.read_text().replace("drain_timeout_ms:", patience, 1))
        refused = finish(failover("promote", "dc2", str(hasty)))
        assert refused.status == 2, refused
        assert open_in in refused.complaint
        late.commit_transaction(TIMEOUT_S)
        wait_until("ten", lambda: len(read_committed(at.dc2.cluster, TOPIC, 0)) == 10)


def follow(witness: str, root: str, group: str) -> None:
    """Say that a member follows the active site: a promotion waits for it behind the fence."""
    client = look(witness)
    client.start()
    client.create(f"{WitnessPaths(root=root).group(group)}/member", b"", makepath=True)
    client.stop()
    client.close()


def test_open_transactions_end_behind_the_fence_and_are_no_breach_of_it(tmp_path: Path) -> None:
    with stage(tmp_path, KAFKA_4_KRAFT, KAFKA_4_KRAFT) as at, run_mirror(at.file) as mirror:
        dc1 = at.dc1.cluster
        let_applications_in(at)
        for partition in range(2):
            mirror.wait_state(TOPIC, "streaming", partition)
        member = Consumer(at.dc1.client("SASL_PLAINTEXT", group_id=GROUP))
        member.subscribe([TOPIC])
        wait_until("a member", lambda: member.poll(0.1) is None and bool(member.assignment()))
        follow(at.witness, "/closing", GROUP)
        before = end_of(dc1, TOPIC, 1)
        with held_promotion("dc2", at.file, StepName.PREFLIGHT) as promotion:
            late = open_transaction(at)
            empty = trio.run(begin_empty_transaction, dc1)
            promotion.go_on_past(StepName.FENCE)
            assert "User:*" in {who for who, _ in held(dc1, TOPIC)}
            late.commit_transaction(TIMEOUT_S)
            promotion.go_on_past(StepName.DRAIN)
            trio.run(end_empty_transaction, dc1, *empty)
            assert promotion.end() == 0, promotion.lines
        member.close()
        assert end_of(dc1, TOPIC, 1) == before + 1
        values = [value for _, _, value in read_committed(at.dc2.cluster, TOPIC, 0)]
        assert values == [b"%d" % number for number in range(10)]
