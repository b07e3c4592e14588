"""What a consumer does with commits around a change of site; nothing is real."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Message, TopicPartition

from failover.client import consumer as module
from failover.client import membership
from failover.client.consumer import SiteConsumer
from runtime.config import load
from runtime.witness import ActiveSite
from tests.failover.client.watching import Watch
from tests.failover.sites import CONFIG


class FakeConsumer:
    """Gives one record at each poll, from the offset on that its site begins with."""

    begin: dict[str, int] = {"a:1": 900, "b:1": 400}  # noqa: RUF012
    committed: list[tuple[str, int]] = []  # noqa: RUF012 - emptied by the fixture

    def __init__(self, settings: dict[str, Any]) -> None:
        self._address = settings["bootstrap.servers"]
        self._on_commit = settings["on_commit"]
        self._next = self.begin[self._address]
        self._waiting: list[list[TopicPartition]] = []

    def subscribe(self, _: list[str], **__: Any) -> None: ...

    def consume(self, _: int, __: float) -> list[Message]:
        fields: dict[str, Any] = {"topic": "t", "partition": 0, "offset": self._next}
        self._next += 1
        return [Message(**fields)]

    def poll(self, _: float) -> None:
        while self._waiting:
            self._on_commit(None, self._waiting.pop(0))

    def commit(self, *, offsets: list[TopicPartition], asynchronous: bool) -> None:
        assert asynchronous
        self.committed += [(self._address, one.offset) for one in offsets]
        self._waiting.append(offsets)

    def close(self) -> None: ...


@pytest.fixture
def consumer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SiteConsumer:
    """A member whose application commits by itself, at dc1."""

    class Reader:
        def offset_maps(self, *_: object) -> dict[Any, Any]:
            return {}

    @contextmanager
    def open_reader(*_: object) -> Iterator[Reader]:
        yield Reader()

    monkeypatch.setattr(module, "ActiveSiteWatch", Watch)
    monkeypatch.setattr(module, "open_reader", open_reader)
    monkeypatch.setattr(membership, "Consumer", FakeConsumer)
    monkeypatch.setattr(FakeConsumer, "committed", [])
    file = tmp_path / "dc.yaml"
    file.write_text(CONFIG.format(dc1="a:1", dc2="b:1", witness="w:1", path="/r", topics=".*"))
    return SiteConsumer(load(file), "g", ["t"], consumer_config={"enable.auto.commit": False})


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
    assert FakeConsumer.committed == [("a:1", 901), ("b:1", 401)]


def test_a_commit_between_two_sites_is_refused_as_kafka_refuses_commits(
    consumer: SiteConsumer,
) -> None:
    old = poll(consumer)
    see(consumer, ActiveSite(site="dc1", epoch=0, moving_to="dc2"))
    assert consumer.poll(0) is None
    for message in (None, old):
        with pytest.raises(KafkaException, match="nothing can be committed between two sites"):
            consumer.commit(message)
    assert FakeConsumer.committed == []
