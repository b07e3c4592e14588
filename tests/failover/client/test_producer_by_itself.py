"""What a producer does with its callbacks and refusals while the site changes; nothing is real."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message

from failover.client import producer as module
from failover.client.active_site import ActiveSiteWatch, WitnessUnreachable
from failover.client.ledger import Pending
from failover.client.producer import SiteProducer
from failover.client.sending import Sending, Settled, unsent_message
from failover.client.site_login import SiteUnreadable
from runtime.configuration.config import load
from runtime.coordination.witness import ActiveSite
from tests.doubles.likeness import unlike
from tests.failover.client.watching import Watch
from tests.failover.two_sites import promotable


class FakeSending:
    """Takes every record that is not refused; acknowledges when it is polled, if it may."""

    opened: list["FakeSending"] = []  # noqa: RUF012 - emptied by the fixture
    refused: set[bytes] = set()  # noqa: RUF012
    acknowledges = True
    without: set[bytes] = set()  # noqa: RUF012
    """What nobody may write now."""

    def __init__(self, _: Mapping[str, Any], __: object, settled: Settled) -> None:
        self.acknowledged: dict[tuple[str, int], int] = {}
        self.sent: list[Pending] = []
        self._waiting: list[Pending] = []
        self._settled = settled
        self.without_right: list[tuple[Pending, KafkaError, Message]] = []
        self.fault: KafkaException | None = None
        FakeSending.opened.append(self)

    @property
    def is_broken(self) -> bool:
        return bool(self.without_right or self.fault)

    def partition_count(self, _: str) -> int:
        return 1

    def send(self, pending: Pending) -> bool:
        if pending.content.value in self.refused:
            raise KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))
        if self.is_broken:
            return False
        self.sent.append(pending)
        self._waiting.append(pending)
        return True

    def poll(self, _: float) -> int:
        if not self.acknowledges:
            return 0
        told, self._waiting = self._waiting, []
        for pending in told:
            if self.is_broken or pending.content.value in self.without:
                error = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
                self.without_right.append((pending, error, unsent_message(pending)))
                continue
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
    monkeypatch.setattr(module, "SERVE_EVERY_S", 3600.0)  # not by chance where the machine is busy
    monkeypatch.setattr(FakeSending, "opened", [])
    monkeypatch.setattr(FakeSending, "refused", set())
    monkeypatch.setattr(FakeSending, "acknowledges", True)
    monkeypatch.setattr(FakeSending, "without", set())
    file = tmp_path / "dc.yaml"
    file.write_text(promotable(dc1="a:1", dc2="b:1", witness="w:1", path="/r", topics=".*"))
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
    monkeypatch.setattr(module, "find_there", lambda _, sent, __: find(sent))


def first_of(count: int) -> Callable[[Sent], list[tuple[Pending, Message]]]:
    """The first records of the only partition are there."""

    def find(sent: Sent) -> list[tuple[Pending, Message]]:
        [pendings] = sent.values()
        return [(pending, unsent_message(pending)) for pending in pendings[:count]]

    return find


def test_the_fakes_have_the_ways_of_what_they_stand_for() -> None:
    assert unlike(Watch, ActiveSiteWatch) == []
    own = ["Sending has no values"]
    assert unlike(FakeSending, Sending) == own


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


def refuse(producer: SiteProducer) -> list[KafkaError | None]:
    """Two records are on their way when the right to write is taken away; what is told of them."""
    told: list[KafkaError | None] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        told.append(error)

    FakeSending.without = {b"1", b"2"}
    for number in (b"1", b"2"):
        producer.produce("t", number, on_delivery=delivered)
    producer.poll(0)
    return told


def write_in_the_witness(producer: SiteProducer, active: ActiveSite) -> None:
    watch: Any = producer._watch
    watch.active, watch.written_at = active, watch.written_at + 1


def test_of_a_right_that_is_missing_the_application_hears_and_the_others_go_on(
    producer: SiteProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = refuse(producer)
    arrive_with(monkeypatch, first_of(0))
    producer.produce("t", b"3")
    assert producer.flush(1) == 0
    assert [error and error.code() for error in told] == [KafkaError.TOPIC_AUTHORIZATION_FAILED] * 2
    assert [sending.values for sending in FakeSending.opened] == [[b"1", b"2"], [b"3"]]


@pytest.mark.parametrize("arrived", [0, 1])
@pytest.mark.parametrize("site", ["dc1", "dc2"])
def test_what_a_fence_took_the_right_from_goes_on_where_the_promotion_ends(
    producer: SiteProducer, monkeypatch: pytest.MonkeyPatch, site: str, arrived: int
) -> None:
    told = refuse(producer)
    write_in_the_witness(producer, ActiveSite(site="dc1", epoch=0, moving_to="dc2"))
    assert producer.flush(0.05) == 2
    assert told == []
    arrive_with(monkeypatch, first_of(arrived))
    FakeSending.without = set()
    write_in_the_witness(producer, ActiveSite(site=site, epoch=1))
    assert producer.flush(1) == 0
    assert told == [None, None]
    assert FakeSending.opened[1].values == [b"1", b"2"][arrived:]


def test_a_refusal_heard_of_before_the_fence_is_not_told(
    producer: SiteProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = refuse(producer)
    later: Any = lambda watch: watch.written_at + 1  # noqa: E731 - the announcement is on its way
    monkeypatch.setattr(Watch, "ask_written_at", later)
    assert producer.flush(0.05) == 2
    assert told == []


def test_a_site_that_takes_nothing_at_all_is_the_applications_to_hear_of(
    producer: SiteProducer,
) -> None:
    FakeSending.opened[0].fault = KafkaException(
        KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED)
    )
    for _ in range(2):
        with pytest.raises(KafkaException, match="CLUSTER_AUTHORIZATION_FAILED"):
            producer.poll(0)


def test_who_cannot_ask_the_witness_keeps_what_was_refused(
    producer: SiteProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(_: Watch) -> int:
        raise WitnessUnreachable("the witness did not show it")

    monkeypatch.setattr(Watch, "ask_written_at", unreachable)
    told = refuse(producer)
    assert producer.flush(0.05) == 2
    assert told == []
