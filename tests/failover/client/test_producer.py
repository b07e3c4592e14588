"""A producer that follows the active site, over real brokers and a real witness.

The promotion and the mirror are played by hand, so that each moment can be looked at by itself.
"""

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message
from confluent_kafka.admin import AdminClient, NewTopic

from failover.client import SiteProducer
from tests.failover.two_sites import (
    QUIET,
    Sites,
    hanging,
    prepare,
    read_all,
    values_of,
)

pytestmark = pytest.mark.integration

CONSUMER: dict[str, Any] = {"auto.offset.reset": "earliest", "session.timeout.ms": 6_000, **QUIET}


class Deliveries:
    """What a producer was told."""

    def __init__(self) -> None:
        self.offsets: dict[int, int] = {}
        self.errors: list[KafkaError] = []

    def of(self, number: int) -> Any:
        """The callback of one record."""

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self.errors.append(error)
            assert number not in self.offsets, "told twice"
            offset = message.offset()
            assert offset is not None, "nothing here loses an answer"
            self.offsets[number] = offset

        return delivered


def send(producer: SiteProducer, topic: str, numbers: range, deliveries: Deliveries) -> None:
    """Produce one record for each number, with a header so that all parts travel."""
    for number in numbers:
        producer.produce(
            topic,
            value=b"%d" % number,
            key=b"k",
            timestamp=1_000 + number,
            headers={"n": b"%d" % number},
            on_delivery=deliveries.of(number),
        )


def test_while_a_move_is_announced_records_wait_and_then_go_to_the_new_site(
    sites: Sites, tmp_path: Path
) -> None:
    mirror = prepare(sites, "waiting", 0)
    file = sites.configure(tmp_path, "/waiting")
    deliveries = Deliveries()
    with (
        sites.active_site("/waiting") as active,
        SiteProducer(file, producer_config=QUIET) as producer,
    ):
        send(producer, "waiting", range(20), deliveries)
        assert producer.flush(60) == 0
        active.set("dc1", 0, producer, moving_to="dc2")
        send(producer, "waiting", range(20, 40), deliveries)
        assert producer.flush(0.5) == 20
        mirror.copy(20)
        active.set("dc2", 1, producer)
        assert producer.flush(60) == 0
        assert producer.site == "dc2"
    assert values_of(read_all(sites.dc1, "waiting")) == list(range(20))
    assert values_of(read_all(sites.dc2, "waiting")) == list(range(40))
    assert deliveries.offsets == {number: number for number in range(40)}
    assert deliveries.errors == []


def test_a_move_that_is_taken_back_sends_what_waited_to_the_old_site(
    sites: Sites, tmp_path: Path
) -> None:
    prepare(sites, "taken-back", 0)
    file = sites.configure(tmp_path, "/taken-back")
    deliveries = Deliveries()
    with (
        sites.active_site("/taken-back") as active,
        SiteProducer(file, producer_config=QUIET) as producer,
    ):
        active.set("dc1", 0, producer, moving_to="dc2")
        send(producer, "taken-back", range(20), deliveries)
        assert producer.flush(0.5) == 20
        active.set("dc1", 0, producer)
        assert producer.flush(60) == 0
    assert values_of(read_all(sites.dc1, "taken-back")) == list(range(20))


@pytest.mark.parametrize(
    ("acknowledged", "mirrored", "times"),
    [
        (10, 30, "CreateTime"),
        (10, 30, "LogAppendTime"),
        (10, 10, "CreateTime"),
        (0, 40, "CreateTime"),
        (0, 15, "CreateTime"),
        (0, 0, "CreateTime"),
        (20, 10, "CreateTime"),
    ],
)
def test_records_of_open_fate_are_neither_lost_nor_doubled(
    sites: Sites, tmp_path: Path, acknowledged: int, mirrored: int, times: str
) -> None:
    """The producer sent 40 records, and `mirrored` of them had reached dc2 when dc1 hung.

    The rest are sent again, except those that dc1 had acknowledged and not passed on: they are
    lost with dc1.
    """
    topic = f"open-fate-{acknowledged}-{mirrored}-{times}"
    mirror = prepare(sites, topic, 0, {"message.timestamp.type": times})
    file = sites.configure(tmp_path, f"/{topic}")
    deliveries = Deliveries()
    with (
        sites.active_site(f"/{topic}") as active,
        SiteProducer(file, producer_config=QUIET) as producer,
    ):
        assert producer._partition_count(topic) == 1  # it is asked for once, not when dc1 hangs
        send(producer, topic, range(acknowledged), deliveries)
        assert producer.flush(60) == 0
        with hanging(sites.dc1):
            send(producer, topic, range(acknowledged, 40), deliveries)
            assert producer.flush(0.3) == 40 - acknowledged
            mirror.copy(mirrored)
            active.set("dc2", 1, producer)
            assert producer.flush(60) == 0
    expected = [*range(mirrored), *range(max(mirrored, acknowledged), 40)]
    found = read_all(sites.dc2, topic)
    assert values_of(found) == expected
    if times == "CreateTime":
        assert [message.timestamp()[1] for message in found] == [1_000 + n for n in expected]
    assert [deliveries.offsets[number] for number in range(acknowledged, 40)] == [
        expected.index(number) for number in range(acknowledged, 40)
    ]


def test_a_record_that_the_site_refuses_is_told_and_all_others_arrive_once_in_their_order(
    sites: Sites, tmp_path: Path
) -> None:
    admin = AdminClient({"bootstrap.servers": sites.dc1.bootstrap, **QUIET})
    small = NewTopic("small", 1, 1, config={"max.message.bytes": "1000"})
    admin.create_topics([small])["small"].result(60)
    file = sites.configure(tmp_path, "/small")
    told: dict[int, int | None] = {}
    single = {**QUIET, "batch.num.messages": 1}
    with (
        sites.active_site("/small"),
        SiteProducer(file, producer_config=single) as producer,
    ):
        for number in range(60):

            def delivered(error: KafkaError | None, _: Message, number: int = number) -> None:
                assert number not in told, "told twice"
                told[number] = None if error is None else error.code()

            value = b"%d" % number
            producer.produce(
                "small", value.ljust(5_000 if number in {10, 11, 40} else 1), on_delivery=delivered
            )
        assert producer.flush(60) == 0
    refused = {number for number, code in told.items() if code == KafkaError.MSG_SIZE_TOO_LARGE}
    assert refused == {10, 11, 40}
    assert sorted(told) == list(range(60))
    arrived = [number for number in range(60) if told[number] is None]
    assert values_of(read_all(sites.dc1, "small")) == arrived
