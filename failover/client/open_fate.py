"""Find out, on the new site, which records of open fate had reached the old one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Message

from failover.client.ledger import Acknowledged, Content, Pending, find_in_order
from failover.client.site_reader import SiteReader
from offset_translation.translation import translate_clamped
from wire.topic_partition import TopicPartition


def find_arrived(
    reader: SiteReader,
    source: str,
    sent: Mapping[TopicPartition, Sequence[Pending]],
    acknowledged: Mapping[TopicPartition, Acknowledged],
) -> list[tuple[Pending, Message]]:
    """Return the records that were mirrored from `source`, each with its message over here.

    `acknowledged` holds per partition the last record on the source that was acknowledged to us.
    Raises SiteUnreadable.
    """
    maps = reader.offset_maps(source, sent.keys())
    arrived: list[tuple[Pending, Message]] = []
    for partition, pendings in sent.items():
        offset_map = maps.get(partition)
        end = None if offset_map is None else offset_map.mirrored_target_end
        if offset_map is None or end is None:
            continue  # nothing of this partition was ever mirrored
        last = acknowledged.get(partition)
        start = None if last is None else translate_clamped(offset_map, last.offset + 1)
        stretch = (None if start is None else start.target_offset, end)
        arrived += _find(reader, partition, pendings, stretch, last)
    return arrived


def find_there(
    reader: SiteReader,
    sent: Mapping[TopicPartition, Sequence[Pending]],
    acknowledged: Mapping[TopicPartition, Acknowledged],
) -> list[tuple[Pending, Message]]:
    """Return the records that are on the site they were sent to, which is the reader's.

    A producer asks this that could not go on at the other site before this one was active again.
    Raises SiteUnreadable.
    """
    there: list[tuple[Pending, Message]] = []
    for partition, pendings in sent.items():
        last = acknowledged.get(partition)
        stretch = (None if last is None else last.offset + 1, reader.end(partition))
        there += _find(reader, partition, pendings, stretch, last)
    return there


def _is_stamped(last: Acknowledged | None, first: Message) -> bool:
    """Tell whether the partition's times are a broker's, where it was sent to or where it lies.

    Not before it has acknowledged: without a place to begin behind, an equal record of long ago
    would be taken for ours, and ours be lost.
    """
    is_stamped_here = first.timestamp()[0] == TIMESTAMP_LOG_APPEND_TIME
    return last is not None and (last.is_stamped or is_stamped_here)


def _find(
    reader: SiteReader,
    partition: TopicPartition,
    pendings: Sequence[Pending],
    stretch: tuple[int | None, int],
    last: Acknowledged | None,
) -> list[tuple[Pending, Message]]:
    """Return the records that lie in a stretch of a log, from its start to its end.

    Before the start, behind what was acknowledged last, none of them can be; without it, before the
    first record in the log that is as old as the oldest of them.
    """
    start, end = stretch
    if start is None:
        start = reader.offset_at(
            partition, min(pending.content.timestamp_ms for pending in pendings)
        )
    messages = reader.read(partition, start, end)
    first = next(messages, None)
    if first is None:
        return []
    is_stamped = _is_stamped(last, first)
    tail = (
        (message, _comparable(_content(message), is_stamped=is_stamped))
        for message in chain((first,), messages)
    )
    sent = [_comparable(pending.content, is_stamped=is_stamped) for pending in pendings]
    return list(zip(pendings, find_in_order(sent, tail), strict=False))


def _comparable(content: Content, *, is_stamped: bool) -> Content:
    """Return what of a record is the same on both sides: not its time where brokers give one."""
    return replace(content, timestamp_ms=0) if is_stamped else content


def _content(message: Message) -> Content:
    headers = message.headers() or []
    assert isinstance(headers, list), "a dict is what one may produce with, and no message has"
    return Content(
        key=_bytes(message.key()),
        value=_bytes(message.value()),
        timestamp_ms=message.timestamp()[1],
        headers=tuple((name, _bytes(value)) for name, value in headers),
    )


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
