"""What a producer does with its callbacks and refusals while the site changes; nothing is real."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message

from failover.client import producer as module
from failover.client.ledger import Pending
from failover.client.producer import SiteProducer
from failover.client.sending import Settled, unsent_message
from failover.client.site_reader import SiteUnreadable
from runtime.config import load
from runtime.witness import ActiveSite
from tests.failover.client.watching import Watch
from tests.failover.sites import CONFIG


class FakeSending:
    """Takes every record that is not refused; acknowledges when it is polled, if it may."""

    opened: list["FakeSending"] = []  # noqa: RUF012 - emptied by the fixture
    refused: set[bytes] = set()  # noqa: RUF012
    acknowledges = True

    def __init__(self, _: Mapping[str, Any], __: object, settled: Settled) -> None:
        self.acknowledged: dict[tuple[str, int], int] = {}
        self.sent: list[Pending] = []
        self._waiting: list[Pending] = []
        self._settled = settled
        FakeSending.opened.append(self)

    def partition_count(self, _: str) -> int:
        return 1

    def send(self, pending: Pending) -> bool:
        if pending.content.value in self.refused:
            raise KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))
        self.sent.append(pending)
        self._waiting.append(pending)
        return True

    def poll(self, _: float) -> int:
        if not self.acknowledges:
            return 0
        told, self._waiting = self._waiting, []
        for pending in told:
            self._settled(pending, None, unsent_message(pending))
        return len(told)

    def stop(self) -> None: ...

    @property
    def values(self) -> list[bytes | None]:
        return [pending.content.value for pending in self.sent]


Sent = Mapping[tuple[str, int], Sequence[Pending]]


@pytest.fixture
def producer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SiteProducer:
    """A producer at dc1."""
    monkeypatch.setattr(module, "ActiveSiteWatch", Watch)
    monkeypatch.setattr(module, "Sending", FakeSending)
    monkeypatch.setattr(module, "RETRY_S", 0.0)
    monkeypatch.setattr(FakeSending, "opened", [])
    monkeypatch.setattr(FakeSending, "refused", set())
    monkeypatch.setattr(FakeSending, "acknowledges", True)
    file = tmp_path / "dc.yaml"
    file.write_text(CONFIG.format(dc1="a:1", dc2="b:1", witness="w:1", path="/r", topics=".*"))
    return SiteProducer(load(file))


def move(producer: SiteProducer, site: str, epoch: int) -> None:
    """Make another site active."""
    watch: Any = producer._watch
    watch.active = ActiveSite(site=site, epoch=epoch)


def arrive_with(
    monkeypatch: pytest.MonkeyPatch, find: Callable[[Sent], list[tuple[Pending, Message]]]
) -> None:
    """Let a new site hold what `find` says of the records that were sent."""

    @contextmanager
    def open_reader(*_: object) -> Iterator[None]:
        yield

    monkeypatch.setattr(module, "open_reader", open_reader)
    monkeypatch.setattr(module, "find_arrived", lambda _, __, sent, ___: find(sent))
    monkeypatch.setattr(module, "find_there", lambda _, sent, __: find(sent), raising=False)


def first_of(count: int) -> Callable[[Sent], list[tuple[Pending, Message]]]:
    """The first records of the only partition are there."""

    def find(sent: Sent) -> list[tuple[Pending, Message]]:
        [pendings] = sent.values()
        return [(pending, unsent_message(pending)) for pending in pendings[:count]]

    return find


def test_a_record_that_is_refused_outright_is_not_taken_and_holds_up_no_other(
    producer: SiteProducer,
) -> None:
    FakeSending.refused = {b"huge"}
    producer.produce("t", b"1")
    with pytest.raises(KafkaException, match="MSG_SIZE_TOO_LARGE"):
        producer.produce("t", b"huge")
    producer.produce("t", b"2")
    assert producer.flush(1) == 0
    assert FakeSending.opened[0].values == [b"1", b"2"]


def test_a_record_refused_after_it_was_taken_is_told_of(producer: SiteProducer) -> None:
    FakeSending.refused = {b"huge"}
    told: list[tuple[int, Any, Any]] = []

    def delivered(error: Any, message: Any) -> None:
        told.append((error.code(), message.topic(), message.value()))

    watch: Any = producer._watch
    watch.active = ActiveSite(site="dc1", epoch=0, moving_to="dc2")
    producer.poll(0)
    producer.produce("t", b"huge", on_delivery=delivered)
    producer.produce("t", b"1")
    move(producer, "dc1", 0)
    assert producer.flush(1) == 0
    assert told == [(KafkaError.MSG_SIZE_TOO_LARGE, "t", b"huge")]
    assert FakeSending.opened[0].values == [b"1"]


def test_a_callback_may_produce_while_the_site_changes_and_nothing_overtakes(
    producer: SiteProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeSending.acknowledges = False
    again: Callable[..., None] = lambda *_: producer.produce("t", b"4")  # noqa: E731
    for number in (b"1", b"2", b"3"):
        producer.produce("t", number, on_delivery=again if number == b"1" else None)
    arrive_with(monkeypatch, first_of(1))
    move(producer, "dc2", 1)
    producer._serve(0)
    FakeSending.acknowledges = True
    assert producer.flush(1) == 0
    assert [sending.values for sending in FakeSending.opened] == [
        [b"1", b"2", b"3"],
        [b"2", b"3", b"4"],
    ]


def test_a_callback_that_raises_while_the_site_changes_loses_nothing(
    producer: SiteProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeSending.acknowledges = False
    told: list[bytes | None] = []

    def delivered(_: Any, message: Message) -> None:
        told.append(message.value())
        if message.value() == b"1":
            raise ValueError("the application's own")

    for number in (b"1", b"2", b"3"):
        producer.produce("t", number, on_delivery=delivered)
    arrive_with(monkeypatch, first_of(2))
    move(producer, "dc2", 1)
    with pytest.raises(ValueError, match="own"):
        producer.flush(1)
    FakeSending.acknowledges = True
    assert producer.flush(1) == 0
    assert told == [b"1", b"2", b"3"]
    assert FakeSending.opened[1].values == [b"3"]


def test_who_could_not_read_the_new_site_goes_on_when_the_old_one_is_active_again(
    producer: SiteProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(_: Sent) -> list[tuple[Pending, Message]]:
        raise SiteUnreadable("dc2 does not answer")

    FakeSending.acknowledges = False
    for number in (b"1", b"2", b"3"):
        producer.produce("t", number)
    arrive_with(monkeypatch, unreadable)
    move(producer, "dc2", 1)
    assert producer.flush(0.05) == 3
    arrive_with(monkeypatch, first_of(1))
    move(producer, "dc1", 2)
    FakeSending.acknowledges = True
    assert producer.flush(1) == 0
    assert FakeSending.opened[1].values == [b"2", b"3"]
