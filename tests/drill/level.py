"""Last words: a record behind all others in each log; where the target has it, it is level."""

from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any, Final

import trio
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.drill.history import value_of
from tests.drill.workload import PARTITIONS

SPOKEN_WITHIN_S: Final = 60.0
POLL_S: Final = 0.5
WHO: Final = "last words"


def speak(client: Mapping[str, Any], topics: Sequence[str]) -> bool:
    """Append a record to each log; whether all were acknowledged. Blocks."""
    producer = Producer({**client, "enable.idempotence": True, "log_level": 0})
    for topic in topics:
        for index in range(PARTITIONS):
            value = value_of(WHO, index, 0)
            producer.produce(topic, value, key=b"%d last" % index, partition=index)
    return producer.flush(SPOKEN_WITHIN_S) == 0


async def wait_level(
    client: Mapping[str, Any], topics: Sequence[str], within_s: float, *, is_last: bool = True
) -> float | None:
    """Return when each log ended with the last words, or with any record; None: not in time."""
    with trio.move_on_after(within_s):
        while True:
            if await trio.to_thread.run_sync(_is_level, client, topics, is_last):
                return monotonic()
            await trio.sleep(POLL_S)
    return None


def _is_level(client: Mapping[str, Any], topics: Sequence[str], is_last: bool) -> bool:
    settings = {**client, "group.id": "level", "log_level": 0}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    try:
        return all(
            (value := _last(consumer, topic, index)) is not None
            and (not is_last or value == value_of(WHO, index, 0))
            for topic in topics
            for index in range(PARTITIONS)
        )
    except KafkaException:
        return False
    finally:
        consumer.close()


def _last(consumer: Consumer, topic: str, index: int) -> bytes | None:
    """Return the value of the last record, None where there is none or it cannot be read now."""
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, index), timeout=5)
    if end <= 0:
        return None
    consumer.assign([TopicPartition(topic, index, end - 1)])
    message = consumer.poll(5)
    if message is None or message.error() is not None:
        return None
    value = message.value()
    return value if isinstance(value, bytes) else None
