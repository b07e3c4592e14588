"""Both sites' logs, positions and lags, read when nobody writes."""

from collections.abc import Mapping
from time import monotonic
from typing import Any, Final

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Wanted

from mirror.report.status import FlowReport
from tests.drill.failover.applications import GROUP, TOPIC, place_of
from tests.drill.failover.story import Lag
from wire.topic_partition import TopicPartition

WITHIN_S: Final = 60
QUIET: Final[dict[str, Any]] = {"enable.auto.commit": False, "log_level": 0}


def read_logs(bootstrap: str) -> Mapping[TopicPartition, Mapping[int, str]]:
    """Return the values of all partitions of the drill's topics. Raises KafkaException."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "drill-reader", **QUIET})
    try:
        return _read(consumer)
    finally:
        consumer.close()


def _read(consumer: Consumer) -> dict[TopicPartition, dict[int, str]]:
    topics = consumer.list_topics(timeout=WITHIN_S).topics
    ours = [one for one in topics if one.startswith(TOPIC) and not one.endswith(".diverged")]
    logs: dict[TopicPartition, dict[int, str]] = {}
    ends: dict[TopicPartition, int] = {}
    starts: list[Wanted] = []
    for topic in ours:
        for index in topics[topic].partitions:
            where = TopicPartition(topic, index)
            start, end = consumer.get_watermark_offsets(Wanted(topic, index), timeout=WITHIN_S)
            logs[where] = {}
            if start < end:
                ends[where] = end
                starts.append(Wanted(topic, index, start))
    consumer.assign(starts)
    deadline = monotonic() + WITHIN_S
    while any(max(logs[where], default=-1) < end - 1 for where, end in ends.items()):
        assert monotonic() < deadline, f"{ends} are not read"
        for message in consumer.consume(1000, 0.1):
            if message.error() is None:
                where, offset = place_of(message)
                value = (message.value() or b"").decode()
                logs[where][offset] = value
    return logs


def read_positions(bootstrap: str) -> Mapping[TopicPartition, int]:
    """Return where the group that follows is; partitions without a position are left out."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP, **QUIET})
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
