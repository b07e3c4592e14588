"""What a consumer does with commits around a change of site; nothing is real."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import (
    OFFSET_END,
    OFFSET_INVALID,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from failover.client import consumer as module
from failover.client import group_membership
from failover.client.consumer import SiteConsumer
from failover.client.faults import code_of
from runtime.configuration.config import Configuration, load
from runtime.coordination.witness import ActiveSite
from tests.doubles.likeness import unlike
from tests.failover.client.watching import Watch
from tests.failover.two_sites import promotable


class FakeConsumer:
    """Gives one record at each poll, from the offset on that its site begins with."""

    begin: dict[str, int] = {"a:1": 900, "b:1": 400}  # noqa: RUF012
    commits: list[tuple[str, int]] = []  # noqa: RUF012 - emptied by the fixture
    idle = False

    def __init__(self, settings: dict[str, Any]) -> None:
        self._address = settings["bootstrap.servers"]
        self._on_commit = settings["on_commit"]
        self._next = self.begin[self._address]
        self._waiting: list[list[TopicPartition]] = []

    def subscribe(self, _: list[str], *, on_assign: Callable[..., None], **others: Any) -> None:
        self._on_assign: Callable[..., None] | None = on_assign
        self._on_lost: Callable[..., None] = others["on_lost"]

    def assign(self, _: list[TopicPartition]) -> None: ...

    def incremental_assign(self, _: list[TopicPartition]) -> None: ...

    def committed(self, asked: list[TopicPartition], *, timeout: float) -> list[TopicPartition]:
        assert timeout > 0
        return asked

    def offsets_for_times(
        self, asked: list[TopicPartition], *, timeout: float
    ) -> list[TopicPartition]:
        assert timeout > 0
        assert [one.offset for one in asked] == [OFFSET_END]
        return [TopicPartition(one.topic, one.partition, self._next) for one in asked]

    def consume(self, count: int, __: float) -> list[Message]:
        if self._on_assign is not None:
            self._on_assign(self, [TopicPartition("t", 0)])
            self._on_assign = None
        if self.idle:
            return []
        begin, self._next = self._next, self._next + count
        return [_message(offset) for offset in range(begin, self._next)]

    def poll(self, _: float) -> Message | None:
        while self._waiting:
            self._on_commit(None, self._waiting.pop(0))
        return None

    def commit(self, *, offsets: list[TopicPartition], asynchronous: bool) -> None:
        assert asynchronous
        self.commits += [(self._address, one.offset) for one in offsets]
        self._waiting.append(offsets)

    def close(self) -> None: ...


def _message(offset: int) -> Message:
    fields: dict[str, Any] = {"topic": "t", "partition": 0, "offset": offset}
    return Message(**fields)


def test_the_fake_has_the_ways_of_the_real_consumer() -> None:
    assert unlike(FakeConsumer, Consumer) == []


@pytest.fixture
def configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Configuration:
    """Two sites, dc1 active."""

    class Reader:
        def offset_maps(self, *_: object) -> dict[Any, Any]:
            return {}

    @contextmanager
    def open_reader(*_: object) -> Iterator[Reader]:
        yield Reader()

    monkeypatch.setattr(module, "ActiveSiteWatch", Watch)
    monkeypatch.setattr(module, "open_reader", open_reader)
    monkeypatch.setattr(group_membership, "Consumer", FakeConsumer)
    monkeypatch.setattr(FakeConsumer, "commits", [])
    file = tmp_path / "dc.yaml"
    file.write_text(promotable(dc1="a:1", dc2="b:1", witness="w:1", path="/r", topics=".*"))
    return load(file)


@pytest.fixture
def consumer(configuration: Configuration) -> SiteConsumer:
    """A member whose application commits by itself, at dc1."""
    return SiteConsumer(configuration, "g", ["t"], consumer_config={"enable.auto.commit": False})


def see(consumer: SiteConsumer, active: ActiveSite) -> None:
    """Let the witness say who is active."""
    watch: Any = consumer._watch
    watch.active = active


def poll(consumer: SiteConsumer) -> Message:
    """The next record."""
    message = consumer.poll(1)
    assert message is not None
    return message


def test_a_record_of_the_site_before_is_not_committed_at_its_offset_on_the_new_one(
    consumer: SiteConsumer,
) -> None:
    """An application commits late what it worked on; offsets differ from site to site."""
    old = poll(consumer)
    consumer.commit(old, asynchronous=False)
    see(consumer, ActiveSite(site="dc2", epoch=1))
    new = poll(consumer)
    with pytest.raises(KafkaException, match="t-0 at 900 was not delivered here"):
        consumer.commit(old, asynchronous=False)
    consumer.commit(new, asynchronous=False)
    assert FakeConsumer.commits == [("a:1", 901), ("b:1", 401)]


def test_a_commit_between_two_sites_is_refused_as_kafka_refuses_commits(
    consumer: SiteConsumer,
) -> None:
    old = poll(consumer)
    see(consumer, ActiveSite(site="dc1", epoch=0, moving_to="dc2"))
    assert consumer.poll(0) is None
    for message in (None, old):
        with pytest.raises(KafkaException, match="nothing can be committed between two sites"):
            consumer.commit(message)
    assert FakeConsumer.commits == []


def run(configuration: Configuration, application: Callable[[SiteConsumer], None]) -> None:
    """Run an application that leaves the commits to its consumer."""
    with SiteConsumer(configuration, "g", ["t"]) as consumer:
        application(consumer)


def test_a_record_whose_handling_failed_is_not_committed(configuration: Configuration) -> None:
    def application(consumer: SiteConsumer) -> None:
        for message in consumer:
            if message.offset() == 902:
                raise RuntimeError("database down")

    with pytest.raises(RuntimeError, match="database down"):
        run(configuration, application)
    assert FakeConsumer.commits == [("a:1", 902)]


def test_of_a_batch_that_is_interrupted_nothing_is_committed(configuration: Configuration) -> None:
    def application(consumer: SiteConsumer) -> None:
        consumer.consume(5, 1)
        consumer.consume(5, 1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(configuration, application)
    assert FakeConsumer.commits == [("a:1", 905)]


def test_what_was_asked_past_is_committed_whatever_ends_the_wait_for_more(
    configuration: Configuration, monkeypatch: pytest.MonkeyPatch
) -> None:
    def application(consumer: SiteConsumer) -> None:
        poll(consumer)
        monkeypatch.setattr(FakeConsumer, "idle", True)
        assert consumer.poll(0) is None
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(configuration, application)
    assert FakeConsumer.commits == [("a:1", 901)]


def test_an_error_takes_back_nothing_that_the_application_has_committed(
    configuration: Configuration,
) -> None:
    """It worked on a part of a batch, said so, and failed in the middle of the rest."""

    def application(consumer: SiteConsumer) -> None:
        batch = consumer.consume(5, 1)
        consumer.commit(batch[2])
        raise RuntimeError("database down")

    with pytest.raises(RuntimeError, match="database down"):
        run(configuration, application)
    assert {offset for _, offset in FakeConsumer.commits} == {903}


def test_closing_commits_everything_that_was_delivered(configuration: Configuration) -> None:
    def application(consumer: SiteConsumer) -> None:
        poll(consumer)
        poll(consumer)

    run(configuration, application)
    assert FakeConsumer.commits == [("a:1", 902)]


@pytest.mark.parametrize(
    ("settings", "way"),
    [
        ({}, "assign"),
        ({"group.protocol": "classic"}, "assign"),
        ({"partition.assignment.strategy": "cooperative-sticky"}, "incremental_assign"),
        ({"group.protocol": "Consumer"}, "incremental_assign"),
    ],
)
def test_partitions_are_taken_the_way_that_the_group_gives_them(
    configuration: Configuration,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, str],
    way: str,
) -> None:
    """By the newer protocol librdkafka takes no whole assignment."""
    taken: list[str] = []
    for name in ("assign", "incremental_assign"):
        take = partial(lambda name, *_: taken.append(name), name)
        monkeypatch.setattr(FakeConsumer, name, take)
    poll(SiteConsumer(configuration, "g", ["t"], consumer_config=settings))
    assert taken == [way]


BEGINNINGS: list[tuple[dict[str, Any], int | None]] = [
    ({}, 900),
    ({"auto.offset.reset": "latest"}, 900),
    ({"auto.offset.reset": "earliest"}, None),
    ({"default.topic.config": {"auto.offset.reset": "smallest"}}, None),
    ({"auto.offset.reset": "error"}, None),
]


@pytest.mark.parametrize(("settings", "begun"), BEGINNINGS)
def test_a_group_that_begins_at_the_end_has_that_for_its_position(
    configuration: Configuration,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, Any],
    begun: int | None,
) -> None:
    """On the next site it would begin at the end once more, behind what is written meanwhile."""
    taken: list[int] = []

    def assign(_: FakeConsumer, assigned: list[TopicPartition]) -> None:
        taken.extend(one.offset for one in assigned)

    monkeypatch.setattr(FakeConsumer, "assign", assign)
    monkeypatch.setattr(FakeConsumer, "idle", True)

    with SiteConsumer(configuration, "g", ["t"], consumer_config=settings) as consumer:
        assert consumer.poll(0) is None
    assert taken == [OFFSET_INVALID if begun is None else begun]
    assert FakeConsumer.commits == ([] if begun is None else [("a:1", begun)])


class Overdue(FakeConsumer):
    """Has not been asked for too long: at the next commit it hears so, and has lost all."""

    has_told = False

    def poll(self, _: float) -> Message | None:
        if not self.has_told:
            self.has_told = True
            fields: dict[str, Any] = {"error": KafkaError(KafkaError._MAX_POLL_EXCEEDED)}
            return Message(**fields)
        self._on_lost(self, [TopicPartition("t", 0)])
        self._on_commit(KafkaError(KafkaError.UNKNOWN_MEMBER_ID), self._waiting.pop())
        return None


def test_an_error_of_no_partition_outlives_the_loss_of_partitions(
    configuration: Configuration, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_membership, "Consumer", Overdue)
    settings = {"enable.auto.commit": False}
    consumer = SiteConsumer(configuration, "g", ["t"], consumer_config=settings)
    message = poll(consumer)
    with pytest.raises(KafkaException) as refused:
        consumer.commit(message, asynchronous=False)
    assert code_of(refused.value) == KafkaError.UNKNOWN_MEMBER_ID
    assert consumer.assignment() == []
    error = poll(consumer).error()
    assert error is not None
    assert error.code() == KafkaError._MAX_POLL_EXCEEDED
