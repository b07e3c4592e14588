"""Which records of open fate are found again, where brokers keep our time and where they do not."""

from collections.abc import Collection, Iterator
from typing import Any, cast

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, Message

from failover.client.ledger import Acknowledged, Content, Pending
from failover.client.open_fate import find_arrived, find_there
from failover.client.site_reader import SiteReader
from offset_translation.offset_map import OffsetMap
from wire.topic_partition import TopicPartition

PLACE = TopicPartition("t", 0)


class Log:
    """A site whose partition holds records with these values, each stamped `late_ms` too late."""

    def __init__(self, values: str, late_ms: int, kind: int) -> None:
        self._values = values
        self._late_ms = late_ms
        self._kind = kind

    def offset_maps(
        self, _: str, __: Collection[TopicPartition]
    ) -> dict[TopicPartition, OffsetMap]:
        return {PLACE: OffsetMap.from_starts([(0, 0)], len(self._values))}

    def end(self, _: TopicPartition) -> int:
        return len(self._values)

    def offset_at(self, _: TopicPartition, __: int) -> int:
        return 0

    def read(self, _: TopicPartition, start: int, end: int) -> Iterator[Message]:
        for offset in range(start, end):
            fields: dict[str, Any] = {
                "topic": "t",
                "partition": 0,
                "offset": offset,
                "value": self._values[offset].encode(),
                "headers": [],
                "timestamp": (self._kind, 1_000 + self._late_ms),
            }
            yield Message(**fields)


def found(
    values: str,
    sent: str,
    last: Acknowledged | None,
    *,
    late_ms: int,
    kind: int = TIMESTAMP_CREATE_TIME,
) -> list[list[int]]:
    """Return the offsets at which the sent records are, on another site and on the same one."""
    reader = cast("SiteReader", Log(values, late_ms, kind))
    pendings = {
        PLACE: [
            Pending(
                topic="t",
                partition=0,
                content=Content(key=None, value=one.encode(), timestamp_ms=1_000, headers=()),
                size=1,
                on_delivery=None,
                sent=True,
            )
            for one in sent
        ]
    }
    acknowledged = {} if last is None else {PLACE: last}
    return [
        [message.offset() or 0 for _, message in there]
        for there in (
            find_arrived(reader, "dc1", pendings, acknowledged),
            find_there(reader, pendings, acknowledged),
        )
    ]


@pytest.mark.parametrize("late_ms", [0, 7])
def test_what_brokers_stamped_with_their_own_time_is_found_without_it(late_ms: int) -> None:
    last = Acknowledged(offset=1, is_stamped=True)
    assert found("ababxc", "abcd", last, late_ms=late_ms) == [[2, 3, 5]] * 2


def test_what_the_new_sites_brokers_alone_have_stamped_is_found_without_its_time() -> None:
    last, theirs = Acknowledged(offset=1, is_stamped=False), TIMESTAMP_LOG_APPEND_TIME
    assert found("ababxc", "abcd", last, late_ms=7, kind=theirs) == [[2, 3, 5]] * 2
    assert found("abab", "ab", None, late_ms=7, kind=theirs) == [[]] * 2


def test_where_the_time_is_ours_a_record_of_another_time_is_another_record() -> None:
    last = Acknowledged(offset=1, is_stamped=False)
    assert found("abab", "ab", last, late_ms=0) == [[2, 3]] * 2
    assert found("abab", "ab", last, late_ms=7) == [[]] * 2


def test_before_anything_was_acknowledged_an_equal_record_of_another_time_is_not_ours() -> None:
    """It may be of long ago: to take it for ours would lose ours."""
    assert found("abab", "ab", None, late_ms=7) == [[]] * 2
