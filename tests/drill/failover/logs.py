"""Both sites' logs, positions and lags, read when nobody writes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final

from confluent_kafka import Consumer, Message
from confluent_kafka import TopicPartition as Wanted

from mirror.report.status import FlowReport
from runtime.diverged import OFFSET, PARTITION, RESTORED, SITE
from tests.drill.failover.applications import place_of
from tests.drill.failover.story import KeyEnds, Lag, Saved, SiteOffset
from tests.drill.failover.subject import Subject
from wire.topic_partition import TopicPartition

WITHIN_S: Final = 60
DIVERGED: Final = ".diverged"
QUIET: Final[dict[str, Any]] = {"enable.auto.commit": False, "log_level": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """What one site has: its logs, what was set aside there, and the last value of each key."""

    log: Mapping[TopicPartition, Mapping[int, str]]
    saved: Saved
    ends: KeyEnds


def read_site(bootstrap: str, subject: Subject) -> Copy:
    """Read all partitions of a subject's topics. Raises KafkaException."""
    log: dict[TopicPartition, dict[int, str]] = {}
    saved: dict[SiteOffset, str] = {}
    ends: dict[tuple[TopicPartition, str], str] = {}
    for where, messages in _read(bootstrap, subject).items():
        if where.topic.endswith(DIVERGED):
            saved.update(_saved(where, messages))
            continue
        log[where] = {
            message.offset() or 0: _text(message.value())
            for message in messages
            if not _is_restored(message)
        }
        if where.topic == subject.compacted:
            ends.update({(where, _text(one.key())): _text(one.value()) for one in messages})
    return Copy(log=log, saved=saved, ends=ends)


def _saved(where: TopicPartition, messages: Sequence[Message]) -> Iterator[tuple[SiteOffset, str]]:
    for message in messages:
        told = {name: _text(value) for name, value in dict(message.headers() or ()).items()}
        if SITE in told and not _is_restored(message):
            origin = TopicPartition(where.topic.removesuffix(DIVERGED), int(told[PARTITION]))
            yield (told[SITE], origin, int(told[OFFSET])), _text(message.value())


def _is_restored(message: Message) -> bool:
    return RESTORED in (message.headers() or ())


def _text(data: str | bytes | None) -> str:
    return data.decode() if isinstance(data, bytes) else data or ""


def _read(bootstrap: str, subject: Subject) -> dict[TopicPartition, list[Message]]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "drill-reader", **QUIET})
    try:
        return _read_all(consumer, subject)
    finally:
        consumer.close()


def _read_all(consumer: Consumer, subject: Subject) -> dict[TopicPartition, list[Message]]:
    topics = consumer.list_topics(timeout=WITHIN_S).topics
    logs: dict[TopicPartition, list[Message]] = {}
    ends: dict[TopicPartition, int] = {}
    starts: list[Wanted] = []
    for topic in filter(subject.has, topics):
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


def read_positions(bootstrap: str, group: str, topic: str) -> Mapping[TopicPartition, int]:
    """Return where a group is; partitions without a position are left out."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, **QUIET})
    try:
        count = len(consumer.list_topics(topic, timeout=WITHIN_S).topics[topic].partitions)
        wanted = [Wanted(topic, index) for index in range(count)]
        found = consumer.committed(wanted, timeout=WITHIN_S)
    finally:
        consumer.close()
    return {TopicPartition(topic, one.partition): one.offset for one in found if one.offset >= 0}


def lags_of(document: Mapping[str, Any], subject: Subject) -> list[Lag]:
    """Return what `mirror status --json` says; what is unknown is no claim."""
    lags: list[Lag] = []
    flows: list[FlowReport] = document["flows"]  # only what is running claims anything
    for flow in flows:
        if not subject.is_flow(flow["flow"]):
            continue
        source, target = flow["flow"].rpartition(":")[2].split("->")
        for one in flow["partitions"]:
            records = one["lag_records"]
            if records is not None and one["state"] == "streaming":
                where = TopicPartition(one["topic"], one["partition"])
                lags.append(Lag(source=source, target=target, partition=where, records=records))
    return lags
