"""The demo's producer vouches for every record, or fails."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pytest

from demo import producer
from demo.data_set import Departure
from demo.producer import RecordRefused, replay
from tests.failover.two_sites import promotable


class Forgetful:
    """A producer that says nothing of one record, neither good nor bad."""

    site = "dc1"

    def __init__(self, _: object) -> None:
        self._told: list[Callable[[Any, Any], None]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def produce(self, _: str, *, on_delivery: Callable[[Any, Any], None], **__: object) -> None:
        self._told.append(on_delivery)

    def flush(self) -> None:
        for told in self._told[1:]:
            told(None, self)

    def offset(self) -> int:
        return 0

    def partition(self) -> int:
        return 0


def test_a_record_of_which_nothing_was_heard_is_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    three = [Departure(number=number, key=b"N1", value=b"") for number in range(3)]
    monkeypatch.setattr(producer, "SiteProducer", Forgetful)
    monkeypatch.setattr(producer, "departures", lambda: iter(three))
    monkeypatch.setattr("signal.signal", lambda *_: None)
    file = tmp_path / "dc.yaml"
    file.write_text(promotable(dc1="a:1", dc2="b:1", witness="c:1", path="/p", topics=".*"))
    asked = argparse.Namespace(config=file, ledger=tmp_path / "a.csv", rate=0, forever=False)
    with pytest.raises(RecordRefused, match="1 of 3 records were neither acknowledged nor refused"):
        replay(asked)
