"""What somebody asks for in the form; what cannot be is said by the field's name."""

import pytest

from failover.serve.peek.question import BadQuestion, PeekQuestion, question_of
from wire.topic_partition import TopicPartition

SITES = ("dc1", "dc2")


def asked(**fields: str) -> PeekQuestion:
    question = question_of({"site": "dc1", "topic": "orders", **fields}, SITES)
    assert question is not None
    return question


def test_a_search_begins_at_an_offset_at_a_time_or_near_the_end() -> None:
    assert asked(partition="3").place == TopicPartition("orders", 3)
    assert asked(offset="1,234").offset == 1_234
    assert asked(time="2026-03-01T12:30:00.5Z").time_ms == 1_772_368_200_500
    assert asked(time="2026-03-01T13:30:00.5+01:00").time_ms == 1_772_368_200_500
    assert asked(key="ключ").key == "ключ".encode()
    assert asked(key="0x00ff", key_form="hex").key == b"\x00\xff"
    assert asked(key=" ").key is None
    assert question_of({"site": "dc1"}, SITES) is None


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"site": "dc9"}, "site"),
        ({"topic": "a b"}, "topic"),
        ({"topic": ".."}, "topic"),
        ({"topic": '"><script>'}, "topic"),
        ({"partition": "-1"}, "partition"),
        ({"partition": "٣"}, "partition"),
        ({"offset": "1e3"}, "offset"),
        ({"offset": "9" * 30}, "offset"),
        ({"offset": "9223372036854775807"}, "offset"),
        ({"time": "yesterday"}, "time"),
        ({"time": "2026-03-01T12:30:00"}, "time"),
        ({"time": "1969-12-31T23:00:00Z"}, "time"),
        ({"offset": "1", "time": "2026-03-01T12:30:00Z"}, "offset and time"),
        ({"key": "0", "key_form": "hex"}, "key"),
        ({"key": "k", "key_form": "base64"}, "key"),
        ({"key": "k" * 600}, "key"),
    ],
)
def test_a_field_that_cannot_be_is_named(fields: dict[str, str], named: str) -> None:
    with pytest.raises(BadQuestion, match=f"^{named}:"):
        asked(**fields)


def test_the_log_has_no_key() -> None:
    assert str(asked(key="maria@example.com")) == "dc1 orders-0 by a key of 17 bytes"
