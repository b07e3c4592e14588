"""Both sites' logs, positions and lags, read when nobody writes."""

from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any, Final

from confluent_kafka import Consumer, Message
from confluent_kafka import TopicPartition as Wanted

from mirror.report.status import FlowReport
from runtime.diverged import OFFSET, PARTITION, RESTORED, SITE
from tests.drill.failover.applications import TOPIC, place_of
from tests.drill.failover.story import Lag, Saved
from wire.topic_partition import TopicPartition

WITHIN_S: Final = 60
DIVERGED: Final = ".diverged"
QUIET: Final[dict[str, Any]] = {"enable.auto.commit": False, "log_level": 0}


def read_logs(bootstrap: str) -> Mapping[TopicPartition, Mapping[int, str]]:
    """Return the values of all partitions of the drill's topics. Raises KafkaException."""
    found = _read(bootstrap, lambda topic: not topic.endswith(DIVERGED))
    return {
        where: {message.offset() or 0: _value(message) for message in messages}
        for where, messages in found.items()
    }


def read_saved(bootstrap: str) -> Saved:
    """Return what a site has of what was set aside. Raises KafkaException."""
    found = _read(bootstrap, lambda topic: topic.endswith(DIVERGED))
    saved: dict[tuple[str, TopicPartition, int], str] = {}
    for where, messages in found.items():
        for message in messages:
            told = {name: value.decode() for name, value in message.headers() or () if value}
            if SITE in told and RESTORED[0] not in told:
                origin = TopicPartition(where.topic.removesuffix(DIVERGED), int(told[PARTITION]))
                saved[told[SITE], origin, int(told[OFFSET])] = _value(message)
    return saved


def _value(message: Message) -> str:
    return (message.value() or b"").decode()


def _read(bootstrap: str, is_ours: Callable[[str], bool]) -> dict[TopicPartition, list[Message]]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "drill-reader", **QUIET})
    try:
        return _read_all(consumer, is_ours)
    finally:
        consumer.close()


def _read_all(
    consumer: Consumer, is_ours: Callable[[str], bool]
) -> dict[TopicPartition, list[Message]]:
    topics = consumer.list_topics(timeout=WITHIN_S).topics
    logs: dict[TopicPartition, list[Message]] = {}
    ends: dict[TopicPartition, int] = {}
    starts: list[Wanted] = []
    for topic in [one for one in topics if one.startswith(TOPIC) and is_ours(one)]:
        for index in topics[topic].partitions:
            where = TopicPartition(topic, index)
            start, end = consumer.get_watermark_offsets(Wanted(topic, index), timeout=WITHIN_S)
            logs[where] = []
            if start < end:
                ends[where] = end
                starts.append(Wanted(topic, index, start))
    consumer.assign(starts)
    reached = dict.fromkeys(ends, -1)
    deadline = monotonic() + WITHIN_S
    while any(reached[where] < end - 1 for where, end in ends.items()):
        assert monotonic() < deadline, f"{ends} are not read"
        for message in consumer.consume(1000, 0.1):
            if message.error() is None:
                where, reached[where] = place_of(message)
                logs[where].append(message)
    return logs


def read_positions(bootstrap: str, group: str) -> Mapping[TopicPartition, int]:
    """Return where a group is; partitions without a position are left out."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, **QUIET})
    try:
        count = len(consumer.list_topics(TOPIC, timeout=WITHIN_S).topics[TOPIC].partitions)
        wanted = [Wanted(TOPIC, index) for index in range(count)]
        found = consumer.committed(wanted, timeout=WITHIN_S)
    finally:
        consumer.close()
    return {TopicPartition(TOPIC, one.partition): one.offset for one in found if one.offset >= 0}


def lags_of(document: Mapping[str, Any]) -> list[Lag]:
    """Return what `mirror status --json` says; what is unknown is no claim."""
    lags: list[Lag] = []
    flows: list[FlowReport] = document["flows"]  # only what is running claims anything
    for flow in flows:
        source, target = flow["flow"].split("->")
        for one in flow["partitions"]:
            records = one["lag_records"]
            if records is not None and one["state"] == "streaming":
                where = TopicPartition(one["topic"], one["partition"])
                lags.append(Lag(source=source, target=target, partition=where, records=records))
    return lags
